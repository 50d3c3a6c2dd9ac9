"""Rows without a running mean, which each call moves on."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, mean_ptr, out_ptr, M, N, sm, sn, BLOCK: tl.constexpr):
    col, rows = tl.program_id(0), tl.arange(0, BLOCK)
    mean = tl.load(mean_ptr + col)
    x = tl.load(x_ptr + rows * sm + col * sn, mask=rows < M, other=0.0)
    tl.store(out_ptr + rows * N + col, x - mean, mask=rows < M)
    tl.store(mean_ptr + col, 0.9 * mean + 0.1 * (tl.sum(x) / M))


class Centered(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("running", torch.zeros(dim))

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if N:
            kernel[(N,)](x, self.running, out, M, N, *x.stride(), BLOCK=triton.next_power_of_2(max(M, 1)))
        return out
