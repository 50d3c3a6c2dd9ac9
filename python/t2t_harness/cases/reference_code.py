"""The code of an op's reference, as it is read and never run. It knows no torch."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

CALLED = ("forward", "__call__")
"""Methods by which an instance is called."""

MADE = ("__init__",)
"""Methods by which one is made."""


def source(declaration: Declaration) -> bytes | None:
    """Returns the file with the reference of the op; None for a function of torch's, or where it cannot be read."""
    reference = declaration.get("reference")
    if not reference:
        return None
    try:
        return Path(reference["root"], reference["file"]).read_bytes()
    except OSError:
        return None


def names_called(declaration: Declaration) -> frozenset[str]:
    """Returns the last parts of the names of all that is called in the file with the op's reference; nothing for a function of torch's, or where it cannot be read."""
    code = source(declaration)
    return frozenset() if code is None else _names_called(code)


@functools.lru_cache(64)
def _names_called(code: bytes) -> frozenset[str]:
    module = tree(code)
    called = [] if module is None else [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    return frozenset(
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in called
        if isinstance(one, ast.Attribute | ast.Name)
    )


@functools.lru_cache(64)
def tree(code: bytes) -> ast.Module | None:
    """Returns the syntax tree of a file, which nobody changes; None of one that does not parse."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return None


def called(code: bytes, of: str) -> ast.FunctionDef | None:
    """Returns the function `of` of the file, or the method by which an instance of the class `of` is called; None where there is none, or more than one."""
    found = functions(code, of, CALLED)
    return found[0] if len(found) == 1 else None


def functions(code: bytes, of: str, methods: Sequence[str]) -> list[ast.FunctionDef]:
    """Returns the function `of` of the file, or those `methods` of the class `of`."""
    module = tree(code)
    body = [] if module is None else module.body
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == of]
    for owner in (node for node in body if isinstance(node, ast.ClassDef) and node.name == of):
        found += [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name in methods]
    return found
