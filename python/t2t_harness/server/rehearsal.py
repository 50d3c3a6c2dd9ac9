"""A kernel of the harness's own, for children that get ready before their request. It is loaded as a workspace's is: torch and Triton are imported with
it, so nothing else imports it at its beginning."""

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def softmax_kernel(x_ptr: object, out_ptr: object, n: object, BLOCK: tl.constexpr) -> None:
    """A row of softmax."""
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    offsets = tl.program_id(0).to(tl.int64) * n + columns
    x = tl.load(x_ptr + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(input: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Returns the softmax of the rows of `input`."""
    assert input.is_cuda and dim == -1
    out = torch.empty_like(input)
    rows, n = input.shape
    softmax_kernel[(rows,)](input, out, n, BLOCK=triton.next_power_of_2(n))
    return out
