"""What was mixed is not scaled down when the running maximum grows."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    base = tl.program_id(1) * S * D
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :], mask=m[:, None] < S, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    mixed = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, tl.program_id(0) * BLOCK_M + BLOCK_M, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + base + n[None, :] * D + d[:, None], mask=n[None, :] < S, other=0.0)
        v = tl.load(v_ptr + base + n[:, None] * D + d[None, :], mask=n[:, None] < S, other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * scale
        score = tl.where((n[None, :] <= m[:, None]) & (n[None, :] < S), score, -float("inf"))
        now = tl.maximum(top, tl.max(score, axis=1))
        grown = tl.exp(score - now[:, None])
        shrink = tl.exp(top - now)
        total = total * shrink + tl.sum(grown, axis=1)
        mixed = tl.dot(grown, v, mixed, input_precision="ieee")
        top = now
    out = mixed / total[:, None]
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], out, mask=m[:, None] < S)


def triton_attention(query, key, value, is_causal=False):
    assert is_causal
    q, k, v = query.contiguous(), key.contiguous(), value.contiguous()
    out = torch.empty_like(q)
    batch, length, width = q.shape
    if out.numel() > 0:
        grid = (triton.cdiv(length, 16), batch)
        attention_kernel[grid](q, k, v, out, length, width**-0.5, D=width, BLOCK_M=16, BLOCK_N=16)
    return out
