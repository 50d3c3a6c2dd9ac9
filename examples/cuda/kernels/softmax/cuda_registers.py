"""Softmax in CUDA C++, third version, forward and backward: every element is read once and written once, whichever dim it is.

Math. y = exp(x - max x) / sum exp(x - max x) along one dim. With dy flowing in, dx = y * (dy - sum(dy * y)). NaN and infinities are as in `cuda_plain`.

Technique, by the place of the dim and the length N of its rows.
- Rows in one piece, up to 1024 threads * 32 elements (backward 16, since a thread holds two of each): a thread loads all that it has of its row, in accesses of 16 bytes
  which are on their way together, and keeps it in registers through both reductions. Rows of up to 256 elements have a part of a warp each, and no barrier;
  up to 4096 a thread has 8 elements, so that several blocks share a multiprocessor and one loads while another reduces.
- Longer rows are cut in pieces, as many as the device keeps busy. A first kernel leaves the largest element of each piece and its sum, found in one pass (online softmax:
  the sum is scaled when the largest element grows); a second one puts them together and writes. The second reading is largely from the L2 cache.
- Another dim: neighbouring threads have neighbouring columns, 32 bytes of them at least, which is what memory delivers at once; the threads of a column hold it as
  those of a row do. Columns that a block cannot hold are read twice.

Arithmetic is float32, rounded once at the store. Nothing is atomic: two runs give the same bits. Which kernel it is, and its grid, is kept for each shape.
"""

import functools
import math
from collections.abc import Callable

import t2t_cuda
import torch

ACCESS = 16  # bytes
SECTOR = 32  # bytes that memory delivers at least
SHORT = 8  # elements a thread has of shorter rows
MOST = {"forward": 32, "backward": 16}  # elements a thread has of longer rows
PARTS = {"forward": 2, "backward": 1}  # numbers that are left of each piece
FEW_THREADS, MOST_THREADS = 512, 1024
SEVERAL_ROWS = 128  # threads of a block that has several rows
PIECES, LEAST_PIECE, PIECE_THREADS = 528, 4096, 512  # four blocks for each multiprocessor of an H200
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}

kernels = t2t_cuda.load(__file__)


def name_of(dtype: torch.dtype) -> str:
    """Returns what kernels call a dtype. Raises TypeError for dtypes that there is no kernel for."""
    if dtype not in NAMES:
        raise TypeError(f"no kernel for {dtype}")
    return NAMES[dtype]


def power_above(number: int) -> int:
    """Returns the smallest power of two that is not below a number."""
    return 1 << max(number - 1, 0).bit_length()


def extents(shape: torch.Size, dim: int) -> tuple[int, int, int]:
    """Returns the length of `dim`, how far apart its elements lie in a contiguous tensor, and how many rows there are."""
    sides = shape or (1,)
    n = sides[dim]
    return n, math.prod(sides[dim % len(sides) + 1 :]), math.prod(sides) // n


def are_aligned(tensors: tuple[torch.Tensor, ...]) -> bool:
    """Tells whether all of the tensors begin where an access of ACCESS bytes may."""
    return all(x.data_ptr() % ACCESS == 0 for x in tensors)


def width_of(n: int, size: int, is_aligned: bool) -> str:
    """Returns `wide` where each row of `n` elements of `size` bytes can be read by whole accesses, else `one`."""
    return "wide" if is_aligned and n * size % ACCESS == 0 else "one"


def row_block(n: int, elements: int) -> tuple[int, int]:
    """Returns the block for rows of `n` elements of which a thread has so many: a power of two up to a warp, or whole warps."""
    threads = math.ceil(n / elements)
    if threads <= 32:
        lanes = power_above(threads)
        return lanes, SEVERAL_ROWS // lanes
    return math.ceil(threads / 32) * 32, 1


def cut(n: int, rows: int) -> tuple[int, int]:
    """Returns in how many pieces a long row is cut, and how long they are but for the last."""
    pieces = min(math.ceil(PIECES / rows), math.ceil(n / LEAST_PIECE))
    length = math.ceil(n / pieces / ACCESS) * ACCESS
    return math.ceil(n / length), length


