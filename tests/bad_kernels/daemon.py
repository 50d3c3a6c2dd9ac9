"""Leaves a daemon behind: a session of its own, forked twice, its descriptors closed."""

import os
import time

from kernels.add.right import triton_add as add

started = []


def daemon():
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            os.chdir("/")
            os.closerange(0, 4096)
            time.sleep(1000)
        os._exit(0)
    os.waitpid(between, 0)
    print("daemon", os.read(reading, 16).decode(), flush=True)
    return True


def triton_add(input, other, *, alpha=1):
    if not started:
        started.append(daemon())
    return add(input, other, alpha=alpha)
