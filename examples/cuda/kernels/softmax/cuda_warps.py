"""Softmax in CUDA C++, second version, forward and backward: 16-byte accesses, and reductions by shuffles.

Math. y = exp(x - max x) / sum exp(x - max x) along one dim. With dy flowing in, dx = y * (dy - sum(dy * y)). NaN and infinities are as in `cuda_plain`.

Technique. A block has a row, as in `cuda_plain`, and goes over it three times, backward twice. A thread takes 16 bytes at a time, so that a warp reads 512 neighbouring
bytes by one instruction. A warp reduces by shuffles, and the warps meet once in shared memory, where the tree of `cuda_plain` meets eight times. Rows whose length is no
multiple of 16 bytes, or that begin elsewhere, are read by single elements; so are rows of another dim than the last one, each from a line of its own.
Arithmetic is float32, rounded once at the store.
"""

import math

import t2t_cuda
import torch

THREADS = 256
ACCESS = 16  # bytes
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}

kernels = t2t_cuda.load(__file__)


def name_of(dtype: torch.dtype) -> str:
    """Returns what kernels call a dtype. Raises TypeError for dtypes that there is no kernel for."""
    if dtype not in NAMES:
        raise TypeError(f"no kernel for {dtype}")
    return NAMES[dtype]


def extents(value: torch.Tensor, dim: int) -> tuple[int, int]:
    """Returns the length of `dim`, and how far apart its elements lie in a contiguous tensor."""
    shape = value.shape or (1,)
    return shape[dim], math.prod(shape[dim % len(shape) + 1 :])


def width_of(n: int, inner: int, *tensors: torch.Tensor) -> str:
    """Returns `wide` where each row of `n` elements can be read by whole accesses, else `one`."""
    fits = inner == 1 and all((n * x.element_size()) % ACCESS == 0 == x.data_ptr() % ACCESS for x in tensors)
    return "wide" if fits else "one"


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is converted to that dtype first. Raises TypeError for dtypes that there is no kernel for."""
    return CudaSoftmax().forward(input if dtype is None else input.to(dtype), dim)


class CudaSoftmax:
    """Softmax along a dim, for autograd or by hand: `backward` takes what `forward` returned."""

    def forward(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the softmax of `input` along `dim`. Raises TypeError for dtypes that there is no kernel for."""
        name, (n, inner) = name_of(input.dtype), extents(input, dim)
        x = input.contiguous()
        y = torch.empty_like(x)
        if y.numel() > 0:
            kernel = kernels.kernel(f"forward_{name}_{width_of(n, inner, x, y)}")
            kernel[y.numel() // n, THREADS](x, y, n, inner)
        return y

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        name, (n, inner) = name_of(output.dtype), extents(output, dim)
        dy, y = grad.contiguous(), output.contiguous()
        dx = torch.empty_like(y)
        if dx.numel() > 0:
            kernel = kernels.kernel(f"backward_{name}_{width_of(n, inner, dy, y, dx)}")
            kernel[dx.numel() // n, THREADS](dy, y, dx, n, inner)
        return dx


def get_cuda_softmax() -> CudaSoftmax:
    """Returns the operator."""
    return CudaSoftmax()
