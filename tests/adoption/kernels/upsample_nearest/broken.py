"""Rounds to the nearest neighbour, where torch rounds down."""

import torch
import triton
import triton.language as tl


@triton.jit
def upsample_kernel(x_ptr, out_ptr, length, L, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    line, place = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + line * L + tl.minimum((place + 1) // SCALE, L - 1), mask=place < length)
    tl.store(out_ptr + line * length + place, x, mask=place < length)


def triton_upsample_nearest(input, scale_factor, mode):
    assert mode == "nearest"
    x = input.contiguous()
    B, C, L = x.shape
    out = torch.empty((B, C, L * scale_factor), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (B * C, triton.cdiv(out.shape[2], 16))
        upsample_kernel[grid](x, out, out.shape[2], L, SCALE=scale_factor, BLOCK=16)
    return out
