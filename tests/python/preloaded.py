"""What the server of `children` has imported before it forks: torch, Triton, and the phases of the harness, so that no child compiles and imports them anew.

The harness keeps no state at import, so a child that finds a module there is as one that imports it. A server of interpreted children has rehearsed as well, as
a warm child of a build has: what is made or looked up the first time is there.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import pkgutil

# Collections would look through all that is imported, again and again.
gc.disable()

import torch
import torch._dynamo
import triton
from safetensors import torch as tensors

from t2t_harness import phases
from t2t_harness.server import ready

__all__ = ["tensors", "torch", "triton"]

for module in pkgutil.iter_modules(phases.__path__, f"{phases.__name__}."):
    importlib.import_module(module.name)

if os.environ["TRITON_INTERPRET"] == "1":
    # Where torch has begun a thread, it says so at its end; the children are forked by Python, and do without it.
    with contextlib.suppress(RuntimeError):
        ready.rehearse()

# What is there by now outlives every child: none need look through it, and so touch its pages.
gc.freeze()
gc.enable()

COLLAPSE = 25
"""Has the kernel put memory into huge pages (`MADV_COLLAPSE` in linux/mman.h)."""

HUGE = 2 << 20


def enlarge() -> None:
    """Has the kernel keep what is there in huge pages, where it can (Linux from 6.1 on): a fork copies their table, and the child's end frees the copy, in half of the time."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps", encoding="ascii") as mappings:
        for line in mappings:
            fields = line.split()
            is_own = len(fields) == 5 or fields[5:] == ["[heap]"]
            if fields[1] != "rw-p" or not is_own:
                continue
            start, end = (int(address, 16) for address in fields[0].split("-"))
            for place in range(-(-start // HUGE) * HUGE, end - HUGE + 1, HUGE):
                # It says no where there is nothing to gain.
                advise(place, HUGE, COLLAPSE)


with contextlib.suppress(OSError, AttributeError):
    enlarge()
