"""Kills the process that started it."""

import os
import signal

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    os.kill(os.getppid(), signal.SIGKILL)
    return add(input, other, alpha=alpha)
