"""Adds to memory that nobody has set to zero."""

import torch
import triton
import triton.language as tl


@triton.jit
def mv_kernel(a_ptr, v_ptr, out_ptr, K, PER: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(PER):
        k = (part * PER + step) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(a_ptr + row * K + k, mask=k < K, other=0.0) * tl.load(v_ptr + k, mask=k < K, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(total, axis=0))


def triton_mv(input, vec):
    a, v = input.contiguous(), vec.contiguous()
    M, K = a.shape
    out = torch.empty(M, dtype=a.dtype, device=a.device)
    if M > 0:
        mv_kernel[(M, triton.cdiv(K, 64))](a, v, out, K, PER=2, BLOCK=32)
    return out
