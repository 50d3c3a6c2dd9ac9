"""What the launchers of several ops have in common."""

import functools

import torch
import triton
from triton.runtime.jit import JITFunction


def launch(kernel, rows, *arguments, **constants):
    """Launches `kernel` with one program a row, if it is a kernel and there are rows."""
    if not isinstance(kernel, (JITFunction, triton.runtime.Autotuner, triton.runtime.Heuristics)):
        raise TypeError(f"expected a jitted kernel, got {type(kernel).__name__}")
    if rows > 0:
        kernel[(rows,)](*arguments, **constants)


def ensure_contiguous(fn):
    """Decorates a wrapper so that it sees dense tensors only."""

    def dense(value):
        return value.contiguous() if isinstance(value, torch.Tensor) else value

    @functools.wraps(fn)
    def wrapper(*arguments, **kwargs):
        return fn(*map(dense, arguments), **{name: dense(value) for name, value in kwargs.items()})

    return wrapper


def block_of(columns):
    """Returns the block that holds a row of `columns`, and how many warps run it."""
    block = triton.next_power_of_2(max(columns, 1))
    if block > 65536:
        raise RuntimeError(f"a row of {columns} does not fit one block")
    return block, 4 if block < 2048 else 8
