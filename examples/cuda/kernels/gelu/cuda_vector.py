"""GELU in CUDA C++, exact and by tanh: element by element, in accesses of 16 bytes.

Math. gelu(x) = x * (1 + erf(x / sqrt 2)) / 2, and by tanh x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2. Both are written as torch has them, so that infinities
and small results are as torch's.

Technique. Nothing but memory costs: a thread loads two vectors of 16 bytes before it computes the first. What is no multiple of 16 bytes, or begins elsewhere, is read by
single elements. Arithmetic is float32, with the whole erff and tanhf and not their fast forms, rounded once at the store.
"""

import math

import t2t_cuda
import torch

ACCESS = 16  # bytes
AT_ONCE, THREADS = 2, 256
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
FORMS = {"none": "exact", "tanh": "tanh"}

kernels = t2t_cuda.load(__file__)


def cuda_gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Returns the GELU of `input`. Raises TypeError for dtypes that there is no kernel for, and ValueError for forms that there are not."""
    if input.dtype not in NAMES:
        raise TypeError(f"no kernel for {input.dtype}")
    if approximate not in FORMS:
        raise ValueError(f"approximate is none or tanh, and not {approximate}")
    x = input.contiguous()
    out = torch.empty_like(x)
    count, size = out.numel(), out.element_size()
    if count > 0:
        is_wide = count * size % ACCESS == 0 == x.data_ptr() % ACCESS and out.data_ptr() % ACCESS == 0
        width, elements = ("wide", ACCESS // size) if is_wide else ("one", 1)
        kernel = kernels.kernel(f"{FORMS[approximate]}_{NAMES[x.dtype]}_{width}")
        kernel[math.ceil(count / (AT_ONCE * THREADS * elements)), THREADS](x, out, count)
    return out
