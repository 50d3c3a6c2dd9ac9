"""Divides by the variance, not by its root."""

import torch
import triton
import triton.language as tl


@triton.jit
def batch_norm_kernel(x_ptr, m_ptr, v_ptr, w_ptr, b_ptr, out_ptr, channels, length, eps, BLOCK: tl.constexpr):
    batch, channel = tl.program_id(0), tl.program_id(1)
    place = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    base = (batch * channels + channel) * length
    x = tl.load(x_ptr + base + place, mask=place < length)
    scale = tl.load(w_ptr + channel) / (tl.load(v_ptr + channel) + eps)
    y = (x - tl.load(m_ptr + channel)) * scale + tl.load(b_ptr + channel)
    tl.store(out_ptr + base + place, y, mask=place < length)


def triton_batch_norm(input, running_mean, running_var, weight, bias, training, eps):
    assert not training
    x, *given = (one.contiguous() for one in (input, running_mean, running_var, weight, bias))
    out = torch.empty_like(x)
    batch, channels, length = x.shape
    if x.numel() > 0:
        grid = (batch, channels, triton.cdiv(length, 16))
        batch_norm_kernel[grid](x, *given, out, channels, length, eps, BLOCK=16)
    return out
