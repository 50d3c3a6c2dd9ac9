"""Sums of columns, which are handed out in the buffer that they are kept in, and the weights that they have."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, sums_ptr, M, sm, sn, rate, BLOCK: tl.constexpr):
    col, rows = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows * sm + col * sn, mask=rows < M, other=0.0)
    tl.store(sums_ptr + col, tl.sum(x) * tl.load(weight_ptr + col) * rate)


class Sums(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim))
        self.register_buffer("sums", torch.zeros(dim))
        self.rate = torch.linspace(0.5, 1.5, 4)[1].item()

    def forward(self, x):
        M, N = x.shape
        if N:
            block = triton.next_power_of_2(max(M, 1))
            kernel[(N,)](x, self.weight, self.sums, M, *x.stride(), self.rate, BLOCK=block)
        return self.sums, (self.weight, None), self.rate
