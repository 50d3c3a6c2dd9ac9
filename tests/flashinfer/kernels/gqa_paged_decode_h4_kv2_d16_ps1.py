"""A head of a sequence a program, whose keys are gathered from pages in blocks with a running maximum."""

import torch
import triton
import triton.language as tl


@triton.jit
def paged_kernel(
    q,
    k,
    v,
    indptr,
    indices,
    out,
    lse,
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    kv_head = head // (HEADS // KV_HEADS)
    depth = tl.arange(0, D)
    query = tl.load(q + (sequence * HEADS + head) * D + depth).to(tl.float32)
    first, last = tl.load(indptr + sequence), tl.load(indptr + sequence + 1)
    top = tl.full((), float("-inf"), dtype=tl.float32)
    shift = tl.full((), float("-inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    sums = tl.zeros((D,), dtype=tl.float32)
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < last
        page = tl.load(indices + at, mask=inside, other=0)
        place = (page.to(tl.int64) * KV_HEADS + kv_head)[:, None] * D + depth[None, :]
        keys = tl.load(k + place, mask=inside[:, None], other=0.0).to(tl.float32)
        logits = tl.where(inside, tl.sum(keys * query[None, :], axis=1) * scale, float("-inf"))
        top = tl.maximum(top, tl.max(logits, axis=0))
        # What is taken off is finite, so that infinite logits stay infinite, as in torch.
        higher = tl.where(tl.abs(top) == float("inf"), 0.0, top)
        weights = tl.exp(logits - higher)
        before = tl.exp(shift - higher)
        values = tl.load(v + place, mask=inside[:, None], other=0.0).to(tl.float32)
        total = total * before + tl.sum(weights, axis=0)
        sums = sums * before + tl.sum(weights[:, None] * values, axis=0)
        shift = higher
    # A sequence without keys has zeros, and the logarithm of nothing.
    result = tl.where(first == last, 0.0, sums / total)
    tl.store(out + (sequence * HEADS + head) * D + depth, result.to(out.dtype.element_ty))
    tl.store(lse + sequence * HEADS + head, (shift + tl.log(total)) * 1.4426950408889634)


def triton_gqa_paged_decode_h4_kv2_d16_ps1(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    """Launch it."""
    q, k_cache, v_cache = q.contiguous(), k_cache.contiguous(), v_cache.contiguous()
    kv_indptr, kv_indices = kv_indptr.contiguous(), kv_indices.contiguous()
    batch, heads, depth = q.shape
    out = torch.empty_like(q)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    if batch:
        paged_kernel[(batch, heads)](
            q,
            k_cache,
            v_cache,
            kv_indptr,
            kv_indices,
            out,
            lse,
            sm_scale,
            HEADS=heads,
            KV_HEADS=k_cache.shape[2],
            D=depth,
            BLOCK=16,
        )
    return out, lse
