"""Which arguments an op and a wrapper have, beside those that ops.yaml declares, and what torch has for them.

Wrappers are read and never imported. torch is imported only inside functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness.op.declaration import resolve
from t2t_harness.sources import signatures

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

DIMS = ("dim", "axis", "dims")
"""Arguments that name a dim."""

FIRST = ("self", "x", "A", "a")
"""What the first tensor is called where it is not `input`."""

UNSET = {
    "scale": 0.3,
    "softmax_scale": 0.3,
    "sm_scale": 0.3,
    "attn_scale": 0.3,
    "dtype": "torch.float16",
    "divisor_override": 3,
    "posinf": 2.5,
    "neginf": -2.5,
    "min": -1,
    "max": 1,
    "padding_idx": 1,
    "stride": 1,
    "align_corners": True,
    "ord": 3,
    "correction": 0,
    "eps": 1e-2,
    "side": "right",
}
"""A value for arguments that have none by default."""

NUMBERS = ("softmax_scale", "sm_scale", "attn_scale")
"""Arguments of references that are numbers where they are not none, whether or not that is written."""


def beside(request: VariantRequest, known: Mapping[str, object]) -> list[str]:
    """Returns the arguments that ops.yaml does not declare and both the wrapper and torch, as `known` has it, may be called with."""
    declaration = request["op"]
    taken = {*declaration["kwargs"], *(given["name"] for given in declaration["inputs"])}
    found = [one.name for one in of_wrapper(request) if one.has_default and one.name in known]
    return [name for name in found if name not in taken]


def of_op(declaration: Declaration) -> dict[str, Any]:
    """Returns the arguments of the op's torch function, or of its reference in Python, that have a plain default, or none and a place in `UNSET` or `DIMS`, with it.

    A dim that another overload of a builtin takes is among them, and with it `keepdim` and `correction`.
    """
    is_reference = declaration.get("reference") is not None
    found = {
        one.name: of_places(one)
        for one in parameters(declaration)
        # What a reference may mean by something else than none, a tensor or a number, is not known unless it says so.
        if one.has_default and (one.default is not None or not is_reference or one.is_number or one.name in NUMBERS)
    }
    for one in of_overloads(declaration):
        found.setdefault(one.name, of_places(one))
    return {name: value for name, value in found.items() if value is not None or name in (*UNSET, *DIMS)}


def of_places(parameter: signatures.Parameter) -> object:
    """Returns the default of a parameter, of one for several places that of each."""
    return parameter.each if parameter.default is None else parameter.default


OF_OVERLOADS = ("keepdim", "correction")
"""What other overloads of a builtin take beside a dim."""


def of_overloads(declaration: Declaration) -> list[signatures.Parameter]:
    """Returns the parameters for a dim, `keepdim` and `correction` of a builtin's overloads that take all that the op is called with."""
    name = str(declaration.get("torch") or "")
    meant = {given["name"] for given in declaration["inputs"]} | set(declaration["kwargs"])
    found: list[signatures.Parameter] = []
    try:
        is_builtin = not inspect.isfunction(resolve(name))
    except LookupError:
        return []
    for overload in signatures.overloads(name) if is_builtin else ():
        names = {one.name for one in overload}
        # The first tensor has other names than aten's in some namespaces.
        if (meant - {*FIRST} if "input" in names else meant) <= names:
            found += [one for one in overload if one.name in (*DIMS, *OF_OVERLOADS)]
    return found


def optional(declaration: Declaration) -> list[str]:
    """Returns the arguments of the op's torch function, or of its reference, that are no tensors and may be left out, as far as that tells."""
    found = {one.name for one in parameters(declaration) if one.has_default and not one.is_tensor}
    return sorted(found | {name for name in of_op(declaration) if name in DIMS})


def defaulted(request: VariantRequest) -> list[str]:
    """Returns the arguments of the op that may be left out: those of its torch function, or those of a reference that the wrapper has a default for, too, and of which that, or ops.yaml, has another value than the reference."""
    declaration = request["op"]
    found = {one.name: one.default for one in parameters(declaration) if one.has_default}
    if declaration.get("reference") is None:
        return [name for name in declaration["kwargs"] if name in found]
    own = {one.name: one.default for one in of_wrapper(request) if one.has_default}
    return [
        name
        for name, value in declaration["kwargs"].items()
        if name in found and name in own and (found[name] != value or own[name] != found[name])
    ]


def parameters(declaration: Declaration) -> list[signatures.Parameter]:
    """Returns the parameters of the op's torch function, or of its reference as far as the source tells."""
    reference = declaration.get("reference")
    if reference is not None:
        return in_file(Path(reference["root"], reference["file"]), reference["name"])
    name = declaration.get("torch")
    if not name:
        return []
    meant = {given["name"] for given in declaration["inputs"]} | set(declaration["kwargs"])
    try:
        return signatures.of_op(resolve(name), name, lambda one: one in meant)
    except LookupError:
        return []


def of_wrapper(request: VariantRequest) -> list[signatures.Parameter]:
    """Returns the parameters of the variant's wrapper, as its source says; none of an installed module's."""
    variant = request["variant"]
    if variant.get("module") or not variant.get("file"):
        return []
    return in_file(Path(request["root"]) / variant["file"], variant["entry"])


def in_file(path: Path, entry: str) -> list[signatures.Parameter]:
    """Returns the parameters of a function or class of a file, as its source says; none of what is not there."""
    try:
        found = signatures.wrappers(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return [one for wrapper in found if wrapper.entry == entry for one in wrapper.parameters]
