"""Ops that draw random numbers: what of their results must hold exactly, and what in distribution.

No result of torch's is right for such an op: torch's mask is one of many, and no kernel sees it. What `random:` of ops.yaml
declares says what must hold of any result. A candidate is run with the same seed twice and with others. docs/reference/judging.md gives the
rules in words. torch is imported only inside functions.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import declared_inputs, seeds
from t2t_harness.op import declaration as declared

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, OpRequest, Random
    from t2t_harness.cases.cases import Case

SUGGESTED = {
    "bernoulli": "{kind: bernoulli}",
    "uniform": "{kind: uniform}",
    "rand": "{kind: uniform}",
    "randn": "{kind: normal}",
    "normal": "{kind: normal}",
    "multinomial": "{kind: multinomial}",
    "dropout": "{kind: dropout, p: p}",
}
"""Part of a torch name → what is likely to be declared. The last that fits counts."""


class Undeclared(Exception):
    """The op draws random numbers and does not say what must hold of them, or the other way round."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def refuse(declaration: Declaration, drawing: Sequence[str], is_blocked: bool) -> None:
    """Raises Undeclared where the torch call dispatches `drawing`, aten operations that draw random numbers, without a
    `random:`, or none of them with one; not where `is_blocked`, and only a part of the call was seen."""
    if drawing and not seeds.is_random(declaration):
        name = str(declaration.get("torch") or "")
        likely = [told for part, told in SUGGESTED.items() if part in name]
        hint = f"say what must hold of any result, as in `random: {likely[-1] if likely else SUGGESTED['dropout']}`"
        if "dropout" in name:
            hint += "; or declare it as it is in evaluation, with `training: false`"
        message = f"torch draws random numbers for this op ({', '.join(drawing)}): no one result is right"
        raise Undeclared(message, hint)
    if seeds.is_random(declaration) and not drawing and not is_blocked:
        raise Undeclared("`random` is declared, and torch draws no random numbers here", "remove `random`")


@dataclass(frozen=True)
class Seen:
    """What one result shows. `wrong` is what does not hold exactly, in words."""

    wrong: str | None = None
    index: list[int] | None = None
    hits: torch.Tensor | None = None
    """Which of the elements came out, 0 or 1 in float64."""
    chance: torch.Tensor | None = None
    """The chance of each; 0 or 1 where nothing is left to chance."""
    draws: torch.Tensor | None = None
    """Numbers in [0, 1) that must be independent and uniform."""


def drawn_of(declaration: Declaration) -> Random:
    """Returns what the op declares of its random numbers. Raises ValueError where it declares none."""
    told = declaration["random"]
    if told is None:
        raise ValueError(f"the op `{declaration['name']}` is not random")
    return told


def see(
    declaration: Declaration,
    case: Case,
    out: torch.Tensor,
    given: Mapping[str, torch.Tensor],
    kwargs: Mapping[str, object],
    tolerance: tuple[float, float],
    function: Callable[..., Mapping[str, object]] | None = None,
) -> Seen:
    """Returns what the result `out` shows of the declared kind, for the inputs `given`; of kind `judged`, what `function`
    of the op's own cases says."""
    told = drawn_of(declaration)
    parameters = {name: _parameter(declaration, value, given, kwargs) for name, value in told.items()}
    first = next(iter(given.values()), None)
    if told["kind"] == "dropout":
        return _dropout(out, _needed(first, told), float(parameters["p"]), tolerance)
    if told["kind"] == "bernoulli":
        chance = parameters.get("p")
        return _bernoulli(out, _needed(first, told) if chance is None else chance)
    if told["kind"] == "multinomial":
        replacement = bool(kwargs.get("replacement", False))
        generator = _dither(case, out)
        return _multinomial(out, _needed(first, told), replacement, generator)
    if told["kind"] == "uniform":
        return _uniform(
            out, parameters.get("low") or 0.0, 1.0 if parameters.get("high") is None else parameters["high"]
        )
    if told["kind"] == "judged":
        return _asked(function, given, kwargs, out) if function is not None else Seen()
    if told["kind"] == "normal":
        return _normal(out, parameters.get("mean") or 0.0, 1.0 if parameters.get("std") is None else parameters["std"])
    raise ValueError(f"no random kind is called `{told['kind']}`")


