"""Pairs half a head apart, turned by angles that all heads share."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(q_ptr, cos_ptr, sin_ptr, out_ptr, length, half, BLOCK: tl.constexpr):
    place, head = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, BLOCK)
    inside = d < half
    row = (head * length + place) * 2 * half
    first = tl.load(q_ptr + row + d, mask=inside)
    second = tl.load(q_ptr + row + half + d, mask=inside)
    angle = place * 2 * half
    cos, sin = tl.load(cos_ptr + angle + d, mask=inside), tl.load(sin_ptr + angle + d, mask=inside)
    tl.store(out_ptr + row + d, first * cos - second * sin, mask=inside)
    cos = tl.load(cos_ptr + angle + half + d, mask=inside)
    sin = tl.load(sin_ptr + angle + half + d, mask=inside)
    tl.store(out_ptr + row + half + d, second * cos + first * sin, mask=inside)


def triton_rotary(q, cos, sin):
    q, cos, sin = q.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(q)
    heads, length, width = q.shape
    if out.numel() > 0:
        rotary_kernel[(length, heads)](q, cos, sin, out, length, width // 2, BLOCK=triton.next_power_of_2(width // 2))
    return out
