"""Attention for Hopper, heads of 64 elements, in Gluon: what `v4_optimized` launches where the problem is large.

    out = softmax(scale * query @ key^T) @ value,    row by row, for each batch and head

`attend_kernel` runs one program per multiprocessor, each walking over its share of the tiles of 128 query rows. A
program is three partitions of warps that meet at mbarriers only:

    producer     1 warp: TMA copies of Q, K and V into a ring of STAGES tiles of BLOCK_N keys
    consumer 0   4 warps, rows 0 to 63 of the tile          consumer 1   4 warps, rows 64 to 127

A consumer issues O += P V for the last tile of keys and S = Q K^T for the next, waits for both, and makes the next P
from S by the online softmax (see `v2_tiling`) while the tensor cores serve the other consumer. Q and P are operands in
registers; only K and V are read from shared memory. The ragged tile of keys is taken first, so the loop has no mask.

**float32 from float16 tensor cores.** A float32 number x, scaled by a power of two, is hi + lo with two float16 numbers
of 11 bits each, and a product of two such sums needs three products of the tensor cores:

    x y = hi hi' + hi lo' + lo hi'  (+ lo lo', below 2**-22 of it)

That is half the time of `tf32x3`, since a float16 product takes half the time of a TF32 one. `split_kernel` writes the
terms of K and V once per call; each tile of keys has its own power of two, so that its largest element lies in
[2**14, 2**15) and its terms hold 22 bits of all elements down to 2**-16 of that. Rows of Q are scaled in the same way.
P lies in [0, 1] and is made as 2**7 P, with the head's tiles of V brought to one scale in the same exponent. O of a
tile is summed apart and added in float32: the tensor cores cut sums off, and 3 N / 16 such cuts in one accumulator cost
3.6e-6 of the result at 1024 keys where this costs 3.5e-7 (torch: 6.2e-7).

**What a split does not hold** goes key by key through float32 multiply-adds in `_attend_plain`, the whole head:
an inf or a NaN in K or V, rows or columns of a tile more than 2**16 apart, or tiles of V more than 2**6 apart. So do
float16 rows whose logits pass 2**27: there one rounding of the logit is more than float16's range of P.

Why these blocks: 64 x 128 logits, 64 x 64 sums (twice in float32) and two terms of P and Q fill the 240 registers that
a consumer's threads have. Two stages are 64 KB of shared memory, 128 KB with two terms. See docs/kernels/mha.md.
"""

import functools

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
from triton.experimental.gluon.nvidia import hopper

HEAD_SIZE = 64
LOG2_E = 1.4426950408889634
LOWEST = gl.constexpr(-3.0e38)
NO_SCALE = tl.constexpr(1000.0)
"""The scale exponent of a tile of V that is all zeros."""
SAFE_LOGIT = gl.constexpr(2.0**27)
INF_BITS = tl.constexpr(0x7F800000)
P_EXPONENT = gl.constexpr(7.0)


@triton.jit
def _split(x, hi_ptrs, lo_ptrs):
    """Stores x / 2**e as two float16 terms, the largest in [2**14, 2**15). Returns e, and whether the terms hold x."""
    bits = x.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    rows, columns = tl.max(bits, axis=1), tl.max(bits, axis=0)
    top = tl.max(rows, axis=0)
    low_row = tl.min(tl.where(rows == 0, top, rows), axis=0)
    low_column = tl.min(tl.where(columns == 0, top, columns), axis=0)
    low = tl.minimum(low_row, low_column)
    e = tl.maximum((top >> 23) - 127, -94) - 14
    scaled = x * ((127 - e) << 23).to(tl.float32, bitcast=True)
    hi = scaled.to(tl.float16)
    tl.store(hi_ptrs, hi)
    tl.store(lo_ptrs, (scaled - hi.to(tl.float32)).to(tl.float16))
    return tl.where(top == 0, NO_SCALE, e.to(tl.float32)), (top < INF_BITS) & ((top >> 23) - (low >> 23) <= 16)


