"""What is asked of gradients at corners: to be numbers where torch's are. Which numbers is a convention."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.judging import oracle, tolerance
from t2t_harness.judging.finding import Finding, first_of
from t2t_harness.judging.trial import Trial, fill

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CaseRow
    from t2t_harness.judging import comparing

RULE = "finite"
"""What the rule is called in the row of a case."""


def is_gradient(name: str) -> bool:
    """Tells whether the result `name` is the gradient of an input."""
    return name.startswith("grad.")


def but_at_nan(judged: comparing.Judged, name: str) -> comparing.Judged:
    """Returns `judged` where the gradient `name` counts as right wherever its input is NaN and it is NaN, or zero where torch's is a number: behind a bound torch has zero there on the CPU, what flows in on a device, and NaN elsewhere."""
    given = judged.given.get(name.removeprefix("grad."))
    if not is_gradient(name) or name not in judged.made or given is None or not given.is_floating_point():
        return judged
    made, right = judged.made[name], judged.right[name]
    if made.shape != given.shape or right.shape != given.shape:
        return judged
    where = given.isnan() & (made.isnan() | ((made == 0) & right.isfinite()))
    if not where.any():
        return judged
    return replace(judged, made={**judged.made, name: right.to(made.dtype).where(where, made)})


def not_numbers(trial: Trial, row: CaseRow, judged: comparing.Judged, right: oracle.Reference) -> Finding | None:
    """Returns the first gradient that is NaN or infinite where torch's is a number, in its dtype and in float64, or None; figures go into `row`."""
    return first_of(not_a_number(trial, row, name, judged, right) for name in right.plain if is_gradient(name))


def not_a_number(
    trial: Trial, row: CaseRow, name: str, judged: comparing.Judged, right: oracle.Reference
) -> Finding | None:
    """Returns where the gradient `name` is not, or None."""
    plain = right.plain[name]
    found = finite(judged.made[name], plain, plain if right.oracle is None else right.oracle[name])
    fill(row, found)
    row["rule"] = found.rule
    if found.passed:
        return None
    return Finding("nan", f"{oracle.result_name(trial.declaration, right, name)}: {found.message}", comparison=found)


def finite(out: torch.Tensor, torch_out: torch.Tensor, oracle: torch.Tensor) -> tolerance.Comparison:
    """Returns the comparison of what must be finite where torch's result and the oracle are, and may be any number there."""
    wrong = torch_out.isfinite() & oracle.isfinite() & ~out.isfinite()
    count, total = int(wrong.sum()), out.numel()
    if count == 0:
        return tolerance.Comparison(True, None, RULE, None, 0.0, 0.0, 0.0, 0, total, None, None, None)
    first = int(wrong.reshape(-1).int().argmax())
    index = tolerance.unravel(first, list(torch_out.shape))
    got, expected = (
        float(one.reshape(-1)[first].abs()) if one.is_complex() else float(one.reshape(-1)[first])
        for one in (out, torch_out)
    )
    message = f"{count} of {total} elements are no numbers where torch's are, first {index}: got {got:g}, torch has {expected:g}"
    return tolerance.Comparison(False, "nan", None, message, 0.0, 0.0, 0.0, count, total, index, got, expected)
