"""Right, with several configurations to choose from."""

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK_SIZE": size}, num_warps=warps) for size, warps in ((256, 2), (512, 4), (1024, 4))]


@triton.autotune(configs=CONFIGS, key=["n_elements"])
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_add(input, other, *, alpha=1):
    x, y = input.contiguous(), other.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements > 0:
        add_kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)](x, y, out, n_elements, float(alpha))
    return out
