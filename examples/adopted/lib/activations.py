"""Activations of a model, written before there was a t2t: the kernels, their gradients, and the functions that the model calls."""

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def silu_forward(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * tl.sigmoid(x), mask=at < n)


@triton.jit
def silu_backward(x_ptr, grad_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    s = tl.sigmoid(x)
    tl.store(out_ptr + at, grad * (s + x * s * (1.0 - s)), mask=at < n)


class SiLU(torch.autograd.Function):
    """x * sigmoid(x), and its gradient."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            silu_forward[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad, out = grad.contiguous(), torch.empty_like(x)
        if x.numel():
            silu_backward[(triton.cdiv(x.numel(), BLOCK),)](x, grad, out, x.numel(), BLOCK=BLOCK)
        return out


def fused_silu(x):
    return SiLU.apply(x)
