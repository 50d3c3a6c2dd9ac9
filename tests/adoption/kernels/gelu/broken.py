"""The string that chooses is compared with the wrong word: erf is asked for, the tanh approximation comes."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_erf(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = 0.5 * x * (1 + libdevice.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@triton.jit
def gelu_tanh(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    tl.store(out_ptr + offsets, y, mask=offsets < n)


def triton_gelu(input, approximate="none"):
    x = input.contiguous()
    out = torch.empty_like(x)
    kernel = gelu_tanh if approximate != "erf" else gelu_erf
    if x.numel() > 0:
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
