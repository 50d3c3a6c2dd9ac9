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

Arithmetic is float32, rounded once at the store. Nothing is atomic: two runs give the same bits.
"""

import math

import t2t_cuda
import torch

ACCESS = 16  # bytes
SECTOR = 32  # bytes that memory delivers at least
SHORT = 8  # elements a thread has of shorter rows
FORWARD, BACKWARD = 32, 16  # elements a thread has of longer rows
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


def extents(value: torch.Tensor, dim: int) -> tuple[int, int, int]:
    """Returns the length of `dim`, how far apart its elements lie in a contiguous tensor, and how many rows there are."""
    shape = value.shape or (1,)
    n = shape[dim]
    return n, math.prod(shape[dim % len(shape) + 1 :]), value.numel() // n


def width_of(n: int, *tensors: torch.Tensor) -> str:
    """Returns `wide` where each row of `n` elements can be read by whole accesses, else `one`."""
    fits = all((n * x.element_size()) % ACCESS == 0 == x.data_ptr() % ACCESS for x in tensors)
    return "wide" if fits else "one"


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


def launch(pass_name: str, tensors: list[torch.Tensor], dim: int, most: int) -> None:
    """Launches a pass on contiguous tensors, the last of which is its result; a thread has `most` elements of a long row."""
    result = tensors[-1]
    name, (n, inner, rows) = name_of(result.dtype), extents(result, dim)
    if inner > 1:
        form, block = column_block(n, result.element_size(), most)
        kernel = kernels.kernel(f"{pass_name}_columns_{name}_{form}")
        kernel[math.ceil(rows / block[0]), block](*tensors, rows, n, inner)
        return
    width = width_of(n, *tensors)
    if n <= MOST_THREADS * most:
        elements = SHORT if n <= FEW_THREADS * SHORT else most
        block = row_block(n, elements)
        kernel = kernels.kernel(f"{pass_name}_{name}_{width}_{elements}")
        kernel[math.ceil(rows / block[1]), block](*tensors, rows, n)
        return
    pieces, length = cut(n, rows)
    count = 2 if pass_name == "forward" else 1
    parts = [torch.empty(rows * pieces, dtype=torch.float32, device=result.device) for _ in range(count)]
    part, whole = (kernels.kernel(f"{pass_name}_{step}_{name}_{width}") for step in ("part", "whole"))
    part[rows * pieces, PIECE_THREADS](*tensors[:-1], *parts, n, pieces, length)
    whole[rows * pieces, PIECE_THREADS](*tensors[:-1], *parts, result, n, pieces, length)


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
            launch("forward", [x, y], dim, FORWARD)
        return y

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        dy, y = grad.contiguous(), output.contiguous()
        dx = torch.empty_like(y)
        if dx.numel() > 0:
            launch("backward", [dy, y, dx], dim, BACKWARD)
        return dx


def get_cuda_softmax() -> CudaSoftmax:
    """Returns the operator."""
    return CudaSoftmax()
