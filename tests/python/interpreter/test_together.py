"""Paths of a wrapper that are chosen by one thing, and are wrong where another one differs, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import both_tests, declared, require_passed, require_rejected, tensor

from t2t_harness.cases import probe_together, probing

LEAKY = """
@triton.jit
def kernel(x_ptr, out_ptr, n, N, sm, sn, slope, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at // N * sm + at % N * sn, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.where(x >= 0.0, x, x * slope), mask=at < n)


def wrapper(input, negative_slope=0.01, inplace=False):
    if inplace:
        raise NotImplementedError("a result of its own alone")
    M, N = input.shape
    out = torch.empty((M, N), dtype=input.dtype, device=input.device)
    n = out.numel()
    if n:
        sm, sn = input.stride()
        grid = (triton.cdiv(n, 64),)
        if input.is_contiguous():
            kernel[grid](input, out, n, N, N, 1, negative_slope, BLOCK=64)
        else:
            kernel[grid](input, out, n, N, sm, sn, negative_slope + 0.0, BLOCK=64)
    return out
"""

SUMMED = """
@triton.jit
def kernel(x_ptr, a_ptr, b_ptr, out_ptr, n, A: tl.constexpr, B: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n, other=0.0)
    if A:
        total += tl.load(a_ptr + at, mask=at < n, other=0.0)
    if B:
        total += tl.load(b_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, total, mask=at < n)


def wrapper(x, a=None, b=None, c=None):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    grid = (triton.cdiv(n, 64),)
    if a is None and b is None:
        c = None if c is None else c.contiguous()
        kernel[grid](x, x if c is None else c, x, out, n, A=c is not None, B=False, BLOCK=64)
        return out
    given = [None if one is None else one.contiguous() for one in (a, b, c)]
    first, second, third = given
    kernel[grid](x, first if first is not None else x, second if second is not None else x, out, n, A=first is not None, B=second is not None, BLOCK=64)
    if third is not None:
        kernel[grid](out, third, x, out, n, A=True, B=False, BLOCK=64)
    return out
"""

ADDED = '''
def added(x, a=None, b=None, c=None):
    """Returns the sum of what is there."""
    for one in (a, b, c):
        x = x if one is None else x + one
    return x
'''

HIDDEN = """
@triton.jit
def kernel(x_ptr, mask_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    most, total = float("-inf"), 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        seen = tl.load(mask_ptr + row * N + at, mask=at < N, other=0) != 0
        x = tl.where(seen, tl.load(x_ptr + row * N + at, mask=at < N, other=0.0), float("-inf"))
        peak = tl.maximum(most, tl.max(x, axis=0))
        base = tl.where(peak == float("-inf"), 0.0, peak)
        total = total * tl.exp(most - base) + tl.sum(tl.exp(x - base), axis=0)
        most = peak
    tl.store(out_ptr + row, most + tl.log(total))


def wrapper(x, mask):
    x, mask = x.contiguous(), mask.contiguous()
    out = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
    if x.numel():
        kernel[(x.shape[0],)](x, mask.to(torch.int8), out, x.shape[1], BLOCK=16)
    elif out.numel():
        out.fill_(float("-inf"))
    return out
"""

LOGS = '''
def logs(x, mask):
    """Returns the logarithm of the sum of the exponentials of what is seen."""
    return x.masked_fill(~mask, float("-inf")).logsumexp(dim=1)
'''

PRODUCT = """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, M, N, K, SIZE: tl.constexpr, GROUP: tl.constexpr):
    number = tl.program_id(0)
    rows, columns = tl.cdiv(M, SIZE), tl.cdiv(N, SIZE)
    first = number // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    row = first + number % (GROUP * columns) % height
    column = number % (GROUP * columns) // height
    m, n = row * SIZE + tl.arange(0, SIZE), column * SIZE + tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * K + k, mask=m < M, other=0.0)
        b = tl.load(b_ptr + k * N + n, mask=n < N, other=0.0)
        total += a[:, None] * b[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :])


def wrapper(input, other):
    a, b = input.contiguous(), other.contiguous()
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel():
        kernel[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](a, b, out, M, N, K, SIZE=64, GROUP=8)
    return out
