"""The integer literals of a kernel file and of the workspace's files that it imports: lengths at which its behaviour may change.

Files are read as bytes and parsed, never imported: whoever judges a kernel comes to the same list as the process that runs it. Nothing here imports torch.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import VariantRequest

Nodes = Sequence[ast.AST]
"""The nodes of one file's syntax tree."""

LEAST, MOST = 8, 1 << 20
"""Smaller integers and larger ones are no lengths that a case could have."""

FILES = 32
"""Most files that are read."""

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
"""How constants are put together, beside shifts and powers, whose results are bounded first."""


_latest: tuple[object, list[Nodes]] = (None, [])
"""The request whose files were read last, and what is in them: they are asked for several times in a check."""


def once(function: Callable[[Nodes], Iterator[int]]) -> Callable[[Nodes], tuple[int, ...]]:
    """Returns what gives all that `function` yields of a file's nodes, and finds it out once: each kind of probe asks for it."""
    known: dict[int, tuple[Nodes, tuple[int, ...]]] = {}

    @functools.wraps(function)
    def remembered(nodes: Nodes) -> tuple[int, ...]:
        found = known.get(id(nodes))
        if found is None or found[0] is not nodes:
            if len(known) >= FILES:
                known.clear()
            found = known[id(nodes)] = nodes, tuple(function(nodes))
        return found[1]

    return remembered


def of_files(read: Sequence[Nodes]) -> list[int]:
    """Returns the integers from `LEAST` to `MOST` in the nodes of files: those that something is compared with first, the larger ones before the smaller ones.

    An expression of integers counts as its value.
    """
    found = {value for nodes in read for value in integers(nodes)}
    first = thresholds(read)
    return [*sorted(first, reverse=True), *sorted(found - first, reverse=True)]


def thresholds(read: Sequence[Nodes]) -> set[int]:
    """Returns the integers from `LEAST` to `MOST` that something is compared with in the nodes of files."""
    return {value for nodes in read for value in compared(nodes)}


def read(request: VariantRequest) -> list[Nodes]:
    """Returns the nodes of the syntax trees of the file of the request's variant, and of the workspace's files that it imports; none of an installed module's, or of a file that cannot be read."""
    global _latest
    variant = request["variant"]
    if variant.get("module") or not variant.get("file"):
        return []
    asked, found = _latest
    if asked is not request:
        root = Path(request["root"])
        found = list(files_of(root, root / variant["file"]))
        _latest = (request, found)
    return list(found)


def files_of(root: Path, path: Path) -> Iterator[Nodes]:
    """Yields the nodes of the file and of those that it imports from the workspace, each once."""
    waiting, seen = [path], {path}
    while waiting and len(seen) <= FILES:
        one = waiting.pop()
        try:
            nodes = list(ast.walk(ast.parse(one.read_bytes())))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        yield nodes
        for further in imported(nodes, root, one):
            if further not in seen:
                seen.add(further)
                waiting.append(further)


