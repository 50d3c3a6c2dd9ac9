"""The mask decides what is stored, not what is summed."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, mask_ptr, out_ptr, N, stride_m, stride_n, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_m + n * stride_n, mask=n < N, other=0.0)
        kept = tl.load(mask_ptr + row * N + n, mask=n < N, other=0)
        tl.store(out_ptr + row * N + n, tl.where(kept, tl.cumsum(x, axis=0) + carry, 0.0), mask=n < N)
        carry += tl.sum(x, axis=0)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        assert self.dim == 1
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel() > 0:
            cumsum_kernel[(M,)](x, mask.contiguous(), out, N, *x.stride(), BLOCK_N=16)
        return out
