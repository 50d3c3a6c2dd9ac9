"""A random op in a check: judges each run by what must hold exactly, and collects samples of all runs for the tests at the end.

`random_ops.py` and `pooled.py` say what must hold. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import arguments_known, arguments_random, arguments_special, called_with, probes, seeds
from t2t_harness.cases.runs import whose
from t2t_harness.judging import autograd, comparing, oracle, pooled, random_ops, random_result

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, OpRequest
    from t2t_harness.cases.cases import Case


@dataclass
class Collected:
    """What the results of the declared cases show, by dtype."""

    pools: dict[str, pooled.Pool] = field(default_factory=dict)
    document: dict[str, object] | None = None
    """The tests, once `conclude` was called."""
    function: Callable[..., Mapping[str, object]] | None = None
    """What of the op's own cases says what must hold, once it is loaded."""

    def conclude(self) -> tuple[str | None, list[str]]:
        """Returns what is wrong with all results together, or None, and the wrong results that could not be told from
        right ones."""
        wrong, unfit, self.document = pooled.conclude(self.pools)
        return wrong, unfit


def wrong(
    collected: Collected,
    request: OpRequest,
    case: Case,
    tensors: Mapping[str, torch.Tensor],
    labels: list[str],
    given: Mapping[str, torch.Tensor],
    device: str,
) -> str | None:
    """Returns what does not hold of the runs `labels` of a case, whose results are `tensors`, or None. What declared cases
    show is added to `collected`."""
    declaration, seen = request["op"], {}
    collected.function = collected.function or random_ops.own_function(request)
    for label in labels:
        seen[label] = random_result.look(
            declaration, case, tensors[f"{label}.0"], given, given_to(declaration, case), collected.function
        )
        words = seen[label].wrong or gradient_wrong(declaration, case, tensors, label, given, device)
        if words is not None:
            return f"{words}{whose(label)}"
    of_seeds = [seen[label] for label in labels if label == "a" or seeds.is_of_other_seed(label)]
    for other in of_seeds[1:]:
        if pooled.is_same(of_seeds[0], other) or pooled.is_same(of_seeds[-1], other) and other is not of_seeds[-1]:
            return "two seeds gave the same result"
    if case.kind == "declared":
        collected.pools.setdefault(case.dtype, pooled.Pool()).add(of_seeds)
    elif probes.has_other_kwargs(case) or probes.is_sampled(case):
        # What is right on the whole there is another share, or another distribution.
        collected.pools.setdefault(f"{case.dtype}{pooled.AT}{label_of(case)}", pooled.Pool()).add(of_seeds)
    return None


def label_of(case: Case) -> str:
    """Returns what the name of a case says of its arguments."""
    return case.name.partition("[")[2].rpartition("]")[0]


def is_certain(
    declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], right: oracle.Reference
) -> bool:
    """Tells whether the case has arguments at other values with which nothing is left to chance, and torch has the same results with another seed."""
    if not probes.has_other_kwargs(case):
        return False
    if not arguments_random.is_certain(declaration, called_with.kwargs_of(declaration, case)):
        return False
    device = next((value.device.type for value in given.values()), "cpu")
    other = oracle.reference(declaration, replace(case, salt=f"{case.salt}again"), given, device).plain
    return all(
        torch_equal(value, other[name]) for name, value in right.plain.items() if name.isdecimal() and name in other
    )


def torch_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tells whether two tensors hold the same, a NaN where the other has one."""
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())


def given_to(declaration: Declaration, case: Case) -> dict[str, Any]:
    """Returns the keyword arguments of a case, with torch's defaults for those that it leaves out, and a chance of 0 where nothing is drawn."""
    own = called_with.kwargs_of(declaration, case)
    if not probes.has_other_kwargs(case):
        return own
    chance = arguments_random.chance_of(declaration)
    is_off = chance is not None and any(own.get(name) is False for name in arguments_special.TRAINING)
    return {**arguments_known.of_op(declaration), **own, **({str(chance): 0.0} if is_off else {})}


def gradient_wrong(
    declaration: Declaration,
    case: Case,
    tensors: Mapping[str, torch.Tensor],
    label: str,
    given: Mapping[str, torch.Tensor],
    device: str,
) -> str | None:
    """Returns what is wrong with the gradient of the first input, or None where there is none."""
    name = f"{label}.grad.{next(iter(given), '')}"
    if not declaration["backward"] or name not in tensors:
        return None
    out = tensors[f"{label}.0"]
    upstream = autograd.upstream_gradients([out.detach().clone().requires_grad_()], case)[0]
    allowed = comparing.tolerance_of(declaration, case.dtype, "0")
    kwargs = given_to(declaration, case)
    return random_ops.backward_wrong(declaration, out, tensors[name], upstream, given, kwargs, allowed)