def column_block(n: int, size: int, most: int) -> tuple[str, tuple[int, int]]:
    """Returns the form and the block for columns of `n` elements of `size` bytes, of which a thread has `most` at most: how many columns a block has, and how many threads each."""
    if n <= SHORT * 32:
        return str(SHORT), (32, math.ceil(n / SHORT))
    for columns in (32, 16, 8):
        if columns * size >= SECTOR and n <= MOST_THREADS // columns * most:
            # Whole warps: the number of threads a column is a multiple of 4.
            return str(most), (columns, math.ceil(n / most / 4) * 4)
    return "long", (32, 32)


@functools.lru_cache(maxsize=4096)
def whole_rows(
    pass_name: str, dtype: torch.dtype, shape: torch.Size, dim: int, is_aligned: bool
) -> tuple[Callable[..., None], tuple[int, ...]] | None:
    """Returns what launches a pass on contiguous tensors of a shape, and the numbers that it takes after them; None for rows that no block holds."""
    name, (n, inner, rows), most = name_of(dtype), extents(shape, dim), MOST[pass_name]
    if inner > 1:
        form, block = column_block(n, dtype.itemsize, most)
        kernel = kernels.kernel(f"{pass_name}_columns_{name}_{form}")
        return kernel[math.ceil(rows / block[0]), block], (rows, n, inner)
    if n > MOST_THREADS * most:
        return None
    elements = SHORT if n <= FEW_THREADS * SHORT else most
    block = row_block(n, elements)
    kernel = kernels.kernel(f"{pass_name}_{name}_{width_of(n, dtype.itemsize, is_aligned)}_{elements}")
    return kernel[math.ceil(rows / block[1]), block], (rows, n)


@functools.lru_cache(maxsize=4096)
def cut_rows(
    pass_name: str, dtype: torch.dtype, shape: torch.Size, is_aligned: bool
) -> tuple[Callable[..., None], Callable[..., None], int, tuple[int, ...]]:
    """Returns what launches the two steps of a pass on rows that are cut, how many pieces there are of all rows, and the numbers that both steps take."""
    n, _, rows = extents(shape, -1)
    pieces, length = cut(n, rows)
    end = f"{name_of(dtype)}_{width_of(n, dtype.itemsize, is_aligned)}"
    part, whole = (kernels.kernel(f"{pass_name}_{step}_{end}") for step in ("part", "whole"))
    how = rows * pieces, PIECE_THREADS
    return part[how], whole[how], rows * pieces, (n, pieces, length)


def launch(pass_name: str, dim: int, *tensors: torch.Tensor) -> None:
    """Launches a pass on contiguous tensors, the last of which is its result."""
    result = tensors[-1]
    dtype, shape, is_aligned = result.dtype, result.shape, are_aligned(tensors)
    found = whole_rows(pass_name, dtype, shape, dim, is_aligned)
    if found is not None:
        start, numbers = found
        start(*tensors, *numbers)
        return
    part, whole, count, numbers = cut_rows(pass_name, dtype, shape, is_aligned)
    parts = [result.new_empty(count, dtype=torch.float32) for _ in range(PARTS[pass_name])]
    part(*tensors[:-1], *parts, *numbers)
    whole(*tensors[:-1], *parts, result, *numbers)


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is converted to that dtype first. Raises TypeError for dtypes that there is no kernel for."""
    return CudaSoftmax().forward(input if dtype is None else input.to(dtype), dim)


class CudaSoftmax:
    """Softmax along a dim, for autograd or by hand: `backward` takes what `forward` returned."""

    def forward(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the softmax of `input` along `dim`. Raises TypeError for dtypes that there is no kernel for."""
        x = input.contiguous()
        y = torch.empty_like(x)
        if y.numel() > 0:
            launch("forward", dim, x, y)
        return y

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        dy, y = grad.contiguous(), output.contiguous()
        dx = torch.empty_like(y)
        if dx.numel() > 0:
            launch("backward", dim, dy, y, dx)
        return dx


def get_cuda_softmax() -> CudaSoftmax:
    """Returns the operator."""
    return CudaSoftmax()
