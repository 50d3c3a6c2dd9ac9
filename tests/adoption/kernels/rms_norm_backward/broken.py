"""The weight's gradient is that of the first program's rows alone."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, w_ptr, out_ptr, scale_ptr, columns, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
    scale = 1 / tl.sqrt_rn(tl.sum(x * x, axis=0) / columns + eps)
    tl.store(scale_ptr + row, scale)
    w = tl.load(w_ptr + column, mask=column < columns, other=0.0)
    tl.store(out_ptr + row * columns + column, x * scale * w, mask=column < columns)


@triton.jit
def backward_kernel(x_ptr, w_ptr, up_ptr, scale_ptr, dx_ptr, dw_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    w = tl.load(w_ptr + column, mask=inside, other=0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
        up = tl.load(up_ptr + row * columns + column, mask=inside, other=0.0)
        scale = tl.load(scale_ptr + row)
        normal = x * scale
        total += up * normal
        dx = scale * (up * w - normal * tl.sum(up * w * normal, axis=0) / columns)
        tl.store(dx_ptr + row * columns + column, dx, mask=inside)
    tl.store(dw_ptr + tl.program_id(0) * columns + column, total, mask=inside)


@triton.jit
def join_kernel(part_ptr, dw_ptr, parts, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        total += tl.load(part_ptr + part * columns + column, mask=column < columns, other=0.0)
    tl.store(dw_ptr + column, total, mask=column < columns)


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        x, weight = x.contiguous(), weight.contiguous()
        out, scale = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
        if x.numel() > 0:
            forward_kernel[(x.shape[0],)](
                x, weight, out, scale, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1])
            )
        ctx.save_for_backward(x, weight, scale)
        return out

    @staticmethod
    def backward(ctx, upstream):
        x, weight, scale = ctx.saved_tensors
        (rows, columns), parts = x.shape, 2
        block = triton.next_power_of_2(columns)
        dx, dw = torch.empty_like(x), torch.empty_like(weight)
        part = torch.empty((parts, columns), device=x.device)
        backward_kernel[(parts,)](x, weight, upstream.contiguous(), scale, dx, part, rows, columns, BLOCK=block)
        join_kernel[(1,)](part, dw, 1, columns, BLOCK=block)
        return dx, dw, None


def triton_rms_norm_backward(input, normalized_shape, weight, eps):
    return RMSNormFunction.apply(input, weight, eps)