@triton.jit
def split_kernel(k_ptr, v_ptr, parts_ptr, scales_ptr, N, D: tl.constexpr, BLOCK_N: tl.constexpr):
    """Splits one tile of K and V: parts (heads, 4, tiles * BLOCK_N, D) are hi and lo of K and of V.

    scales (heads, 2, tiles) are the power of two of K's tile, NaN where the terms do not hold the tile, and the
    exponent of V's, NO_SCALE where it is all zeros.
    """
    tile = tl.program_id(0)
    tiles = tl.num_programs(0)
    head = tl.program_id(1)
    offs_n = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    offs = (head.to(tl.int64) * N + offs_n)[:, None] * D + offs_d[None, :]
    mask = (offs_n < N)[:, None]
    k = tl.load(k_ptr + offs, mask=mask, other=0.0)
    v = tl.load(v_ptr + offs, mask=mask, other=0.0)
    plane = tiles.to(tl.int64) * (BLOCK_N * D)
    parts_ptrs = parts_ptr + head * 4 * plane + offs_n[:, None] * D + offs_d[None, :]
    k_exponent, is_k_held = _split(k, parts_ptrs, parts_ptrs + plane)
    v_exponent, is_v_held = _split(v, parts_ptrs + 2 * plane, parts_ptrs + 3 * plane)
    k_scale = tl.exp2(tl.where(k_exponent == NO_SCALE, 0.0, k_exponent))
    scales_ptr += head * 2 * tiles + tile
    tl.store(scales_ptr, tl.where(is_k_held & is_v_held, k_scale, float("nan")))
    tl.store(scales_ptr + tiles, v_exponent)


@gluon.jit
def _power(e):
    """Returns 2**e of integers in [-126, 127]."""
    return ((e + 127) << 23).to(gl.float32, bitcast=True)


