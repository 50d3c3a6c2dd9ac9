"""Addition at the speed of a copy: out = input + alpha * other, a 128-bit request per thread.

Math. out[i] = input[i] + alpha * other[i]; 12 bytes of traffic for 2 FLOPs in float32. The bound is the memory's
bandwidth.

Technique. It keeps the wide requests of `v3_coalesced`, takes nothing from `v2_tiling`, and changes what was measured to
pay on an H200:
- a thread makes *one* request of 16 bytes per operand, and there is no loop. Programs that stay resident and walk over
  tiles, as in `v2_tiling`, are 2 to 8 % slower;
- no eviction policy. `evict_first`, the textbook's hint for data that is read once, is up to 10 % slower here;
  `evict_last` measures 1 to 3 % faster, but what it gains is write-back put off, and a kernel followed by a reader of
  its result is none the faster;
- no tuning: one shape of a block is the best, or within the noise of it, at every size, and an autotuner's dispatch
  costs the host more than the launch itself. The usual operands, contiguous and of one shape and dtype, are
  recognized by comparisons alone and go straight to the launch.

Blocks. Four warps of 32 threads, 16 bytes each: BLOCK_SIZE is 512 in float32, 1024 in half precision.

Other operands are broadcast, promoted and written out contiguously on the host. Arithmetic is float32, rounded once at
the store.
"""

import torch
import triton
import triton.language as tl

BLOCK_BYTES = 2048


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def broadcast(input: torch.Tensor, other: torch.Tensor | float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns both operands over the broadcast shape, contiguous, and an output of that shape in the promoted dtype."""
    dtype = torch.result_type(input, other)
    if not isinstance(other, torch.Tensor):
        other = torch.full((), other, dtype=dtype, device=input.device)
    x, y = (operand.contiguous() for operand in torch.broadcast_tensors(input, other))
    return x, y, torch.empty_like(x, dtype=dtype)


def triton_add(input: torch.Tensor, other: torch.Tensor | float, *, alpha: float = 1) -> torch.Tensor:
    """Returns `input + alpha * other` over the broadcast shape, in the promoted floating-point dtype."""
    if (
        isinstance(other, torch.Tensor)
        and input.shape == other.shape
        and input.dtype == other.dtype
        and input.is_contiguous()
        and other.is_contiguous()
    ):
        x, y, out = input, other, torch.empty_like(input)
    else:
        x, y, out = broadcast(input, other)
    n_elements = out.numel()
    if n_elements > 0:
        block_size = BLOCK_BYTES // out.element_size()
        grid = (-(-n_elements // block_size),)
        add_kernel[grid](x, y, out, n_elements, float(alpha), block_size, num_warps=4)
    return out
