"""What a kernel's code says of the arguments that a wrapper launches it with: which are pointers, and which are numbers.

It does not know which tensors they are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

ADDRESSED = frozenset("load store make_block_ptr make_tensor_descriptor".split())
"""Functions of Triton's language whose first argument is an address; so are those of its atomic operations."""

DEEPEST = 4
"""So many calls of functions of one file, each within another, are followed."""

Functions = Callable[[str], "ast.FunctionDef | None"]


def parameters(kernel: ast.FunctionDef) -> list[str]:
    """Returns the names of a kernel's parameters, in order."""
    return [one.arg for one in (*kernel.args.posonlyargs, *kernel.args.args)]


def pointers(kernel: ast.FunctionDef, functions: Functions, depth: int = 0) -> set[str]:
    """Returns the parameters of a kernel to which it adds offsets and which it reads or writes there, also in the functions of its file that it calls."""
    bases: dict[str, ast.expr] = {}
    found: set[str] = set()

    def root(node: ast.expr, steps: int = 0) -> str | None:
        """Returns the name that an address is an offset from."""
        while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
        if not isinstance(node, ast.Name):
            return None
        return root(bases[node.id], steps + 1) if node.id in bases and steps < DEEPEST else node.id

    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bases.setdefault(node.targets[0].id, node.value)
    own = set(parameters(kernel))
    # What is moved on, as `x_ptr += row * stride`, is still what it was.
    bases = {name: value for name, value in bases.items() if name not in own}
    for node in (one for one in ast.walk(kernel) if isinstance(one, ast.Call)):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ADDRESSED or called.startswith("atomic_"):
            base = [one.value for one in node.keywords if one.arg in ("pointer", "base")] or node.args[:1]
            found |= {name for name in map(root, base) if name is not None}
        elif isinstance(node.func, ast.Name) and depth < DEEPEST and (inner := functions(called)) is not None:
            within = pointers(inner, functions, depth + 1)
            pairs = [*zip(parameters(inner), node.args, strict=False)]
            pairs += [(str(one.arg), one.value) for one in node.keywords]
            found |= {name for meant, value in pairs if meant in within and (name := root(value)) is not None}
    return found & own
