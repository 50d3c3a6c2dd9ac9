"""What torch's functions take, as JSON on standard output: for each name of the JSON on standard input its parameters in order.

`[{"name": "torch.add", "declared": ["input", "other", "alpha"]}]` gives a list of lists of
`{"name", "default", "is_keyword_only", "schema"}`, or null where torch does not say; `schema` is a type of torch's schema language, or null.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import torch

TYPES = {
    "Tensor": "Tensor",
    "Optional[Tensor]": "Tensor?",
    "int": "int",
    "Optional[int]": "int?",
    "float": "float",
    "Optional[float]": "float?",
    "bool": "bool",
    "Optional[bool]": "bool?",
    "str": "str",
    "Optional[str]": "str?",
    "List[int]": "int[]",
}


def literal(value: object) -> str | None:
    """Returns `value` as Python writes it, or None where that is no literal."""
    text = repr(value)
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    return text


def of_python(function: Callable[..., Any]) -> list[dict[str, Any]] | None:
    """Returns the parameters of a function that is written in Python."""
    found = []
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return None
        written = one.annotation if isinstance(one.annotation, str) else getattr(one.annotation, "__name__", "")
        if not isinstance(one.annotation, str) and "Optional" in str(one.annotation) or "Union" in str(one.annotation):
            written = str(one.annotation)
        written = re.sub(r"(typing|torch|builtins)\.", "", written)
        if (parts := [part.strip() for part in written.split("|")])[-1] == "None":
            written = f"Optional[{parts[0]}]"
        default = None if one.default is one.empty else literal(one.default)
        found.append(
            {
                "name": one.name,
                "default": default,
                "is_keyword_only": one.kind is one.KEYWORD_ONLY,
                "schema": "ScalarType?" if one.name == "dtype" else TYPES.get(written),
            }
        )
    return found


def of_schemas(name: str, declared: list[str]) -> list[dict[str, Any]] | None:
    """Returns the parameters of the first overload of a builtin that has all that is declared, under the name `input` for `self`."""
    last = name.rpartition(".")[2]
    schemas = [
        one
        for one in torch._C._jit_get_all_schemas()
        if one.name.partition("::")[2] in (last, f"linalg_{last}", f"special_{last}")
    ]
    # Overloads that write to `out`, or take names of dims, serve other calls.
    for schema in schemas:
        if any(one.is_out or "Dimname" in str(one.real_type) for one in schema.arguments):
            continue
        renamed = {"self": "input" if "self" not in declared else "self"}
        found = []
        for one, text in zip(schema.arguments, parts_of(str(schema)), strict=True):
            default = literal(one.default_value) if one.has_default_value() else None
            kind = text.split("=")[0].rpartition(" ")[0].strip()
            found.append(
                {
                    "name": renamed.get(one.name, one.name),
                    "default": default,
                    "is_keyword_only": one.kwarg_only,
                    "schema": re.sub(r"\([a-z]!?\)", "", kind),
                }
            )
        if set(declared) <= {one["name"] for one in found}:
            return found
    return None


def parts_of(schema: str) -> list[str]:
    """Returns the arguments of a schema's text, without the star."""
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(inside):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(inside[start:place].strip())
            start = place + 1
    parts.append(inside[start:].strip())
    return [part for part in parts if part not in ("", "*")]


def signature(name: str, declared: list[str]) -> list[dict[str, Any]] | None:
    """Returns the parameters of torch's function `name`, or None where torch does not say."""
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    told = of_python(found) if inspect.isfunction(found) else of_schemas(name, declared)
    return told if told is not None and set(declared) <= {one["name"] for one in told} else None


if __name__ == "__main__":
    json.dump([signature(one["name"], one["declared"]) for one in json.load(sys.stdin)], sys.stdout)
