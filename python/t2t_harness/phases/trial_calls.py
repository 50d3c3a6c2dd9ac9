"""Calls of an op on small tensors with values, which tell whether it takes them, and which of them it changes.

It does not know which calls are likely.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from t2t_harness.op import declaration as declared
from t2t_harness.op import operation, results
from t2t_harness.phases.likely import Call, Tried

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, Json, Length

LENGTHS = {"M": 8, "N": 16, "K": 12, "B": 2, "H": 4, "S": 24, "C": 6, "W": 20, "V": 40}
"""How long dims are in a trial. No two are alike."""

LAST = 128
"""How long the last dim of the first input is: a multiple of what groups and blocks of a row may have."""

OTHERS = tuple(length for length in range(10, 400, 2) if length not in {LAST, *LENGTHS.values()})
"""The lengths of other dims, in order."""

WORD = re.compile(r"[A-Za-z_]\w*")

MOST = 6000
"""So many calls are tried."""

FURTHER = 400
"""So many more are looked at after the first that is taken."""

SECONDS = 6.0
"""Calls are tried for so long."""

ELEMENTS = 1 << 20
"""A tensor of more elements is not made: what it would tell takes too long."""

FACTORS = (2, 4, 8, 16, 32, 64, 128)
"""What a dim may have to be a multiple of."""


@dataclass(frozen=True)
class Taken:
    """A call that the op takes."""

    call: Call
    changed: list[str]
    """The inputs that it changes."""
    is_spread: bool
    """Whether there are several tensors, and a result has more dims than each: one may be broadcast along what it has no dim for."""

    def is_better(self, other: Taken | None) -> bool:
        """Tells whether this call counts in the place of another that is likelier: one of results of fewer dims, or of tensors of as many dims with more lengths apart from each other."""
        if other is None or self.is_spread != other.is_spread:
            return other is None or other.is_spread
        return ranks(self.call) == ranks(other.call) and apart(self.call) > apart(other.call)


def first(op: Declaration, calls: Iterable[Call]) -> Taken | None:
    """Returns the first call that the op takes, or a better one that soon follows; None where there is none, within `MOST` calls and `SECONDS`. A dim of which the op takes no odd length becomes a multiple: `x.chunk(2, -1)`."""
    function, until, best, left = None, time.monotonic() + SECONDS, None, MOST
    for call in calls:
        if left == 0 or time.monotonic() > until:
            break
        left -= 1
        with contextlib.suppress(Exception):
            function = function or operation.ready(op, LENGTHS, "float32")
            taken = outcome(function, op, call, lengths_of(call))
            if best is None:
                left, until = min(left, FURTHER), min(until, time.monotonic() + SECONDS / 8)
            if taken.is_better(best) and (best is None or _holds(function, op, call)):
                best = taken
    if best is None or function is None:
        return None
    return replace(best, call=multiples(function, op, best.call))


def spare(op: Declaration, call: Call, names: Sequence[str]) -> list[str]:
    """Returns which of these inputs the op takes a call without; none where it does not take one without all of them."""
    function = operation.ready(op, LENGTHS, "float32")

    def is_taken(*absent: str) -> bool:
        left = {name: one for name, one in call.inputs.items() if name not in absent}
        return bool(left) and _is_taken(function, op, Call(left, call.kwargs), lengths_of(call))

    found = [name for name in names if is_taken(name)]
    return found if is_taken(*found) else []


def ranks(call: Call) -> list[tuple[str, int | list[Length]]]:
    """Returns how many dims the floats of a call have; of what holds places, what is not to change: its shape."""
    return [(name, one["shape"] if "dtype" in one else len(one["shape"])) for name, one in call.inputs.items()]


def apart(call: Call) -> int:
    """Returns how many lengths of a call's tensors may differ: `2*N` is none beside `N`."""
    return len({name for one in call.inputs.values() for length in one["shape"] for name in WORD.findall(str(length))})


def lengths_of(call: Call, odd: str | None = None, *, is_turned: bool = False) -> dict[str, int]:
    """Returns a length for each dim of a call; an odd one for `odd`. Turned, what was the shortest is the longest, but for the last dim of the first input."""
    texts = [*(str(length) for one in call.inputs.values() for length in one["shape"])]
    texts += [str(one["init"]) for one in call.inputs.values() if "init" in one]
    names = dict.fromkeys(name for text in texts for name in WORD.findall(text))
    spare = iter(OTHERS)
    lengths = {name: LENGTHS.get(name) or next(spare) for name in names}
    if is_turned:
        lengths = dict(
            zip(sorted(lengths, key=lengths.__getitem__), sorted(lengths.values(), reverse=True), strict=True)
        )
    shapes = [one["shape"] for one in call.inputs.values() if "dtype" not in one]
    if shapes and shapes[0] and shapes[0][-1] in lengths:
        lengths[str(shapes[0][-1])] = LAST
    if odd is not None:
        lengths[odd] = 15
    return {**LENGTHS, **lengths}