@gluon.jit
def _head_scale(scales_ptr, tiles_n):
    """Returns the largest exponent of the head's tiles of V, and whether the split holds the head."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    offs = gl.arange(0, 128, layout)
    top = gl.full([128], -NO_SCALE, gl.float32, layout)
    low = gl.full([128], NO_SCALE, gl.float32, layout)
    flaw = gl.full([128], 0.0, gl.float32, layout)
    for start in range(0, tiles_n, 128):
        mask = start + offs < tiles_n
        flaw += gl.load(scales_ptr + start + offs, mask=mask, other=0.0) * 0.0
        exponent = gl.load(scales_ptr + tiles_n + start + offs, mask=mask, other=NO_SCALE)
        top = gl.maximum(top, gl.where(exponent == NO_SCALE, -NO_SCALE, exponent))
        low = gl.minimum(low, exponent)
    most = gl.max(top, axis=0)
    is_held = (gl.sum(flaw, axis=0) == 0.0) & (most - gl.min(low, axis=0) <= 6.0)
    return gl.where(most == -NO_SCALE, 0.0, most), is_held


@gluon.jit
def _produce(descs, scales_ptr, queries, ring, sizes, BLOCKS: gl.constexpr):
    """The producer: copies the tiles that the consumers will ask for, in their order."""
    q_desc, k_desc, v_desc = descs
    q_smem, q_full, q_empty = queries
    k_smem, v_smem, k_full, k_empty, v_full, v_empty = ring
    M, N, heads = sizes
    D: gl.constexpr = BLOCKS[0]
    BLOCK_N: gl.constexpr = BLOCKS[1]
    STAGES: gl.constexpr = BLOCKS[2]
    TERMS: gl.constexpr = BLOCKS[3]
    tiles_m = (M + 127) // 128
    tiles_n = (N + BLOCK_N - 1) // BLOCK_N
    step = gl.to_tensor(0)
    turn = gl.to_tensor(0)
    for tile in range(gl.program_id(0), tiles_m * heads, gl.num_programs(0)):
        head = tile // tiles_m
        count = tiles_n
        if TERMS == 1:
            for group in gl.static_range(2):
                mbarrier.wait(q_empty.index(group), (turn & 1) ^ 1)
                mbarrier.expect(q_full.index(group), 64 * D * 2)
                tma.async_copy_global_to_shared(
                    q_desc, [head, (tile % tiles_m * 2 + group) * 64, 0], q_full.index(group), q_smem.index(group)
                )
        else:
            top_exponent, is_held = _head_scale(scales_ptr + head * 2 * tiles_n, tiles_n)
            count = gl.where(is_held, tiles_n, 0)
        turn += 1
        for j in range(count):
            start_n = (tiles_n - 1 - j) * BLOCK_N
            stage = step % STAGES
            phase = (step // STAGES) & 1
            mbarrier.wait(k_empty.index(stage), phase ^ 1)
            mbarrier.expect(k_full.index(stage), TERMS * BLOCK_N * D * 2)
            for term in gl.static_range(TERMS):
                plane = head if TERMS == 1 else head * 4 + term
                tma.async_copy_global_to_shared(
                    k_desc, [plane, start_n, 0], k_full.index(stage), k_smem.index(stage * TERMS + term)
                )
            mbarrier.wait(v_empty.index(stage), phase ^ 1)
            mbarrier.expect(v_full.index(stage), TERMS * BLOCK_N * D * 2)
            for term in gl.static_range(TERMS):
                plane = head if TERMS == 1 else head * 4 + 2 + term
                tma.async_copy_global_to_shared(
                    v_desc, [plane, start_n, 0], v_full.index(stage), v_smem.index(stage * TERMS + term)
                )
            step += 1


@gluon.jit
def _scores(q_hi, q_lo, k_smem, stage, s, D: gl.constexpr, BLOCK_N: gl.constexpr, TERMS: gl.constexpr):
    """Issues S = Q K^T into the registers of `s`, the small products first."""
    k_hi = k_smem.index(stage * TERMS).reshape([BLOCK_N, D]).permute((1, 0))
    if TERMS == 1:
        return warpgroup_mma(q_hi, k_hi, s, use_acc=False, is_async=True)
    else:
        k_lo = k_smem.index(stage * TERMS + 1).reshape([BLOCK_N, D]).permute((1, 0))
        s = warpgroup_mma(q_hi, k_lo, s, use_acc=False, is_async=True)
        s = warpgroup_mma(q_lo, k_hi, s, is_async=True)
        return warpgroup_mma(q_hi, k_hi, s, is_async=True)


@gluon.jit
def _products(p_hi, p_lo, v_smem, stage, o, D: gl.constexpr, BLOCK_N: gl.constexpr, TERMS: gl.constexpr):
    """Issues O += P V, or O = P V into the registers of `o` with two terms, the small products first."""
    v_hi = v_smem.index(stage * TERMS).reshape([BLOCK_N, D])
    if TERMS == 1:
        return warpgroup_mma(p_hi, v_hi, o, is_async=True)
    else:
        v_lo = v_smem.index(stage * TERMS + 1).reshape([BLOCK_N, D])
        o = warpgroup_mma(p_hi, v_lo, o, use_acc=False, is_async=True)
        o = warpgroup_mma(p_lo, v_hi, o, is_async=True)
        return warpgroup_mma(p_hi, v_hi, o, is_async=True)


@gluon.jit
def _tile_scale(c, scales_ptr, top_exponent, tile, tiles_n, TERMS: gl.constexpr):
    """Returns the factor of a tile's logits, and how far its exponent of V is below the head's."""
    if TERMS == 1:
        return c, top_exponent
    else:
        exponent = gl.load(scales_ptr + tiles_n + tile)
        return c * gl.load(scales_ptr + tile), gl.where(exponent == NO_SCALE, 0.0, exponent - top_exponent)


@gluon.jit
def _soften(s, row_max, row_sum, peak, c, below, TERMS: gl.constexpr, DTYPE: gl.constexpr):
    """Takes a tile of logits into the online softmax. Returns P in one or two terms, and the factor of earlier sums."""
    tile_max = gl.max(s, axis=1) * c
    peak = gl.maximum(peak, gl.abs(tile_max))
    new_max = gl.maximum(row_max, tile_max)
    rescale = gl.exp2(row_max - new_max)
    if TERMS == 1:
        p = gl.exp2(s * c - new_max[:, None])
        row_sum = row_sum * rescale + gl.sum(p, axis=1)
        p_hi = p.to(DTYPE)
        p_lo = p_hi
    else:
        # c is a power of two for each row, so that s * c is exact and p at most 2**8.
        shift = new_max - (below + P_EXPONENT)
        p = gl.exp2(s * c[:, None] - shift[:, None])
        row_sum = row_sum * rescale + gl.sum(p, axis=1) * gl.exp2(-below)
        p_hi = p.to(DTYPE)
        p_lo = (p - p_hi.to(gl.float32)).to(DTYPE)
    return p_hi, p_lo, new_max, row_sum, peak, rescale


@gluon.jit
def _attend(q, c_row, scales_ptr, top_exponent, step, ring, N, BLOCKS: gl.constexpr):
    """Returns 64 rows of the result, the step after the head's last, and the largest |maximum| of a row in any tile."""
    q_hi, q_lo = q
    k_smem, v_smem, k_full, k_empty, v_full, v_empty = ring
    D: gl.constexpr = BLOCKS[0]
    BLOCK_N: gl.constexpr = BLOCKS[1]
    STAGES: gl.constexpr = BLOCKS[2]
    TERMS: gl.constexpr = BLOCKS[3]
    DTYPE: gl.constexpr = BLOCKS[4]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)
    rows_s: gl.constexpr = gl.SliceLayout(1, s_layout)
    rows_o: gl.constexpr = gl.SliceLayout(1, o_layout)
    tiles_n = (N + BLOCK_N - 1) // BLOCK_N
    # LOWEST instead of -inf: the difference of two maxima stays a number even before the first finite logit.
    row_max = gl.full([64], LOWEST, gl.float32, rows_s)
    row_sum = gl.full([64], 0.0, gl.float32, rows_s)
    peak = gl.full([64], 0.0, gl.float32, rows_s)
    acc = gl.zeros([64, D], gl.float32, o_layout)
    o = gl.zeros([64, D], gl.float32, o_layout)
    s = gl.zeros([64, BLOCK_N], gl.float32, s_layout)

    # The last tile of keys comes first: it alone may be ragged.
    stage = step % STAGES
    phase = (step // STAGES) & 1
    c, below = _tile_scale(c_row, scales_ptr, top_exponent, tiles_n - 1, tiles_n, TERMS)
    mbarrier.wait(k_full.index(stage), phase)
    s = warpgroup_mma_wait(0, deps=[_scores(q_hi, q_lo, k_smem, stage, s, D, BLOCK_N, TERMS)])
    mbarrier.arrive(k_empty.index(stage))
    offs_n = (tiles_n - 1) * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, s_layout))
    s = gl.where((offs_n < N)[None, :], s, float("-inf"))
    p_hi, p_lo, row_max, row_sum, peak, rescale = _soften(s, row_max, row_sum, peak, c, below, TERMS, DTYPE)
    for j in range(1, tiles_n):
        last_stage, last_phase = stage, phase
        step += 1
        stage = step % STAGES
        phase = (step // STAGES) & 1
        c, below = _tile_scale(c_row, scales_ptr, top_exponent, tiles_n - 1 - j, tiles_n, TERMS)
        factor = gl.convert_layout(rescale, rows_o)
        p_hi = gl.convert_layout(p_hi, p_layout)
        p_lo = gl.convert_layout(p_lo, p_layout)
        mbarrier.wait(k_full.index(stage), phase)
        mbarrier.wait(v_full.index(last_stage), last_phase)
        o_token = _products(p_hi, p_lo, v_smem, last_stage, o, D, BLOCK_N, TERMS)
        s_token = _scores(q_hi, q_lo, k_smem, stage, s, D, BLOCK_N, TERMS)
        o = warpgroup_mma_wait(2 * TERMS - 1, deps=[o_token])
        mbarrier.arrive(v_empty.index(last_stage))
        s = warpgroup_mma_wait(0, deps=[s_token])
        mbarrier.arrive(k_empty.index(stage))
        if TERMS == 2:
            acc = acc * factor[:, None] + o
        p_hi, p_lo, row_max, row_sum, peak, rescale = _soften(s, row_max, row_sum, peak, c, below, TERMS, DTYPE)
        if TERMS == 1:
            o = o * gl.convert_layout(rescale, rows_o)[:, None]

    mbarrier.wait(v_full.index(stage), phase)
    p_hi = gl.convert_layout(p_hi, p_layout)
    p_lo = gl.convert_layout(p_lo, p_layout)
    o = warpgroup_mma_wait(0, deps=[_products(p_hi, p_lo, v_smem, stage, o, D, BLOCK_N, TERMS)])
    mbarrier.arrive(v_empty.index(stage))
    if TERMS == 2:
        o = acc * gl.convert_layout(rescale, rows_o)[:, None] + o
        row_sum = row_sum * _power(-top_exponent.to(gl.int32))
    return o * gl.convert_layout(1.0 / row_sum, rows_o)[:, None], step + 1, gl.max(peak, axis=0)


@gluon.jit
def _attend_plain(q_ptr, k_ptr, v_ptr, out_ptr, start_m, M, N, c, D: gl.constexpr):
    """Attends with 64 rows key by key, in float32 and without tensor cores, and stores the result."""
    layout: gl.constexpr = gl.BlockedLayout([1, D // 2], [16, 2], [4, 1], [1, 0])
    offs_m = start_m + gl.arange(0, 64, gl.SliceLayout(1, layout))
    offs_d = gl.arange(0, D, gl.SliceLayout(0, layout))
    offs = offs_m[:, None] * D + offs_d[None, :]
    mask = (offs_m < M)[:, None]
    q = gl.load(q_ptr + offs, mask=mask, other=0.0).to(gl.float32) * c
    row_max = gl.full([64], LOWEST, gl.float32, gl.SliceLayout(1, layout))
    row_sum = gl.full([64], 0.0, gl.float32, gl.SliceLayout(1, layout))
    acc = gl.zeros([64, D], gl.float32, layout)
    for n in range(N):
        k = gl.load(k_ptr + n * D + offs_d).to(gl.float32)
        v = gl.load(v_ptr + n * D + offs_d).to(gl.float32)
        s = gl.sum(q * k[None, :], axis=1)
        new_max = gl.maximum(row_max, s)
        rescale = gl.exp2(row_max - new_max)
        p = gl.exp2(s - new_max)
        row_sum = row_sum * rescale + p
        acc = acc * rescale[:, None] + p[:, None] * v[None, :]
        row_max = new_max
    gl.store(out_ptr + offs, (acc / row_sum[:, None]).to(out_ptr.dtype.element_ty), mask=mask)


@gluon.jit
def _store(out_ptr, o, start_m, M, D: gl.constexpr):
    """Stores 64 rows of the result, 8 elements by each thread at once."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    offs_m = start_m + gl.arange(0, 64, gl.SliceLayout(1, layout))
    offs = offs_m[:, None] * D + gl.arange(0, D, gl.SliceLayout(0, layout))[None, :]
    gl.store(out_ptr + offs, gl.convert_layout(o.to(out_ptr.dtype.element_ty), layout), mask=(offs_m < M)[:, None])


@gluon.jit
def _consume(tensors, scales_ptr, queries, ring, sizes, c, GROUP: gl.constexpr, BLOCKS: gl.constexpr):
    """A consumer: attends with rows 64 GROUP to 64 GROUP + 63 of the program's tiles."""
    q_ptr, k_ptr, v_ptr, out_ptr = tensors
    q_smem, q_full, q_empty = queries
    M, N, heads = sizes
    D: gl.constexpr = BLOCKS[0]
    BLOCK_N: gl.constexpr = BLOCKS[1]
    TERMS: gl.constexpr = BLOCKS[3]
    DTYPE: gl.constexpr = BLOCKS[4]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    q_layout: gl.constexpr = gl.DotOperandLayout(0, s_layout, 2)
    tiles_m = (M + 127) // 128
    tiles_n = (N + BLOCK_N - 1) // BLOCK_N
    step = gl.to_tensor(0)
    turn = gl.to_tensor(0)
    for tile in range(gl.program_id(0), tiles_m * heads, gl.num_programs(0)):
        head = tile // tiles_m
        start_m = (tile % tiles_m * 2 + GROUP) * 64
        q_first = head.to(gl.int64) * M * D
        k_first = head.to(gl.int64) * N * D
        if TERMS == 1:
            mbarrier.wait(q_full.index(GROUP), turn & 1)
            q = q_smem.index(GROUP).reshape([64, D]).load(q_layout)
            mbarrier.arrive(q_empty.index(GROUP))
            o, step, peak = _attend((q, q), c, scales_ptr, 0.0, step, ring, N, BLOCKS)
            if DTYPE.is_fp16():
                if peak < SAFE_LOGIT:
                    _store(out_ptr + q_first, o, start_m, M, D)
                else:
                    _attend_plain(
                        q_ptr + q_first, k_ptr + k_first, v_ptr + k_first, out_ptr + q_first, start_m, M, N, c, D
                    )
            else:
                _store(out_ptr + q_first, o, start_m, M, D)
        else:
            head_scales_ptr = scales_ptr + head * 2 * tiles_n
            top_exponent, is_held = _head_scale(head_scales_ptr, tiles_n)
            if is_held:
                offs_m = start_m + gl.arange(0, 64, gl.SliceLayout(1, q_layout))
                offs = offs_m[:, None] * D + gl.arange(0, D, gl.SliceLayout(0, q_layout))[None, :]
                q = gl.load(q_ptr + q_first + offs, mask=(offs_m < M)[:, None], other=0.0) * c
                bits = gl.max(q.to(gl.int32, bitcast=True) & 0x7FFFFFFF, axis=1)
                e = gl.maximum((bits >> 23) - 127, -94) - 14
                q = q * _power(-e)[:, None]
                q_hi = q.to(DTYPE)
                q_lo = (q - q_hi.to(gl.float32)).to(DTYPE)
                # A query with an inf or a NaN has no logit that is a number.
                c_row = gl.where(bits >= INF_BITS, float("nan"), _power(e))
                c_row = gl.convert_layout(c_row, gl.SliceLayout(1, s_layout))
                o, step, peak = _attend((q_hi, q_lo), c_row, head_scales_ptr, top_exponent, step, ring, N, BLOCKS)
                _store(out_ptr + q_first, o, start_m, M, D)
            else:
                _attend_plain(q_ptr + q_first, k_ptr + k_first, v_ptr + k_first, out_ptr + q_first, start_m, M, N, c, D)
        turn += 1


@gluon.jit
def attend_kernel(
    q_desc, k_desc, v_desc, q_ptr, k_ptr, v_ptr, scales_ptr, out_ptr, M, N, heads, c,
    D: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr, TERMS: gl.constexpr,
):  # fmt: skip
    """Attends; every tensor is contiguous. With two terms `k_desc` and `v_desc` are of `split_kernel`'s parts."""
    # Integer arguments that are 1 arrive as constants.
    M = gl.to_tensor(M)
    N = gl.to_tensor(N)
    heads = gl.to_tensor(heads)
    dtype: gl.constexpr = k_desc.dtype
    q_smem = gl.allocate_shared_memory(dtype, [2, 1, 64 if TERMS == 1 else 8, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(dtype, [STAGES * TERMS, 1, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(dtype, [STAGES * TERMS, 1, BLOCK_N, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        # Both consumers have to be done with a tile.
        mbarrier.init(k_empty.index(i), count=2)
        mbarrier.init(v_empty.index(i), count=2)
    fence_async_shared()
    BLOCKS: gl.constexpr = (D, BLOCK_N, STAGES, TERMS, dtype)
    tensors = (q_ptr, k_ptr, v_ptr, out_ptr)
    queries = (q_smem, q_full, q_empty)
    ring = (k_smem, v_smem, k_full, k_empty, v_full, v_empty)
    sizes = (M, N, heads)
    gl.warp_specialize(
        [
            (_consume, (tensors, scales_ptr, queries, ring, sizes, c, 0, BLOCKS)),
            (_consume, (tensors, scales_ptr, queries, ring, sizes, c, 1, BLOCKS)),
            (_produce, ((q_desc, k_desc, v_desc), scales_ptr, queries, ring, sizes, BLOCKS)),
        ],
        [4, 1],
        [240, 24],
    )


class _Descriptor(hopper.TensorDescriptor):  # type: ignore[misc]
    """A TMA descriptor whose arguments are right by construction: checking them takes longer than the launch."""

    def __post_init__(self) -> None:
        return None


# One of a tile of rows of 128 bytes, as TMA and the tensor cores share it.
_LAYOUT = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=3)
_BLOCK_N, _STAGES = 128, 2


def _describe(tensor: torch.Tensor, planes: int, rows: int, block: int) -> _Descriptor:
    """Returns the descriptor of `tensor`, seen as (planes, rows, HEAD_SIZE), for tiles of `block` rows."""
    shape, strides = [planes, rows, HEAD_SIZE], [rows * HEAD_SIZE, HEAD_SIZE, 1]
    return _Descriptor(tensor, shape, strides, [1, block, HEAD_SIZE], _LAYOUT)


@functools.cache
def multiprocessors(device: torch.device) -> int:
    """Returns how many multiprocessors `device` has if it is a Hopper GPU, else 0."""
    if torch.cuda.get_device_capability(device)[0] != 9:
        return 0
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float) -> torch.Tensor:
    """Returns the attention of contiguous tensors with heads of 64 elements and at least one key, on a Hopper GPU.

    In 16 bits all must start at a multiple of 16 bytes and `scale` be positive.
    """
    B, H, M, D = query.shape
    N = key.shape[2]
    heads = B * H
    out = torch.empty_like(query)
    grid = (min(multiprocessors(query.device), heads * ((M + 127) // 128)),)
    c = scale * LOG2_E
    if query.dtype != torch.float32:
        q_desc = _describe(query, heads, M, 64)
        k_desc, v_desc = _describe(key, heads, N, _BLOCK_N), _describe(value, heads, N, _BLOCK_N)
        attend_kernel[grid](
            q_desc, k_desc, v_desc, query, key, value, query, out, M, N, heads, c, D, _BLOCK_N, _STAGES, 1, num_warps=4
        )
        return out
    tiles = (N + _BLOCK_N - 1) // _BLOCK_N
    rows = tiles * _BLOCK_N
    parts = torch.empty((heads * 4, rows, D), dtype=torch.float16, device=query.device)
    scales = torch.empty((heads, 2, tiles), dtype=torch.float32, device=query.device)
    split_kernel[(tiles, heads)](key, value, parts, scales, N, D, _BLOCK_N, num_warps=8)
    desc = _describe(parts, heads * 4, rows, _BLOCK_N)
    attend_kernel[grid](
        desc, desc, desc, query, key, value, scales, out, M, N, heads, c, D, _BLOCK_N, _STAGES, 2, num_warps=4
    )
    return out
