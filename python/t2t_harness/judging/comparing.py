"""How each output of an op is compared: by value, exactly, as indices of values, as a set, as rows in any order, or not at all.

What `outputs:` of ops.yaml says is read here; which ones are ignored also `declaration.ignored` tells. The rule for values is tolerance.py's. torch is imported only
inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from t2t_harness.cases.cases import FLOATING
from t2t_harness.judging import steps, tolerance, unset
from t2t_harness.op import declaration as declared

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import ComparedOutput, Declaration
    from t2t_harness.cases.cases import Case

CLOSE: ComparedOutput = {"name": "", "compare": "close", "of": None, "dim": None, "tolerances": {}}
"""An output without a declaration."""

TWICE = "for the second time"
"""What is wrong with an index whose value is right."""

Tensors = Mapping[str, "torch.Tensor"]


class Misnamed(Exception):
    """`outputs:` does not fit what torch returns. `hint` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Judged:
    """What outputs of one run are compared with."""

    given: Tensors
    """The op's inputs."""
    right: Tensors
    """torch's results, by name as in oracle.Reference."""
    made: Tensors
    """The run's results by those names."""


def refuse(declaration: Declaration, count: int) -> None:
    """Raises Misnamed where torch returns `count` outputs and the op names another number, or compares one with what is
    not there."""
    outputs = declaration.get("outputs")
    if outputs is None:
        return
    names = ", ".join(f"`{one['name']}`" for one in outputs)
    if len(outputs) != count:
        plural = "" if count == 1 else "s"
        raise Misnamed(
            f"torch returns {count} output{plural}, and `outputs` names {len(outputs)}: {names}",
            "name each of them, in torch's order; one that does not matter as `NAME: ignore`",
        )


def of_case(declaration: Declaration, case: Case) -> Declaration:
    """Returns the declaration as `case` is compared by it: outputs along the dim that the call has there, where they are along the one of the op's own call."""
    return declared.along(declaration, case.kwargs) or declaration


def output(declaration: Declaration, name: str) -> ComparedOutput:
    """Returns what is declared of the result `name`, which is a position for outputs."""
    outputs = declaration.get("outputs")
    if outputs is None or not name.isdecimal() or int(name) >= len(outputs):
        return CLOSE
    return outputs[int(name)]


def shown(declaration: Declaration, name: str) -> str:
    """Returns what messages call the result `name`: its declared name, else its position."""
    return str(output(declaration, name)["name"] or name)


def is_ignored(declaration: Declaration, name: str) -> bool:
    """Tells whether the result `name` is ignored."""
    return bool(output(declaration, name)["compare"] == "ignore")


def tolerance_of(declaration: Declaration, dtype: str, name: str = "") -> tuple[float, float]:
    """Returns (atol, rtol) of the result `name` in a case of `dtype`: its own, else the op's; a dtype without one is held
    to float32's."""
    told = {**declaration["tolerances"], **output(declaration, name)["tolerances"]}
    atol, rtol = told.get(dtype, told.get("float32", (1e-5, 1e-5)))
    return float(atol), float(rtol)


def allowed_of(
    declaration: Declaration, dtype: str, name: str, right: torch.Tensor, wide: torch.Tensor | None
) -> tuple[float, float]:
    """Returns (atol, rtol) of the result `name`, whose right values are `right`, and the oracle's `wide`, in a case of `dtype`.

    Those of `dtype` are for values around 1, and a result may be far smaller, as the scales of quantized rows are. Unless ops.yaml has tolerances of its own for it, atol shrinks with the root of its mean square: that of a wider type where that is below 1; that of a float32 where a result rounded to TF32 would be within it, though rtol asks for more.
    """
    import torch

    atol, rtol = tolerance_of(declaration, dtype, name)
    is_own = dtype in output(declaration, name)["tolerances"]
    if steps.are_counted(right.dtype) and not is_own:
        return 0.0, 0.0
    if is_own or dtype not in FLOATING or not right.dtype.is_floating_point or right.numel() == 0:
        return atol, rtol
    if torch.finfo(right.dtype).eps < torch.finfo(getattr(torch, dtype)).eps:
        size = root_mean_square(right)
        return (atol * min(1.0, size) if size > 0 else atol), rtol
    if right.dtype is not torch.float32 or wide is None or not tolerance.asks_beyond_tf32((atol, rtol)):
        return atol, rtol
    size = root_mean_square(right)
    return (min(atol, tolerance.below_tf32(size, right, wide)) if size > 0 else atol), rtol


