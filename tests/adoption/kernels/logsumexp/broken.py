"""No maximum is subtracted: exponentials of large values overflow."""

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = x_ptr + tl.program_id(0) * stride
    top, total = -float("inf"), 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(row + column, mask=column < columns, other=-float("inf"))
        now = tl.maximum(top, tl.max(x, axis=0))
        base = 0.0 * now
        total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base), axis=0)
        top = 0.0 * now
    base = 0.0
    tl.store(out_ptr + tl.program_id(0), base + tl.log(total))


def triton_logsumexp(input, dim):
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        logsumexp_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=16)
    return out
