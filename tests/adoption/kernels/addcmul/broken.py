"""The generated formula scales the wrong term."""

import linecache

import torch
import triton
import triton.language as tl

SOURCE = """
@triton.jit
def addcmul_kernel(x_ptr, a_ptr, b_ptr, out_ptr, n, value, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    a = tl.load(a_ptr + offsets, mask=mask)
    b = tl.load(b_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, {formula}, mask=mask)
"""


def generate(formula):
    text = SOURCE.format(formula=formula)
    name = f"<generated {formula}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(text, name, "exec"), scope)
    return scope["addcmul_kernel"]


addcmul_kernel = generate("value * x + a * b")


def addcmul_forward(input, tensor1, tensor2, value=1):
    x, a, b = (one.contiguous() for one in torch.broadcast_tensors(input, tensor1, tensor2))
    out = torch.empty_like(x)
    if x.numel() > 0:
        addcmul_kernel[(triton.cdiv(x.numel(), 128),)](x, a, b, out, x.numel(), value, BLOCK=128)
    return out