"""

HONEST = {
    "leaky": (
        declared(
            "torch.nn.functional.leaky_relu",
            [tensor("input", ["M", "N"])],
            {"M": 8, "N": 24},
            kwargs={"negative_slope": 0.01},
        ),
        LEAKY,
    ),
    "product": (
        declared(
            "torch.matmul", [tensor("input", ["M", "K"]), tensor("other", ["K", "N"])], {"M": 16, "N": 12, "K": 8}
        ),
        PRODUCT,
    ),
}

FAULTS = {
    "another layout has another slope": ("leaky", "negative_slope + 0.0", "0.01"),
    "a last group that is not full": ("product", "min(rows - first, GROUP)", "min(rows, GROUP)"),
}

test_an_honest_kernel_passes, test_a_careless_one_is_rejected = both_tests(HONEST, FAULTS)


def referenced(folder: Path, source: str, name: str, inputs: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns an op of a reference, which is written into `folder`."""
    (folder / "reference.py").write_text(source, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {}, "root": str(folder)}
    return declared("", inputs, {"M": 6, "N": 40}, torch=None, reference=reference)


def test_two_inputs_may_be_left_out_at_once(tmp_path: Path) -> None:
    shape: list[int | str] = ["M", "N"]
    inputs = [tensor("x", shape), *(tensor(name, shape, optional=True) for name in "abc")]
    op = referenced(tmp_path, ADDED, "added", inputs)
    require_passed(tmp_path / "right", op, SUMMED)
    require_rejected(tmp_path / "wrong", op, SUMMED, "A=c is not None, B=False", "A=False, B=False")


def test_whole_blocks_may_be_hidden_by_a_mask(tmp_path: Path) -> None:
    mask = tensor("mask", ["M", "N"], dtype="bool", init={"kind": "mask", "p": 0.8})
    op = referenced(tmp_path, LOGS, "logs", [tensor("x", ["M", "N"]), mask])
    op["edges"] = {"special": None, "infinite-rows": None}
    require_passed(tmp_path / "right", op, HIDDEN)
    require_rejected(tmp_path / "wrong", op, HIDDEN, 'tl.where(peak == float("-inf"), 0.0, peak)', "peak")


BOTH = """
@triton.jit
def forward_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, 2.0 * x, mask=at < n)
    tl.store(z_ptr + at, 3.0 * x, mask=at < n)


@triton.jit
def backward_kernel(y_ptr, z_ptr, out_ptr, n, Y: tl.constexpr, Z: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    if Y:
        total += 2.0 * tl.load(y_ptr + at, mask=at < n, other=0.0)
    if Z:
        total += 3.0 * tl.load(z_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, total, mask=at < n)


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        x = x.contiguous()
        y, z = torch.empty_like(x), torch.empty_like(x)
        if x.numel():
            forward_kernel[(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), BLOCK=64)
        return y, z

    @staticmethod
    def backward(ctx, y, z):
        known = y if y is not None else z
        y = None if y is None else y.contiguous()
        z = None if z is None else z.contiguous()
        out = torch.empty(known.shape, dtype=known.dtype, device=known.device)
        n = out.numel()
        if n:
            grid = (triton.cdiv(n, 64),)
            backward_kernel[grid](out if y is None else y, out if z is None else z, out, n, Y=y is not None, Z=z is not None, BLOCK=64)
        return out


def wrapper(x):
    return Both.apply(x)
"""

TWICE = '''
def twice(x):
    """Returns two multiples."""
    return 2 * x, 3 * x
'''


def test_one_output_alone_may_be_used(tmp_path: Path) -> None:
    op = referenced(tmp_path, TWICE, "twice", [tensor("x", ["M", "N"])])
    plain = {"compare": "close", "of": None, "dim": None, "tolerances": {}}
    op |= {"backward": True, "outputs": [{"name": name, **plain} for name in "yz"]}
    require_passed(tmp_path / "right", op, BOTH)
    require_rejected(tmp_path / "wrong", op, BOTH, "Z=z is not None", "Z=True")


def request(op: dict[str, Any], lane: str = "interpreter") -> Any:
    """Returns as much of a request as the probes read."""
    return {"op": op, "lane": lane}


def test_pairs_are_covered_by_few_cases() -> None:
    optional = [tensor(name, ["N"], optional=True) for name in ("weight", "bias")]
    kwargs = {"mode": "a", "alpha": 1.0, "flag": False}
    op = declared("torch.add", [tensor("input", ["M", "N"]), *optional], {"M": 8, "N": 16}, kwargs=kwargs)
    changed = [{"mode": "b"}, {"mode": "c"}, {"alpha": 2.5}, {"flag": True}]
    others = [probing.probe(op, f"kwarg[{one}]", {"M": 5, "N": 19}, kwargs={**kwargs, **one}) for one in changed]
    found = list(probe_together.together(request(op, "cuda"), others, {"M": 1, "N": 1031}))
    assert len({case.name for case in found}) == len(found) <= probe_together.MOST["cuda"]
    words = [case for case in found if case.kwargs is not None and case.kwargs["mode"] != "a"]
    assert {(str(case.kwargs["mode"]), bool(case.kwargs["flag"])) for case in words if case.kwargs} >= {
        ("b", True),
        ("c", True),
    }
    assert any(case.absent and case.kwargs is not None and case.kwargs["flag"] for case in found)
    assert any(set(case.absent) == {"weight", "bias"} for case in found)
    assert all(case.has_own_budget for case in found)
    assert len(list(probe_together.together(request(op), others, None))) <= probe_together.MOST["interpreter"]


