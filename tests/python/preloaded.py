"""What the server of `children` has imported before it forks: torch, Triton, and the phases of the harness, so that no child compiles and imports them anew.

The harness keeps no state at import, so a child that finds a module there is as one that imports it.
"""

import gc
import importlib
import pkgutil

import torch
import torch._dynamo
import triton
from safetensors import torch as tensors

from t2t_harness import phases

__all__ = ["tensors", "torch", "triton"]

for module in pkgutil.iter_modules(phases.__path__, f"{phases.__name__}."):
    importlib.import_module(module.name)

# What is there by now outlives every child: none need look through it, and so touch its pages.
gc.freeze()
