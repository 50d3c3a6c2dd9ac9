"""What the Gluon kernels of `v4_optimized` share: the ring of buffers, who fills it, and the order of tiles.

A program makes tile after tile. Its warps are specialized: one does nothing but ask the copy engine (TMA) for the next
operands, and two warpgroups do nothing but multiply, each its half of the tile's rows. Between them lies a ring of
STAGES buffers with two barriers each: `ready`, to be multiplied, and `empty`, to be filled. The next tile's copies are
on their way while the last tile is stored. The multiplying warpgroups are those of `half` and of `terms`.
"""

import functools

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
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
def barriers(STAGES: gl.constexpr, WORKERS: gl.constexpr):
    """Returns the ring's barriers: one copy fills a buffer, all workers empty it."""
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(ready.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=WORKERS)
    fence_async_shared()
    return ready, empty


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
