"""Layer normalization in CUDA C++, forward and backward, as an autograd function; rows in registers, and the gradients of weight and bias summed in two steps.

Math. Over rows of N elements, z = (x - mean) * rstd with rstd = 1 / sqrt(var + eps), and y = z * w + b. With dy flowing in and g = w * dy,

    dx = rstd * (g - mean(g) - z * mean(g * z)),    dw = sum over rows of dy * z,    db = sum over rows of dy.

The mean and the variance are found one after the other over the same registers, the mean as what it is beyond the row's first element, which is kept with rstd.
So nothing is lost of rows that lie far from zero, forward or backward.

Technique. A thread has up to 16 elements of a row, in accesses of 16 bytes, and keeps them until it writes: x is read once forward, x and dy once backward.
Rows of up to 256 elements have a part of a warp each, and no barrier. Backward, as many blocks as the device holds at once walk the rows; a thread adds up dw and db of its
columns in registers, and loads the next row before it reduces this one. Each leaves a row of partial sums, which a second kernel adds, 32 columns a block.
Nothing is atomic: two runs give the same bits. Rows that no block holds are read two or three times, and dw and db are found by columns.
Arithmetic is float32, rounded once at the store. Which kernels they are, and their grids, is kept for each shape.
"""

import functools
import math
from collections.abc import Callable

import t2t_cuda
import torch

ACCESS = 16  # bytes
SHORT, LONG = 8, 16  # elements a thread has of a row
FEW_THREADS, MOST_THREADS = 512, 1024
SEVERAL_ROWS = 128  # threads of a block that has several rows
MULTIPROCESSORS = 132  # of an H200; a device with others takes longer, and has the same result
RESIDENT = 640  # threads of the backward pass that a multiprocessor has registers for
COLUMN_THREADS, COLUMN_ROWS = 256, 64  # of partial sums by columns: threads of a block, and blocks along the rows
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}

Shape = tuple[int, ...]
Launch = Callable[..., None]

kernels = t2t_cuda.load(__file__)


def are_aligned(*tensors: torch.Tensor | None) -> bool:
    """Tells whether all of the tensors that are there begin where an access of ACCESS bytes may."""
    return all(x is None or x.data_ptr() % ACCESS == 0 for x in tensors)


def width_of(n: int, dtype: torch.dtype, is_aligned: bool) -> str:
    """Returns `wide` where each row of `n` elements can be read by whole accesses, else `one`."""
    return "wide" if is_aligned and n * dtype.itemsize % ACCESS == 0 else "one"


def row_block(n: int, elements: int) -> tuple[int, int]:
    """Returns the block for rows of `n` elements of which a thread has so many: a power of two up to a warp, or whole warps."""
    threads = math.ceil(n / elements)
    if threads <= 32:
        lanes = 1 << (threads - 1).bit_length()
        return lanes, SEVERAL_ROWS // lanes
    return math.ceil(threads / 32) * 32, 1


@functools.lru_cache(maxsize=4096)
def forward_launch(dtype: torch.dtype, rows: int, n: int, is_aligned: bool) -> tuple[Launch, tuple[int, ...]]:
    """Returns what launches the forward pass, and the numbers that it takes between the tensors and eps."""
    name = NAMES[dtype]
    if n > MOST_THREADS * LONG:
        return kernels.kernel(f"forward_{name}_long")[rows, MOST_THREADS], (n,)
    elements = SHORT if n <= FEW_THREADS * SHORT else LONG
    block = row_block(n, elements)
    kernel = kernels.kernel(f"forward_{name}_{width_of(n, dtype, is_aligned)}_{elements}")
    return kernel[math.ceil(rows / block[1]), block], (rows, n)


