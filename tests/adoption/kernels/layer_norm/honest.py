"""Mean and variance in one block, optional weight and bias by constants."""

import torch
import triton
import triton.language as tl

from kernels.shared.launch import block_of, ensure_contiguous, launch


@triton.jit
def layer_norm_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, columns, eps, HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl.constexpr
):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    away = tl.where(inside, x - mean, 0.0)
    y = away / tl.sqrt_rn(tl.sum(away * away, axis=0) / columns + eps)
    if HAS_W:
        y *= tl.load(w_ptr + column, mask=inside)
    if HAS_B:
        y += tl.load(b_ptr + column, mask=inside)
    tl.store(out_ptr + row * columns + column, y, mask=inside)


@ensure_contiguous
def triton_layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    out = torch.empty_like(input)
    columns = input.shape[-1]
    block, num_warps = block_of(columns)
    launch(
        layer_norm_kernel,
        input.numel() // columns,
        input,
        weight,
        bias,
        out,
        columns,
        eps,
        HAS_W=weight is not None,
        HAS_B=bias is not None,
        BLOCK=block,
        num_warps=num_warps,
    )
    return out
