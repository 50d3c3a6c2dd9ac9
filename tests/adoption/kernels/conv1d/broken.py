"""The padding is not taken off: all is read one place to the right."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv1d_kernel(x_ptr, w_ptr, b_ptr, out_ptr, C, L, length, stride, padding, K: tl.constexpr, BLOCK: tl.constexpr):
    batch, channel = tl.program_id(0), tl.program_id(1)
    place = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32) + tl.load(b_ptr + channel)
    for c in range(C):
        for k in range(K):
            at = place * stride + k
            x = tl.load(x_ptr + (batch * C + c) * L + at, mask=(at >= 0) & (at < L), other=0.0)
            total += x * tl.load(w_ptr + (channel * C + c) * K + k)
    outside = (batch * tl.num_programs(1) + channel) * length
    tl.store(out_ptr + outside + place, total, mask=place < length)


def triton_conv1d(input, weight, bias, stride=1, padding=0):
    x, w, b = input.contiguous(), weight.contiguous(), bias.contiguous()
    (B, C, L), (F, _, K) = x.shape, w.shape
    length = (L + 2 * padding - K) // stride + 1
    out = torch.empty((B, F, length), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        grid = (B, F, triton.cdiv(length, 16))
        conv1d_kernel[grid](x, w, b, out, C, L, length, stride, padding, K=K, BLOCK=16)
    return out
