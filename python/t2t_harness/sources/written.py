"""Shapes as people write them down: in annotations, docstrings and comments.

It does not know whether they are right.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Sequence

DIMS = re.compile(
    r"[\[(]\s*((?:[A-Za-z]\w*|\d+)(?:\s*[*+/-]+\s*\w+)?(?:\s*,\s*(?:[A-Za-z]\w*|\d+)(?:\s*[*+/-]+\s*\w+)?)*)\s*,?\s*[\])]"
)
"""A shape in words: names, numbers and simple sums and products in brackets."""

NO_DIMS = frozenset("torch tensor optional int float bool str none default required contiguous".split())
"""Words in brackets that are no dims."""


def annotated(annotation: ast.expr | None) -> list[str] | None:
    """Returns the dims that an annotation of jaxtyping names, as `Float[Tensor, "b s d"]`; None of any other."""
    match annotation:
        case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str(dims))])):
            names = dims.split()
            return names if names and all(one.isidentifier() or one.isdigit() for one in names) else None
    return None


def words(source: str, node: ast.FunctionDef) -> list[str]:
    """Returns the lines of a function's docstring and its comments."""
    found = (ast.get_docstring(node) or "").splitlines()
    text = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]) + "\n"
    with contextlib.suppress(tokenize.TokenError, IndentationError):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return [*found, *(one.string.lstrip("# ") for one in tokens if one.type == tokenize.COMMENT)]
    return found


WIDE = re.compile(r"float(16|32|64)?\b|bf16|bfloat16|fp(16|32)|half|double", re.IGNORECASE)
"""Dtypes that follow the tested one."""

DTYPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (dtype, re.compile(rf"\b({words})\b", re.IGNORECASE))
    for dtype, words in (
        ("float8_e5m2", "float8_e5m2|fp8_e5m2|fp8e5|e5m2"),
        ("float8_e4m3fn", "float8_e4m3fn|float8_e4m3|fp8_e4m3|fp8e4nv|e4m3fn|e4m3|float8|fp8"),
        ("uint8", "uint8|u8"),
        ("int8", "int8|i8|s8"),
        ("int32", "int32|i32"),
        ("int64", "int64|i64"),
        ("bool", "bool|boolean"),
    )
)
"""Dtypes that do not, and how people call them."""


def dtype_in(lines: Sequence[str], name: str, others: Collection[str]) -> str | None:
    """Returns the dtype that a comment or a docstring gives an argument, as `x: int8 [M, K]`; None where it follows the tested one, or nothing is said. `others` are the arguments."""
    for rest in _told_of(lines, name, others):
        told = [dtype for dtype, words in DTYPES if words.search(rest)]
        return told[0] if told and WIDE.search(rest) is None else None
    return None


def _told_of(lines: Sequence[str], name: str, others: Collection[str]) -> Iterator[str]:
    """Yields what lines say of an argument: what follows its name, up to where another one's turn begins."""
    wanted = re.compile(rf"(?:^|[\s`*(,:-])({re.escape(name)})`?\s*(?:[:=(\[-]|is|of|has)")
    names = "|".join(re.escape(other) for other in others if other != name)
    following = re.compile(rf"[\s`*,;]({names})`?\s*:") if names else None
    for line in lines:
        found = wanted.search(line)
        if found is not None:
            rest = line[found.end(1) :]
            cut = following.search(rest) if following is not None else None
            yield rest if cut is None else rest[: cut.start()]


def in_words(lines: Sequence[str], name: str, others: Collection[str]) -> list[str] | None:
    """Returns the dims that a comment or a docstring gives an argument, as `x: (M, K)`; None where there are none. Names of `others`, the arguments, are no dims."""
    for rest in _told_of(lines, name, others):
        for shape in DIMS.finditer(rest):
            dims = [one.strip() for one in shape.group(1).split(",")]
            is_shape = not all(one.isdigit() for one in dims)
            is_shape &= all(one.lower() not in NO_DIMS and one not in others for one in dims)
            if is_shape and (len(dims) > 1 or dims[0].isupper() or "[" in shape.group(0)):
                return dims
    return None
