"""Matrix product on Hopper's tensor cores, by a kernel that fits its size and dtype.

    out[m, n] = sum over k of input[m, k] * other[k, n]

Small products, batches, other layouts, other devices and the interpreter take `matmul_kernel`: the tile that walks
along k (`v2_tiling`), 16 bytes a thread and load (`v3_coalesced`), loads in flight while the tensor cores work
(`num_stages`), and grouped program order, by which programs that run together share rows of A and columns of B in the
L2 cache. Its tile is chosen by the size of the result: as small as every multiprocessor needs to get one, as large as
the registers hold. The choice is arithmetic, not autotuning, whose look-up alone takes longer than a 256 x 256 product.

Large products take persistent Gluon kernels: a program makes tile after tile. Their warps are specialized: one does
nothing but ask the copy engine (TMA) for the next operands, and two warpgroups do nothing but multiply, each its half
of the tile's rows. Between them lies a ring of STAGES buffers with two barriers each: `ready`, to be multiplied, and
`empty`, to be filled. The next tile's copies are on their way while the last tile is stored.

16-bit operands (`half_kernel`): a 128 x 256 tile, the largest whose float32 accumulator fits the registers; fewer bytes
are read for each multiplication than with any smaller one. At this rate the device is short of power, not of time, and
so what is saved is traffic: every other tile walks k backward, from the operands that are still in the L2 cache, and
there are as few programs as can make the tiles in as many turns, 128 for 512 tiles, where 132 would be out of step.

float32 operands (`terms_kernel`, and `terms_tile_kernel` where tiles are few): the tensor cores multiply 16-bit
operands at twice the rate of TF32. x is split into three bfloat16 terms, x = x1 + x2 + x3, each the rounded rest of
what the ones before it leave: 3 x 8 bits, as many as float32 has, over the same range of exponents. Of the nine
products of terms six are not below float32's precision:

    a b = a1 b1 + (a1 b2 + a2 b1) + (a2 b2 + a1 b3 + a3 b1) + O(2^-24 a b)

`split_kernel` writes the terms once, as planes; splitting them in the loop, as `tf32x3` does, costs more than the
products. A tensor core rounds towards zero when it accumulates, which drifts, so the first product's sums are added to
an accumulator of their own, by ordinary float32 addition, every BLOCK_K steps of k. The other five are 2^-8 of it or
less, and are accumulated apart: that also keeps out the NaN that infinity times a zero term is, for where the first
sum is not finite it is the result. Two accumulators and a partial sum fill the registers at 128 x 128.

`matmul_kernel` uses `tf32x3` for float32, three TF32 products per operand pair. Accumulation is in float32 everywhere.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

LAYOUT_16 = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
LAYOUT_32 = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)


@triton.jit
def tile_place(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Returns a tile's row and column in grouped order: GROUP_M tiles down, then one to the right."""
    group = tile // (GROUP_M * tiles_n)
    rows = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)
    inside = tile % (GROUP_M * tiles_n)
    return group * GROUP_M + inside % rows, inside // rows


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


