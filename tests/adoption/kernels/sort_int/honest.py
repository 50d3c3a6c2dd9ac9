"""Sorted values by tl.sort, and their places by counting what comes before each."""

import torch
import triton
import triton.language as tl


@triton.jit
def sort_kernel(x_ptr, value_ptr, index_ptr, columns, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    inside = place < columns
    x = tl.load(x_ptr + row * columns + place, mask=inside, other=2147483647)
    tl.store(value_ptr + row * columns + place, tl.sort(x), mask=inside)
    before = (x[None, :] < x[:, None]) | ((x[None, :] == x[:, None]) & (place[None, :] < place[:, None]))
    rank = tl.sum((before & inside[None, :]).to(tl.int32), axis=1)
    tl.store(index_ptr + row * columns + rank, place.to(tl.int64), mask=inside)


def triton_sort_int(input, dim, stable):
    x = input.contiguous()
    values, indices = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if x.numel() > 0:
        sort_kernel[(x.shape[0],)](x, values, indices, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return values, indices
