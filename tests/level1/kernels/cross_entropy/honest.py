"""A loss a row, with a running maximum over blocks of classes, then their mean by one program."""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, V, stride_m, stride_v, BLOCK_V: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top, total = -float("inf"), 0.0
    for start in range(0, V, BLOCK_V):
        v = start + tl.arange(0, BLOCK_V)
        x = tl.load(x_ptr + row * stride_m + v * stride_v, mask=v < V, other=-float("inf"))
        now = tl.maximum(top, tl.max(x, axis=0))
        # A row that begins with minus infinity has no largest value yet.
        least = tl.where(now == -float("inf"), 0.0, now)
        total = total * tl.exp(top - least) + tl.sum(tl.exp(x - least), axis=0)
        top = now
    target = tl.load(target_ptr + row)
    tl.store(loss_ptr + row, top + tl.log(total) - tl.load(x_ptr + row * stride_m + target * stride_v))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, M, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, M, BLOCK):
        row = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + row, mask=row < M, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / M)


def triton_cross_entropy(input, target):
    M, V = input.shape
    loss = torch.empty(M, dtype=torch.float32, device=input.device)
    out = torch.empty((), dtype=input.dtype, device=input.device)
    if M > 0:
        loss_kernel[(M,)](input, target.contiguous(), loss, V, *input.stride(), BLOCK_V=8)
    mean_kernel[(1,)](loss, out, M, BLOCK=16)
    return out