@gluon.jit
def load_operands(descs, ring, sizes, TERMS: gl.constexpr, BLOCKS: gl.constexpr):
    """The copying warp: keeps the ring full. Term t of A begins at row t * rows_a of its planes, of B at row t * K.

    Every other tile goes backward along k: it begins with what the programs read last, which is still in the L2 cache.
    """
    a_desc, b_desc = descs
    a_bufs, b_bufs, ready, empty = ring
    M, N, K, rows_a = sizes
    BLOCK_M: gl.constexpr = BLOCKS[0]
    BLOCK_N: gl.constexpr = BLOCKS[1]
    BLOCK_K: gl.constexpr = BLOCKS[2]
    GROUP_M: gl.constexpr = BLOCKS[3]
    STAGES: gl.constexpr = BLOCKS[4]
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    steps = gl.cdiv(K, BLOCK_K)
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = tile_place(tile, tiles_m, tiles_n, GROUP_M)
        is_backward = (tile // gl.num_programs(0) & 1) == 1
        for forward in range(steps):
            k = gl.where(is_backward, steps - 1 - forward, forward) * BLOCK_K
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
            bar = ready.index(stage)
            mbarrier.expect(bar, TERMS * (a_desc.block_type.nbytes + b_desc.block_type.nbytes))
            for t in gl.static_range(TERMS):
                a_place = [t * rows_a + tile_m * BLOCK_M, k]
                b_place = [t * K + k, tile_n * BLOCK_N]
                tma.async_copy_global_to_shared(a_desc, a_place, bar, a_bufs.index(stage * TERMS + t))
                tma.async_copy_global_to_shared(b_desc, b_place, bar, b_bufs.index(stage * TERMS + t))
            step += 1


@gluon.jit
def half_tiles(out_desc, out_buf, ring, sizes, WORKER: gl.constexpr, ROWS: gl.constexpr, BLOCKS: gl.constexpr):
    """A multiplying warpgroup of `half_kernel`: ROWS rows of every tile."""
    a_bufs, b_bufs, ready, empty = ring
    M, N, K, _ = sizes
    BLOCK_M: gl.constexpr = BLOCKS[0]
    BLOCK_N: gl.constexpr = BLOCKS[1]
    BLOCK_K: gl.constexpr = BLOCKS[2]
    GROUP_M: gl.constexpr = BLOCKS[3]
    STAGES: gl.constexpr = BLOCKS[4]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = tile_place(tile, tiles_m, tiles_n, GROUP_M)
        acc = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
        for k in range(gl.cdiv(K, BLOCK_K)):
            stage = step % STAGES
            mbarrier.wait(ready.index(stage), step // STAGES & 1)
            a = a_bufs.index(stage).slice(WORKER * ROWS, ROWS, 0)
            acc = warpgroup_mma(a, b_bufs.index(stage), acc, use_acc=k > 0, is_async=True)
            # The product before this one has ended: its buffer is free.
            acc = warpgroup_mma_wait(1, deps=[acc])
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), pred=k > 0)
            step += 1
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES))
        tma.store_wait(0)
        out_buf.store(acc.to(out_desc.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(out_desc, [tile_m * BLOCK_M + WORKER * ROWS, tile_n * BLOCK_N], out_buf)
    tma.store_wait(0)


@gluon.jit
def half_kernel(
    a_desc,
    b_desc,
    out_desc,
    M,
    N,
    K,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
):
    WORKERS: gl.constexpr = 2
    ROWS: gl.constexpr = BLOCK_M // WORKERS
    BLOCKS: gl.constexpr = (BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES)
    a_bufs = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    out_bufs = gl.allocate_shared_memory(out_desc.dtype, [WORKERS] + out_desc.block_type.shape, out_desc.layout)
    ready, empty = barriers(STAGES, WORKERS)
    ring = (a_bufs, b_bufs, ready, empty)
    sizes = (M, N, K, M)
    gl.warp_specialize(
        [
            (half_tiles, (out_desc, out_bufs.index(0), ring, sizes, 0, ROWS, BLOCKS)),
            (half_tiles, (out_desc, out_bufs.index(1), ring, sizes, 1, ROWS, BLOCKS)),
            (load_operands, ((a_desc, b_desc), ring, sizes, 1, BLOCKS)),
        ],
        [4, 1],
        [240, 24],
    )


@gluon.jit
def barriers(STAGES: gl.constexpr, WORKERS: gl.constexpr):
    """Returns the ring's barriers: one copy fills a buffer, all workers empty it."""
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(ready.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=WORKERS)
    fence_async_shared()
    return ready, empty


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


@functools.cache
def hopper_multiprocessors(device: torch.device) -> int:
    """Returns how many multiprocessors `device` has if the Gluon kernels run on it, else 0."""
    if triton.knobs.runtime.interpret or torch.cuda.get_device_capability(device)[0] != 9:
        return 0
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def cdiv(a: int, b: int) -> int:
    """Returns a / b rounded up. `triton.cdiv` takes microseconds on the host."""
    return -(-a // b)


def descriptor(tensor: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """Returns what TMA needs to copy blocks of rows x columns of a 2-D tensor."""
    layout = LAYOUT_32 if tensor.dtype is torch.float32 else LAYOUT_16
    return TensorDescriptor(tensor, tensor.shape, tensor.stride(), [rows, columns], layout)


def can_copy(*tensors: torch.Tensor) -> bool:
    """Tells whether TMA can copy blocks of 2-D tensors: rows without gaps that begin at multiples of 16 bytes."""
    return all(
        tensor.stride(1) == 1 and tensor.stride(0) * tensor.element_size() % 16 == 0 and tensor.data_ptr() % 16 == 0
        for tensor in tensors
    )


def balanced(tiles: int, multiprocessors: int) -> int:
    """Returns the least number of programs that need no more turns for `tiles` than all multiprocessors do."""
    return cdiv(tiles, cdiv(tiles, multiprocessors))


def multiply_half(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, multiprocessors: int) -> None:
    """Fills `out` with the product of two 16-bit matrices; TMA can copy all three."""
    (M, K), N = a.shape, b.shape[1]
    BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES = 128, 256, 64, 8, 3
    half_kernel[(balanced(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), multiprocessors),)](
        descriptor(a, BLOCK_M, BLOCK_K),
        descriptor(b, BLOCK_K, BLOCK_N),
        descriptor(out, BLOCK_M // 2, BLOCK_N),
        *(M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES),
        num_warps=4,
        maxnreg=168,
    )


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
