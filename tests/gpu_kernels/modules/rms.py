"""Rows divided by their root mean square, with numbers and a flag of the constructor, and a counter of calls."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, N, sm, sn, eps, slope, steps, CENTERED: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + at * sn, mask=at < N, other=0.0)
    if CENTERED:
        x = tl.where(at < N, x - tl.sum(x) / N, 0.0)
    y = x * tl.rsqrt(tl.sum(x * x) / N + eps) * tl.load(w_ptr + at, mask=at < N)
    tl.store(out_ptr + row * N + at, tl.where(y > 0, y, slope * y) * steps, mask=at < N)


class Rms(torch.nn.Module):
    def __init__(self, dim, eps=1e-6, centered=False, negative_slope=0.1):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.eps, self.centered, self.slope, self.steps = eps, centered, negative_slope, 0
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.steps += 1
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel():
            numbers = self.eps, self.slope, self.steps, self.centered
            kernel[(M,)](x, self.weight, out, N, *x.stride(), *numbers, BLOCK=triton.next_power_of_2(N))
        return out
