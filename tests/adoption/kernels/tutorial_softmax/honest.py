"""Programs are as many as the driver says that the device holds; loops are pipelined by tl.range."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
UNITS = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"]


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * stride + column, mask=column < columns, other=-float("inf"))
        grown = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + column, grown / tl.sum(grown, axis=0), mask=column < columns)


def triton_tutorial_softmax(input, dim):
    x = input.contiguous()
    out = torch.empty_like(x)
    rows, columns = x.shape
    if x.numel() > 0:
        programs = min(UNITS, rows)
        softmax_kernel[(programs,)](x, out, x.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns), STAGES=2)
    return out