def test_one_input_alone_and_none_beside_a_flag_take_part() -> None:
    optional = [tensor(name, ["N"], optional=True) for name in "abcd"]
    op = declared("", [tensor("x", ["M", "N"]), *optional], {"M": 8, "N": 16}, kwargs={"flag": False, "eps": 1e-5})
    changed: list[dict[str, object]] = [{"flag": True}, {"eps": 0.5}]
    others = [probing.probe(op, f"kwarg[{one}]", {"M": 5, "N": 19}, kwargs={**op["kwargs"], **one}) for one in changed]
    found = {case.name.split("/")[1]: case for case in probe_together.together(request(op), others, None)}
    for name in "abcd":
        assert set(found[f"present[{name}]"].absent) == {*"abcd"} - {name}
    none = found["present[none,flag=True]"]
    assert set(none.absent) == {*"abcd"}
    assert none.kwargs is not None
    assert none.kwargs["flag"] is True
    assert "present[none,eps=0.5]" not in found, "what a number makes is seen with all of them"


def test_two_flags_come_with_other_numbers_at_once() -> None:
    kwargs = {"first": False, "nesterov": False, "dampening": 0.0, "lr": 0.1}
    op = declared("", [tensor("x", ["M", "N"])], {"M": 8, "N": 16}, kwargs=kwargs)
    changed: list[dict[str, object]] = [{"first": True}, {"nesterov": True}, {"dampening": 0.5}, {"lr": 2.0}]
    others = [probing.probe(op, f"kwarg[{one}]", {"M": 5, "N": 19}, kwargs={**kwargs, **one}) for one in changed]
    found = {case.name.split("/")[1]: case for case in probe_together.together(request(op), others, None)}
    both = found["together[first=True,nesterov=True,numbers]"]
    assert both.kwargs == {"first": True, "nesterov": True, "dampening": 0.5, "lr": 2.0}


def test_what_is_said_of_windows_meets_flags_and_how_they_are_rounded() -> None:
    kwargs = {"stride": 2, "padding": 1, "ceil_mode": False, "count_include_pad": True, "alpha": 1.0}
    op = declared("", [tensor("input", ["C", "H", "W"])], {"C": 2, "H": 9, "W": 12}, kwargs=kwargs)
    changed = {"stride": 1, "padding": 0, "ceil_mode": True, "count_include_pad": False, "alpha": 2.5}
    others = [
        probing.probe(op, f"kwarg[{name}]", {"C": 2, "H": 5, "W": 8}, kwargs={**kwargs, name: value})
        for name, value in changed.items()
    ]
    met = set()
    for case in probe_together.together(request(op, "cuda"), others, None):
        named = {name for name in changed if case.kwargs is not None and case.kwargs[name] != kwargs[name]}
        met |= {frozenset(named)} if len(named) == 2 else set()
    pairs = (
        "padding count_include_pad",
        "stride count_include_pad",
        "ceil_mode padding",
        "ceil_mode count_include_pad",
    )
    assert {frozenset(one.split()) for one in pairs} <= met
    assert not any(met & {frozenset(one.split())} for one in ("stride padding", "alpha padding", "alpha stride"))


def test_one_row_does_not_lie_transposed() -> None:
    op = declared("torch.add", [tensor("input", ["M", "N"])], {"M": 8, "N": 16})
    found = [list(probe_together.together(request(op), [], {"M": rows, "N": 1031})) for rows in (1, 2)]
    assert [[case.layout for case in one] for one in found] == [["strided"], ["strided", "transposed"]]


@pytest.mark.parametrize("off", ["together", "kwargs", "strided"])
def test_what_is_turned_off_takes_no_part(off: str) -> None:
    op = declared("torch.add", [tensor("input", ["M", "N"])], {"M": 8, "N": 16}, kwargs={"alpha": 1.0, "flag": False})
    changed: list[dict[str, object]] = [{"alpha": 2.5}, {"flag": True}]
    others = [probing.probe(op, f"kwarg[{one}]", {"M": 5, "N": 19}, kwargs={**op["kwargs"], **one}) for one in changed]
    found = list(probe_together.together(request({**op, "edges": {off: None}}), others, None))
    assert not found if off == "together" else all(off not in str(vars(case)) or off == "kwargs" for case in found)
    assert off != "kwargs" or all(case.kwargs is None for case in found)
