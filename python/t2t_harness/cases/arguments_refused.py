"""Which values of an argument the reference of an op refuses: by a `raise` or an `assert` at its beginning that asks for this argument alone. A case with one of them tells nothing, and would take another's place.

Code is read and never run. It knows no torch.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import reference_code

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

ORDERED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
"""Comparison of numbers → what computes it."""


class Unknown(Exception):
    """What a test says depends on more than the argument."""


def refuses(declaration: Declaration, name: str, value: object) -> bool:
    """Tells whether the reference of the op refuses its argument `name` at `value`, whatever else it is given. Not of a function of torch's, nor where the code cannot be read or asks for more than this argument."""
    reference, code = declaration.get("reference"), reference_code.source(declaration)
    if not reference or code is None:
        return False
    return any(holds(test, name, value) is refused for test, refused in _asked(code, reference["name"], name))


@functools.lru_cache(64)
def _asked(code: bytes, of: str, name: str) -> tuple[tuple[ast.expr, bool], ...]:
    """Returns the tests of the function `of`, or of a class's constructor and call, that refuse an argument, each with the answer by which it does, as far as the argument `name` has no other value by then."""
    found = reference_code.functions(code, of, (*reference_code.MADE, *reference_code.CALLED))
    return tuple(test for function in found for test in _refusals(function.body, name))


def _refusals(body: list[ast.stmt], name: str) -> Iterator[tuple[ast.expr, bool]]:
    for statement in body:
        if isinstance(statement, ast.Assert):
            yield statement.test, False
        elif isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Raise):
            yield statement.test, True
        stores = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        # What comes after a return is not always asked.
        ends = any(isinstance(node, ast.Return) for node in ast.walk(statement))
        if ends or any(node.id == name and not isinstance(node.ctx, ast.Load) for node in stores):
            return


def holds(test: ast.expr, name: str, value: object) -> bool | None:
    """Tells whether a test holds where the argument `name` is `value`; None where it asks for more, or cannot be answered."""
    try:
        return bool(_value(test, name, value))
    except (Unknown, TypeError, RecursionError):
        return None


def _value(node: ast.expr, name: str, value: object) -> object:
    """Returns what an expression is. Raises Unknown for all but comparisons of the argument with literals, and what `and`, `or` and `not` make of those."""
    if isinstance(node, ast.Name) and node.id == name:
        return value
    if isinstance(node, ast.BoolOp):
        return _joined(node, name, value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, name, value)
    if isinstance(node, ast.Compare):
        sides = [_value(side, name, value) for side in (node.left, *node.comparators)]
        asked = zip(node.ops, sides, sides[1:], strict=False)
        return all(_compared(one, left, right) for one, left, right in asked)
    try:
        found: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError) as error:
        raise Unknown from error
    return found


def _compared(asked: ast.cmpop, left: object, right: object) -> bool:
    """Returns what one comparison comes to. Raises Unknown for what Python would refuse."""
    if isinstance(asked, ast.Is | ast.IsNot):
        return (left is right) is isinstance(asked, ast.Is)
    if isinstance(asked, ast.Eq | ast.NotEq):
        return (left == right) is isinstance(asked, ast.Eq)
    if isinstance(asked, ast.In | ast.NotIn) and isinstance(right, tuple | list | set):
        return (left in right) is isinstance(asked, ast.In)
    if type(asked) in ORDERED and isinstance(left, int | float) and isinstance(right, int | float):
        return ORDERED[type(asked)](left, right)
    raise Unknown


def _joined(node: ast.BoolOp, name: str, value: object) -> bool:
    """Returns what `and` or `or` comes to: one answer may settle it where others are unknown."""
    answers = [holds(one, name, value) for one in node.values]
    settles = isinstance(node.op, ast.Or)
    if settles in answers:
        return settles
    if None in answers:
        raise Unknown
    return not settles
