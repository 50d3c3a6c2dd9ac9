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


@triton.jit
def touch_kernel(out_ptr, length, BLOCK: tl.constexpr):
    """Write nothing: the mask is false for all."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 0.0, mask=offsets + length < 0)


def touch(out: torch.Tensor) -> torch.Tensor:
    """Launch a kernel on `out` that writes nothing, and return it."""
    touch_kernel[(1,)](out, out.numel(), BLOCK=16)
    return out


@triton.jit
def roll_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """Move a row one place on."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    source = (offsets + columns - 1) % columns
    tl.store(out_ptr + row * columns + offsets, tl.load(x_ptr + row * columns + source, mask=mask), mask=mask)


def rolled(x: torch.Tensor) -> torch.Tensor:
    """Return the rows of `x`, two dims, each one place on."""
    x = x.contiguous()
    out = torch.empty_like(x)
    rows, columns = x.shape
    if out.numel() > 0:
        roll_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out
