"""Launches the kernel of `liger_kernel.ops.utils`, which has no wrapper there, as the losses of the package do."""

import torch
import triton
from liger_kernel.ops.utils import element_mul_kernel


def triton_element_mul(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Multiplies each row of `x` in place by `factor`, and returns `x`."""
    rows, columns = x.shape
    block = min(64, triton.next_power_of_2(columns))
    element_mul_kernel[(rows,)](x, x.stride(0), factor, columns, BLOCK_SIZE=block, X_col_stride=x.stride(1))
    return x
