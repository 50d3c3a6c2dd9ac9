"""Softmax, forward and backward, a row a program: an operator with a method for each pass.

Math. y = exp(x - max x) / sum exp(x - max x). With dy flowing in, dx_i = sum_j dy_j * dy_j/dx_i = y_i * (dy_i - sum_j dy_j * y_j):
the backward pass needs the output, and not the input.

Technique. A program holds a row as one block, so each pass reads every element once and writes it once. A row has at most MAX_TILE elements;
a warp has 512 of them until there are 16 warps. Another dim than the last one is moved there first. Arithmetic is float32, rounded once at the store.
"""

import torch
import triton
import triton.language as tl

MAX_TILE = 16384
WARP_TILE = 512
MAX_WARPS = 16


@triton.jit
def softmax_forward_kernel(x_ptr, y_ptr, N, BLOCK_N: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * N
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + start + cols, power / tl.sum(power, axis=0), mask=mask)


@triton.jit
def softmax_backward_kernel(dy_ptr, y_ptr, dx_ptr, N, BLOCK_N: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * N
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    y = tl.load(y_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(dx_ptr + start + cols, y * (dy - tl.sum(dy * y, axis=0)), mask=mask)


def block_of(N: int) -> tuple[int, int]:
    """Returns the block that holds a row of N elements, and how many warps share it. Raises ValueError for a longer row than one block holds."""
    if N > MAX_TILE:
        raise ValueError(f"rows have at most {MAX_TILE} elements, not {N}")
    block = triton.next_power_of_2(N)
    return block, min(max(block // WARP_TILE, 1), MAX_WARPS)


class TritonSoftmax:
    """Softmax along a dim, for autograd or by hand: `backward` takes what `forward` returned."""

    def forward(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the softmax of `input` along `dim`."""
        rows = self.rows(input, dim)
        y = torch.empty_like(rows)
        if y.numel():
            block, warps = block_of(y.shape[-1])
            softmax_forward_kernel[(y.numel() // y.shape[-1],)](rows, y, y.shape[-1], BLOCK_N=block, num_warps=warps)
        return y.movedim(-1, dim) if input.dim() else y.reshape(())

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns the gradient of the input, where `grad` is that of the output."""
        dy, y = self.rows(grad, dim), self.rows(output, dim)
        dx = torch.empty_like(y)
        if dx.numel():
            block, warps = block_of(dx.shape[-1])
            grid = (dx.numel() // dx.shape[-1],)
            softmax_backward_kernel[grid](dy, y, dx, dx.shape[-1], BLOCK_N=block, num_warps=warps)
        return dx.movedim(-1, dim) if output.dim() else dx.reshape(())

    @staticmethod
    def rows(value: torch.Tensor, dim: int) -> torch.Tensor:
        """Returns `value` with `dim` moved to the end, contiguous."""
        return value.movedim(dim, -1).contiguous() if value.dim() else value.reshape(1)


def get_triton_softmax() -> TritonSoftmax:
    """Returns the operator."""
    return TritonSoftmax()
