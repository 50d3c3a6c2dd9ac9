"""Matrix product by a kernel that fits its size and dtype: pipelined tiles, or warp-specialized ones on Hopper.

    out[m, n] = sum over k of input[m, k] * other[k, n]

Small products, batches, other layouts, other devices and the interpreter take `matmul_kernel`. Large products take
persistent, warp-specialized Gluon kernels: `half` for 16-bit operands, `terms` for float32, both on the ring of `ring`.

`matmul_kernel` is the tile that walks along k of `v2_tiling`, with tensor cores and `tf32x3`, three TF32 products per
operand pair. It adds loads in flight while the tensor cores work (`num_stages`), and grouped program order, by which
programs that run together share rows of A and columns of B in the L2 cache. Its loads are 16 bytes a thread where the
layout allows it, as in `v3_coalesced`. Its tile is chosen by the size of the result: as small as every multiprocessor
needs to get one, as large as the registers hold. The choice is arithmetic, not autotuning, whose look-up alone takes
longer than a 256 x 256 product.

At the large sizes nothing of that runs: there the gain over the other variants comes of the copy engine, of specialized
warps and, in float32, of bfloat16 terms. v4 is not v2 and v3 together.

Accumulation is in float32 everywhere. See docs/kernels/matmul.md for what was tried.
"""

import math

import torch
import triton
import triton.language as tl

from kernels.matmul.half import multiply_half
from kernels.matmul.ring import can_copy, cdiv, hopper_multiprocessors, tile_place
from kernels.matmul.terms import multiply_float32


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    batch = (pid // (tiles_m * tiles_n)).to(tl.int64)
    tile_m, tile_n = tile_place(pid % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
    start_m = tile_m.to(tl.int64) * BLOCK_M
    start_n = tile_n.to(tl.int64) * BLOCK_N

    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m = start_m + offs_m < M
    mask_n = start_n + offs_n < N
    # The tile's corner in 64 bits, so that large tensors do not overflow; inside the tile 32 bits are enough. The loop
    # moves two scalar pointers and adds these offsets: pointer tensors would take twice the registers.
    offs_a = offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    offs_b = offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    a_ptr += batch * stride_ab + start_m * stride_am
    b_ptr += batch * stride_bb + start_n * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        a = tl.load(a_ptr + offs_a, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptr + offs_b, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
        a_ptr += BLOCK_K * stride_ak
        b_ptr += BLOCK_K * stride_bk

    out_ptrs = out_ptr + (batch * M + start_m) * N + start_n + offs_m.to(tl.int64)[:, None] * N + offs_n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


def multiply_tiles(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, is_hopper: bool) -> None:
    """Fills `out` with the products of two equally long rows of matrices."""
    batch, M, K = a.shape
    N = b.shape[2]
    # The smallest tiles leave no multiprocessor idle, the largest use each operand most often.
    size = batch * M * N
    if a.dtype is torch.float32:
        if size <= 256 * 256:
            BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 16, 32, 64, 4, 4
        elif size <= 512 * 512:
            BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 32, 64, 32, 4, 4
        elif size <= 1024 * 1024:
            BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 128, 64, 64, 8, 3
        else:
            BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 256, 64, 32, 8, 3
    elif size <= 256 * 256:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 32, 32, 64, 4, 4
    elif size <= 512 * 512:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 64, 32, 128, 4, 3
    elif size <= 1024 * 1024:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 64, 128, 128, 4, 3
    else:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 128, 256, 64, 8, 3
    matmul_kernel[(batch * cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N),)](
        *(a, b, out, M, N, K, *a.stride(), *b.stride(), BLOCK_M, BLOCK_N, BLOCK_K, 8),
        num_warps=num_warps,
        # Other devices have less shared memory for the ring of stages.
        num_stages=num_stages if is_hopper else 2,
    )


def triton_matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Multiply as torch.matmul does: `input` (..., M, K) by `other` (..., K, N), leading dims broadcast, or a 1-D side.

    float32, float16 and bfloat16, any sizes and strides. Raises TypeError or ValueError where torch.matmul refuses.
    """
    assert input.is_cuda and other.is_cuda
    if input.dtype != other.dtype or input.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"need float32, float16 or bfloat16 on both sides, got {input.dtype} and {other.dtype}")
    if input.dim() == 0 or other.dim() == 0 or input.shape[-1] != other.shape[max(other.dim() - 2, 0)]:
        raise ValueError(f"shapes {tuple(input.shape)} and {tuple(other.shape)} cannot be multiplied")
    if input.dim() == 1:
        return triton_matmul(input.unsqueeze(0), other).squeeze(-1 if other.dim() == 1 else -2)
    if other.dim() == 1:
        return triton_matmul(input, other.unsqueeze(1)).squeeze(-1)

    multiprocessors = hopper_multiprocessors(input.device)
    if input.dim() == 2 and other.dim() == 2:
        return multiply(input, other, multiprocessors)
    (M, K), N = input.shape[-2:], other.shape[-1]
    lead = input.shape[:-2]
    if lead != other.shape[:-2]:
        lead = torch.broadcast_shapes(lead, other.shape[:-2])
        input, other = input.expand(*lead, M, K), other.expand(*lead, K, N)
    batch = math.prod(lead)
    out = input.new_empty((batch, M, N))
    if out.numel():
        multiply_tiles(input.reshape(batch, M, K), other.reshape(batch, K, N), out, multiprocessors > 0)
    return out.view(*lead, M, N)


def multiply(a: torch.Tensor, b: torch.Tensor, multiprocessors: int) -> torch.Tensor:
    """Returns the product of two matrices."""
    (M, K), N = a.shape, b.shape[1]
    out = a.new_empty((M, N))
    # Measured: below these the preparations take longer than the multiplication, or tiles are too few.
    is_large = multiprocessors > 0 and min(M, N) >= 256 and K >= 512
    if is_large and a.dtype is torch.float32 and M * N * K >= 1 << 28:
        multiply_float32(a, b, out, multiprocessors)
    elif is_large and a.dtype is not torch.float32 and M * N * K >= 1 << 32 and can_copy(a, b, out):
        multiply_half(a, b, out, multiprocessors)
    elif M and N:
        multiply_tiles(a.unsqueeze(0), b.unsqueeze(0), out, multiprocessors > 0)
    return out
