"""Softmax as people write it with torch's extensions: a `.cu` with torch's headers, which `load` would build when this file is imported.

Math. Along one dim, y = exp(x - max x) / sum exp(x - max x). With dy flowing in, dx = y * (dy - sum(dy * y)). A row that holds NaN or +inf, or only -inf, becomes
NaN throughout, as in torch.

Technique. A warp a row, of any length. The first reading keeps the largest element and the sum together (online softmax: the sum is scaled when the largest element
grows), the second one writes. Lanes meet by shuffles. Arithmetic is float32 whatever the dtype. Rows are strided where another dim than the last is reduced:
neighbouring warps then read neighbouring elements.

Under t2t the module is built before, without a GPU, and neither file is changed for it.
"""

import os

import torch
from torch.utils.cpp_extension import load

module = load(
    name="softmax_extension",
    sources=[os.path.join(os.path.dirname(os.path.abspath(__file__)), "extension.cu")],
    extra_cuda_cflags=["-O3"],
)


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is rounded to that dtype first."""
    return module.forward(input if dtype is None else input.to(dtype), dim)


class CudaSoftmax:
    """Softmax along a dim, for autograd or by hand: `backward` takes what `forward` returned."""

    def forward(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the softmax of `input` along `dim`."""
        return module.forward(input, dim)

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        return module.backward(grad, output, dim)


def get_cuda_softmax() -> CudaSoftmax:
    """Returns the operator."""
    return CudaSoftmax()
