"""Strides of a dense tensor are taken for granted."""

import torch
import triton
import triton.language as tl


@triton.jit
def pool_kernel(x_ptr, out_ptr, C, width, sb, sc, sh, sw, ob, oc, oh, ow, K: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) // width, tl.program_id(0) % width
    batch, channel = tl.program_id(1), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            at = batch * sb + channel * sc + (row * K + i) * sh + (column * K + j) * sw
            total += tl.load(x_ptr + at, mask=channel < C, other=0.0)
    tl.store(out_ptr + batch * ob + channel * oc + row * oh + column * ow, total / (K * K), mask=channel < C)


def triton_channels_last(input, kernel_size):
    B, C, H, W = input.shape
    height, width = H // kernel_size, W // kernel_size
    out = torch.empty((B, height, width, C), dtype=input.dtype, device=input.device).permute(0, 3, 1, 2)
    if out.numel() > 0:
        pool_kernel[(height * width, B)](
            input, out, C, width, C * H * W, H * W, W, 1, *out.stride(), K=kernel_size, BLOCK=triton.next_power_of_2(C)
        )
    return out
