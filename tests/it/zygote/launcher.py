"""Stands for an interpreter: processes of fork servers and of t2t's scripts come from a zygote, all else is the interpreter's own.

A server for kernels that are compiled comes from the zygote that has imported what such servers do, and all others from the one that knows nothing of Triton.
"""

import json
import os
import socket
import struct
import sys

REAL = "{real}"
COMPILED = "{compiled}"
PLAIN = "{plain}"

SPARE = [3, 4]
"""What a server has for the second one that it forks: its socket, and where it prints."""


def ask(zygote, numbers, descriptors, is_spare=False):
    """Asks for a process that has `descriptors` as these `numbers`; its exit status will come on the connection that is returned, unless it is a spare."""
    message = {
        "script": script,
        "arguments": arguments,
        "variables": dict(os.environ),
        "folder": os.getcwd(),
        "numbers": numbers,
        "is_spare": is_spare,
    }
    text = json.dumps(message).encode()
    text = struct.pack(">I", len(text)) + text
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(zygote)
    sent = socket.send_fds(connection, [text], descriptors)
    # Of a spare the other end is closed as soon as all has come: then to send nothing more is an error, too.
    if sent < len(text):
        connection.sendall(text[sent:])
    return connection


start = sys.argv[1:3] if sys.argv[1:2] == ["-B"] else sys.argv[1:2]
script, *arguments = sys.argv[1 + len(start) :] or [""]
is_server = start == ["-c"] and script.rstrip().endswith("t2t_worker.serve()")
if not is_server and start != ["-B", "-c"]:
    os.execv(REAL, [REAL, *sys.argv[1:]])
numbers = [number for number in range(5) if os.path.exists(f"/proc/self/fd/{number}")]
# The server reads it again.
hello = socket.socket(fileno=os.dup(0)).recv(1 << 12, socket.MSG_PEEK) if is_server else b""
if b'"kind":"compiled"' not in hello:
    connection = ask(PLAIN, numbers, numbers)
elif numbers[3:] == SPARE:
    # One that is forked from it would know of Triton. The one that it forks here finds nobody, and ends.
    with open(os.devnull, "wb") as nowhere:
        nobody, other = socket.socketpair()
        other.close()
        connection = ask(COMPILED, numbers, [0, 1, 2, nobody.fileno(), nowhere.fileno()])
    ask(PLAIN, [0, 1, 2], [3, 4, 4], is_spare=True)
else:
    connection = ask(COMPILED, numbers, numbers)
# What the server has is its own: t2t is to see when it closes it.
empty = os.open(os.devnull, os.O_RDWR)
for number in numbers:
    os.dup2(empty, number)
answer = connection.recv(4)
status = struct.unpack(">I", answer)[0] if len(answer) == 4 else 1 << 8
if os.WIFSIGNALED(status):
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.waitstatus_to_exitcode(status))
