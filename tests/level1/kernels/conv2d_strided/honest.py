"""A convolution as a product: pixels are rows, channels and places of the filter are what is summed."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv2d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    C,
    H,
    W,
    F,
    height,
    width,
    stride,
    padding,
    K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pixel = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    batch = tl.program_id(2).to(tl.int64)
    row, column = pixel // width * stride - padding, pixel % width * stride - padding
    depth = C * K * K
    total = tl.zeros((BLOCK_P, BLOCK_O), tl.float32)
    for start in range(0, depth, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        h = row[:, None] + (k // K % K)[None, :]
        w = column[:, None] + (k % K)[None, :]
        inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & (pixel[:, None] < height * width) & (k[None, :] < depth)
        at = ((batch * C + (k // (K * K))[None, :]) * H + h) * W + w
        x = tl.load(x_ptr + at, mask=inside, other=0.0)
        mask = (o[None, :] < F) & (k[:, None] < depth)
        total = tl.dot(
            x,
            tl.load(weight_ptr + o[None, :] * depth + k[:, None], mask=mask, other=0.0),
            total,
            input_precision="ieee",
        )
    total += tl.load(bias_ptr + o, mask=o < F, other=0.0)[None, :]
    at = (batch * F + o[None, :]) * height * width + pixel[:, None]
    tl.store(out_ptr + at, total, mask=(pixel[:, None] < height * width) & (o[None, :] < F))


def triton_conv2d_strided(input, weight, bias, stride, padding):
    x, weight, bias = input.contiguous(), weight.contiguous(), bias.contiguous()
    (B, C, H, W), (F, _, K, _) = x.shape, weight.shape
    height, width = (H + 2 * padding - K) // stride + 1, (W + 2 * padding - K) // stride + 1
    out = torch.empty((B, F, height, width), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (triton.cdiv(height * width, 16), triton.cdiv(F, 16), B)
        shape = (C, H, W, F, height, width, stride, padding)
        conv2d_kernel[grid](x, weight, bias, out, *shape, K=K, BLOCK_P=16, BLOCK_O=16, BLOCK_K=64)
    return out
