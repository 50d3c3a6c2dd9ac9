"""A launcher that insists on CUDA, chooses by capability and enters the tensor's device."""

import torch
import triton
import triton.language as tl


@triton.jit
def logsigmoid_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.minimum(x, 0.0) - tl.log(1 + tl.exp(-tl.abs(x))), mask=offsets < n)


def triton_guarded(input):
    assert input.is_cuda and input.device.type == "cuda", "a CUDA tensor is asked for"
    x = input.contiguous()
    out = x.new_empty(x.shape)
    if x.numel() == 0:
        return out
    block = 128 if torch.cuda.get_device_capability(x.device)[0] >= 9 else 64
    with torch.cuda.device(x.device):
        logsigmoid_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out
