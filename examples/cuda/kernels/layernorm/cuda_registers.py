"""Layer normalization in CUDA C++, forward and backward, as an autograd function; rows in registers, and the gradients of weight and bias summed in two steps.

Math. Over rows of N elements, z = (x - mean) * rstd with rstd = 1 / sqrt(var + eps), and y = z * w + b. With dy flowing in and g = w * dy,

    dx = rstd * (g - mean(g) - z * mean(g * z)),    dw = sum over rows of dy * z,    db = sum over rows of dy.

The mean and the variance are found one after the other over the same registers, the mean as what it is beyond the row's first element, which is kept with rstd.
So nothing is lost of rows that lie far from zero, forward or backward.

Technique. A thread has up to 16 elements of a row, in accesses of 16 bytes, and keeps them until it writes: x is read once forward, x and dy once backward.
Rows of up to 256 elements have a part of a warp each, and no barrier. Backward, as many blocks as the device holds at once walk the rows; a thread adds up dw and db of its
columns in registers, and loads the next row before it reduces this one. Each leaves a row of partial sums, which a second kernel adds, 32 columns a block.
Nothing is atomic: two runs give the same bits. Rows that no block holds are read two or three times, and dw and db are found by columns.
Arithmetic is float32, rounded once at the store.
"""

import math

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

kernels = t2t_cuda.load(__file__)


def width_of(n: int, *tensors: torch.Tensor | None) -> str:
    """Returns `wide` where each row of `n` elements can be read by whole accesses, else `one`."""
    there = [x for x in tensors if x is not None]
    fits = all((n * x.element_size()) % ACCESS == 0 == x.data_ptr() % ACCESS for x in there)
    return "wide" if fits else "one"


def row_block(n: int, elements: int) -> tuple[int, int]:
    """Returns the block for rows of `n` elements of which a thread has so many: a power of two up to a warp, or whole warps."""
    threads = math.ceil(n / elements)
    if threads <= 32:
        lanes = 1 << (threads - 1).bit_length()
        return lanes, SEVERAL_ROWS // lanes
    return math.ceil(threads / 32) * 32, 1


def forward(
    x: torch.Tensor, n: int, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float, keeps: bool
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """Returns the normalized rows of a contiguous tensor that is not empty, and with `keeps` the mean of each beyond its first element, and rstd."""
    name, rows, y = NAMES[x.dtype], x.numel() // n, torch.empty_like(x)
    mean, rstd = (torch.empty(rows, dtype=torch.float32, device=x.device) if keeps else None for _ in range(2))
    if n > MOST_THREADS * LONG:
        long = kernels.kernel(f"forward_{name}_long")
        long[rows, MOST_THREADS](x, weight, bias, y, mean, rstd, n, float(eps))
        return y, mean, rstd
    elements = SHORT if n <= FEW_THREADS * SHORT else LONG
    block = row_block(n, elements)
    kernel = kernels.kernel(f"forward_{name}_{width_of(n, x, y, weight, bias)}_{elements}")
    kernel[math.ceil(rows / block[1]), block](x, weight, bias, y, mean, rstd, rows, n, float(eps))
    return y, mean, rstd


def backward(
    dy: torch.Tensor, x: torch.Tensor, n: int, weight: torch.Tensor | None, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns dx, and dw and db as vectors of `n` elements, for contiguous tensors that are not empty."""
    name, rows, dx = NAMES[x.dtype], x.numel() // n, torch.empty_like(x)
    dw, db = (torch.empty(n, dtype=x.dtype, device=x.device) for _ in range(2))
    width = width_of(n, dy, x, dx, weight)
    most = LONG if width == "wide" else SHORT
    if n <= FEW_THREADS * most:
        elements = SHORT if n <= FEW_THREADS * SHORT else LONG
        threads, several = row_block(n, elements)
        blocks = min(math.ceil(rows / several), MULTIPROCESSORS * max(RESIDENT // (threads * several), 1))
        parts = blocks * several
        part_dw, part_db = (torch.empty(parts * n, dtype=torch.float32, device=x.device) for _ in range(2))
        kernel = kernels.kernel(f"backward_{name}_{width}_{elements}")
        kernel[blocks, (threads, several)](dy, x, weight, mean, rstd, dx, part_dw, part_db, rows, n)
    else:
        parts = min(rows, COLUMN_ROWS)
        part_dw, part_db = (torch.empty(parts * n, dtype=torch.float32, device=x.device) for _ in range(2))
        kernels.kernel(f"backward_{name}_long")[rows, MOST_THREADS](dy, x, weight, mean, rstd, dx, n)
        by_columns = kernels.kernel(f"column_parts_{name}")
        grid = (math.ceil(n / COLUMN_THREADS), parts)
        by_columns[grid, COLUMN_THREADS](dy, x, mean, rstd, part_dw, part_db, rows, n)
    add = kernels.kernel(f"sum_parts_{name}")
    add[math.ceil(n / 32), (32, 32)](part_dw, part_db, dw, db, parts, n)
    return dx, dw, db


class LayerNorm(torch.autograd.Function):
    """Layer normalization over trailing dims of a shape."""

    @staticmethod
    def forward(ctx, x, shape, weight, bias, eps):
        x, weight, bias = (None if value is None else value.contiguous() for value in (x, weight, bias))
        y, mean, rstd = torch.empty_like(x), None, None
        if x.numel():
            y, mean, rstd = forward(x, math.prod(shape), weight, bias, eps, any(ctx.needs_input_grad))
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.shape, ctx.has_bias = shape, bias is not None
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        n = math.prod(ctx.shape)
        if x.numel():
            dx, dw, db = backward(dy.contiguous(), x, n, weight, mean, rstd)
        else:
            dx, (dw, db) = torch.empty_like(x), (torch.zeros(n, dtype=x.dtype, device=x.device) for _ in range(2))
        dw = None if weight is None else dw.view(ctx.shape)
        return dx, None, dw, db.view(ctx.shape) if ctx.has_bias else None, None


def cuda_layernorm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Returns `input` normalized over its trailing dims `normalized_shape`, times `weight`, plus `bias`.

    Raises TypeError for dtypes that there is no kernel for, and ValueError for shapes that do not fit.
    """
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        raise ValueError(f"input of shape {tuple(input.shape)} does not end in {shape}")
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != shape:
            raise ValueError(f"{name} has the shape {tuple(value.shape)}, and not {shape}")
        if value is not None and value.dtype != input.dtype:
            raise TypeError(f"no kernel for a {name} of {value.dtype} and an input of {input.dtype}")
    if input.dtype not in NAMES:
        raise TypeError(f"no kernel for {input.dtype}")
    return LayerNorm.apply(input, shape, weight, bias, eps)
