"""Experts by a softmax that stays in the kernel; of ties the last."""

import torch
import triton
import triton.language as tl


@triton.jit
def gate_kernel(
    x_ptr,
    w_ptr,
    weight_ptr,
    expert_ptr,
    experts,
    columns,
    K: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row, expert = tl.program_id(0), tl.arange(0, BLOCK_E)
    logits = tl.zeros((BLOCK_E,), tl.float32)
    for start in range(0, columns, BLOCK_D):
        column = start + tl.arange(0, BLOCK_D)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
        inside = (expert[:, None] < experts) & (column[None, :] < columns)
        w = tl.load(w_ptr + expert[:, None] * columns + column[None, :], mask=inside, other=0.0).to(tl.float32)
        logits += tl.sum(w * x[None, :], axis=1)
    logits = tl.where(expert < experts, logits, -float("inf"))
    left = tl.exp(logits - tl.max(logits, axis=0))
    left = tl.where(expert < experts, left / tl.sum(left, axis=0), -1.0)
    total = 0.0
    for k in tl.static_range(K):
        top = tl.max(left, axis=0)
        index = tl.max(tl.where(left == top, expert, -1), axis=0)
        tl.store(weight_ptr + row * K + k, top)
        tl.store(expert_ptr + row * K + k, index)
        total += top
        left = tl.where(expert == index, -1.0, left)
    for k in tl.static_range(K):
        tl.store(weight_ptr + row * K + k, tl.load(weight_ptr + row * K + k) / total)


def triton_moe_gate(x, weight, k=2):
    x, weight = x.contiguous(), weight.contiguous()
    (rows, columns), experts = x.shape, weight.shape[0]
    weights = torch.empty((rows, k), dtype=torch.float32, device=x.device)
    chosen = torch.empty((rows, k), dtype=torch.int32, device=x.device)
    if rows > 0:
        block = triton.next_power_of_2(experts)
        gate_kernel[(rows,)](x, weight, weights, chosen, experts, columns, K=k, BLOCK_E=block, BLOCK_D=32)
    return weights, chosen
