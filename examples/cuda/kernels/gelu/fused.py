"""GELU, forward and backward, as an autograd function: a block of elements a program.

Math. With `approximate="none"`, gelu(x) = x * Phi(x), and its derivative is Phi(x) + x * phi(x), phi being the normal density.
With `approximate="tanh"`, gelu(x) = x * s(u), s the sigmoid and u = c * (x + a * x^3), which is x/2 * (1 + tanh(u / 2)). So

    gelu'(x) = s(u) + x * s(u) * s(-u) * c * (1 + 3 * a * x^2).

Technique. The forward pass keeps its input, and the backward pass computes what it needs of it again: that costs less than to write it and to read it.
Each pass is bound by memory. x^2 overflows where s(u) * s(-u) is zero, so x is multiplied in one factor after the other: zero stays zero.
Arithmetic is float32, rounded once at the store.
"""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 512
SLOPE = tl.constexpr(1.5957691216057308)
CUBIC = tl.constexpr(0.044715)
HALF_ROOT = tl.constexpr(0.7071067811865476)
DENSITY = tl.constexpr(0.3989422804014327)


@triton.jit
def gelu(x, IS_TANH: tl.constexpr):
    if IS_TANH:
        return x * tl.sigmoid(SLOPE * (x + CUBIC * x * x * x))
    else:
        return 0.5 * x * (1.0 + tl.erf(HALF_ROOT * x))


@triton.jit
def gelu_forward_kernel(x_ptr, y_ptr, n_elements, IS_TANH: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + offsets, gelu(x, IS_TANH), mask=mask)


@triton.jit
def gelu_backward_kernel(dy_ptr, x_ptr, dx_ptr, n_elements, IS_TANH: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if IS_TANH:
        u = SLOPE * (x + CUBIC * x * x * x)
        gate = tl.sigmoid(u)
        change = x * (gate * tl.sigmoid(-u)) * SLOPE
        slope = gate + change + 3.0 * CUBIC * change * x * x
    else:
        slope = 0.5 * (1.0 + tl.erf(HALF_ROOT * x)) + x * (DENSITY * tl.exp(-0.5 * x * x))
    tl.store(dx_ptr + offsets, dy * slope, mask=mask)


class Gelu(torch.autograd.Function):
    """The Gaussian error linear unit of every element."""

    @staticmethod
    def forward(ctx, x, is_tanh):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            grid = (triton.cdiv(x.numel(), BLOCK_SIZE),)
            gelu_forward_kernel[grid](x, y, x.numel(), IS_TANH=is_tanh, BLOCK_SIZE=BLOCK_SIZE)
        ctx.save_for_backward(x)
        ctx.is_tanh = is_tanh
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dy, dx = dy.contiguous(), torch.empty_like(x)
        if x.numel():
            grid = (triton.cdiv(x.numel(), BLOCK_SIZE),)
            gelu_backward_kernel[grid](dy, x, dx, x.numel(), IS_TANH=ctx.is_tanh, BLOCK_SIZE=BLOCK_SIZE)
        return dx, None


def triton_gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Returns the Gaussian error linear unit of every element. Raises ValueError unless `approximate` is `none` or `tanh`."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate must be `none` or `tanh`, not `{approximate}`")
    return Gelu.apply(input, approximate == "tanh")