def root_mean_square(value: torch.Tensor) -> float:
    """Returns the root of the mean square of the finite elements of a floating tensor; 0 where there is none."""
    known = value.double()
    known = known[known.isfinite()]
    return float(known.square().mean().sqrt()) if known.numel() else 0.0


def narrowest(case: Case) -> str:
    """Returns the dtype by which the results of a case are judged: its own, or that which its argument `dtype` asks the op to compute in, if that is a float of fewer bits."""
    asked = str((case.kwargs or {}).get("dtype")).removeprefix("torch.")
    if asked not in FLOATING or case.dtype not in FLOATING:
        return case.dtype
    return max(case.dtype, asked, key=FLOATING.index)


def compare(
    declaration: Declaration,
    dtype: str,
    name: str,
    judged: Judged,
    wide: torch.Tensor | None,
    *,
    whole: bool,
    slack: torch.Tensor | None = None,
    small: float | None = None,
) -> tolerance.Comparison:
    """Returns the comparison of the result `name` of a run with torch's, both of one shape, in a case of `dtype`.

    `wide` is the oracle's result, or None; `slack`, element by element, what else is allowed; `small` asks that small values are exact relative to their size, but for an error of so much. Raises Misnamed where the comparison that is declared does not fit what torch
    returns.
    """
    how = output(declaration, name)
    judged = but_unset(declaration, judged, name)
    out, right = judged.made[name], judged.right[name]
    allowed = allowed_of(declaration, dtype, name, right, wide)
    if how["compare"] == "exact":
        return tolerance.exact(*(_real(value) for value in (out, right)))
    if how["compare"] == "indices":
        return _indices(declaration, dtype, name, judged)
    if how["compare"] in ("set", "rows"):
        order = _as_set if how["compare"] == "set" else _as_rows
        found = tolerance.compare(
            order(out, name), order(right, name), None if wide is None else order(wide, name), allowed, whole=whole
        )
        return found if found.passed else replace(found, message=f"{found.message} (both put in order first)")
    if steps.are_counted(right.dtype):
        return steps.compare(out, right, wide, allowed)
    return tolerance.compare(out, right, wide, allowed, whole=whole, slack=slack, small=small)


def is_equal(declaration: Declaration, dtype: str, name: str, judged: Judged) -> bool:
    """Tells whether a result is as right as torch's by the declared comparison, without any tolerance."""
    judged = but_unset(declaration, judged, name)
    out, right = judged.made[name], judged.right[name]
    if out.equal(right):
        return True
    how = output(declaration, name)["compare"]
    if how in ("set", "rows"):
        order = _as_set if how == "set" else _as_rows
        return order(out, name).equal(order(right, name))
    is_of_input = how == "indices" and output(declaration, name)["of"] in judged.given
    return is_of_input and _indices(declaration, dtype, name, judged).passed


def but_unset(declaration: Declaration, judged: Judged, name: str) -> Judged:
    """Returns `judged` with torch's value in each place of the result `name` where any is right."""
    where = unset.places(output(declaration, name), judged.right[name])
    if where is None or judged.made[name].shape != where.shape:
        return judged
    made, right = judged.made[name], judged.right[name]
    return replace(judged, made={**judged.made, name: right.to(made.dtype).where(where, made)})


def in_order(declaration: Declaration, name: str, value: torch.Tensor) -> torch.Tensor:
    """Returns the result `name` with its elements or rows put in order, where any order of them is right, else as it is."""
    how = output(declaration, name)["compare"]
    if how == "set" and value.dim() == 1:
        return _as_set(value, name)
    return _as_rows(value, name) if how == "rows" and value.dim() > 1 else value


