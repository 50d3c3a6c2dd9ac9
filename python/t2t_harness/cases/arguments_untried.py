"""Which arguments of an op a check tried at no other value than the declared one, and why.

It knows nothing of results. torch is imported only inside functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    arguments_away,
    arguments_compared,
    arguments_known,
    arguments_random,
    arguments_values,
    cases,
    seeds,
)
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CaseRow, VariantRequest

NO_ARGUMENTS = (
    *("out", "generator", "layout", "device", "names", "memory_format", "pin_memory", "requires_grad"),
    *("size_average", "reduce"),
)
"""What torch's functions take beside what they compute by, and what they take no more."""

UNKNOWN = "no other value is known to fit the inputs"
"""Why an argument was tried at no other value of which nothing else is said."""

TRIED = ("passed", "rejected")
"""Verdicts of cases that tell of an argument."""


def untried(request: VariantRequest, rows: Sequence[CaseRow], left_out: Sequence[str]) -> dict[str, str]:
    """Returns the arguments that no case of `rows`, which are those of the evidence, had at another value, with the reason in words; `left_out` are the names of the cases that the budget did not reach.

    Nothing where ops.yaml asks for no other arguments.
    """
    declaration = request["op"]
    if "kwargs" in cases.edges_off(declaration):
        return {}
    rank = max((len(given["shape"]) for given in tensors(declaration)), default=0)
    asked = {
        name
        for _, changed in (*arguments_away.of_request(request, rank), *arguments_away.beyond(request, 0))
        for name in {
            *arguments_away.changed_names(declaration, changed),
            *(declaration["kwargs"].keys() - changed.keys()),
        }
    }
    found: dict[str, str] = {}
    for name in arguments(request):
        own = [row for row in rows if names(str(row["name"]), name)]
        if not any(row["verdict"] in TRIED for row in own):
            found[name] = why(
                request, name, own, is_asked=name in asked, is_left=any(names(one, name) for one in left_out)
            )
    return found


def arguments(request: VariantRequest) -> Iterator[str]:
    """Yields the op's arguments: those of ops.yaml, then the others of torch's function, but for tensors and what changes no result."""
    declaration = request["op"]
    yield from declaration["kwargs"]
    yield from (one["name"] for one in declaration["inputs"] if "scalar" in one)
    taken = {*declaration["kwargs"], *(given["name"] for given in declaration["inputs"]), *NO_ARGUMENTS}
    for name in arguments_known.optional(declaration):
        if name not in taken and not name.startswith("_"):
            yield name


def names(case: str, argument: str) -> bool:
    """Tells whether the name of a case says that it has the argument at another value, or leaves it out."""
    _, _, label = case.partition("edge/kwarg[")
    return re.search(rf"(^|,|without-){re.escape(argument)}(=|,|\])", label) is not None


def why(request: VariantRequest, name: str, own: Sequence[CaseRow], *, is_asked: bool, is_left: bool) -> str:
    """Returns why an argument was tried at no other value, in words; `own` are the cases that have it at one and tell nothing of it."""
    declaration, variant = request["op"], request["variant"]
    reasons = [str(row["reason"]) for row in own if row["verdict"] == "dropped"]
    if any(one.startswith("the wrapper refuses it") for one in reasons):
        return "the wrapper refuses others"
    if any(one.startswith("not by the kernel") for one in reasons):
        return "torch computes at others"
    if own:
        whose = "the reference" if declaration.get("reference") else "torch"
        return f"{whose} refuses others, or has no measure for them" if reasons else "not judged"
    if is_left:
        return "left out by the interpreter's budget"
    written = variant.get("call")
    if written is not None and name not in str(written):
        return "`call` does not pass it on"
    if name not in declaration["kwargs"]:
        taken = {one.name for one in arguments_known.of_wrapper(request)}
        if written is not None or name not in taken:
            return "the wrapper does not take it" if written is None else "`call` does not pass it on"
    if is_asked:
        return "others came first"
    if seeds.is_random(declaration) and not arguments_random.is_tried(declaration, name):
        return "nothing is drawn by it"
    if name in arguments_values.LAUNCHING:
        return "it says how kernels are launched"
    if arguments_compared.is_ignored(declaration, name):
        return "the reference does not read it"
    if name in arguments_values.LEFT_ALONE:
        return "results at others cannot be compared"
    if name in arguments_values.OPEN:
        return "without it torch leaves an order open"
    if name in arguments_known.DIMS and arguments_away.has_compared_dim(declaration):
        return "`outputs` has results along another dim"
    return UNKNOWN


def told(found: Mapping[str, str]) -> str | None:
    """Returns it as a line for the log, or None where every argument was tried."""
    if not found:
        return None
    by_reason: dict[str, list[str]] = {}
    for name, reason in found.items():
        by_reason.setdefault(reason, []).append(name)
    parts = [f"{', '.join(listed)} ({reason})" for reason, listed in by_reason.items()]
    return f"arguments tried at no other value: {'; '.join(parts)}"
