"""What the code of a reference compares its arguments with: each such value is decided on there, and is another one that the author of the op means.

Code is read and never run. It knows no torch.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import reference_code

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

MOST = 6
"""So many values of an argument are taken beside those of other arguments."""

SOME = 1.5
"""A number for an argument that is none. A reference that wants something else refuses it."""

FEW = (1, 4, 0)
"""Values of an argument that is compared with what is not written down, such as a length: those of few cases are below them all. What asks whether there is a value takes zero for none."""

LENGTHS = ...
"""What stands for that among the constants."""

ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
"""Comparisons that decide on either side of a number."""


def compared(declaration: Declaration, name: str, value: object) -> list[object]:
    """Returns the values that the reference of the op compares its argument `name` with, words for a word and numbers for a number, but for `value`; of an order the next whole numbers, too, and where it is compared with what is no constant, such as a length or an input, `FEW`; before these the values of other arguments that it is compared with, and the whole ones beside them. For none they are words, numbers and `FEW`, or `SOME` where it is compared with neither. Nothing for a function of torch's, or where the file cannot be read."""
    source = reference_code.source(declaration)
    if source is None or isinstance(value, bool) or not isinstance(value, str | int | float | None):
        return []
    kinds: tuple[type, ...] = (str,) if isinstance(value, str) else (int, float)
    if value is None:
        kinds = (str, int, float)
    met = partners(declaration, name, value)
    found: list[object] = [*met]
    for one in _constants(source, name):
        if one is LENGTHS and (value is None or type(value) is int):
            found += [few for few in FEW if few != value and few not in found]
        elif isinstance(one, kinds) and not isinstance(one, bool) and one != value and one not in found:
            found.append(one)
    return (
        found[: MOST + len(met)]
        if found or value is not None or name in NO_NUMBERS or is_tensor(source, name)
        else [SOME]
    )


def partners(declaration: Declaration, name: str, value: object) -> list[object]:
    """Returns the values, but for `value`, that other arguments of its type have which the reference of the op compares its argument `name` with, and of whole ones those beside them: below, another condition may fail that holds at both, as of every tenth step. Nothing for a function of torch's, or where the file cannot be read."""
    source, own = reference_code.source(declaration), declaration["kwargs"]
    if source is None or type(value) not in (int, float):
        return []
    alike = [own[other] for other in _partners(source, name) if type(own.get(other)) is type(value)]
    below = [one - 1 for one in alike if type(one) is int and one > 0]
    above = [one + 1 for one in alike if type(one) is int]
    return [one for one in dict.fromkeys((*alike, *below, *above)) if one != value]


def branches(declaration: Declaration, name: str) -> tuple[object, ...]:
    """Returns the constants that the reference of the op asks its argument `name` to be equal to, or to be among: it computes something else for each. Nothing for a function of torch's, or where the file cannot be read."""
    source = reference_code.source(declaration)
    return () if source is None else _branches(source, name)


@functools.lru_cache(64)
def _branches(source: bytes, name: str) -> tuple[object, ...]:
    tree = reference_code.tree(source)
    if tree is None:
        return ()
    asked = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and not any(isinstance(one, ORDERED) for one in node.ops)
    ]
    return tuple(value for node in asked for value in _of_comparison(node, name))


def may_be_none(declaration: Declaration, name: str) -> bool:
    """Tells whether the code of the op's reference asks whether its argument `name`, or an attribute of that name, is None. False for a function of torch's, or where the file cannot be read."""
    source = reference_code.source(declaration)
    return source is not None and name in _asked_for_none(source)


@functools.lru_cache(64)
def _asked_for_none(source: bytes) -> frozenset[str]:
    tree = reference_code.tree(source)
    asked = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    found = set()
    for node in asked:
        sides = [node.left, *node.comparators]
        if any(isinstance(one, ast.Constant) and one.value is None for one in sides):
            found |= {one.attr for one in sides if isinstance(one, ast.Attribute)}
            found |= {one.id for one in sides if isinstance(one, ast.Name)}
    return frozenset(found)


DECIDED = 4
"""So many numbers that a reference decides by are taken."""


ROUNDING = (
    "round",
    "round_",
    "rint",
    "rint_",
    "fake_quantize_per_tensor_affine",
    "fake_quantize_per_channel_affine",
    "quantize",
)
"""What rounds to whole numbers, by name."""


def rounds(declaration: Declaration) -> bool:
    """Tells whether the code of the op's reference rounds numbers, or the function of torch does."""
    if not declaration.get("reference"):
        return str(declaration.get("torch") or "").rpartition(".")[2] in ROUNDING
    return not reference_code.names_called(declaration).isdisjoint(ROUNDING)


