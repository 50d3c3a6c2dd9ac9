"""Expressions of dims, such as `2*N` or `(M+1)//G`, in place of a length in a shape, an init or a keyword argument.

The grammar is that of `crates/spec/src/expression.rs`: integers, names, `+`, `-`, `*`, `//` and brackets. Nothing of Python is
evaluated. Imports nothing of torch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*()]))", re.ASCII)

Tree = int | str | tuple[str, Any, Any]


class Malformed(ValueError):
    """A text that is no expression."""


class Impossible(ValueError):
    """An expression that is no length where its dims have these lengths: it is below zero, or divides by zero."""


def length(text: int | str, binding: Mapping[str, int]) -> int:
    """Returns the length that `text` stands for. Raises KeyError naming a dim that `binding` lacks, Impossible where it is
    no length."""
    found = text if isinstance(text, int) else value(text, binding)
    if found < 0:
        raise Impossible(f"`{text}` is {found}")
    return found


def value(text: str, binding: Mapping[str, int]) -> int:
    """Returns the value of `text`, which may be below zero. Raises as `length` does."""
    return binding[text] if text in binding else _value(_tree(text), binding, text)


def names(text: int | str) -> list[str]:
    """Returns the dims that `text` names, in order of appearance, each once."""
    return [] if isinstance(text, int) else list(dict.fromkeys(_names(_tree(text))))


def stands_for(text: str, binding: Mapping[str, int]) -> bool:
    """Tells whether any string, such as a keyword argument, is an expression of dims that are all in `binding`."""
    try:
        found = names(text)
    except Malformed:
        return False
    return bool(found) and set(found) <= set(binding)


@functools.cache
def _tree(text: str) -> Tree:
    tokens = _tokens(text)
    found, rest = _sum(tokens, 0)
    if rest != len(tokens):
        raise Malformed(f"`{text}` is no expression of dims")
    return found


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at)
        if match is None:
            raise Malformed(f"`{text}` is no expression of dims")
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


def _sum(tokens: list[str], at: int) -> tuple[Tree, int]:
    return _chain(tokens, at, ("+", "-"), _product)


def _product(tokens: list[str], at: int) -> tuple[Tree, int]:
    return _chain(tokens, at, ("*", "//"), _atom)


def _chain(tokens: list[str], at: int, operators: tuple[str, str], part: Any) -> tuple[Tree, int]:
    left, at = part(tokens, at)
    while at < len(tokens) and tokens[at] in operators:
        operator = tokens[at]
        right, at = part(tokens, at + 1)
        left = (operator, left, right)
    return left, at


def _atom(tokens: list[str], at: int) -> tuple[Tree, int]:
    token = tokens[at] if at < len(tokens) else ""
    if token == "(":
        inner, at = _sum(tokens, at + 1)
        if at < len(tokens) and tokens[at] == ")":
            return inner, at + 1
    elif token.isdecimal():
        return int(token), at + 1
    elif token.isidentifier():
        return token, at + 1
    raise Malformed("an expression of dims ends early, or has an operator too many")


def _value(tree: Tree, binding: Mapping[str, int], text: str) -> int:
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return binding[tree]
    operator, left, right = tree[0], _value(tree[1], binding, text), _value(tree[2], binding, text)
    if operator == "//":
        if right == 0:
            raise Impossible(f"`{text}` divides by zero")
        return left // right
    return left + right if operator == "+" else left - right if operator == "-" else left * right


def _names(tree: Tree) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif not isinstance(tree, int):
        yield from _names(tree[1])
        yield from _names(tree[2])
