"""The code of an op's reference, as it is read and never run. It knows no torch."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


def writes_nan(declaration: Declaration) -> bool:
    """Tells whether the function of the reference, or a method of its class, has a NaN in its own code: it says where there is no value."""
    reference, code = declaration.get("reference"), source(declaration)
    return reference is not None and code is not None and _writes_nan(code, reference["name"])


@functools.lru_cache(64)
def _writes_nan(code: bytes, of: str) -> bool:
    nodes = (node for function in functions(code, of, CALLED) for node in ast.walk(function))
    return any(
        "nan" in (getattr(node, "attr", None), getattr(node, "id", None), str(getattr(node, "value", "")).lower())
        for node in nodes
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


@dataclass(frozen=True)
class Scope:
    """A part of a file, and what an argument is called there."""

    node: ast.AST
    name: str

    def nodes(self) -> Iterator[ast.AST]:
        """Yields all that is in it."""
        return ast.walk(self.node)

    def is_named(self, node: ast.expr) -> bool:
        """Tells whether an expression of it is the argument, or what an instance keeps it as."""
        return self.name in (getattr(node, "id", None), getattr(node, "attr", None))


@functools.lru_cache(256)
def scopes(code: bytes, name: str) -> tuple[Scope, ...]:
    """Returns where the file has its argument `name`: everywhere under that name, and in the file's own functions that it is handed to as it is, which may call it otherwise."""
    module = tree(code)
    return () if module is None else _handed(module, [Scope(module, name)])


@functools.lru_cache(256)
def scopes_of_elements(code: bytes, name: str) -> tuple[Scope, ...]:
    """Returns where the file has the elements of its argument `name`, over which a function of it iterates."""
    module = tree(code)
    if module is None:
        return ()
    places = [(own, Scope(own, one.name)) for one in scopes(code, name) for own in _functions(one.node)]
    return _handed(module, [Scope(own, target) for own, one in places for target in _iterated(one)])


def _iterated(scope: Scope) -> Iterator[str]:
    """Yields what the elements of the argument are called where the scope iterates over it."""
    for loop in scope.nodes():
        if not isinstance(loop, ast.For | ast.comprehension):
            continue
        target, over = loop.target, loop.iter
        pairs = [(over, target)]
        if isinstance(over, ast.Call) and isinstance(target, ast.Tuple):
            # Of two that are walked through together each has its place; what counts them comes first.
            counted = {"enumerate": 1, "zip": 0}.get(str(getattr(over.func, "id", "")))
            pairs = [] if counted is None else list(zip(over.args, target.elts[counted:], strict=False))
        yield from (own.id for given, own in pairs if scope.is_named(given) and isinstance(own, ast.Name))


def _functions(node: ast.AST) -> list[ast.FunctionDef]:
    return [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef)]


def _handed(module: ast.Module, begun: Sequence[Scope]) -> tuple[Scope, ...]:
    """Returns the scopes, and those of the parameters that their arguments are handed to."""
    own = {one.name: one for one in _functions(module)}
    found = list(begun)
    # What is found is looked through as well.
    for scope in found:
        for call in (node for node in scope.nodes() if isinstance(node, ast.Call)):
            called = own.get(str(getattr(call.func, "attr", getattr(call.func, "id", ""))))
            if called is None:
                continue
            # A method has the instance as its first parameter.
            parameters = [one.arg for one in (*called.args.posonlyargs, *called.args.args)]
            given = zip(parameters[int(isinstance(call.func, ast.Attribute)) :], call.args, strict=False)
            handed = [*given, *((one.arg, one.value) for one in call.keywords if one.arg)]
            new = (Scope(called, name) for name, value in handed if scope.is_named(value))
            found += [one for one in dict.fromkeys(new) if one not in found]
    return tuple(found)
