"""A grid of four programs at most, each of which strides over the tensor."""

import torch
import triton
import triton.language as tl


@triton.jit
def hardswish_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, n, step):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        gate = x + 3
        gate = tl.where(gate < 0, 0.0, tl.where(gate > 6, 6.0, gate))
        tl.store(out_ptr + offsets, x * gate / 6, mask=offsets < n)


def triton_grid_stride(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        programs = min(4, triton.cdiv(x.numel(), 32))
        hardswish_kernel[(programs,)](x, out, x.numel(), BLOCK=32)
    return out
