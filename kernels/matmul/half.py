"""Large products of 16-bit matrices on Hopper, by the warp-specialized ring of `ring`.

A tile is 128 x 256, the largest whose float32 accumulator fits the registers; fewer bytes are read for each
multiplication than with any smaller one. At this rate the device is short of power, not of time, and so what is saved
is traffic: every other tile walks k backward, from the operands that are still in the L2 cache, and there are as few
programs as can make the tiles in as many turns, 128 for 512 tiles, where 132 would be out of step.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.matmul.ring import balanced, barriers, cdiv, descriptor, load_operands, tile_place


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
