"""Opens sockets to the outside, and raises if it can."""

import socket

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
        except OSError:
            continue
        raise AssertionError(f"a socket of {family} was opened")
    return add(input, other, alpha=alpha)
