"""A process that has imported torch once, and forks the fork servers and scripts of many runs of t2t: `$PYTHON zygote.py SOCKET MODULE...`, which ends with its standard input.

Each connection to SOCKET is one start (`launcher.py`): a message with the script, its arguments and the variables, and the descriptors that the process is to
have. The process is killed with the connection, and its exit status is sent there. A spare, which t2t takes for forked by another server, says so first,
and ends with its socket alone.
"""

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import sys
import traceback
import types

LENGTH = struct.Struct(">I")
MOST = 8
"""The most descriptors that come with a message."""

FREE = 64
"""A number above all that a server is to have."""

SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2)."""


def received(connection):
    """Returns one message, as it was sent, and its descriptors; None where the other end has gone."""
    text, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, MOST)
    while len(text) < LENGTH.size or len(text) < LENGTH.size + LENGTH.unpack_from(text)[0]:
        more = connection.recv(1 << 16)
        if not more:
            return None
        text += more
    return json.loads(text[LENGTH.size :]), descriptors


def become(message, descriptors):
    """Makes this process, which was just forked, the one that `message` asks for, and runs its first lines."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Above all numbers that they are to have.
    held = [fcntl.fcntl(number, fcntl.F_DUPFD, FREE) for number in descriptors]
    os.closerange(0, min(held))
    for wanted, number in zip(message["numbers"], held, strict=True):
        os.dup2(number, wanted, inheritable=wanted <= 2)
        os.close(number)
    os.closerange(max(message["numbers"]) + 1, 4096)
    # Those of this process know what the descriptors were.
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(message["variables"])
    os.chdir(message["folder"])
    gc.enable()
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv[:] = ["-c", *message["arguments"]]
    entries = [entry for entry in message["variables"].get("PYTHONPATH", "").split(":") if entry]
    sys.path[:] = ["", *entries, *sys.path[1:]]
    if message["is_spare"]:
        text = json.dumps({"forked": {"pid": os.getpid()}}).encode()
        try:
            os.write(0, LENGTH.pack(len(text)) + text)
        except BrokenPipeError:
            # The build has ended before its spare began.
            raise SystemExit(0) from None
    exec(compile(message["script"], "<string>", "exec"), main.__dict__)


def forked(message, descriptors):
    """Returns the number of a process that runs what `message` asks for."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        become(message, descriptors)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def kill_what_it_left():
    """Kills what a server left: its children are in sessions of their own, and this process inherits them."""
    own = os.getsid(0)
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        for child in map(int, children.read().split()):
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(child) != own:
                    os.kill(child, signal.SIGKILL)


def serve(path):
    """Forks until standard input ends."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    wakes, woken = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    looked = selectors.DefaultSelector()
    for one in (listener, wakes, sys.stdin):
        looked.register(one, selectors.EVENT_READ)
    # By its process, where its status goes; and the other way round.
    connections, processes = {}, {}
    print("ready", flush=True)
    while True:
        for key, _ in looked.select():
            if key.fileobj is sys.stdin:
                for process in connections:
                    os.killpg(process, signal.SIGKILL)
                kill_what_it_left()
                return
            if key.fileobj is wakes:
                os.read(wakes, 1 << 10)
            elif key.fileobj is listener:
                connection, _ = listener.accept()
                begun = received(connection)
                if begun is None:
                    connection.close()
                    continue
                process = forked(*begun)
                for number in begun[1]:
                    os.close(number)
                with contextlib.suppress(PermissionError, ProcessLookupError):
                    os.setpgid(process, process)
                if begun[0]["is_spare"]:
                    connection.close()
                    continue
                connections[process], processes[connection] = connection, process
                looked.register(connection, selectors.EVENT_READ)
            elif key.fileobj in processes:
                # Nothing is ever sent there: whoever started it has gone.
                looked.unregister(key.fileobj)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(processes[key.fileobj], signal.SIGKILL)
        reap(looked, connections, processes)


def reap(looked, connections, processes):
    """Waits for all that have ended, and says so."""
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if process == 0:
            return
        connection = connections.pop(process, None)
        if connection is None:
            continue
        kill_what_it_left()
        del processes[connection]
        with contextlib.suppress(KeyError):
            looked.unregister(connection)
        with contextlib.suppress(OSError):
            connection.send(LENGTH.pack(status))
        connection.close()


# As a server does: collections would look through all that is imported.
gc.disable()
for module in sys.argv[2:]:
    importlib.import_module(module)
gc.freeze()
try:
    serve(sys.argv[1])
finally:
    shutil.rmtree(os.path.dirname(sys.argv[1]), ignore_errors=True)