def _parameter(
    declaration: Declaration, value: object, given: Mapping[str, torch.Tensor], kwargs: Mapping[str, object]
) -> Any:
    """Returns a parameter: a number as it is, an input in float64, the value of a kwarg or of a scalar input."""
    if not isinstance(value, str):
        return value
    if value in given:
        return given[value].double()
    return {**declared.arguments(declaration, given), **kwargs}.get(value, value)


def _needed(first: torch.Tensor | None, told: Random) -> torch.Tensor:
    if first is None:
        raise ValueError(f"an op that is random as `{told['kind']}` has an input")
    return first.double()


def _first(bad: torch.Tensor) -> list[int]:
    from t2t_harness.judging.tolerance import unravel

    return unravel(int(bad.reshape(-1).int().argmax()), list(bad.shape))


def _refused(bad: torch.Tensor, out: torch.Tensor, words: str) -> Seen | None:
    """Returns what is seen where some elements are `bad`: how many, and the first with its value."""
    count = int(bad.sum())
    if count == 0:
        return None
    index = _first(bad)
    return Seen(f"{count} of {out.numel()} elements {words}, first {index}: got {float(out[tuple(index)]):.9g}", index)


def kept_value(x: torch.Tensor, p: float) -> torch.Tensor:
    """Returns what dropout makes of the elements that it keeps, in float64."""
    return x / (1 - p) if p < 1 else x.new_zeros(x.shape)


def _dropout(out: torch.Tensor, x: torch.Tensor, p: float, tolerance: tuple[float, float]) -> Seen:
    """Each element is zero, or the input over 1 - p; a NaN or an infinity that is dropped may be NaN or zero."""
    import torch

    scaled = kept_value(x, p)
    rounded, wide = scaled.to(out.dtype).double(), out.double()
    atol, rtol = tolerance
    is_close = (wide == rounded) | ((wide - scaled).abs() <= atol + rtol * scaled.abs()) | ((wide != wide) & (x != x))
    is_odd = ~x.isfinite()
    is_kept = is_close if p < 1 else torch.zeros_like(is_odd)
    is_dropped = wide == 0 if p > 0 else torch.zeros_like(is_odd)
    bad = ~(is_dropped | is_kept | (is_odd & (wide != wide)))
    known = ~is_odd & (rounded != 0)
    refused = _refused(bad, out, f"are neither zero nor the input over 1 - {p:g}")
    if refused is not None:
        return refused
    chance = torch.where(known, torch.full_like(wide, 1 - p), torch.zeros_like(wide))
    return Seen(hits=(known & (wide != 0)).double(), chance=chance)


def _bernoulli(out: torch.Tensor, chance: object) -> Seen:
    """Each element is 0 or 1, and certain where its chance is."""
    import torch

    wide = out.double()
    chances = torch.as_tensor(chance, dtype=torch.float64, device=out.device).expand(out.shape)
    refused = _refused((wide != 0) & (wide != 1), out, "are neither 0 nor 1")
    certain = ((chances == 0) | (chances == 1)) & (wide != chances)
    refused = refused or _refused(certain, out, "are not what is certain")
    return refused or Seen(hits=wide, chance=chances)


def _uniform(out: torch.Tensor, low: Any, high: Any) -> Seen:
    wide = out.double()
    draws = (wide - low) / (high - low)
    refused = _refused(~((draws >= 0) & (draws < 1)), out, "are outside of the range, whose end is not in it")
    return refused or Seen(draws=draws)


def _normal(out: torch.Tensor, mean: Any, std: Any) -> Seen:
    wide = (out.double() - mean) / std
    refused = _refused(~wide.isfinite(), out, "are not finite")
    return refused or Seen(draws=(1 + (wide / math.sqrt(2)).erf()) / 2)


def _multinomial(out: torch.Tensor, weights: torch.Tensor, replacement: bool, generator: torch.Generator) -> Seen:
    """Each row names categories of a weight, none twice without replacement.

    A draw is made uniform by its place in the distribution that it was drawn from, the heaviest category first: the weights
    before it, and by chance a part of its own. Without replacement what was drawn has no weight any more.
    """
    import torch

    rows, index = weights.reshape(-1, weights.shape[-1]), out.reshape(-1, out.shape[-1]).long()
    inside = (index >= 0) & (index < rows.shape[-1])
    refused = _refused(~inside.reshape(out.shape), out, "name no category")
    if refused is not None:
        return refused
    refused = _refused((rows.gather(-1, index) <= 0).reshape(out.shape), out, "name a category without weight")
    if refused is not None:
        return refused
    order = rows.argsort(dim=-1, descending=True, stable=True)
    left, index = rows.gather(-1, order), order.argsort(dim=-1).gather(-1, index)
    draws = torch.empty(index.shape, dtype=torch.float64, device=out.device)
    for place in range(index.shape[-1]):
        at = index[:, place : place + 1]
        own, total = left.gather(-1, at), left.sum(-1, keepdim=True)
        if bool((own <= 0).any()):
            bad = torch.zeros_like(index, dtype=torch.bool)
            bad[:, place : place + 1] = own <= 0
            refused = _refused(bad.reshape(out.shape), out, "name a category for the second time")
            return refused or Seen()
        part = torch.rand(at.shape, generator=generator, dtype=torch.float64, device=out.device)
        draws[:, place : place + 1] = (left.cumsum(-1).gather(-1, at) - own + part * own) / total
        if not replacement:
            left.scatter_(-1, at, 0.0)
    return Seen(draws=draws.reshape(out.shape).clamp(0, 1))


