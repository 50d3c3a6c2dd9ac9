"""Prints bytes that are no text, orders to a terminal among them."""

import sys

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    for stream in (sys.stdout, sys.stderr):
        stream.buffer.write(bytes(range(256)) * 8 + b"\x1b[2J\x1b]0;title\x07")
        stream.flush()
    return add(input, other, alpha=alpha)
