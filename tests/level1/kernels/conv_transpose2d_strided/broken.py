"""Asks nowhere whether the stride divides: each pixel gets its neighbours' share as well."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv_transpose2d_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    C,
    H,
    W,
    F,
    height,
    width,
    stride,
    padding,
    dilation,
    K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pixel = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    batch = tl.program_id(2).to(tl.int64)
    depth = C * K * K
    total = tl.zeros((BLOCK_P, BLOCK_O), tl.float32)
    for start in range(0, depth, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        c = k // (K * K)
        h = (pixel // width)[:, None] + padding - (k // K % K)[None, :] * dilation
        w = (pixel % width)[:, None] + padding - (k % K)[None, :] * dilation
        reached = (h >= 0) & (w >= 0)
        inside = reached & (h // stride < H) & (w // stride < W) & (pixel[:, None] < height * width)
        at = ((batch * C + c[None, :]) * H + h // stride) * W + w // stride
        x = tl.load(x_ptr + at, mask=inside & (k[None, :] < depth), other=0.0)
        at = (c[:, None] * F + o[None, :]) * K * K + (k % (K * K))[:, None]
        weight = tl.load(weight_ptr + at, mask=(o[None, :] < F) & (k[:, None] < depth), other=0.0)
        total = tl.dot(x, weight, total, input_precision="ieee")
    at = (batch * F + o[None, :]) * height * width + pixel[:, None]
    tl.store(out_ptr + at, total, mask=(pixel[:, None] < height * width) & (o[None, :] < F))


def triton_conv_transpose2d_strided(input, weight, stride, padding, dilation):
    x, weight = input.contiguous(), weight.contiguous()
    (B, C, H, W), (_, F, K, _) = x.shape, weight.shape
    height = (H - 1) * stride - 2 * padding + dilation * (K - 1) + 1
    width = (W - 1) * stride - 2 * padding + dilation * (K - 1) + 1
    out = torch.empty((B, F, height, width), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (triton.cdiv(height * width, 64), triton.cdiv(F, 16), B)
        shape = (C, H, W, F, height, width, stride, padding, dilation)
        conv_transpose2d_kernel[grid](x, weight, out, *shape, K=K, BLOCK_P=64, BLOCK_O=16, BLOCK_K=32)
    return out
