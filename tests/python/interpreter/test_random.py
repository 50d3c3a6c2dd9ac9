"""Random ops: a right kernel passes, and one that is wrong in the way its kind invites is rejected for just that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, tensor, verdict

from t2t_harness.cases import cases

DROPOUT = """
@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, SCALE: tl.constexpr, SPAN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets % SPAN) >= p
    scaled = x / (1 - p) if SCALE else x
    tl.store(out_ptr + offsets, tl.where(keep, scaled, 0.0), mask=mask)


def run(input, p, seed, scale=True, span=1 << 30):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        dropout_kernel[(triton.cdiv(x.numel(), 64),)](
            x, out, x.numel(), p, seed, SCALE=scale, SPAN=span, BLOCK=64
        )
    return out


"""

BY_KWARG = "def wrapper(input, p, training, seed):\n    assert training\n    return run(input, {arguments})\n"


def dropout(**more: Any) -> dict[str, Any]:
    random = {"kind": "dropout", "p": "p", "seed": "seed"}
    told = {"kwargs": {"p": 0.5, "training": True}, "random": random, **more}
    return declared("torch.nn.functional.dropout", [tensor("input", ["M", "N"])], {"M": 16, "N": 24}, **told)


def test_dropout_that_drops_by_its_seed_passes(tmp_path: Path) -> None:
    documents = check(tmp_path, dropout(), DROPOUT + BY_KWARG.format(arguments="p, seed"))
    evidence = documents["evidence"]
    assert documents["verdict"]["verdict"] == "passed", evidence["failure"]
    tests = {row["test"]: row for row in evidence["random"]["tests"]}
    assert {"share", "elements 1 apart", "neighbours along dim 0", "one seed and the next"} <= set(tests)
    assert tests["share"]["samples"] == 2 * 16 * 16 * 24 and evidence["random"]["level"] < 1e-6


WRONG = {
    "drops nothing": ("0.0, seed", "neither zero nor the input over 1 - 0.5"),
    "drops everything": ("1.0 - 1e-9, seed", "two seeds gave the same result"),
    "does not scale": ("p, seed, scale=False", "neither zero nor the input over 1 - 0.5"),
    "heeds no seed": ("p, 7", "two seeds gave the same result"),
    "the same mask in each row": ("p, seed, span=24", "not independent: "),
    "the same mask in each block": ("p, seed, span=64", "not independent: elements 64 apart"),
}


@pytest.mark.parametrize("name", WRONG)
def test_dropout_that_is_wrong_is_rejected(name: str, tmp_path: Path) -> None:
    arguments, message = WRONG[name]
    class_, said = verdict(tmp_path, dropout(), DROPOUT + BY_KWARG.format(arguments=arguments))
    assert (class_, message in said) == ("mismatch", True), said


def test_a_share_that_is_off_is_rejected(tmp_path: Path) -> None:
    kernel = DROPOUT.replace(">= p", ">= p - 0.32 * p * (1 - p)") + BY_KWARG.format(arguments="p, seed")
    class_, said = verdict(tmp_path, dropout(), kernel)
    assert class_ == "mismatch" and ", 0.5 is right" in said, said


def test_a_mask_that_another_run_with_the_same_seed_does_not_have_is_rejected(tmp_path: Path) -> None:
    kernel = DROPOUT + "CALLS = []\n\n\n" + BY_KWARG.format(arguments="p, seed + len(CALLS)")
    kernel = kernel.replace("    return run(input, p, seed +", "    CALLS.append(1)\n    return run(input, p, seed +")
    assert verdict(tmp_path, dropout(), kernel)[0] == "nondeterministic"


def test_without_a_name_for_it_the_seed_is_that_of_torchs_generator(tmp_path: Path) -> None:
    op = dropout(random={"kind": "dropout", "p": "p", "seed": None})
    wrapper = "def wrapper(input, p, training):\n    assert training\n    seed = torch.randint(0, 1 << 30, (1,)).item()\n    return run(input, p, seed)\n"
    assert verdict(tmp_path, op, DROPOUT + wrapper) == (None, "")


def test_a_wrapper_may_draw_no_mask_of_torchs(tmp_path: Path) -> None:
    op = dropout(random={"kind": "dropout", "p": "p", "seed": None})
    wrapper = "def wrapper(input, p, training):\n    return torch.nn.functional.dropout(input, p)\n"
    assert verdict(tmp_path, op, DROPOUT + wrapper)[0] == "torch-fallback"


def test_too_few_samples_are_no_evidence(tmp_path: Path) -> None:
    op = dropout(kwargs={"p": 0.001, "training": True}, check_sizes={"small": {"M": 2, "N": 4}})
    class_, said = verdict(tmp_path, op, DROPOUT + BY_KWARG.format(arguments="p, seed"))
    assert class_ == "unfit-cases" and "everything comes out, or nothing (float32)" in said


BACKWARD = """
class Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.p, ctx.seed = p, seed
        return run(x, p, seed)

    @staticmethod
    def backward(ctx, upstream):
        return run(upstream, ctx.p, ctx.seed{change}), None, None


