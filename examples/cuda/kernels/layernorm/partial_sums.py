"""Layer normalization, forward and backward, as an autograd function; the gradients of weight and bias are summed in two steps.

Math. Over rows of N elements, z = (x - mean) * rstd with rstd = 1 / sqrt(var + eps), and y = z * w + b. With dy flowing in and g = w * dy,

    dx = rstd * (g - mean(g) - z * mean(g * z)),    dw = sum over rows of dy * z,    db = sum over rows of dy.

The forward pass keeps rstd and the mean of each row, the mean as what it is beyond the row's first element: the backward pass finds z as exactly
as the forward pass had it, whatever is added to a row.

Technique. Backward, a program walks every PROGRAMS-th row, holds it as one block, writes dx, and adds up dw and db of its rows in registers, so x and dy
are read once. It leaves a row of partial sums, which a second kernel adds, a tile of columns a program. Nothing is atomic: two runs give the same bits.
The partial sums are at most PROGRAMS rows, however many rows there are. Arithmetic is float32, rounded once at the store.
"""

import math

import torch
import triton
import triton.language as tl

MAX_TILE = 16384
WARP_TILE = 512
MAX_WARPS = 32
PROGRAMS = 256
COLUMNS = 32
PARTS = 32


@triton.jit
def layernorm_forward_kernel(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    first = tl.load(x_ptr + row * N).to(tl.float32)
    shifted = tl.where(mask, x - first, 0.0)
    mean = tl.sum(shifted, axis=0) / N
    centered = tl.where(mask, shifted - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centered * centered, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, centered * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layernorm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, M, N, BLOCK_N: tl.constexpr
):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_N,), tl.float32)
    db = tl.zeros((BLOCK_N,), tl.float32)
    for row in range(program, M, tl.num_programs(0)):
        start = row.to(tl.int64) * N
        dy = tl.load(dy_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        first = tl.load(x_ptr + start).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        z = tl.where(mask, (x - first - tl.load(mean_ptr + row)) * rstd, 0.0)
        g = weight * dy
        dx = rstd * (g - tl.sum(g, axis=0) / N - z * (tl.sum(g * z, axis=0) / N))
        tl.store(dx_ptr + start + cols, dx, mask=mask)
        dw += dy * z
        db += dy
    tl.store(dw_ptr + program.to(tl.int64) * N + cols, dw, mask=mask)
    tl.store(db_ptr + program.to(tl.int64) * N + cols, db, mask=mask)


@triton.jit
def sum_parts_kernel(dw_ptr, db_ptr, w_ptr, b_ptr, parts, N, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    cols = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    dw = tl.zeros((PARTS, COLUMNS), tl.float32)
    db = tl.zeros((PARTS, COLUMNS), tl.float32)
    for start in range(0, parts, PARTS):
        rows = start + tl.arange(0, PARTS)
        mask = (rows[:, None] < parts) & (cols[None, :] < N)
        offsets = rows[:, None].to(tl.int64) * N + cols[None, :]
        dw += tl.load(dw_ptr + offsets, mask=mask, other=0.0)
        db += tl.load(db_ptr + offsets, mask=mask, other=0.0)
    tl.store(w_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(b_ptr + cols, tl.sum(db, axis=0), mask=cols < N)


def block_of(N: int) -> tuple[int, int]:
    """Returns the block that holds a row of N elements, and how many warps share it. Raises ValueError for a longer row than one block holds."""
    if N > MAX_TILE:
        raise ValueError(f"rows have at most {MAX_TILE} elements, not {N}")
    block = triton.next_power_of_2(N)
    return block, min(max(block // WARP_TILE, 1), MAX_WARPS)


class LayerNorm(torch.autograd.Function):
    """Layer normalization over rows of `weight.numel()` elements."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        N = weight.numel()
        M = x.numel() // max(N, 1)
        y = torch.empty_like(x)
        mean, rstd = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
        if x.numel():
            block, warps = block_of(N)
            layernorm_forward_kernel[(M,)](x, weight, bias, y, mean, rstd, N, eps, BLOCK_N=block, num_warps=warps)
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        N = weight.numel()
        M = x.numel() // max(N, 1)
        dy, dx = dy.contiguous(), torch.empty_like(x)
        if not x.numel():
            return dx, torch.zeros_like(weight), torch.zeros_like(weight), None
        block, warps = block_of(N)
        parts = min(M, PROGRAMS)
        part_dw, part_db = (torch.empty((parts, N), dtype=torch.float32, device=x.device) for _ in range(2))
        layernorm_backward_kernel[(parts,)](
            dy, x, weight, mean, rstd, dx, part_dw, part_db, M, N, BLOCK_N=block, num_warps=warps
        )
        dw, db = torch.empty_like(weight), torch.empty_like(weight)
        grid = (triton.cdiv(N, COLUMNS),)
        sum_parts_kernel[grid](part_dw, part_db, dw, db, parts, N, PARTS=PARTS, COLUMNS=COLUMNS)
        return dx, dw, db, None


def triton_layernorm(input, normalized_shape, weight, bias, eps=1e-5):
    """Returns `input` normalized over its trailing dims `normalized_shape`, times `weight`, plus `bias`."""
    if tuple(input.shape[-len(normalized_shape) :]) != tuple(normalized_shape):
        raise ValueError(f"input of shape {tuple(input.shape)} does not end in {tuple(normalized_shape)}")
    if math.prod(normalized_shape) != weight.numel():
        raise ValueError(f"{weight.numel()} weights, and rows of {math.prod(normalized_shape)} elements")
    return LayerNorm.apply(input, weight, bias, eps)
