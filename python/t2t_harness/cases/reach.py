"""Which kernels a wrapper launches at the sizes that are measured, and small cases that launch them too.

On the interpreter a check runs small cases, and a wrapper may choose another kernel, or other constants, for large ones. A rehearsal calls the wrapper at
a measured size with launches noted and not run; lengths are then searched for at which it launches the same. What no small case reaches is named. It knows no
values. torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, capped, cases, probing, programs
from t2t_harness.faults import failure

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, Fallback, Missed, Reached
    from t2t_harness.boundary.documents import Reach as ReachFacts

Path = tuple[str, str]
"""A kernel's name, and its constexpr arguments but for those of an autotuner's configuration, as JSON with sorted keys."""

Launched = Callable[[cases.Case], Sequence[Path]]
"""Returns the launches of the wrapper in a case. Raises what the wrapper raises."""

MOST_CASES = 6
"""Most cases that are added to reach what measured sizes launch."""

PATIENCE_S = 20
"""How long all rehearsals of a check may take."""


class ComputedByTorch(Exception):
    """Torch computes for the wrapper."""

    def __init__(self, operations: Sequence[str]) -> None:
        super().__init__(", ".join(f"aten.{name}" for name in operations))


@dataclass
class Reach:
    """What was found out: cases to add, and what is launched at measured sizes and in no case."""

    cases: list[Reached] = field(default_factory=list)
    """`size`, whose kernels it launches, and `binding`."""
    missed: list[Missed] = field(default_factory=list)
    """`size`, `kernel` and `constants` (null where nothing could be told), and `reason`."""
    fallbacks: list[Fallback] = field(default_factory=list)
    """`size`, and what torch `computed` for the wrapper there, in words."""

    def facts(self) -> ReachFacts:
        """Returns it as JSON."""
        return {"cases": self.cases, "missed": self.missed, "fallbacks": self.fallbacks}


def explored(declaration: Declaration, reached: set[Path], launched: Launched, limit: int) -> Reach:
    """Returns the cases that launch what the measured sizes launch and no case in `reached` did, inputs of at most `limit` elements, and what none does.

    `measured` of the declaration names the sizes. Fixed dims keep their lengths, or have those of the check's sizes where that launches the same.
    """
    found, known = Reach(), set(reached)
    dtype = declaration["dtypes"][0]
    sizes = {size: binding for size, binding in measured(declaration).items() if binding}
    # The longest first: what it launches may turn its loops more often than a shorter one would.
    for size, binding in sorted(sizes.items(), key=lambda one: -math.prod(one[1].values())):
        case = cases.Case(f"reach/{size}/{dtype}", "edge", dtype, dict(binding))
        try:
            wanted = [path for path in dict.fromkeys(launched(case)) if path not in known]
        except ComputedByTorch as error:
            found.fallbacks.append({"size": size, "computed": str(error)})
            continue
        except Exception as error:
            found.missed.append(missed(size, None, f"cannot be told: {why(error)}"[:300]))
            continue
        for path in wanted:
            if path in known:
                continue
            reasons = explore_path(declaration, case, path, launched, limit, found)
            if reasons is not None:
                found.missed.append(missed(size, path, reasons))
            known.add(path)
    return found


def measured(declaration: Declaration) -> Mapping[str, Mapping[str, int]]:
    """Returns the sizes that devices measure, where the lane runs smaller ones."""
    return declaration.get("measured") or {}


def has_more(declaration: Declaration) -> bool:
    """Tells whether a measured size differs from all checked sizes, which have run already."""
    checked = [*declaration["check_sizes"].values()]
    return any(binding and binding not in checked for binding in measured(declaration).values())


def cases_of(declaration: Declaration, told: Sequence[Reached], limit: int) -> list[cases.Case]:
    """Returns the cases that a candidate told of. What is no case with lengths for the op's dims, and inputs of at most `limit` elements, is passed over."""
    found: list[cases.Case] = []
    dtype, dims = declaration["dtypes"][0], bindings.own_lengths(declaration)
    for one in told[: MOST_CASES + capped.MOST + programs.MOST]:
        binding = one.get("binding") if isinstance(one, dict) else None
        if not isinstance(binding, Mapping) or set(binding) != set(dims):
            continue
        word = one.get("size")
        is_wide = word in (capped.WORD, programs.WORD)
        if not is_wide and word not in measured(declaration):
            continue
        lengths = {dim: binding[dim] for dim in dims}
        if not all(type(length) is int and length >= 0 for length in lengths.values()):
            continue
        named = ",".join(f"{dim}={length}" for dim, length in lengths.items())
        if is_wide and probing.fits(declaration, lengths, capped.ELEMENTS):
            found += probing.budgeted([probing.probe(declaration, f"{word}[{named}]", lengths, values="ends")])
        elif bindings.is_possible(declaration, lengths) and bindings.largest(declaration, lengths) <= limit:
            found.append(cases.Case(f"reach/{one['size']}[{named}]/{dtype}", "edge", dtype, lengths))
    return found