def _dither(case: Case, out: torch.Tensor) -> torch.Generator:
    # What is drawn by the result itself is the same for the same result, and independent of how that was drawn.
    text = hashlib.sha256(out.cpu().numpy().tobytes()).hexdigest()
    return declared_inputs.generator_of(case.name, "dither", text, device=out.device.type)


def own_function(request: OpRequest) -> Callable[..., Mapping[str, object]] | None:
    """Returns the function of the op's `cases.py` that says what must hold, of kind `judged`; else None. Raises what the
    file raises, and AttributeError where it has no such function."""
    told = request["op"].get("random")
    if told is None or told["kind"] != "judged":
        return None
    from t2t_harness.sources import loading

    file = str(request["op"]["cases"])
    # A judge may stay, and the file may not be what it was.
    sys.modules.pop(loading.module_name(file), None)
    with loading.without_variants([file]):
        found: Callable[..., Mapping[str, object]] = getattr(loading.load_file(request["root"], file), told["by"])
    return found


class Misjudged(Exception):
    """Raised where the op's own function that says what must hold fails; what it raised is the cause."""


def _asked(
    function: Callable[..., Mapping[str, object]],
    given: Mapping[str, torch.Tensor],
    kwargs: Mapping[str, object],
    out: torch.Tensor,
) -> Seen:
    """Returns what the op's own `function` says of a result. Raises Misjudged."""
    try:
        return _told(function(given, kwargs, out), out)
    except Exception as error:
        raise Misjudged from error


def _told(found: Mapping[str, Any], out: torch.Tensor) -> Seen:
    """Returns what a function of the user's own says: `right`, a boolean or one for each element, `hits` with the `chance`
    of each, or `draws`, numbers that must be independent and uniform in [0, 1)."""
    import torch

    right = torch.as_tensor(found.get("right", True), device=out.device).expand(out.shape)
    refused = _refused(~right, out, "are not what must hold")
    if refused is not None:
        return refused
    if found.get("draws") is not None:
        draws = found["draws"].double()
        refused = _refused(~((draws >= 0) & (draws <= 1)), draws, "of `draws` are outside of [0, 1]")
        return refused or Seen(draws=draws)
    if found.get("hits") is None:
        return Seen()
    hits = found["hits"].double()
    return Seen(hits=hits, chance=torch.as_tensor(found["chance"], device=hits.device).double().expand(hits.shape))


def backward_wrong(
    declaration: Declaration,
    out: torch.Tensor,
    gradient: torch.Tensor,
    upstream: torch.Tensor,
    given: Mapping[str, torch.Tensor],
    kwargs: Mapping[str, object],
    tolerance: tuple[float, float],
) -> str | None:
    """Returns what is wrong with the gradient of dropout, or None: it is the upstream one over 1 - p where the forward pass
    kept the element, and zero where it dropped it."""
    p = float(_parameter(declaration, drawn_of(declaration)["p"], given, kwargs))
    x = next(iter(given.values())).double()
    known = x.isfinite() & (kept_value(x, p).to(out.dtype) != 0)
    is_kept, scaled = (out.double() != 0) & known, kept_value(upstream.double(), p)
    wide = gradient.double()
    atol, rtol = tolerance
    close = ((wide - scaled).abs() <= atol + rtol * scaled.abs()) | (wide == scaled.to(gradient.dtype).double())
    right = (is_kept & close) | (known & ~is_kept & (wide == 0)) | (~known & (close | (wide == 0)))
    seen = _refused(~right, gradient, "of the gradient are not of the forward pass's mask")
    return None if seen is None else seen.wrong
