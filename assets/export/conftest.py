"""Where the tests run: on a CUDA device, or in Triton's interpreter where there is none. It must be known before triton is imported."""

import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
