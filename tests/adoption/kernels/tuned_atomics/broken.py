"""Right in one of its configurations alone: the grid takes blocks for larger than they are."""

import torch
import triton
import triton.language as tl


def cost(BLOCK, **given):
    return -BLOCK


@triton.autotune(
    [triton.Config({"BLOCK": block}, num_warps=2) for block in (32, 64, 128)],
    key=["n"],
    reset_to_zero=["out_ptr"],
    prune_configs_by={"perf_model": cost, "top_k": 2},
)
@triton.heuristics({"IS_EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, IS_EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (offsets < n) | IS_EVEN
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def triton_tuned_atomics(input):
    x = input.contiguous()
    out = torch.zeros((), dtype=x.dtype, device=x.device)
    if x.numel() > 0:
        sum_kernel[lambda meta: (triton.cdiv(x.numel(), max(meta["BLOCK"], 128)),)](x, out, x.numel())
    return out
