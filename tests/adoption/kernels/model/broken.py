"""The bias is looked up by row."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(x_ptr, b_ptr, out_ptr, n, columns, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = x + tl.load(b_ptr + offsets // columns % columns, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(y <= 0, 0.0, y) * scale, mask=offsets < n)


class ModelNew(torch.nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(features))
        self.scale = scale

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel() > 0:
            grid = (triton.cdiv(x.numel(), 64),)
            bias_relu_kernel[grid](x, self.bias, out, x.numel(), x.shape[1], self.scale, BLOCK=64)
        return out
