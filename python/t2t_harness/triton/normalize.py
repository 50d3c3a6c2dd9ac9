"""Makes Triton's own cache blind to comments, docstrings and line numbers.

Triton keys a kernel by its source text and starting line. Each `@triton.jit` function is rewritten when it is made: parsed, docstrings
dropped, printed again, starting at line 1. The map from the new lines to the user's is kept, so that a compile error
still cites the line that the user wrote.
"""

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Any

TRITON_KEY = "t2t-1"
"""Stands before Triton's version in its cache keys; a new number makes all compiled kernels a miss."""


def without_docstrings(tree: ast.Module) -> ast.Module:
    """Returns `tree` with the docstring of every function removed, in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def line_map(original: ast.AST, printed: ast.AST) -> dict[int, int]:
    """Returns printed line → original line for two trees of the same shape."""
    lines: dict[int, int] = {}
    for left, right in zip(ast.walk(original), ast.walk(printed), strict=True):
        if hasattr(left, "lineno") and hasattr(right, "lineno"):
            lines.setdefault(right.lineno, left.lineno)
    return lines


def place_map(original: ast.AST, printed: ast.AST) -> dict[tuple[int, int], tuple[int, int]]:
    """Returns printed (line, column) → original (line, column) of every node of two trees of the same shape; columns from 0."""
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for left, right in zip(ast.walk(original), ast.walk(printed), strict=True):
        if isinstance(left, (ast.stmt, ast.expr)) and isinstance(right, (ast.stmt, ast.expr)):
            places.setdefault((right.lineno, right.col_offset), (left.lineno, left.col_offset))
    return places


@dataclass
class Origin:
    """Where the normalized source of a function came from. The maps are made when they are asked for: only an error asks."""

    file: str
    text: str
    """The user's source, from `def` on."""
    first: int
    """The line of the user's file at which it begins."""
    indent: int
    """How far it is indented there."""

    @cached_property
    def trees(self) -> tuple[ast.AST, ast.AST]:
        """The user's source without docstrings, and what was printed of it."""
        original = without_docstrings(ast.parse(self.text))
        return original, ast.parse(ast.unparse(original))

    @cached_property
    def lines(self) -> dict[int, int]:
        """Line of the normalized source → line of the user's file."""
        return {new: self.first + old - 1 for new, old in line_map(*self.trees).items()}

    @cached_property
    def places(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Line and column of the normalized source → those of the user's file; columns from 0."""
        return {
            new: (self.first + line - 1, self.indent + column) for new, (line, column) in place_map(*self.trees).items()
        }


def normalize(function: Any) -> None:
    """Rewrites the source of a fresh JITCallable and resets its hash. What it was is kept as `t2t_origin`, an Origin."""
    text = ast.unparse(without_docstrings(ast.parse(function._src)))
    above = leading_lines(function.raw_src)
    function.t2t_origin = Origin(
        file=function.fn.__code__.co_filename,
        text=function._src,
        first=function.starting_line_number + above,
        indent=len(function.raw_src[above]) - len(function.raw_src[above].lstrip()),
    )
    function.raw_src = text.splitlines(keepends=True)
    function.starting_line_number = 1
    function._unsafe_update_src(text)


def leading_lines(raw: list[str]) -> int:
    """Returns how many lines of decorators stand before the `def` line."""
    for index, line in enumerate(raw):
        if line.lstrip().startswith("def "):
            return index
    return 0


def install() -> None:
    """Patches Triton so that every function made from now on is normalized. The compiled lanes call it; the interpreter does not."""
    import os

    import triton
    from triton.runtime import cache, jit

    made = jit.JITCallable.__init__

    def init(self: Any, fn: Any) -> None:
        made(self, fn)
        normalize(self)

    # Without it the compiled code holds paths and lines. Triton keys kernels by this variable.
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    jit.JITCallable.__init__ = init
    # Triton's own key hashes its installation, which differs between wheels of one version for two Pythons.
    cache.triton_key = lambda: f"{TRITON_KEY}-{triton.__version__}"
