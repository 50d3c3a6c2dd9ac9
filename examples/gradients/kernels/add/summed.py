"""Addition with broadcasting, forward and backward, as an autograd function: what was broadcast gets the sum of its gradients.

Math. out = input + alpha * other. With dy flowing in, the gradient of `input` is dy and that of `other` alpha * dy, each summed over the dims along which
the operand was broadcast.

Technique. The gradient is seen as a matrix, with a row for each element of the operand and in it what that element was added to; a view where
strides allow it, so that columns are summed without a copy. A program sums CHUNK elements of each of ROWS rows, and what the programs leave is summed by
the same kernel until one number a row is left. Nothing is atomic: two runs give the same bits. Sums are float32, rounded once at the last store.
"""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 512
ROWS = 32
COLUMNS = 32
CHUNK = 1024


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


@triton.jit
def scale_kernel(dy_ptr, dx_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(dx_ptr + offsets, alpha * dy, mask=mask)


@triton.jit
def sum_kernel(
    x_ptr, out_ptr, M, N, stride_m, stride_n, parts, alpha,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    part = program % parts
    rows = program // parts * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, CHUNK, COLUMNS):
        cols = part * CHUNK + start + tl.arange(0, COLUMNS)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offsets = rows[:, None] * stride_m + cols[None, :] * stride_n
        total += tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * parts + part, alpha * tl.sum(total, axis=1), mask=rows < M)


def gradient_of(operand: torch.Tensor, dy: torch.Tensor, alpha: float) -> torch.Tensor:
    """Returns `alpha * dy` summed to the shape and dtype of `operand`."""
    result = torch.empty(operand.shape, dtype=operand.dtype, device=dy.device)
    if not dy.numel() or not result.numel():
        return result.zero_()
    if dy.numel() == result.numel():
        scale_kernel[(triton.cdiv(dy.numel(), BLOCK_SIZE),)](
            dy.contiguous(), result, dy.numel(), alpha, BLOCK_SIZE=BLOCK_SIZE
        )
        return result
    added = dy.dim() - operand.dim()
    summed = [dim for dim in range(dy.dim()) if dim < added or operand.shape[dim - added] != dy.shape[dim]]
    kept = [dim for dim in range(dy.dim()) if dim not in summed]
    M = result.numel()
    values = dy.permute(*kept, *summed).reshape(M, dy.numel() // M)
    while True:
        N = values.shape[1]
        parts = triton.cdiv(N, CHUNK)
        # Only the last step rounds to the operand's dtype, and multiplies.
        out = result if parts == 1 else torch.empty((M, parts), dtype=torch.float32, device=dy.device)
        sum_kernel[(triton.cdiv(M, ROWS) * parts,)](
            values, out, M, N, *values.stride(), parts, alpha if parts == 1 else 1.0,
            ROWS=ROWS, COLUMNS=COLUMNS, CHUNK=CHUNK,
        )  # fmt: skip
        if parts == 1:
            return result
        values = out


class Add(torch.autograd.Function):
    """`x + alpha * y` over the broadcast shape, in the promoted dtype."""

    @staticmethod
    def forward(ctx, x, y, alpha):
        dtype = torch.result_type(x, y)
        left, right = (operand.contiguous() for operand in torch.broadcast_tensors(x, y))
        out = torch.empty(left.shape, dtype=dtype, device=left.device)
        if out.numel():
            grid = (triton.cdiv(out.numel(), BLOCK_SIZE),)
            add_kernel[grid](left, right, out, out.numel(), alpha, BLOCK_SIZE=BLOCK_SIZE)
        # Shapes and dtypes are all that the backward pass needs of the operands.
        ctx.operands = [torch.empty(operand.shape, dtype=operand.dtype, device="meta") for operand in (x, y)]
        ctx.alpha = alpha
        return out

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.operands
        dx = gradient_of(x, dy, 1.0) if ctx.needs_input_grad[0] else None
        dother = gradient_of(y, dy, ctx.alpha) if ctx.needs_input_grad[1] else None
        return dx, dother, None


def triton_add(input: torch.Tensor, other: torch.Tensor | float, *, alpha: float = 1) -> torch.Tensor:
    """Returns `input + alpha * other` over the broadcast shape, in the promoted floating-point dtype."""
    if not isinstance(other, torch.Tensor):
        other = torch.full((), other, dtype=torch.result_type(input, other), device=input.device)
    return Add.apply(input, other, float(alpha))