@functools.lru_cache(maxsize=4096)
def backward_launches(
    dtype: torch.dtype, rows: int, n: int, is_aligned: bool
) -> tuple[Launch, Launch | None, Launch, int]:
    """Returns what launches the steps of the backward pass, and how many partial sums a column has: by rows, by columns for rows that no block holds, and the addition."""
    name, width = NAMES[dtype], width_of(n, dtype, is_aligned)
    add = kernels.kernel(f"sum_parts_{name}")[math.ceil(n / 32), (32, 32)]
    if n <= FEW_THREADS * (LONG if width == "wide" else SHORT):
        elements = SHORT if n <= FEW_THREADS * SHORT else LONG
        threads, several = row_block(n, elements)
        blocks = min(math.ceil(rows / several), MULTIPROCESSORS * max(RESIDENT // (threads * several), 1))
        kernel = kernels.kernel(f"backward_{name}_{width}_{elements}")
        return kernel[blocks, (threads, several)], None, add, blocks * several
    parts = min(rows, COLUMN_ROWS)
    by_columns = kernels.kernel(f"column_parts_{name}")[(math.ceil(n / COLUMN_THREADS), parts), COLUMN_THREADS]
    return kernels.kernel(f"backward_{name}_long")[rows, MOST_THREADS], by_columns, add, parts


def forward(
    x: torch.Tensor, n: int, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float, keeps: bool
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """Returns the normalized rows of a contiguous tensor, and with `keeps` the mean of each beyond its first element, and rstd."""
    y, mean, rstd = torch.empty_like(x), None, None
    rows = x.numel() // max(n, 1)
    if rows == 0 or n == 0:
        return y, mean, rstd
    if keeps:
        mean, rstd = x.new_empty(rows, dtype=torch.float32), x.new_empty(rows, dtype=torch.float32)
    launch, numbers = forward_launch(x.dtype, rows, n, are_aligned(x, y, weight, bias))
    launch(x, weight, bias, y, mean, rstd, *numbers, float(eps))
    return y, mean, rstd


def backward(
    dy: torch.Tensor, x: torch.Tensor, shape: Shape, weight: torch.Tensor | None, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns dx, and dw and db of the normalized shape, for contiguous tensors that are not empty."""
    n = math.prod(shape)
    rows, dx, dw, db = x.numel() // n, torch.empty_like(x), x.new_empty(shape), x.new_empty(shape)
    by_rows, by_columns, add, parts = backward_launches(x.dtype, rows, n, are_aligned(dy, x, dx, weight))
    part_dw, part_db = x.new_empty(parts * n, dtype=torch.float32), x.new_empty(parts * n, dtype=torch.float32)
    if by_columns is None:
        by_rows(dy, x, weight, mean, rstd, dx, part_dw, part_db, rows, n)
    else:
        by_rows(dy, x, weight, mean, rstd, dx, n)
        by_columns(dy, x, mean, rstd, part_dw, part_db, rows, n)
    add(part_dw, part_db, dw, db, parts, n)
    return dx, dw, db


class LayerNorm(torch.autograd.Function):
    """Layer normalization over trailing dims of a shape."""

    @staticmethod
    def forward(ctx, x, shape, weight, bias, eps):
        y, mean, rstd = forward(x, math.prod(shape), weight, bias, eps, True)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.shape, ctx.has_bias = shape, bias is not None
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        if x.numel():
            dx, dw, db = backward(dy.contiguous(), x, ctx.shape, weight, mean, rstd)
        else:
            dx, dw, db = torch.empty_like(x), x.new_zeros(ctx.shape), x.new_zeros(ctx.shape)
        return dx, None, None if weight is None else dw, db if ctx.has_bias else None, None


def cuda_layernorm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Returns `input` normalized over its trailing dims `normalized_shape`, times `weight`, plus `bias`.

    Raises TypeError for dtypes that there is no kernel for, and ValueError for shapes that do not fit.
    """
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"input of shape {tuple(input.shape)} does not end in {shape}")
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        if value.shape != shape:
            raise ValueError(f"{name} has the shape {tuple(value.shape)}, and not {shape}")
        if value.dtype != input.dtype:
            raise TypeError(f"no kernel for a {name} of {value.dtype} and an input of {input.dtype}")
    if input.dtype not in NAMES:
        raise TypeError(f"no kernel for {input.dtype}")
    x = input.contiguous()
    w, b = None if weight is None else weight.contiguous(), None if bias is None else bias.contiguous()
    if torch.is_grad_enabled() and any(value is not None and value.requires_grad for value in (x, w, b)):
        return LayerNorm.apply(x, shape, w, b, eps)
    # Nobody asks for a gradient, and the host is done sooner.
    return forward(x, math.prod(shape), w, b, eps, False)[0]
