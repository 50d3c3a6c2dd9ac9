"""What the kernels of this workspace share: one kernel that scales, and its launch."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, length, factor, BLOCK: tl.constexpr):
    """Scale one block."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < length
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


def launch(x: torch.Tensor, out: torch.Tensor, factor: float) -> torch.Tensor:
    """Write `x * factor` into `out`, both dense, and return it."""
    length = out.numel()
    if length > 0:
        scale_kernel[(triton.cdiv(length, 512),)](x, out, length, factor, BLOCK=512)
    return out


def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    """Return `x * factor` in memory of its own."""
    x = x.contiguous()
    return launch(x, torch.empty_like(x), factor)