def imported(nodes: Nodes, root: Path, path: Path) -> Iterator[Path]:
    """Yields the files of the workspace that the file `path` may import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from files([root, root / "src"], name.name)
        elif isinstance(node, ast.ImportFrom):
            homes = [path.parents[node.level - 1]] if 0 < node.level <= len(path.parents) else [root, root / "src"]
            base = node.module or ""
            yield from files(homes, base)
            for name in node.names:
                yield from files(homes, f"{base}.{name.name}".strip("."))


def files(homes: list[Path], name: str) -> Iterator[Path]:
    """Yields the files below `homes` that the module `name` may be."""
    if not name:
        return
    for home in homes:
        place = home.joinpath(*name.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                yield path
                return


@once
def integers(nodes: Nodes) -> Iterator[int]:
    """Yields the integers in a file, and those that expressions of integers come to, if they may be lengths."""
    for node in nodes:
        value = constant(node)
        if value is not None and LEAST <= value <= MOST:
            yield value


@once
def compared(nodes: Nodes) -> Iterator[int]:
    """Yields the integers that something is compared with, by an operator or by a function such as `min`, where they are written or by the name of a constant."""
    named = constants(nodes)
    for node in nodes:
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in COMPARING:
            operands = list(node.args)
        for one in operands:
            value = named.get(one.id) if isinstance(one, ast.Name) else constant(one)
            if value is not None and LEAST <= value <= MOST:
                yield value


def constants(nodes: Nodes) -> dict[str, int]:
    """Returns the names that integers are assigned to, alone or several at once, with the last of each."""
    named: dict[str, int] = {}
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for one, given in pairs:
                value = constant(given)
                if isinstance(one, ast.Name) and value is not None:
                    named[one.id] = value
    return named


COMPARING = ("min", "max", "minimum", "maximum", "clamp")
"""Functions that compare their arguments."""


def may_stop_growing(read: Sequence[Nodes]) -> bool:
    """Tells whether the files may launch no more programs for longer inputs: they loop, choose, or take the lesser of two; or nothing was read that could tell."""
    return not read or any(chooses(node) for nodes in read for node in nodes)


def chooses(node: ast.AST) -> bool:
    """Tells whether a node is a loop, a choice between values, a branch on how much there is, or a call of a function that compares its arguments."""
    if isinstance(node, ast.If):
        return any(map(asks_how_much, ast.walk(node.test)))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).split(".")[-1] in COMPARING
    return isinstance(node, ast.For | ast.While | ast.IfExp | ast.BoolOp)


def asks_how_much(node: ast.AST) -> bool:
    """Tells whether a node holds one value against another by size; whether there is anything at all does not count."""
    if not isinstance(node, ast.Compare):
        return False
    is_order = any(isinstance(how, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for how in node.ops)
    return is_order and all(constant(one) not in (0, 1) for one in (node.left, *node.comparators))


def equals(read: Sequence[Nodes]) -> list[int]:
    """Returns the integers that something is held to be equal to in the nodes of files, the larger ones first: a kernel for one length alone."""
    found = {value for nodes in read for value in equal(nodes) if LEAST <= value <= MOST}
    return sorted(found, reverse=True)


def equal(nodes: Nodes) -> Iterator[int]:
    """Yields the integers that something is tested to equal, alone or as one of several."""
    for node in nodes:
        if not isinstance(node, ast.Compare):
            continue
        for how, one in zip(node.ops, node.comparators, strict=True):
            if isinstance(how, ast.Eq | ast.NotEq):
                asked = [node.left, one]
            else:
                asked = list(getattr(one, "elts", ())) if isinstance(how, ast.In | ast.NotIn) else []
            yield from (value for value in map(constant, asked) if value is not None)


def divisors(read: Sequence[Nodes]) -> list[int]:
    """Returns the integers by which something is divided for its rest in the nodes of files, the smaller ones first: a kernel for lengths that leave none."""
    found = {value for nodes in read for value in modules(nodes) if LEAST <= value <= MOST}
    return sorted(found)


def modules(nodes: Nodes) -> Iterator[int]:
    """Yields the integers that stand behind a `%`, or in a `divmod`, or that something is divided by which is compared, as in `n // 128 * 128 != n`; or whose names do."""
    named = constants(nodes)
    compared = {id(part) for node in nodes if isinstance(node, ast.Compare) for part in ast.walk(node)}
    for node in nodes:
        right: ast.AST | None = None
        if isinstance(node, ast.BinOp) and (
            isinstance(node.op, ast.Mod) or (isinstance(node.op, ast.FloorDiv) and id(node) in compared)
        ):
            right = node.right
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            name = ast.unparse(node.func).split(".")[-1]
            right = node.args[1] if name == "divmod" or (name == "cdiv" and id(node) in compared) else None
        if right is not None:
            value = named.get(right.id) if isinstance(right, ast.Name) else constant(right)
            if value is not None:
                yield value


def constant(node: ast.AST, depth: int = 0) -> int | None:
    """Returns the value of an integer or of an expression of integers, else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or depth > 8:
        return None
    left, right = constant(node.left, depth + 1), constant(node.right, depth + 1)
    if left is None or right is None or abs(left) > MOST or abs(right) > MOST:
        return None
    if isinstance(node.op, ast.LShift | ast.Pow):
        if not 0 <= right <= 20:
            return None
        return left << right if isinstance(node.op, ast.LShift) else left**right
    if isinstance(node.op, ast.FloorDiv) and right == 0:
        return None
    found = OPERATORS.get(type(node.op))
    return None if found is None else found(left, right)
