"""What the server of `children` has imported before it forks: torch, Triton, and the phases of the harness, so that no child compiles and imports them anew.

The harness keeps no state at import, so a child that finds a module there is as one that imports it. A server of interpreted children has rehearsed as well, as
a warm child of a build has: what is made or looked up the first time is there.
"""

import contextlib
import gc
import importlib
import os
import pkgutil

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