def wrapper(input, p, training, seed):
    assert training
    return Dropped.apply(input, p, seed)
"""


@pytest.mark.parametrize(("change", "class_"), [("", None), (" + 1", "mismatch")])
def test_the_gradient_has_the_mask_of_the_forward_pass(change: str, class_: str | None, tmp_path: Path) -> None:
    op = dropout(backward=True)
    found, said = verdict(tmp_path, op, DROPOUT + BACKWARD.format(change=change))
    assert found == class_, said
    assert class_ is None or "not of the forward pass's mask" in said


DRAW = """
@triton.jit
def draw_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, {value}, mask=offsets < n)


def wrapper(size, seed):
    out = torch.empty(size, device="cuda")
    if out.numel():
        draw_kernel[(triton.cdiv(out.numel(), 64),)](out, out.numel(), seed, BLOCK=64)
    return out
"""

DRAWN = {
    "uniform": ("torch.rand", {"kind": "uniform"}, "tl.rand(seed, offsets)", None),
    "uniform, to one half": ("torch.rand", {"kind": "uniform"}, "tl.rand(seed, offsets) * 0.5", "distribution is off"),
    "uniform, beyond": ("torch.rand", {"kind": "uniform"}, "tl.rand(seed, offsets) * 2", "outside of the range"),
    "normal": ("torch.randn", {"kind": "normal"}, "tl.randn(seed, offsets)", None),
    "normal, of a uniform": ("torch.randn", {"kind": "normal"}, "tl.rand(seed, offsets)", "distribution is off"),
    "normal, each twice": ("torch.randn", {"kind": "normal"}, "tl.randn(seed, offsets // 2)", "elements 1 apart"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_without_an_input_are_judged_by_their_distribution(name: str, tmp_path: Path) -> None:
    torch_name, random, value, message = DRAWN[name]
    told = {"kwargs": {"size": ["M", "N"]}, "random": {**random, "seed": "seed"}}
    op = declared(torch_name, [], {"M": 16, "N": 24}, **told)
    class_, said = verdict(tmp_path, op, DRAW.format(value=value))
    assert (class_ is None) == (message is None) and (message or "") in said, said


CHOICE = """
@triton.jit
def choice_kernel(p_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(p_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, (tl.rand(seed, offsets) < {chance}).to(tl.float32), mask=offsets < n)


def wrapper(input, seed):
    p = input.contiguous()
    out = torch.empty_like(p)
    if p.numel():
        choice_kernel[(triton.cdiv(p.numel(), 64),)](p, out, p.numel(), seed, BLOCK=64)
    return out
"""


@pytest.mark.parametrize(("chance", "message"), [("p", None), ("p * 0.8", "the share is"), ("0.45", "share where")])
def test_bernoulli_has_the_chances_of_its_input(chance: str, message: str | None, tmp_path: Path) -> None:
    uniform = tensor("input", ["M", "N"], init={"kind": "uniform", "low": 0.1, "high": 0.8})
    random = {"kind": "bernoulli", "seed": "seed"}
    op = declared("torch.bernoulli", [uniform], {"M": 16, "N": 24}, random=random)
    class_, said = verdict(tmp_path, op, CHOICE.format(chance=chance))
    assert (class_ is None) == (message is None) and (message or "") in said, said


def test_probabilities_have_no_edges_beyond_what_they_can_be() -> None:
    uniform = tensor("input", ["M", "N"], init={"kind": "uniform", "low": 0.1, "high": 0.8})
    op = declared("torch.bernoulli", [uniform], {"M": 16, "N": 24}, random={"kind": "bernoulli", "seed": "seed"})
    values = {case.values for case in cases.fixed_edges(op)}
    assert "equal-rows" in values and not values & {"large", "special"}


MULTINOMIAL = """
@triton.jit
def pick_kernel(w_ptr, out_ptr, M, K, S, seed, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets = tl.arange(0, BLOCK)
    there = (rows < M)[:, None] & (offsets < K)[None, :]
    w = tl.load(w_ptr + rows[:, None] * K + offsets[None, :], mask=there, other=0.0)
    for place in range(S):
        total = tl.sum(w, 1)
        u = tl.rand(seed, rows * S + place) * total
        pick = tl.sum((tl.cumsum(w, 1) <= u[:, None]).to(tl.int32), 1)
        pick = tl.minimum(pick, K - 1)
        tl.store(out_ptr + rows * S + place, pick.to(tl.int64), mask=rows < M)
        {after}


def wrapper(input, num_samples, seed, replacement=False):
    if replacement is not {replacement}:
        raise NotImplementedError("as it is declared")
    w = input.contiguous(){weights}
    out = torch.empty((w.shape[0], num_samples), dtype=torch.int64, device=w.device)
    if w.shape[0]:
        grid = (triton.cdiv(w.shape[0], 32),)
        pick_kernel[grid](w, out, w.shape[0], w.shape[1], num_samples, seed, ROWS=32, BLOCK=16)
    return out
"""

LOSE = "w = tl.where(offsets[None, :] == pick[:, None], 0.0, w)"

PICKED = {
    "with replacement": (True, "pass", "", None),
    "without": (False, LOSE, "", None),
    "twice": (False, "pass", "", "for the second time"),
    "of even weights": (True, "pass", "\n    w = torch.full_like(w, 1.0)", "distribution is off"),
}


@pytest.mark.parametrize("name", PICKED)
def test_multinomial_draws_by_weight(name: str, tmp_path: Path) -> None:
    replacement, after, weights, message = PICKED[name]
    uniform = tensor("input", ["M", 12], init={"kind": "uniform", "low": 0.0, "high": 1.0})
    told = {"kwargs": {"num_samples": 4, "replacement": replacement}, "random": {"kind": "multinomial", "seed": "seed"}}
    op = declared("torch.multinomial", [uniform], {"M": 32}, **told)
    class_, said = verdict(tmp_path, op, MULTINOMIAL.format(after=after, weights=weights, replacement=replacement))
    assert (class_ is None) == (message is None) and (message or "") in said, said


JUDGED = """import torch


def cases(spec, generator):
    return []


def holds(inputs, kwargs, out):
    return {"right": out >= 0, "draws": 1 - torch.exp(-out)}
"""


@pytest.mark.parametrize(
    ("value", "message"), [("-tl.log(1 - u)", None), ("u", "distribution is off"), ("-u", "must hold")]
)
def test_what_the_op_says_itself_is_judged(value: str, message: str | None, tmp_path: Path) -> None:
    kernel = CHOICE.replace("(tl.rand(seed, offsets) < {chance}).to(tl.float32)", value)
    kernel = kernel.replace("    p = tl.load", "    u = tl.rand(seed, offsets)\n    p = tl.load")
    told = {"cases": "kernels/op/cases.py", "random": {"kind": "judged", "by": "holds", "seed": "seed"}}
    op = declared("torch.rand_like", [tensor("input", ["M", "N"])], {"M": 16, "N": 24}, **told)
    class_, said = verdict(tmp_path, op, kernel, JUDGED)
    assert (class_ is None) == (message is None) and (message or "") in said, said
