"""Tensors that lie as others leave them: channels last, heads behind places, parts of larger ones, one member of a list otherwise than the rest. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from checks import both_tests, declared, tensor

SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, B, C, H, W, sb, sc, sh, sw, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = x_ptr + row // (C * H) * sb + row // H % C * sc + row % H * sh
    tl.store(out_ptr + row, tl.sum(tl.load(x + at * sw, mask=at < W, other=0.0)))


def wrapper(input, dim):
    B, C, H, W = input.shape
    x, strides = input, input.stride()
    out = torch.empty((B, C, H), dtype=x.dtype, device=x.device)
    # HERE
    if out.numel():
        kernel[(B * C * H,)](x, out, B, C, H, W, *strides, BLOCK=triton.next_power_of_2(max(W, 1)))
    return out
"""

LAST = "    if x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():\n        strides = (H * W * C, 1, W, C)\n"
INNER = "    if x.transpose(1, 2).is_contiguous() and not x.is_contiguous():\n        strides = (H * W, W, C * W, 1)\n"
BASE = "    x = x.as_strided(x.shape, x.stride(), 0)\n"

LIST = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, xm, xn, ym, yn, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xm + at * xn, mask=at < N)
    y = tl.load(y_ptr + row * ym + at * yn, mask=at < N)
    tl.store(out_ptr + row * 2 * N + at, x, mask=at < N)
    tl.store(out_ptr + row * 2 * N + N + at, y, mask=at < N)


def wrapper(tensors, dim):
    x, y = tensors
    M, N = x.shape
    out = torch.empty((M, 2 * N), dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(M,)](x, y, out, N, *x.stride(), *y.stride(), BLOCK=triton.next_power_of_2(N))
    return out
"""

IMAGES = declared(
    "torch.sum",
    [tensor("input", ["B", "C", "H", "W"])],
    {"B": 2, "C": 3, "H": 4, "W": 5},
    kwargs={"dim": -1},
    edges={"kwargs": "one dim"},
)
JOINED = declared(
    "torch.cat",
    [tensor(f"tensors.{place}", ["M", "N"], list="tensors") for place in range(2)],
    {"M": 5, "N": 12},
    kwargs={"dim": 1},
    edges={"kwargs": "one dim"},
)

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(
    {"sum": (IMAGES, SUM), "joined": (JOINED, LIST)},
    {
        "channels last have strides of their own": (
            "sum",
            "    # HERE\n",
            LAST.replace("H * W * C, 1, W, C", "H * W * C, 1, C, W"),
        ),
        "heads behind places have strides of their own": (
            "sum",
            "    # HERE\n",
            INNER.replace("H * W, W,", "W, H * W,"),
        ),
        "a part is read from the beginning of all": ("sum", "    # HERE\n", BASE),
        "one member's strides are taken for the other's": ("joined", "*y.stride()", "*x.stride()"),
    },
)