def _real(value: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.view_as_real(value.resolve_conj()) if value.dtype.is_complex else value


def _as_set(value: torch.Tensor, name: str) -> torch.Tensor:
    """Returns the elements in ascending order. Raises Misnamed where they are not one row."""
    if value.dim() != 1:
        raise Misnamed(f"output {name} has {value.dim()} dims and is compared as a set", "a set has one: use `rows`")
    return value.sort().values


def _as_rows(value: torch.Tensor, name: str) -> torch.Tensor:
    """Returns the rows along the first dim in lexicographic order. Raises Misnamed where there are none."""
    if value.dim() < 2:
        raise Misnamed(f"output {name} has {value.dim()} dims and is compared by rows", "one dim is a `set`")
    flat = value.flatten(1)
    for column in reversed(range(flat.shape[1])):
        flat = flat[flat[:, column].argsort(stable=True)]
    return flat.reshape(value.shape)


def _indices(declaration: Declaration, dtype: str, name: str, judged: Judged) -> tolerance.Comparison:
    """Returns the comparison of indices: the values that they point to must be torch's, and no place may be named twice
    where torch names none twice."""
    how, out, right = output(declaration, name), judged.made[name], judged.right[name]
    if out.dtype.is_floating_point or out.dtype.is_complex:
        raise Misnamed(f"output `{how['name']}` is {right.dtype} and compared as indices", "indices are integers")
    mine, theirs, source = _sources(declaration, how["of"], judged)
    dim = how["dim"]
    length = mine.numel() if dim is None else _flat(mine, dim).shape[_axis(mine, dim)]
    outside = (out < 0) | (out >= length)
    try:
        got, wanted = (_pick(*pair, dim) for pair in ((mine, out.where(~outside, out.new_zeros(()))), (theirs, right)))
    except (RuntimeError, IndexError) as error:
        reason = f"output `{how['name']}` cannot index `{how['of']}` along dim {dim}: {error}"
        raise Misnamed(reason.splitlines()[0], "`of` is what it indexes, `dim` along which dim") from error
    bad = outside | ~_same_values(declaration, dtype, source, got, wanted)
    if isinstance(dim, int) and out.dim() == mine.dim():
        bad |= _named_again(out, right, dim)
    return _comparison(out, right, got, wanted, outside, bad)


@dataclass(frozen=True)
class Into:
    """What indices of torch's point into that the reference computes on the way."""

    plain: torch.Tensor
    """In the tested dtype: of the shape of the indices but for `dim`."""
    wide: torch.Tensor
    """In float64, where there is an oracle; else the same."""
    dim: int | None
    """The dim that they count along; None where they count through all elements."""
    allowed: torch.Tensor
    """How far apart two values in float64 may lie that count as equal: one number along `dim`, which is kept, or one of all."""
    is_first: bool
    """Whether of equal values the first one is named, and not any."""


def pointed(out: torch.Tensor, right: torch.Tensor, into: Into) -> tolerance.Comparison:
    """Returns the comparison of indices with torch's, by what they point to."""
    dim, length = into.dim, into.plain.numel()
    if dim is not None and into.plain.dim() > 0:
        length = into.plain.shape[dim]
    outside = (out < 0) | (out >= length)
    inside = out.where(~outside, out.new_zeros(()))
    ties = []
    for source in (into.plain, into.wide):
        got, wanted = (_pick(source, index, dim) for index in (inside, right))
        ties.append((got == wanted) | ((got != got) & (wanted != wanted)))
    is_whole = dim is not None and into.plain.dim() == out.dim() > 0
    allowed = into.allowed if is_whole or into.allowed.dim() == 0 or dim is None else into.allowed.squeeze(dim)
    same = ties[0] | ((got - wanted).abs() <= allowed)
    if into.is_first:
        same &= ~(ties[0] & ties[1]) | (out == right)
    bad = outside | ~same
    if dim is not None and is_whole:
        bad |= _named_again(out, right, dim)
    why = "which is as large: torch names the first one" if into.is_first else TWICE
    return _comparison(out, right, got, wanted, outside, bad, why)


def _named_again(out: torch.Tensor, right: torch.Tensor, dim: int) -> torch.Tensor:
    """Returns where an index stands that stands earlier along `dim`, too, in rows in which torch names none twice."""
    return _named_twice(out, dim) & ~_named_twice(right, dim).any(dim=dim, keepdim=True)


def _sources(declaration: Declaration, of: str | None, judged: Judged) -> tuple[torch.Tensor, torch.Tensor, str | None]:
    """Returns the values that the run's indices point into, those that torch's do, and the name of that result, None for an input."""
    if of is not None and of in judged.given:
        return judged.given[of], judged.given[of], None
    names = [one["name"] for one in declaration["outputs"] or ()]
    if of not in names:
        raise Misnamed(f"`{of}` is not there to be indexed", "an input that is absent in a case holds no values")
    position = str(names.index(of))
    return judged.made[position], judged.right[position], position


def _same_values(
    declaration: Declaration, dtype: str, source: str | None, got: torch.Tensor, wanted: torch.Tensor
) -> torch.Tensor:
    """Returns where two values are the same: exactly for an input, within its tolerance for an output."""
    same = (got == wanted) | ((got != got) & (wanted != wanted))
    if source is None or not got.dtype.is_floating_point:
        return same
    atol, rtol = tolerance_of(declaration, dtype, source)
    return same | ((got.double() - wanted.double()).abs() <= atol + rtol * wanted.double().abs())


def _flat(value: torch.Tensor, dim: int | Sequence[int] | None) -> torch.Tensor:
    """Returns `value` with several trailing dims, where indices count through them together, as one."""
    return value if dim is None or isinstance(dim, int) else value.flatten(value.dim() - len(dim))


def _axis(value: torch.Tensor, dim: int | Sequence[int]) -> int:
    return dim % max(value.dim(), 1) if isinstance(dim, int) else value.dim() - len(dim)


def _pick(source: torch.Tensor, index: torch.Tensor, dim: int | Sequence[int] | None) -> torch.Tensor:
    """Returns the values of `source` at `index`, in the shape of `index`, which may lack the dim."""
    wide = index.long()
    if dim is None:
        return source.reshape(-1)[wide]
    if not isinstance(dim, int):
        return _flat(source, dim).gather(-1, _flat(wide, dim)).reshape(index.shape)
    if source.dim() == 0:
        return source.expand(index.shape)
    axis = dim % source.dim()
    if index.dim() == source.dim() - 1:
        return source.gather(axis, wide.unsqueeze(axis)).squeeze(axis)
    return source.gather(axis, wide)


def _named_twice(index: torch.Tensor, dim: int) -> torch.Tensor:
    """Returns where an index stands that stands earlier along `dim`, too."""
    import torch

    if index.dim() == 0 or index.numel() == 0:
        return torch.zeros_like(index, dtype=torch.bool)
    ordered, places = index.sort(dim=dim, stable=True)
    twice = torch.zeros_like(index, dtype=torch.bool)
    length = index.shape[dim]
    twice.narrow(dim, 1, length - 1).copy_(ordered.narrow(dim, 1, length - 1) == ordered.narrow(dim, 0, length - 1))
    return torch.zeros_like(twice).scatter_(dim, places, twice)


def _comparison(
    out: torch.Tensor,
    right: torch.Tensor,
    got: torch.Tensor,
    wanted: torch.Tensor,
    outside: torch.Tensor,
    bad: torch.Tensor,
    why_equal: str = TWICE,
) -> tolerance.Comparison:
    """Returns the comparison; `why_equal` is what is wrong with a place whose value is right."""
    count, total = int(bad.sum()), out.numel()
    if count == 0:
        return tolerance.Comparison(True, None, "indices", None, 0.0, 0.0, 0.0, 0, total, None, None, None)
    first = int(bad.reshape(-1).int().argmax())
    index = tolerance.unravel(first, list(out.shape))
    mine, theirs = int(out.reshape(-1)[first]), int(right.reshape(-1)[first])
    values = float(got.reshape(-1)[first]), float(wanted.reshape(-1)[first])
    what = f"where the value is {values[0]:.9g}"
    if bool(outside.reshape(-1)[first]):
        what = "which is outside"
    elif values[0] == values[1]:
        what = why_equal
    message = (
        f"{count} of {total} indices are wrong, first {index}: got {mine}, {what}, "
        f"expected {theirs}, where the value is {values[1]:.9g}"
    )
    return tolerance.Comparison(
        False, "mismatch", None, message, 0.0, 0.0, 0.0, count, total, index, float(mine), float(theirs)
    )


PUT_TOGETHER = ("indices", "set", "rows")
"""Comparisons that do not fit every result."""


def fault(declaration: Declaration, dtype: str, given: Tensors, right: Tensors) -> Misnamed | None:
    """Returns why torch's own results cannot be compared as declared, or None."""
    outputs = [name for name in right if name.isdecimal()]
    try:
        refuse(declaration, len(outputs))
        for name in outputs:
            if output(declaration, name)["compare"] in PUT_TOGETHER:
                compare(declaration, dtype, name, Judged(given, right, right), None, whole=False)
    except Misnamed as reason:
        return reason
    return None
