"""What the code of a reference compares its arguments with: each such value is decided on there, and is another one that the author of the op means.

Code is read and never run. It knows no torch.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import reference_code
from t2t_harness.cases.reference_code import Scope

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

MOST = 6
"""So many values of an argument are taken beside those of other arguments."""

SOME = (1.5, 2)
"""Numbers for an argument that is none. A reference, or a kernel, that wants something else refuses them."""

FEW = (1, 4, 0)
"""Values of an argument that is compared with what is not written down, such as a length: those of few cases are below them all. What asks whether there is a value takes zero for none."""

REDUCTIONS = ("none", "mean", "sum")
"""Words that say what becomes of the terms of a loss. Where a reference asks for two of them, the third is among its values."""

LENGTHS = ...
"""What stands for that among the constants."""

ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
"""Comparisons that decide on either side of a number."""


def compared(declaration: Declaration, name: str, value: object) -> list[object]:
    """Returns the values that the reference of the op compares its argument `name` with, words for a word and numbers for a number, but for `value`; of an order the next whole numbers, too, and where it is compared with what is no constant, such as a length or an input, `FEW`; before these the values of other arguments that it is compared with, and the whole ones beside them. For none they are words, numbers and `FEW`, or those of `SOME` where it is compared with neither. For a number that may be none they are zero, too, and for a list of words other lists. Nothing for a function of torch's, or where the file cannot be read."""
    source = reference_code.source(declaration)
    if source is None:
        return []
    if isinstance(value, list):
        return _listed(source, name, value)
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        return []
    kinds: tuple[type, ...] = (str,) if isinstance(value, str) else (int, float)
    if value is None:
        kinds = (str, int, float)
    met = partners(declaration, name, value)
    found: list[object] = [*met]
    if value and isinstance(value, int | float) and may_be_none(declaration, name):
        # Code that asks whether there is a value takes zero for none.
        found.append(type(value)(0))
    for one in constants(source, name):
        if one is LENGTHS and (value is None or type(value) is int):
            found += [few for few in FEW if few != value and few not in found]
        elif isinstance(one, kinds) and not isinstance(one, bool) and one != value and one not in found:
            found.append(one)
    words = {value, *found}
    if len(words.intersection(REDUCTIONS)) > 1:
        # The last of them is what is left where a reference compares with the others.
        found += [word for word in REDUCTIONS if word not in words]
    if found or value is not None or name in NO_NUMBERS or is_tensor(source, name):
        return found[: MOST + len(met)]
    return [*SOME]


def _listed(source: bytes, name: str, value: Sequence[object]) -> list[object]:
    """Returns other lists of words than `value`: in the other order, and with each word at the first place that the reference compares one with and that is not there."""
    if not value or any(not isinstance(one, str) for one in value):
        return []
    known = [one for one in constants(source, name, of_elements=True) if isinstance(one, str)]
    others = [one for one in dict.fromkeys(known) if one not in value]
    turned = [[*value[::-1]]] if len({*value}) > 1 else []
    return [*turned, *([one, *value[1:]] for one in others[:MOST])]


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
    asked = [
        (scope, node)
        for scope, node in _comparisons(source, name)
        if not any(isinstance(one, ORDERED) for one in node.ops)
    ]
    return tuple(value for scope, node in asked for value in _of_comparison(node, scope))


def may_be_none(declaration: Declaration, name: str) -> bool:
    """Tells whether the code of the op's reference asks whether its argument `name`, or an attribute of that name, is None. False for a function of torch's, or where the file cannot be read."""
    source = reference_code.source(declaration)
    return source is not None and any(
        isinstance(one, ast.Constant) and one.value is None
        for _, node in _comparisons(source, name)
        for one in (node.left, *node.comparators)
    )


def comparisons(declaration: Declaration, name: str) -> list[ast.Compare]:
    """Returns the comparisons of the op's argument `name` in the code of its reference. Nothing for a function of torch's, or where the file cannot be read."""
    source = reference_code.source(declaration)
    return [] if source is None else [node for _, node in _comparisons(source, name)]


@functools.lru_cache(64)
def _comparisons(source: bytes, name: str) -> tuple[tuple[Scope, ast.Compare], ...]:
    """Returns the comparisons of the source in which its argument `name`, or an attribute of that name, stands by itself, with where they are."""
    nodes = ((scope, node) for scope in reference_code.scopes(source, name) for node in scope.nodes())
    return tuple(
        (scope, node)
        for scope, node in nodes
        if isinstance(node, ast.Compare) and any(scope.is_named(side) for side in (node.left, *node.comparators))
    )


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


