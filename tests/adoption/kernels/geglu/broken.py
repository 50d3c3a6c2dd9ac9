"""The halves change places."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * n + n + column, mask=column < n, other=0.0)
    value = tl.load(x_ptr + row * 2 * n + column, mask=column < n, other=0.0)
    y = 0.5 * gate * (1 + tl.erf(gate * 0.7071067811865476)) * value
    tl.store(out_ptr + row * n + column, y, mask=column < n)


@triton.jit
def backward_kernel(x_ptr, upstream_ptr, grad_ptr, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * n + column, mask=column < n, other=0.0)
    value = tl.load(x_ptr + row * 2 * n + n + column, mask=column < n, other=0.0)
    upstream = tl.load(upstream_ptr + row * n + column, mask=column < n, other=0.0)
    below = 0.5 * (1 + tl.erf(gate * 0.7071067811865476))
    density = 0.3989422804014327 * tl.exp(-0.5 * gate * gate)
    grad_gate = upstream * value * (below + gate * density)
    tl.store(grad_ptr + row * 2 * n + column, grad_gate, mask=column < n)
    tl.store(grad_ptr + row * 2 * n + n + column, upstream * gate * below, mask=column < n)


class GEGLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        rows, n = x.shape[0], x.shape[1] // 2
        out = torch.empty((rows, n), dtype=x.dtype, device=x.device)
        if out.numel() > 0:
            forward_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        grad, n = torch.empty_like(x), x.shape[1] // 2
        if x.numel() > 0:
            block = triton.next_power_of_2(n)
            backward_kernel[(x.shape[0],)](x, upstream.contiguous(), grad, n, BLOCK=block)
        return grad
