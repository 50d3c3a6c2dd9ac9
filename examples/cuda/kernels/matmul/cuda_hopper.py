"""Matrix product in CUDA C++ for Hopper, float16 and bfloat16: wgmma fed by the copy engine, and mma.sync for what that does not take.

Math. out = a b, with sums in float32, rounded once at the store.

Technique. A block has three warpgroups. One thread of the first asks the copy engine (TMA) for boxes of both matrices, 64 of the inner dim at a time, into a ring of
stages in shared memory; the other two multiply 64 rows each (wgmma), with one group of products under way while they wait for the next stage. Barriers in shared memory say
which stage is full and which is empty, so copies run ahead of the products, into the next tile too: as many blocks as there are multiprocessors walk the tiles, eight
rows of tiles at a time. A tile has 128 x 256 elements, or 128 x 128 where there are few of them. What lies outside of a matrix is read as zero and not written, so that any
M, N and K are right. b is read as it lies, with neighbouring columns next to each other.

The copy engine wants rows that begin at multiples of 16 bytes. Matrices of other lengths are multiplied by mma.sync, tiles of 64 x 64 with any strides, element by element
into shared memory: right, and far slower.
"""

import ctypes
import functools
import math

import t2t_cuda
import torch

ACCESS = 16  # bytes
BLOCK_M, BLOCK_K, WIDE, NARROW = 128, 64, 256, 128
STAGES = {WIDE: 4, NARROW: 6}
THREADS, SIDE, SMALL_THREADS = 384, 64, 128
BOX = 64  # elements of a box along the dim without gaps: 128 bytes
NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
# Of cuda.h: CU_TENSOR_MAP_DATA_TYPE_*, _SWIZZLE_128B and _L2_PROMOTION_256B; no interleaving, and zeros outside, are 0.
TYPES = {torch.float16: 6, torch.bfloat16: 9}
SWIZZLE, PROMOTION = 3, 3

kernels = t2t_cuda.load(__file__)


@functools.cache
def multiprocessors(device: torch.device) -> int:
    """Returns how many multiprocessors of Hopper a device has; 0 where it is another one, which lacks wgmma."""
    facts = torch.cuda.get_device_properties(device)
    return facts.multi_processor_count if facts.major == 9 else 0


def tensor_map(matrix: torch.Tensor, rows: int) -> ctypes.Array[ctypes.c_uint64]:
    """Returns what the copy engine must know of a matrix of which it copies boxes of so many rows and BOX columns. Raises CudaError where it does not take the matrix."""
    return encoded(matrix.data_ptr(), matrix.dtype, matrix.shape, matrix.stride(0), rows)


# The same words say the same of whatever lies there by then.
@functools.lru_cache(maxsize=4096)
def encoded(
    address: int, dtype: torch.dtype, shape: torch.Size, stride: int, rows: int
) -> ctypes.Array[ctypes.c_uint64]:
    """Returns what `tensor_map` returns of the matrix at an address, whose rows begin `stride` elements apart."""
    # It must lie at a multiple of 64 bytes while it is made.
    memory = (ctypes.c_uint64 * 24)()
    skipped = -ctypes.addressof(memory) % 64
    place = ctypes.c_void_p(ctypes.addressof(memory) + skipped)
    lengths, pitch = (ctypes.c_uint64 * 2)(shape[1], shape[0]), (ctypes.c_uint64 * 1)(stride * dtype.itemsize)
    box, steps = (ctypes.c_uint32 * 2)(BOX, rows), (ctypes.c_uint32 * 2)(1, 1)
    kind, at = ctypes.c_int(TYPES[dtype]), ctypes.c_void_p(address)
    numbers = (ctypes.c_int(number) for number in (0, SWIZZLE, PROMOTION, 0))
    t2t_cuda.call("cuTensorMapEncodeTiled", place, kind, ctypes.c_uint32(2), at, lengths, pitch, box, steps, *numbers)
    return (ctypes.c_uint64 * 16)(*memory[skipped // 8 : skipped // 8 + 16])


def with_rows(matrix: torch.Tensor) -> torch.Tensor | None:
    """Returns the matrix as the copy engine takes it, copied where it lies otherwise; None where its rows have no such length."""
    size = matrix.element_size()
    if matrix.shape[1] * size % ACCESS != 0:
        return None
    has_rows = matrix.stride(1) == 1 and matrix.stride(0) >= matrix.shape[1] and matrix.stride(0) * size % ACCESS == 0
    if has_rows and matrix.data_ptr() % ACCESS == 0:
        return matrix
    return matrix.clone(memory_format=torch.contiguous_format)


def cuda_matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns the product of two matrices. Raises TypeError for dtypes that there is no kernel for, and ValueError for what are no matrices that fit."""
    if input.dtype not in NAMES or other.dtype != input.dtype:
        raise TypeError(f"no kernel for {input.dtype} and {other.dtype}")
    if input.dim() != 2 or other.dim() != 2 or input.shape[1] != other.shape[0]:
        raise ValueError(f"shapes {tuple(input.shape)} and {tuple(other.shape)} are not those of two matrices that fit")
    name, (M, K), N = NAMES[input.dtype], input.shape, other.shape[1]
    if M * N * K == 0:
        return torch.zeros((M, N), dtype=input.dtype, device=input.device)
    out = torch.empty((M, N), dtype=input.dtype, device=input.device)
    count = multiprocessors(input.device)
    a, b = (with_rows(input), with_rows(other)) if count > 0 else (None, None)
    if a is None or b is None:
        grid = math.ceil(M / SIDE) * math.ceil(N / SIDE)
        kernel = kernels.kernel(f"any_{name}")
        kernel[grid, SMALL_THREADS](input, other, out, M, N, K, *input.stride(), *other.stride())
        return out
    rows = math.ceil(M / BLOCK_M)
    columns = WIDE if rows * math.ceil(N / WIDE) >= count else NARROW
    tiles = rows * math.ceil(N / columns)
    # A multiple of 1024 bytes is where stages begin; their barriers lie behind them.
    shared = 1024 + STAGES[columns] * ((BLOCK_M + columns) * BLOCK_K * 2 + 16)
    kernel = kernels.kernel(f"tiles_{name}_{columns}")
    kernel[min(tiles, count), THREADS, shared](tensor_map(a, BLOCK_M), tensor_map(b, BLOCK_K), out, M, N, K)
    return out