DIVIDING = ("div", "floor_divide", "remainder", "fmod", "divmod", "true_divide", "mod")
"""Functions that divide by their second argument, by the last part of their names."""

DIVISORS = 3
"""So many divisors of a reference are looked at."""


def divisors(declaration: Declaration) -> list[int]:
    """Returns the whole numbers above one by which the code of the op's reference divides something, or takes what is left; of a function of torch's none."""
    source = reference_code.source(declaration)
    return [] if source is None else list(_divisors(source))[:DIVISORS]


@functools.lru_cache(64)
def _divisors(source: bytes) -> tuple[int, ...]:
    found: list[ast.AST] = []
    tree = reference_code.tree(source)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv | ast.Div):
            found.append(node.right)
        elif isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found += node.args[-1:] if str(name).removesuffix("_") in DIVIDING else []
    values = (one.value for one in found if isinstance(one, ast.Constant))
    return tuple(dict.fromkeys(value for value in values if type(value) is int and value > 1))


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
def constants(source: bytes, name: str, *, of_elements: bool = False) -> tuple[object, ...]:
    """Returns the constants of the source with which its argument `name`, or the elements of that, are compared, or by which a table is asked with it, in order."""
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
    scopes = reference_code.scopes_of_elements if of_elements else reference_code.scopes
    found: list[object] = []
    for scope in scopes(source, name):
        for node in scope.nodes():
            if isinstance(node, ast.Compare):
                found += _of_comparison(node, scope)
            elif isinstance(node, ast.Subscript) and scope.is_named(node.slice):
                found += _keys(node.value, tables)
            elif isinstance(node, ast.Call) and node.args and scope.is_named(node.args[0]):
                # A table may be asked by its method, with a default.
                asked = node.func if isinstance(node.func, ast.Attribute) and node.func.attr == "get" else None
                found += _keys(None if asked is None else asked.value, tables)
            elif isinstance(node, ast.Match) and scope.is_named(node.subject):
                parts = [part for case in node.cases for part in ast.walk(case.pattern)]
                found += [one for part in parts if isinstance(part, ast.MatchValue) for one in _literal(part.value)]
    return tuple(found)


@functools.lru_cache(64)
def _partners(source: bytes, name: str) -> tuple[str, ...]:
    """Returns what else stands by itself where the argument `name` is compared."""
    sides = [(scope, one) for scope, node in _comparisons(source, name) for one in (node.left, *node.comparators)]
    others = [one.id for scope, one in sides if isinstance(one, ast.Name) and not scope.is_named(one)]
    return tuple(dict.fromkeys(others))


def is_met(declaration: Declaration, name: str) -> bool:
    """Tells whether the reference of the op compares its argument `name` with what is not written down, as an input."""
    source = reference_code.source(declaration)
    return source is not None and LENGTHS in constants(source, name)


def is_asked_for_zero(declaration: Declaration, name: str) -> bool:
    """Tells whether the reference of the op compares its argument `name` with zero."""
    source = reference_code.source(declaration)
    return source is not None and any(type(one) in (int, float) and one == 0 for one in constants(source, name))


def _of_comparison(node: ast.Compare, scope: Scope) -> Iterator[object]:
    """Yields the constants of one comparison in which the argument of the scope stands by itself, or as an attribute of an instance."""
    sides = [node.left, *node.comparators]
    if not any(scope.is_named(side) for side in sides):
        return
    is_ordered = any(isinstance(one, ORDERED) for one in node.ops)
    decides = is_ordered or any(isinstance(one, ast.Eq | ast.NotEq) for one in node.ops)
    if decides and any(not scope.is_named(side) and not _literal(side) for side in sides):
        yield LENGTHS
    for side in sides:
        parts = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        for value in (one for part in parts for one in _literal(part)):
            if is_ordered and type(value) is int:
                yield from (value - 1, value, value + 1)
            else:
                yield value


def _keys(node: ast.expr | None, tables: Mapping[str, ast.Dict]) -> list[object]:
    """Returns the constant keys of a table that is written there, or is one of those with a name."""
    table = tables.get(node.id) if isinstance(node, ast.Name) else node
    keys = table.keys if isinstance(table, ast.Dict) else []
    return [one for key in keys if key for one in _literal(key)]


def _literal(node: ast.expr) -> list[object]:
    """Returns the value of a literal, in a list, and nothing for another expression."""
    try:
        return [ast.literal_eval(node)]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []
