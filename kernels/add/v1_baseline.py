"""Addition, translated directly: out = input + alpha * other, one element per thread.

Math. For every position i, out[i] = input[i] + alpha * other[i]. Per element two values are read, one is written and
two floating-point operations are made: in float32, 12 bytes for 2 FLOPs. No GPU computes that slowly enough to
matter; the time of an addition is the time of its memory traffic.

Technique. The flat index space is cut into blocks, a program adds one block, and a thread adds one element. It is
what the formula says and nothing more: each thread issues one 32-bit load per operand (16-bit for half precision), so
the memory system sees many small requests. `v3_coalesced` asks for the same bytes in a quarter of the requests.

Blocks. BLOCK_SIZE = 128 = 4 warps x 32 threads, so that block and thread count agree.

Broadcasting and strides are resolved on the host: operands are expanded to the common shape and written out
contiguously where they are not already. Arithmetic is float32 whatever the dtype, rounded once at the store.
"""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 128


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_add(input: torch.Tensor, other: torch.Tensor | float, *, alpha: float = 1) -> torch.Tensor:
    """Returns `input + alpha * other` over the broadcast shape, in the promoted floating-point dtype."""
    dtype = torch.result_type(input, other)
    if not isinstance(other, torch.Tensor):
        other = torch.full((), other, dtype=dtype, device=input.device)
    x, y = (operand.contiguous() for operand in torch.broadcast_tensors(input, other))
    out = torch.empty_like(x, dtype=dtype)
    if out.numel() > 0:
        grid = (triton.cdiv(out.numel(), BLOCK_SIZE),)
        add_kernel[grid](x, y, out, out.numel(), float(alpha), BLOCK_SIZE=BLOCK_SIZE, num_warps=4)
    return out
