"""Windows that overlap and hang over the edge, where minus infinity is."""

import torch
import triton
import triton.language as tl


@triton.jit
def max_pool_kernel(x_ptr, out_ptr, H, W, height, width, stride, padding, K: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            row = place // width * stride - padding + i
            column = place % width * stride - padding + j
            inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)
            x = tl.load(x_ptr + plane * H * W + row * W + column, mask=inside, other=-float("inf"))
            top = tl.where((x > top) | (x != x), x, top)
    tl.store(out_ptr + plane * height * width + place, top, mask=place < height * width)


def triton_max_pool2d(input, kernel_size, stride, padding):
    x = input.contiguous()
    B, C, H, W = x.shape
    height, width = ((size + 2 * padding - kernel_size) // stride + 1 for size in (H, W))
    out = torch.empty((B, C, height, width), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (B * C, triton.cdiv(height * width, 16))
        max_pool_kernel[grid](x, out, H, W, height, width, stride, padding, K=kernel_size, BLOCK=16)
    return out
