"""Softmax in CUDA C++, translated directly: one block of threads a row, three passes over memory forward and two backward.

Math. Along one dim, softmax(x)[i] = exp(x[i] - m) / sum_j exp(x[j] - m), m = max_j x[j]. A row that holds NaN or +inf, or only -inf, becomes NaN throughout, as in
torch: `fmaxf` passes over NaN, and the sum does not. With dy flowing in, dx = y * (dy - sum(dy * y)), where y is the softmax.

Technique. The threads of a block take the elements of a row in turn, and meet twice in shared memory: for the maximum and for the sum. A row may be of any length,
since nothing of it is kept between the passes; the second and third pass mostly find it in the L2 cache. Arithmetic is float32 whatever the dtype.

Layout. The input is seen as [outer, N, inner], contiguous, where N is the reduced dim: a row starts at (r // inner) * N * inner + r % inner, and its elements lie
inner apart. With inner = 1 neighbouring threads read neighbouring elements; else each reads a line of its own, which is slow and right.
"""

import math

import t2t_cuda
import torch

THREADS = 256
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}

kernels = t2t_cuda.load(__file__)


def triton_softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the softmax of `input` along `dim`; with `dtype` the input is rounded to that dtype first. Raises TypeError for dtypes that there is no kernel for."""
    out_dtype = input.dtype if dtype is None else dtype
    if input.dtype not in NAMES or out_dtype not in NAMES:
        raise TypeError(f"no kernel for {input.dtype} and {out_dtype}")
    shape = input.shape or (1,)
    n, inner = shape[dim], math.prod(shape[dim % len(shape) + 1 :])
    x = input.contiguous()
    out = torch.empty_like(x, dtype=out_dtype)
    if out.numel() > 0:
        kernel = kernels.kernel(f"softmax_{NAMES[input.dtype]}_{NAMES[out_dtype]}")
        kernel[out.numel() // n, THREADS](x, out, n, inner)
    return out


class CudaSoftmax:
    """Softmax along a dim, for autograd or by hand: `backward` takes what `forward` returned."""

    def forward(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the softmax of `input` along `dim`. Raises TypeError for dtypes that there is no kernel for."""
        return triton_softmax(input, dim)

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        shape = output.shape or (1,)
        n, inner = shape[dim], math.prod(shape[dim % len(shape) + 1 :])
        dy, y = grad.contiguous(), output.contiguous()
        dx = torch.empty_like(y)
        if dx.numel() > 0:
            kernels.kernel(f"softmax_backward_{NAMES[y.dtype]}")[dx.numel() // n, THREADS](dy, y, dx, n, inner)
        return dx


def get_cuda_softmax() -> CudaSoftmax:
    """Returns the operator."""
    return CudaSoftmax()
