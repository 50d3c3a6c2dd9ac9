"""The names of the arguments of torch's functions, where torch states them for certain.

A function of Python's is asked itself; a builtin's names are those of all its overloads in aten, those in its documentation,
and the other names that torch's parser takes for them. Nothing is said of a function that takes whatever it is given.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from t2t_harness.op import declaration, docstring
from t2t_harness.sources.signatures import aten_name

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Signature, Signatures

OTHERWISE = {"dim": "axis", "keepdim": "keepdims", "other": "x2"}
"""The name of an argument → that by which NumPy has it, which torch's parser takes as well."""

COMMON = (
    *("input", "self", "x", "a", "x1"),
    *("out", "dtype", "layout", "device", "pin_memory", "requires_grad", "names", "memory_format", "generator"),
)
"""What builtins may take though no overload in aten names it so: the first tensor by another name, and where and how results
are made."""


def signatures(names: Iterable[str]) -> Signatures:
    """Returns `common`, names that any function may take, and `functions`: `{"parameters": [...], "text": "(input,
    dim=None)"}` by dotted name, for those of `names` of which all other parameters are known."""
    return {"common": list(COMMON), "functions": dict(_known(names))}


def _known(names: Iterable[str]) -> Iterator[tuple[str, Signature]]:
    schemas = _schemas()
    for name in names:
        try:
            function = declaration.resolve(name)
        except LookupError:
            continue
        text = _text(name, function, schemas)
        found = _of_python(function) if inspect.isfunction(function) else _of_aten(name, schemas, text)
        if found:
            yield name, {"parameters": sorted(found - set(COMMON)), "text": text}


def _of_python(function: Callable[..., object]) -> set[str] | None:
    """Returns the parameters of a function of Python's, or None where it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in parameters):
        return None
    return {one.name for one in parameters}


def _of_aten(name: str, schemas: dict[str, list[Any]], text: str) -> set[str] | None:
    """Returns the parameters of all overloads of a builtin, or None where aten has none under that name."""
    found = {argument.name for schema in schemas.get(aten_name(name), []) for argument in schema.arguments}
    if not found or name.startswith("torch.ops."):
        return found or None
    found |= {other for own, other in OTHERWISE.items() if own in found}
    return found | set(re.findall(r"[A-Za-z_]\w*", text.partition("->")[0]))


def _schemas() -> dict[str, list[object]]:
    """Returns the overloads of aten by name."""
    import torch

    found: dict[str, list[object]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten":
            found.setdefault(name, []).append(schema)
    return found


def _text(name: str, function: Callable[..., Any], schemas: dict[str, list[Any]]) -> str:
    """Returns the signature for people: torch's documentation of it, else the first overload's names."""
    documented = docstring.signature(function)
    if documented is not None and not documented.startswith("(*"):
        return " ".join(documented.split())
    first = schemas.get(aten_name(name), [None])[0]
    return "" if first is None else f"({', '.join(argument.name for argument in first.arguments)})"
