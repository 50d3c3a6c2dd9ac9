"""Attention with an additive mask, in one pass over the keys (online softmax)."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    mask_ptr,
    o_ptr,
    L,
    S,
    D,
    scale,
    HAS_MASK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(
        q_ptr + head * L * D + rows[:, None] * D + d[None, :], mask=(rows[:, None] < L) & (d[None, :] < D), other=0.0
    )
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, S, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        kv_mask = (cols[:, None] < S) & (d[None, :] < D)
        k = tl.load(k_ptr + head * S * D + cols[:, None] * D + d[None, :], mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + head * S * D + cols[:, None] * D + d[None, :], mask=kv_mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        if HAS_MASK:
            s += tl.load(
                mask_ptr + rows[:, None] * S + cols[None, :], mask=(rows[:, None] < L) & (cols[None, :] < S), other=0.0
            ).to(tl.float32)
        s = tl.where(cols[None, :] < S, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        m_use = tl.where(m_new == float("-inf"), 0.0, m_new)  # nothing but masked keys so far
        alpha = tl.exp(m - m_use)
        p = tl.exp(s - m_use[:, None])
        total = total * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
        m = m_new
    out = tl.where(total[:, None] == 0.0, 0.0, acc / total[:, None])
    tl.store(o_ptr + head * L * D + rows[:, None] * D + d[None, :], out, mask=(rows[:, None] < L) & (d[None, :] < D))


def triton_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if dropout_p or is_causal or enable_gqa:
        raise NotImplementedError("only a mask")
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        raise NotImplementedError("float masks only")
    q, k, v = query.contiguous(), key.contiguous(), value.contiguous()
    B, H, L, D = q.shape
    S = k.shape[2]
    if scale is None:
        scale = 1.0 / math.sqrt(D)
    o = torch.empty_like(q)
    if o.numel() == 0:
        return o
    mask = attn_mask.contiguous() if attn_mask is not None else q
    BLOCK_M, BLOCK_N = 16, 32
    attention_kernel[(triton.cdiv(L, BLOCK_M), B * H)](
        q,
        k,
        v,
        mask,
        o,
        L,
        S,
        D,
        scale,
        HAS_MASK=attn_mask is not None,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
    )
    return o
