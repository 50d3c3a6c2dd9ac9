"""A row a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x, weight, out, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * width + at, mask=at < width, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / width + eps)
    factors = tl.load(weight + at, mask=at < width, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, values * scale * factors, mask=at < width)


def triton_rmsnorm_h96(hidden_states, weight, eps):
    """Launch it."""
    hidden_states, weight = hidden_states.contiguous(), weight.contiguous()
    out = torch.empty_like(hidden_states)
    rows, width = hidden_states.shape
    if rows:
        rmsnorm_kernel[(rows,)](hidden_states, weight, out, width, eps, BLOCK=triton.next_power_of_2(width))
    return out
