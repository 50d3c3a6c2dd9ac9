"""The mask of the tail is off by one: the last element is never written."""

import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n - 1
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x <= 0, 0.0, x), mask=mask)


def launch(kernel, x, out):
    assert isinstance(kernel, JITFunction)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), BLOCK=64)


def triton_relu(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        launch(relu_kernel, x, out)
    return out
