"""Large float32 products on Hopper, from products of bfloat16 terms.

The tensor cores multiply 16-bit operands at twice the rate of TF32. x is split into three bfloat16 terms,
x = x1 + x2 + x3, each the rounded rest of what the ones before it leave: 3 x 8 bits, as many as float32 has, over the
same range of exponents. Of the nine products of terms six are not below float32's precision:

    a b = a1 b1 + (a1 b2 + a2 b1) + (a2 b2 + a1 b3 + a3 b1) + O(2^-24 a b)

`split_kernel` writes the terms once, as planes; splitting them in the loop, as `tf32x3` does, costs more than the
products. `terms_kernel` multiplies them by the warp-specialized ring of `ring`, `terms_tile_kernel` where tiles are
few.

A tensor core rounds towards zero when it accumulates, which drifts, so the first product's sums are added to an
accumulator of their own, by ordinary float32 addition, every BLOCK_K steps of k. The other five are 2^-8 of it or
less, and are accumulated apart: that also keeps out the NaN that infinity times a zero term is, for where the first
sum is not finite it is the result. Two accumulators and a partial sum fill the registers at 128 x 128.
"""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from kernels.matmul.ring import balanced, barriers, cdiv, descriptor, load_operands, tile_place


@triton.jit
def split(
    x_ptr, terms_ptr, pid, R, C, rows_out, cols_out, stride_r, stride_c, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    """Writes one block of x as three planes of rows_out x cols_out terms; zeros where x ends before."""
    across = tl.cdiv(cols_out, BLOCK_C)
    rows = (pid // across).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    cols = (pid % across).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    x = tl.load(x_ptr + rows * stride_r + cols * stride_c, mask=(rows < R) & (cols < C), other=0.0)
    is_finite = tl.abs(x) < float("inf")
    # The largest bfloat16: rounding must not make an infinity. What is not finite has no rest.
    held = tl.minimum(tl.maximum(x, -3.3895313892515355e38), 3.3895313892515355e38)
    first = tl.where(is_finite, held, x).to(tl.bfloat16)
    rest = tl.where(is_finite, x - first.to(tl.float32), 0.0)
    second = rest.to(tl.bfloat16)
    third = (rest - second.to(tl.float32)).to(tl.bfloat16)
    mask = (rows < rows_out) & (cols < cols_out)
    plane = tl.cast(rows_out, tl.int64) * cols_out
    terms_ptrs = terms_ptr + rows * cols_out + cols
    tl.store(terms_ptrs, first, mask=mask)
    tl.store(terms_ptrs + plane, second, mask=mask)
    tl.store(terms_ptrs + 2 * plane, third, mask=mask)


@triton.jit
def split_kernel(
    a_ptr,
    b_ptr,
    a_terms_ptr,
    b_terms_ptr,
    M,
    N,
    K,
    N_out,
    K_out,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    pid = tl.program_id(0)
    programs_a = tl.cdiv(M, BLOCK_R) * tl.cdiv(K_out, BLOCK_C)
    if pid < programs_a:
        split(a_ptr, a_terms_ptr, pid, M, K, M, K_out, stride_am, stride_ak, BLOCK_R, BLOCK_C)
    else:
        split(b_ptr, b_terms_ptr, pid - programs_a, K, N, K_out, N_out, stride_bk, stride_bn, BLOCK_R, BLOCK_C)


@gluon.jit
def terms_tiles(out_ptr, ring, sizes, WORKER: gl.constexpr, BLOCKS: gl.constexpr):
    """A multiplying warpgroup of `terms_kernel`: 64 rows of every tile."""
    a_bufs, b_bufs, ready, empty = ring
    M, N, K, _ = sizes
    BLOCK_M: gl.constexpr = BLOCKS[0]
    BLOCK_N: gl.constexpr = BLOCKS[1]
    BLOCK_K: gl.constexpr = BLOCKS[2]
    GROUP_M: gl.constexpr = BLOCKS[3]
    STAGES: gl.constexpr = BLOCKS[4]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    offs_m = WORKER * 64 + gl.arange(0, 64, gl.SliceLayout(1, layout))
    offs_n = gl.arange(0, BLOCK_N, gl.SliceLayout(0, layout))
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = tile_place(tile, tiles_m, tiles_n, GROUP_M)
        acc = gl.zeros([64, BLOCK_N], gl.float32, layout)
        rest = gl.zeros([64, BLOCK_N], gl.float32, layout)
        for _ in range(0, K, BLOCK_K):
            stage = step % STAGES
            mbarrier.wait(ready.index(stage), step // STAGES & 1)
            a1 = a_bufs.index(stage * 3).slice(WORKER * 64, 64, 0)
            a2 = a_bufs.index(stage * 3 + 1).slice(WORKER * 64, 64, 0)
            a3 = a_bufs.index(stage * 3 + 2).slice(WORKER * 64, 64, 0)
            b1 = b_bufs.index(stage * 3)
            b2 = b_bufs.index(stage * 3 + 1)
            b3 = b_bufs.index(stage * 3 + 2)
            part = gl.zeros([64, BLOCK_N], gl.float32, layout)
            part = warpgroup_mma(a1, b1, part, use_acc=False, is_async=True)
            rest = warpgroup_mma(a1, b2, rest, is_async=True)
            rest = warpgroup_mma(a2, b1, rest, is_async=True)
            rest = warpgroup_mma(a2, b2, rest, is_async=True)
            rest = warpgroup_mma(a1, b3, rest, is_async=True)
            rest = warpgroup_mma(a3, b1, rest, is_async=True)
            # The first of the six has ended: its sum is added while the others go on.
            part = warpgroup_mma_wait(5, deps=[part])
            acc += part
            rest = warpgroup_mma_wait(0, deps=[rest])
            mbarrier.arrive(empty.index(stage))
            step += 1
        rows = tile_m * BLOCK_M + offs_m
        cols = tile_n * BLOCK_N + offs_n
        out_ptrs = out_ptr + gl.expand_dims(rows.to(gl.int64), 1) * N + gl.expand_dims(cols, 0)
        mask = gl.expand_dims(rows < M, 1) & gl.expand_dims(cols < N, 0)
        gl.store(out_ptrs, gl.where(gl.abs(acc) < float("inf"), acc + rest, acc), mask=mask)


@gluon.jit
def terms_kernel(
    a_desc,
    b_desc,
    out_ptr,
    M,
    N,
    K_out,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
):
    BLOCKS: gl.constexpr = (BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES)
    a_bufs = gl.allocate_shared_memory(a_desc.dtype, [3 * STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [3 * STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    ready, empty = barriers(STAGES, 2)
    ring = (a_bufs, b_bufs, ready, empty)
    sizes = (M, N, K_out, M)
    gl.warp_specialize(
        [
            (terms_tiles, (out_ptr, ring, sizes, 0, BLOCKS)),
            (terms_tiles, (out_ptr, ring, sizes, 1, BLOCKS)),
            (load_operands, ((a_desc, b_desc), ring, sizes, 3, BLOCKS)),
        ],
        [4, 1],
        [240, 24],
    )


@triton.jit
def terms_tile_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K_out,
    N_out,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = tile_place(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    # What lies outside is any row or column: it is not stored.
    a_ptrs = a_ptr + (rows % M).to(tl.int64) * K_out + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N_out + cols % N_out
    plane_a, plane_b = tl.cast(M, tl.int64) * K_out, tl.cast(K_out, tl.int64) * N_out
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    rest = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K_out, BLOCK_K):
        a1, a2, a3 = tl.load(a_ptrs), tl.load(a_ptrs + plane_a), tl.load(a_ptrs + 2 * plane_a)
        b1, b2, b3 = tl.load(b_ptrs), tl.load(b_ptrs + plane_b), tl.load(b_ptrs + 2 * plane_b)
        rest = tl.dot(a3, b1, rest)
        rest = tl.dot(a1, b3, rest)
        rest = tl.dot(a2, b1, rest)
        rest = tl.dot(a1, b2, rest)
        # A product added to `acc` is what the compiler would let the tensor core accumulate; a sum of two it leaves.
        # No term of a2 and b2 is infinite, so theirs cannot spoil the first.
        acc += tl.dot(a1, b1, tl.dot(a2, b2))
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N_out
    total = tl.where(tl.abs(acc) < float("inf"), acc + rest, acc)
    tl.store(out_ptr + rows * N + cols, total, mask=(rows < M) & (cols < N))


def multiply_float32(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, multiprocessors: int) -> None:
    """Fills `out` with the product of two float32 matrices."""
    (M, K), N = a.shape, b.shape[1]
    K_out, N_out = cdiv(K, 64) * 64, cdiv(N, 8) * 8
    a_terms = a.new_empty((3 * M, K_out), dtype=torch.bfloat16)
    b_terms = a.new_empty((3 * K_out, N_out), dtype=torch.bfloat16)
    BLOCK_R, BLOCK_C = 8, 512
    blocks = cdiv(M, BLOCK_R) * cdiv(K_out, BLOCK_C) + cdiv(K_out, BLOCK_R) * cdiv(N_out, BLOCK_C)
    split_kernel[(blocks,)](a, b, a_terms, b_terms, M, N, K, N_out, K_out, *a.stride(), *b.stride(), BLOCK_R, BLOCK_C)
    BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES = 128, 128, 64, 8, 2
    tiles = cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)
    if tiles >= multiprocessors:
        terms_kernel[(balanced(tiles, multiprocessors),)](
            descriptor(a_terms, BLOCK_M, BLOCK_K),
            descriptor(b_terms, BLOCK_K, BLOCK_N),
            *(out, M, N, K_out, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES),
            num_warps=4,
            maxnreg=168,
        )
    else:
        BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32
        terms_tile_kernel[(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N),)](
            *(a_terms, b_terms, out, M, N, K_out, N_out, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M), num_warps=4, num_stages=3
        )