def missed(size: str, path: Path | None, reason: str) -> Missed:
    """Returns the facts of what no case reaches."""
    kernel, constants = (None, None) if path is None else (path[0], json.loads(path[1]))
    return {"size": size, "kernel": kernel, "constants": constants, "reason": reason}


def why(error: Exception) -> str:
    """Returns in words why a rehearsal did not end."""
    return "it takes more memory than there is" if failure.class_of(error) == "memory" else failure.describe(error)


def explore_path(
    declaration: Declaration, case: cases.Case, path: Path, launched: Launched, limit: int, found: Reach
) -> str | None:
    """Adds small cases that launch `path`, as `case` does, to `found`; returns why there are none, or None."""

    def is_same(binding: Mapping[str, int]) -> bool:
        try:
            return path in launched(cases.at(case, binding))
        except Exception:
            return False

    small = shrunk(declaration, case.binding, is_same)
    count = bindings.largest(declaration, small)
    if count > limit:
        return f"its smallest case has an input of {count} elements, and at most {limit} are interpreted"
    for binding in [small, *beyond(declaration, small, path, case.binding, is_same, limit)]:
        if len(found.cases) >= MOST_CASES:
            return f"{MOST_CASES} cases were added for others"
        found.cases.append({"size": case.name.split("/")[1], "binding": dict(binding)})
    return None


def shrunk(
    declaration: Declaration, binding: Mapping[str, int], is_same: Callable[[Mapping[str, int]], bool]
) -> dict[str, int]:
    """Returns `binding` with each dim as short as it can be while `is_same`, but two long where it may be; the longest are tried last, since others may
    bound them."""
    small, own = dict(binding), bindings.own_lengths(declaration)
    for dim in sorted(own, key=lambda dim: small.get(dim, 0)):
        if dim not in small:
            continue
        if own[dim] is not None:
            fixed = {**small, dim: int(own[dim] or 1)}
            small = fixed if is_same(fixed) else small
            continue
        small[dim] = shortest(small, dim, is_same)
    return small


def shortest(binding: Mapping[str, int], dim: str, is_same: Callable[[Mapping[str, int]], bool]) -> int:
    """Returns the least length of `dim`, from 2 up to its own, for which the binding `is_same`, found by doubling and halving; its own where no shorter one
    is."""
    low, high, own = 1, 2, binding[dim]
    while high < own and not is_same({**binding, dim: high}):
        low, high = high, high * 2
    high = min(high, own)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_same({**binding, dim: middle}) else (middle, high)
    return high


def beyond(
    declaration: Declaration,
    small: Mapping[str, int],
    path: Path,
    full: Mapping[str, int],
    is_same: Callable[[Mapping[str, int]], bool],
    limit: int,
) -> list[dict[str, int]]:
    """Returns a binding in which the dim that `path` asks to be long goes more than twice beyond its largest constant, and is no multiple of it: a loop turns
    more than once. Nothing where that launches something else or is too large."""
    constants = [value for value in json.loads(path[1]).values() if isinstance(value, int)]
    block = max((value for value in constants if not isinstance(value, bool)), default=0)
    for dim in sorted(small, key=lambda dim: -small[dim]):
        length = min(2 * block + block // 2 + 1, full[dim])
        larger = {**small, dim: length}
        if max(small[dim], block) < length and bindings.largest(declaration, larger) <= limit and is_same(larger):
            return [larger]
    return []


def rehearsed(explore: Callable[[], Reach]) -> Reach:
    """Returns what `explore` finds in a fork: kernel code that is called there without its launches may keep what was never computed.

    A fork that ends otherwise, or takes too long, leaves one entry in `missed` that says so.
    """
    import torch

    receiver, sender = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(receiver)
            # A fork has none of the threads with which torch computes, and would wait for them for ever.
            torch.set_num_threads(1)
            told = json.dumps(explore().facts()).encode()
            with os.fdopen(sender, "wb") as pipe:
                pipe.write(told)
        finally:
            os._exit(0)
    os.close(sender)
    told = b""
    try:
        told = read_for(receiver, PATIENCE_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        # Its memory takes the kernel as long to free as a few cases take. Nobody needs to wait for that: what is left of it ends with this process.
        os.waitpid(process, os.WNOHANG)
        os.close(receiver)
    try:
        return Reach(**json.loads(told))
    except (ValueError, TypeError):
        return Reach(missed=[missed("every size", None, "cannot be told: the wrapper ended the process that asked it")])


def read_for(descriptor: int, seconds: float) -> bytes:
    """Returns all that comes until the end, or until nothing has come for so long."""
    told = b""
    while select.select([descriptor], [], [], seconds)[0]:
        part = os.read(descriptor, 1 << 16)
        if not part:
            return told
        told += part
    return b""
