"""Shapes as people write them down: in annotations, docstrings and comments.

It does not know whether they are right.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from collections.abc import Collection, Sequence

DIMS = re.compile(
    r"[\[(]\s*((?:[A-Za-z]\w*|\d+)(?:\s*[*+/-]+\s*\w+)?(?:\s*,\s*(?:[A-Za-z]\w*|\d+)(?:\s*[*+/-]+\s*\w+)?)*)\s*,?\s*[\])]"
)
"""A shape in words: names, numbers and simple sums and products in brackets."""

NO_DIMS = frozenset("torch tensor optional int float bool str none default required contiguous default".split())
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


def in_words(lines: Sequence[str], name: str, others: Collection[str]) -> list[str] | None:
    """Returns the dims that a comment or a docstring gives an argument, as `x: (M, K)`; None where there are none. Names of `others`, the arguments, are no dims."""
    wanted = re.compile(rf"(?:^|[\s`*(,:-]){re.escape(name)}`?\s*(?:[:=(\[-]|is|of|has)(.*)")
    for line in lines:
        found = wanted.search(line)
        if found is None:
            continue
        rest = line[found.start(1) - 1 :]
        for shape in DIMS.finditer(rest):
            dims = [one.strip() for one in shape.group(1).split(",")]
            is_shape = not all(one.isdigit() for one in dims)
            is_shape &= all(one.lower() not in NO_DIMS and one not in others for one in dims)
            if is_shape and (len(dims) > 1 or dims[0].isupper() or "[" in shape.group(0)):
                return dims
    return None
