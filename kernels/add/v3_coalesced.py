"""Addition with wide loads: out = input + alpha * other, 128 bits per thread and request.

Math. out[i] = input[i] + alpha * other[i]; 12 bytes of traffic for 2 FLOPs in float32, so the goal is the speed of a
copy.

Technique. A thread takes *neighbouring* elements and asks for them at once. Triton's compiler makes
`ld.global.v4.b32` out of a block whenever three things are provable: a thread holds enough elements (block larger
than the thread count), the addresses are consecutive and aligned (the pointer is a multiple of 16 bytes, and so is
the block's start), and the mask is uniform over a vector (n_elements is a multiple of 16; Triton specialises the
kernel on that). A warp then reads 512 consecutive bytes with one instruction, four whole 128-byte lines: coalesced as
well as wide. Where one of the three does not hold, the same source compiles to narrower loads and stays right. There
is no loop: one program, one block. Against `v1_baseline` only the block grows, from 128 to 1024 elements, and with it
the request; the source of the kernel is the same.

Blocks. BLOCK_SIZE = 1024 with 4 warps is 8 elements per thread: two 16-byte requests per operand in float32, one in
half precision. Both operands' requests are in flight together, which is what hides the memory's latency.

Broadcasting and strides are resolved on the host by expanding and writing out. Arithmetic is float32, rounded once at
the store.
"""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 1024


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