def multiples(function: operation.Function, op: Declaration, call: Call) -> Call:
    """Returns the call with each dim as a multiple of another where the op takes no odd one."""
    dims = dict.fromkeys(length for one in call.inputs.values() for length in one["shape"] if isinstance(length, str))
    for dim in (one for one in dims if one.isidentifier()):
        if _is_taken(function, op, call, lengths_of(call, dim)):
            continue
        for factor in FACTORS:
            other = _multiplied(call, dim, factor)
            if _is_taken(function, op, other, lengths_of(other, dim)):
                call = other
                break
    return call


def _holds(function: operation.Function, op: Declaration, call: Call) -> bool:
    """Tells whether the op takes a call whichever dim is longer: a loop over one reads as far in another, and takes any that is longer."""
    return _is_taken(function, op, call, lengths_of(call, is_turned=True))


def _is_taken(function: operation.Function, op: Declaration, call: Call, lengths: Mapping[str, int]) -> bool:
    try:
        outcome(function, op, call, lengths)
    except Exception:
        return False
    return True


def _multiplied(call: Call, dim: str, factor: int) -> Call:
    """Returns a call in which a dim is so many times as long."""
    word, times = re.compile(rf"\b{re.escape(dim)}\b"), f"{factor}*{dim}"

    def longer(value: Json) -> Json:
        if isinstance(value, list):
            return [longer(one) for one in value]
        if not isinstance(value, str) or word.search(value) is None:
            return value
        return times if value == dim else dim if value == f"{dim}//{factor}" else word.sub(f"({times})", value)

    def whole(one: Tried) -> Tried:
        found: Tried = {**one, "shape": cast("list[Length]", longer(cast("Json", one["shape"])))}
        if "init" in one:
            found["init"] = {kind: longer(value) for kind, value in one["init"].items()}
        return found

    kwargs = {name: longer(one) if one == dim else one for name, one in call.kwargs.items()}
    return Call({name: whole(one) for name, one in call.inputs.items()}, kwargs)


def outcome(function: operation.Function, op: Declaration, call: Call, lengths: Mapping[str, int]) -> Taken:
    """Returns what came of a call. Raises what the op raises, and ValueError where it returns no tensor and changes nothing."""
    import torch

    given = {name: made(one, lengths) for name, one in call.inputs.items()}
    before = {name: (one._version, one.clone()) for name, one in given.items()}
    trial = cast("Declaration", {**op, "inputs": [{"name": name} for name in given]})
    with warnings.catch_warnings(), torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="Implicit dimension")
        result = operation.call(function, trial, given, declared.bind_kwargs(call.kwargs, lengths))
    # What is written through `x.data` has a version of its own.
    changed = [
        name
        for name, one in given.items()
        if one._version != before[name][0] or not torch.equal(bytes_of(one), bytes_of(before[name][1]))
    ]
    returned = [one for one in results.listed(result) if isinstance(one, torch.Tensor)]
    if not changed and not returned:
        raise ValueError("it returns no tensor, and changes none")
    most = max((one.dim() for one in given.values()), default=0)
    return Taken(call, changed, len(given) > 1 and any(one.dim() > most for one in returned))


def bytes_of(one: torch.Tensor) -> torch.Tensor:
    """Returns what a tensor holds, a row of bytes: NaN is as it was where its bits are."""
    import torch

    return one.detach().reshape(-1).view(torch.uint8)


def made(one: Tried, lengths: Mapping[str, int]) -> torch.Tensor:
    """Returns a tensor with values such as ops.yaml declares: the same in each call."""
    import torch

    shape = declared.bind_shape(one["shape"], lengths)
    dtype, init = getattr(torch, one.get("dtype", "float32")), one.get("init") or {}
    if "offsets" in init:
        (total,) = declared.bind_shape([cast("Length", init["offsets"])], lengths)
        return torch.linspace(0, total, shape[0]).round().to(dtype)
    count = math.prod(shape)
    if count > ELEMENTS:
        raise ValueError(f"{count} elements are more than are tried")
    places = torch.arange(count, dtype=torch.int64) * 7 + 3
    if "mask" in init:
        return (places % 2 == 0).view(shape)
    for kind, bounds in init.items():
        low, high = (
            one if isinstance(one, int) else declared.bind_shape([one], lengths)[0]
            for one in cast("list[Length]", bounds)
        )
        spread = torch.arange(count) if kind == "unique" else places
        return (low + spread % max(high - low, 1)).view(shape).to(dtype)
    return ((places % 31).float() / 31 + 0.1).view(shape).to(dtype)
