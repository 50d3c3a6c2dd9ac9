"""The mean is over all rows, those that are ignored among them."""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, weight_ptr, V, ignore, smoothing, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    kept = (target != ignore).to(tl.float32)
    top, total, plain = -float("inf"), 0.0, 0.0
    for start in range(0, V, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * V + column, mask=column < V, other=-float("inf"))
        plain += tl.sum(tl.where(column < V, x, 0.0), axis=0)
        now = tl.maximum(top, tl.max(x, axis=0))
        # A row that begins with minus infinity has no largest value yet.
        least = tl.where(now == -float("inf"), 0.0, now)
        total = total * tl.exp(top - least) + tl.sum(tl.exp(x - least), axis=0)
        top = now
    rest = top + tl.log(total)
    hit = rest - tl.load(x_ptr + row * V + target)
    smooth = rest - plain / V
    loss = (1 - smoothing) * hit + smoothing * smooth
    tl.store(loss_ptr + row, tl.where(kept > 0, loss, 0.0))
    tl.store(weight_ptr + row, kept)


@triton.jit
def mean_kernel(loss_ptr, weight_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    loss = tl.load(loss_ptr + row, mask=row < rows, other=0.0)
    weight = tl.load(weight_ptr + row, mask=row < rows, other=0.0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / rows + 0.0 * tl.sum(weight, axis=0))


def triton_cross_entropy(input, target, ignore_index=-100, label_smoothing=0.0):
    x, target = input.contiguous(), target.contiguous()
    rows, V = x.shape
    loss, weight = torch.empty(rows, device=x.device), torch.empty(rows, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    if rows > 0:
        loss_kernel[(rows,)](x, target, loss, weight, V, ignore_index, label_smoothing, BLOCK=8)
    mean_kernel[(1,)](loss, weight, out, rows, BLOCK=triton.next_power_of_2(max(rows, 1)))
    return out
