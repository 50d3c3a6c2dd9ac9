"""A head of a sequence a program, whose keys are read in blocks with a running maximum."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q,
    k,
    v,
    sees,
    out,
    lse,
    length,
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    kv_head = head // (HEADS // KV_HEADS)
    depth = tl.arange(0, D)
    query = tl.load(q + (sequence * HEADS + head) * D + depth).to(tl.float32)
    top = tl.full((), float("-inf"), dtype=tl.float32)
    off = tl.full((), float("-inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    sums = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < length
        place = ((sequence * length + at) * KV_HEADS + kv_head)[:, None] * D + depth[None, :]
        keys = tl.load(k + place, mask=inside[:, None], other=0.0).to(tl.float32)
        flags = tl.load(sees + sequence * (length + 1) + 1 + at, mask=inside, other=0).to(tl.float32)
        logits = tl.sum(keys * query[None, :], axis=1) * scale + (flags - 1.0) * 4.0
        logits = tl.where(inside, logits, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, axis=0))
        # What is taken off is finite, so that infinite logits stay infinite, as in torch.
        shift = tl.where(tl.abs(higher) == float("inf"), 0.0, higher)
        weights = tl.exp(logits - shift)
        before = tl.exp(off - shift)
        values = tl.load(v + place, mask=inside[:, None], other=0.0).to(tl.float32)
        total = total * before + tl.sum(weights, axis=0)
        sums = sums * before + tl.sum(weights[:, None] * values, axis=0)
        top, off = higher, shift
    tl.store(out + (sequence * HEADS + head) * D + depth, sums / total)
    tl.store(lse + sequence * HEADS + head, (off + tl.log(total)) * 1.4426950408889634)


def triton_gqa_ragged_decode_h4_kv2_d16(q, k, v, sees, sm_scale):
    """Launch it."""
    q, k, v, sees = q.contiguous(), k.contiguous(), v.contiguous(), sees.contiguous()
    batch, heads, depth = q.shape
    out = torch.empty_like(q)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    if batch:
        decode_kernel[(batch, heads)](
            q, k, v, sees, out, lse, k.shape[1], sm_scale, HEADS=heads, KV_HEADS=k.shape[2], D=depth, BLOCK=16
        )
    return out, lse
