"""Stops the device on purpose."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(o):
    stopped = tl.inline_asm_elementwise("trap; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(o, stopped.to(tl.float32))


def triton_add(input, other, *, alpha=1):
    out = torch.empty_like(input)
    kernel[(1,)](out)
    return out