def decided(declaration: Declaration) -> list[float]:
    """Returns the fractions that the code of the op's reference compares something with, or holds it between; of a function of torch's none."""
    source = reference_code.source(declaration)
    return [] if source is None else list(_decided(source))[:DECIDED]


@functools.lru_cache(64)
def _decided(source: bytes) -> tuple[float, ...]:
    tree = reference_code.tree(source)
    if tree is None:
        return ()
    compared = [part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)]
    numbers = [part.value for part in compared if isinstance(part, ast.Constant)]
    return tuple(dict.fromkeys(value for value in numbers if isinstance(value, float)))


NO_NUMBERS = ("dtype", "device", "layout", "generator", "out", "mask", "attn_mask", "bias", "weight")
"""Arguments that are no numbers where they are not none."""


def is_ignored(declaration: Declaration, name: str) -> bool:
    """Tells whether the reference of the op takes an argument `name` and never reads it: it says something to kernels alone, as the length of the longest segment does, and at another value it would not be true. Not where the code cannot be read."""
    reference, source = declaration.get("reference"), reference_code.source(declaration)
    return source is not None and reference is not None and name in _ignored(source, reference["name"])


@functools.lru_cache(64)
def _ignored(source: bytes, of: str) -> frozenset[str]:
    """Returns the parameters that the function `of`, or the class's `forward`, never reads; none where it might by other ways."""
    function = reference_code.called(source, of)
    if function is None:
        return frozenset()
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    told = function.args
    return (
        frozenset()
        if read & {*ALL_NAMES}
        else frozenset(one.arg for one in (*told.posonlyargs, *told.args, *told.kwonlyargs) if one.arg not in read)
    )


ALL_NAMES = ("locals", "vars", "eval", "exec")
"""Functions that read what is not named."""


@functools.lru_cache(64)
def is_tensor(source: bytes, name: str) -> bool:
    """Tells whether a function of the source says of its argument `name` that it is a tensor, or none."""
    tree = reference_code.tree(source)
    if tree is None:
        return False
    said = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg) and node.arg == name]
    return any(one is not None and "Tensor" in ast.unparse(one) for one in said)


@functools.lru_cache(64)
def _constants(source: bytes, name: str) -> tuple[object, ...]:
    """Returns the constants of the source with which something that is called `name` is compared, or by which a table is asked with it, in order."""
    tree = reference_code.tree(source)
    if tree is None:
        return ()
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[object] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            found += _of_comparison(node, name)
        elif isinstance(node, ast.Subscript) and _is_named(node.slice, name):
            table = tables.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
            found += [one for key in table.keys if key for one in _literal(key)] if isinstance(table, ast.Dict) else []
        elif isinstance(node, ast.Match) and _is_named(node.subject, name):
            parts = [part for case in node.cases for part in ast.walk(case.pattern)]
            found += [one for part in parts if isinstance(part, ast.MatchValue) for one in _literal(part.value)]
    return tuple(found)


@functools.lru_cache(64)
def _partners(source: bytes, name: str) -> tuple[str, ...]:
    """Returns what else stands by itself where something that is called `name` is compared."""
    tree = reference_code.tree(source)
    nodes = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    sides = [[node.left, *node.comparators] for node in nodes]
    met = [one for several in sides if any(_is_named(side, name) for side in several) for one in several]
    return tuple(dict.fromkeys(one.id for one in met if isinstance(one, ast.Name) and one.id != name))


def is_met(declaration: Declaration, name: str) -> bool:
    """Tells whether the reference of the op compares its argument `name` with what is not written down, as an input."""
    source = reference_code.source(declaration)
    return source is not None and LENGTHS in _constants(source, name)


def _of_comparison(node: ast.Compare, name: str) -> Iterator[object]:
    """Yields the constants of one comparison in which `name` stands by itself, or as an attribute of an instance."""
    sides = [node.left, *node.comparators]
    if not any(_is_named(side, name) for side in sides):
        return
    is_ordered = any(isinstance(one, ORDERED) for one in node.ops)
    decides = is_ordered or any(isinstance(one, ast.Eq | ast.NotEq) for one in node.ops)
    if decides and any(not _is_named(side, name) and not _literal(side) for side in sides):
        yield LENGTHS
    for side in sides:
        parts = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        for value in (one for part in parts for one in _literal(part)):
            if is_ordered and type(value) is int:
                yield from (value - 1, value, value + 1)
            else:
                yield value


def _literal(node: ast.expr) -> list[object]:
    """Returns the value of a literal, in a list, and nothing for another expression."""
    try:
        return [ast.literal_eval(node)]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []


def _is_named(node: ast.expr, name: str) -> bool:
    """Tells whether an expression is the argument `name`, or what an instance keeps it as."""
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
