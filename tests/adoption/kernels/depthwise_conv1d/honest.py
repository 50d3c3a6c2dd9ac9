"""A filter a channel, unrolled by tl.static_range."""

import torch
import triton
import triton.language as tl


@triton.jit
def depthwise_kernel(x_ptr, w_ptr, out_ptr, channels, L, length, padding, K: tl.constexpr, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        at = place - padding + k
        x = tl.load(x_ptr + line * L + at, mask=(at >= 0) & (at < L), other=0.0)
        total += x * tl.load(w_ptr + line % channels * K + k)
    tl.store(out_ptr + line * length + place, total, mask=place < length)


def causal_conv(input, weight, groups, padding):
    x, w = input.contiguous(), weight.contiguous()
    B, C, L = x.shape
    assert groups == C
    length = L + 2 * padding - w.shape[2] + 1
    out = torch.empty((B, C, length), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (B * C, triton.cdiv(length, 16))
        depthwise_kernel[grid](x, w, out, C, L, length, padding, K=w.shape[2], BLOCK=16)
    return out
