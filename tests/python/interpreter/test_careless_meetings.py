"""Kernels that are wrong where an argument at another value meets values that are seldom, for arguments of two signs, lists with a gap, and integers at their limits together. Each has one line wrong and is rejected on the interpreter; the kernel without it passes."""

from __future__ import annotations

from typing import Any

from checks import both_tests, declared, tensor

from t2t_harness.cases import arguments_values, cases, probe_meetings, probing, unusual

SMOOTH = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, beta, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.abs(tl.load(x_ptr + at, mask=at < n, other=0.0) - tl.load(y_ptr + at, mask=at < n, other=0.0))
    tl.store(out_ptr + at, tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), mask=at < n)


def wrapper(input, target, reduction="mean", beta=1.0):
    if reduction != "none":
        raise NotImplementedError(reduction)
    x, y = input.contiguous(), target.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, y, out, n, float(beta), BLOCK=128)
    return out
"""

LEAKY = """
@triton.jit
def kernel(x_ptr, out_ptr, n, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(x > 0, x, x * slope), mask=at < n)


def wrapper(input, negative_slope=0.01):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, out, n, float(negative_slope), BLOCK=128)
    return out
"""

PAD = """
@triton.jit
def kernel(x_ptr, out_ptr, n, N, OUT, left, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = at % N + left
    held = (place >= 0) & (place < OUT)
    tl.store(out_ptr + at // N * OUT + place, tl.load(x_ptr + at, mask=at < n), mask=(at < n) & held)


def wrapper(input, pad, value=0):
    if len(pad) != 2:
        raise NotImplementedError("the last dim alone")
    x = input.contiguous()
    M, N = x.shape
    out = torch.full((M, N + sum(pad)), value, device=x.device, dtype=x.dtype)
    n = x.numel()
    if n and out.numel():
        kernel[(triton.cdiv(n, 128),)](x, out, n, N, out.shape[1], pad[0], BLOCK=128)
    return out
"""

ROWS: dict[str, int] = {"M": 16, "N": 24}

SMOOTH_OP = declared(
    "torch.nn.functional.smooth_l1_loss",
    [tensor("input", ["M", "N"]), tensor("target", ["M", "N"])],
    ROWS,
    kwargs={"reduction": "none", "beta": 1.0},
)

HONEST = {
    "smooth": (SMOOTH_OP, SMOOTH),
    "leaky": (
        declared(
            "torch.nn.functional.leaky_relu", [tensor("input", ["M", "N"])], ROWS, kwargs={"negative_slope": 0.01}
        ),
        LEAKY,
    ),
    "pad": (
        declared("torch.constant_pad_nd", [tensor("input", ["M", "N"])], ROWS, kwargs={"pad": [2, 1], "value": 0.5}),
        PAD,
    ),
}

FAULTS = {
    "nothing over nothing": ("smooth", "d < beta", "d <= beta"),
    "one sign of a slope": ("leaky", "x * slope", "x * tl.abs(slope)"),
    "a row that becomes shorter": ("pad", "(place >= 0) & (place < OUT)", "at // N * OUT + place >= 0"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


def test_a_row_has_one_zero_and_another_has_two() -> None:
    import torch

    rows = unusual.zeros(torch.randn(6, 19))
    assert [int((row == 0).sum()) for row in rows[1:5]] == [19, 1, 2, 19]


def test_dims_have_a_gap() -> None:
    assert [0, 2] in arguments_values.dims_away([1, 2], 3)
    assert [0, 2] not in arguments_values.dims_away([0, 2], 3)
    assert [0, 2] not in arguments_values.dims_away([-3, -1], 3)


def test_what_is_turned_off_meets_no_argument() -> None:
    given: Any = SMOOTH_OP
    changed = {"reduction": "none", "beta": 0.0}
    others = [probing.probe(given, "kwarg[beta=0.0]", ROWS, kwargs=changed)]
    kinds = [[case.values for case in probe_meetings.meetings({**given, **more}, others)] for more in MORE]
    assert kinds == [["ties", "large"], []]
    word = [probing.probe(given, "kwarg[reduction=sum]", ROWS, kwargs={"reduction": "sum", "beta": 1.0})]
    assert [case.values for case in probe_meetings.meetings(given, word)] == ["ties", "planted"]
    own: Any = {**SMOOTH_OP, "kwargs": {"descending": False}}
    flag = [probing.probe(own, "kwarg[descending=True]", ROWS, kwargs={"descending": True})]
    assert [case.name for case in probe_meetings.meetings(own, flag)] == [
        "edge/kwarg[descending=True,input=special]/float32",
        "edge/kwarg[descending=True,target=planted]/float32",
        "edge/kwarg[descending=True,input=ties]/float32",
    ]


MORE: list[Any] = [{}, {"edges": {"zeros": "none", "large": "none"}}]


def test_where_gradients_are_compared_an_argument_meets_such_values_without_them() -> None:
    given: Any = {**SMOOTH_OP, "backward": True}
    changed = {"reduction": "none", "beta": 0.0}
    others = [probing.probe(given, "kwarg[beta=0.0]", ROWS, kwargs=changed)]
    found = [(case.values, case.asks) for case in probe_meetings.meetings(given, others)]
    assert found == [("ties", cases.NOBODY), ("large", cases.NOBODY)]


def test_at_most_six_meetings() -> None:
    given: Any = {**SMOOTH_OP, "kwargs": {"ord": 2}}
    tried = [
        probing.probe(given, f"kwarg[ord={order}]", ROWS, kwargs={"ord": order})
        for order in (3, 0, 1, -1, float("inf"), float("-inf"))
    ]
    found = list(probe_meetings.meetings(given, tried))
    assert len(found) == probe_meetings.MOST and found[0].name.startswith("edge/kwarg[ord=-1,input=ties]")
