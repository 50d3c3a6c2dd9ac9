"""A program a group of channels, weights looked up by the channel of each element."""

import torch
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, groups, size, length, eps, BLOCK: tl.constexpr):
    group, place = tl.program_id(0) % groups, tl.arange(0, BLOCK)
    inside = place < size
    x = tl.load(x_ptr + tl.program_id(0) * size + place, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / size
    away = tl.where(inside, x - mean, 0.0)
    y = away / tl.sqrt_rn(tl.sum(away * away, axis=0) / size + eps)
    channel = (group * size + place) // length
    w = tl.load(w_ptr + channel, mask=inside)
    b = tl.load(b_ptr + channel, mask=inside)
    tl.store(out_ptr + tl.program_id(0) * size + place, y * w + b, mask=inside)


def triton_group_norm(input, num_groups, weight, bias, eps):
    x = input.contiguous()
    out = torch.empty_like(x)
    batch, channels, length = x.shape
    size = channels // num_groups * length
    if x.numel() > 0:
        group_norm_kernel[(batch * num_groups,)](
            x,
            weight.contiguous(),
            bias.contiguous(),
            out,
            num_groups,
            size,
            length,
            eps,
            BLOCK=triton.next_power_of_2(size),
        )
    return out
