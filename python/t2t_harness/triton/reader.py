"""Rewrites a kernel's tree for Triton's interpreter, so that Python runs it as Triton's compiler reads it: what the new tree calls is in `blocks.py`.

It imports neither torch nor Triton.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import ModuleType
from typing import Any

from t2t_harness.faults import lacking
from t2t_harness.triton import blocks

HERE = "t2t_blocks"
"""Under which name a rewritten kernel finds `blocks.py`."""


def source_of(function: Any) -> tuple[list[str], int] | None:
    """Returns the lines of a function and the number of the first, or None. Asked when the kernel is made, as Triton does: its file may be gone later."""
    try:
        return inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None


def rewritten(function: Any, source: tuple[list[str], int] | None, extra: dict[str, Any]) -> Any:
    """Returns the Python function of a kernel, rewritten; `extra` are names of the interpreter's that its module may lack.

    Raises Refused where there is no source.
    """
    try:
        lines, first = source or ([], 0)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError as error:
        raise lacking.Refused(f"`{function.__name__}`, which has no source") from error
    definition = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)
    if definition is None:
        raise lacking.Refused(f"`{function.__name__}`, which has no source")
    enclosed = inspect.getclosurevars(function).nonlocals
    seen = {**function.__globals__, **enclosed}
    definition.decorator_list = []
    definition.returns = None
    for argument in [*definition.args.args, *definition.args.posonlyargs, *definition.args.kwonlyargs]:
        argument.annotation = None
    definition.args.defaults, definition.args.kw_defaults = [], [None] * len(definition.args.kwonlyargs)
    definition.body = [Reader(seen).visit(statement) for statement in definition.body]
    # What the function sees of the function around it becomes a parameter of one around the new one.
    around = ast.parse(f"def around({', '.join(enclosed)}):\n    return None").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [definition, ast.Return(ast.Name(definition.name, ast.Load()))]
    whole = ast.fix_missing_locations(ast.increment_lineno(ast.Module([around], []), first - 1))
    home = function.__globals__
    home.setdefault(HERE, blocks)
    for name, value in extra.items():
        home.setdefault(name, value)
    scope: dict[str, Any] = {}
    exec(compile(whole, function.__code__.co_filename, "exec", dont_inherit=True), home, scope)
    made = scope["around"](**enclosed)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    lacking.note_kernel(made.__code__)
    return made


class Reader(ast.NodeTransformer):
    """Rewrites the statements of a kernel whose globals and enclosing names are `seen`."""

    def __init__(self, seen: dict[str, Any]) -> None:
        self.seen = seen

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`x = 1` makes a scalar."""
        self.generic_visit(node)
        if len(node.targets) > 1:
            blocks.refused("an assignment to several names at once")
        node.value = call("assigned", node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """`x: tl.constexpr = 1` stays a constant; any other annotation means nothing."""
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        is_constant = "constexpr" in ast.unparse(node.annotation)
        value = call("constant" if is_constant else "assigned", self.visit(node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`x += 1` is `x = x + 1`."""
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        sum_ = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return self.visit(ast.copy_location(ast.Assign([node.target], ast.copy_location(sum_, node)), node))  # type: ignore[no-any-return]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """An assertion holds if it holds for all elements."""
        self.generic_visit(node)
        said = call("asserted", node.test, *([] if node.msg is None else [node.msg]))
        return ast.copy_location(ast.Expr(said), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """A number that a function returns is a scalar."""
        self.generic_visit(node)
        if node.value is not None:
            node.value = call("returned", node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Operands after the first are asked for only where constants do not decide."""
        self.generic_visit(node)
        name = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return ast.copy_location(call(name, *map(deferred, node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not` of a block is taken element by element."""
        self.generic_visit(node)
        return ast.copy_location(call("negated", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """An operand that may be a constant in its wrapper is taken out of it."""
        self.generic_visit(node)
        node.left, node.right = unwrapping(node.left), unwrapping(node.right)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """The compiler refuses `a < b < c`."""
        self.generic_visit(node)
        if len(node.ops) > 1:
            return ast.copy_location(call("refused", ast.Constant("a comparison of three values at once")), node)
        node.left, node.comparators[0] = unwrapping(node.left), unwrapping(node.comparators[0])
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        """A condition is a scalar."""
        self.generic_visit(node)
        node.test = call("truth", node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        """A condition is a scalar."""
        self.generic_visit(node)
        node.test = call("truth", node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Both arms of a condition that is no constant are scalars or blocks."""
        self.generic_visit(node)
        return ast.copy_location(call("chosen", node.test, deferred(node.body), deferred(node.orelse)), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A function is looked up as the compiler does."""
        self.generic_visit(node)
        node.func = call("called", node.func)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A constant of the module is its value."""
        return self.plain(node, self.seen.get(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A constant of another module is its value, and the `value` of a constant is itself."""
        found = self.resolve(node)
        if found is not None:
            return self.plain(node, found)
        self.generic_visit(node)
        if node.attr == "value" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(call("value_of", node.value), node)
        return node

    def resolve(self, node: ast.expr) -> Any:
        """Returns what a dotted name of modules means, or None."""
        if isinstance(node, ast.Name):
            found = self.seen.get(node.id)
            return found if isinstance(found, ModuleType) else None
        if not isinstance(node, ast.Attribute):
            return None
        home = self.resolve(node.value)
        return getattr(home, node.attr, None) if isinstance(home, ModuleType) else None

    def plain(self, node: Any, found: Any) -> ast.AST:
        """Returns the tree for a constant's value where `found` is one in its wrapper."""
        if type(found) is blocks.core().constexpr and isinstance(node.ctx, ast.Load):
            return ast.copy_location(call("constant", node), node)
        return node  # type: ignore[no-any-return]


def call(name: str, *arguments: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    """Returns the tree of a call of this module's function `name`."""
    function = ast.Attribute(ast.Name(HERE, ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), keywords or [])


def deferred(value: ast.expr) -> ast.expr:
    """Returns the tree of a function that says `value` when it is asked."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, value)


def unwrapping(operand: ast.expr) -> ast.expr:
    """Returns the tree of `operand` taken out of a constant's wrapper, where it may be in one."""
    is_ours = isinstance(operand, ast.Call) and ast.unparse(operand.func) == f"{HERE}.constant"
    may_be = isinstance(operand, (ast.Attribute, ast.Subscript, ast.Call)) and not is_ours
    return call("constant", operand) if may_be else operand
