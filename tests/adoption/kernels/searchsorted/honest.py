"""A search by halves, for many values at once, in a sequence that is sorted."""

import torch
import triton
import triton.language as tl


@triton.jit
def search_kernel(
    sequence_ptr, x_ptr, out_ptr, length, n, RIGHT: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < n, other=0.0)
    low, high = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + length
    for _ in range(STEPS):
        middle = (low + high) // 2
        value = tl.load(sequence_ptr + middle, mask=low < high, other=0.0)
        goes = (value <= x) if RIGHT else (value < x)
        moved = (low < high) & goes
        high = tl.where((low < high) & (goes == 0), middle, high)
        low = tl.where(moved, middle + 1, low)
    tl.store(out_ptr + place, low.to(tl.int64), mask=place < n)


def triton_searchsorted(sorted_sequence, input, right=False):
    sequence, x = sorted_sequence.contiguous(), input.contiguous()
    out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if x.numel() > 0:
        length = sequence.numel()
        steps = length.bit_length() + 1
        grid = (triton.cdiv(x.numel(), 16),)
        search_kernel[grid](sequence, x, out, length, x.numel(), RIGHT=right, STEPS=steps, BLOCK=16)
    return out
