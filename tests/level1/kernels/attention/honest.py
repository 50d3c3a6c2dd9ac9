"""Attention in one pass over the keys, with a running maximum; heads of any width, padded to a power of two."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    S,
    scale,
    E: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_E: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * S * E
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    e = tl.arange(0, BLOCK_E)
    rows = (m[:, None] < S) & (e[None, :] < E)
    q = tl.load(q_ptr + base + m[:, None] * E + e[None, :], mask=rows, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    mixed = tl.zeros((BLOCK_M, BLOCK_E), tl.float32)
    for start in range(0, S, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        mask = (n[:, None] < S) & (e[None, :] < E)
        k = tl.load(k_ptr + base + n[:, None] * E + e[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + base + n[:, None] * E + e[None, :], mask=mask, other=0.0)
        score = tl.where(n[None, :] < S, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        now = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp(score - now[:, None])
        shrink = tl.exp(top - now)
        total = total * shrink + tl.sum(weight, axis=1)
        mixed = tl.dot(weight.to(v.dtype), v, mixed * shrink[:, None])
        top = now
    out = (mixed / total[:, None]).to(q.dtype)
    tl.store(out_ptr + base + m[:, None] * E + e[None, :], out, mask=rows)


def triton_attention(query, key, value):
    q, k, v = query.contiguous(), key.contiguous(), value.contiguous()
    B, A, S, E = q.shape
    out = torch.empty_like(q)
    if out.numel() > 0:
        wide = max(16, triton.next_power_of_2(E))
        grid = (triton.cdiv(S, 16), B * A)
        attention_kernel[grid](q, k, v, out, S, E**-0.5, E=E, BLOCK_M=16, BLOCK_N=16, BLOCK_E=wide)
    return out
