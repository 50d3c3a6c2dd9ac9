"""Probes of a reference that is a class: other weights than its constructor gives, a second call, and other arguments of the constructor. They take no other's place. Nothing here makes values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_values, cases, probing, seeds
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

OTHERS = 2
"""So many other values are tried of one argument of a constructor."""

INITS = 8
"""So many cases have another argument of it, the first value of each before the second of any."""


def classes(declaration: Declaration) -> Iterator[Case]:
    """Yields all of them; none where the reference is no class."""
    reference = declaration.get("reference")
    if reference is None or not is_class(Path(reference["root"], reference["file"]), reference["name"]):
        return
    found = [*weights(declaration)]
    if not seeds.is_random(declaration):
        found += [*again(declaration), *inits(declaration)]
    yield from (replace(case, has_own_budget=True) for case in found)


def weights(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which parameters and buffers have other values than the constructor gave them: ones and zeros are not seen where they are left out."""
    yield probing.probe(declaration, cases.WEIGHTS, probing.rows(declaration), weights=(cases.ALL,))


def again(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which the class was called before: a counter that is set to one is right once. There is none where the op changes its inputs, which are other ones then."""
    if not declaration["mutates"]:
        yield probing.probe(declaration, cases.AGAIN, probing.rows(declaration), is_again=True)


def inits(declaration: Declaration) -> Iterator[Case]:
    """Yields cases in which the constructor has another argument: a number that is written into a kernel is right for that alone."""
    reference = declaration["reference"]
    own = {} if reference is None else reference["init"]
    rank = max((len(given["shape"]) for given in tensors(declaration)), default=0)
    columns = [
        # One number may stand for those of all dims, and a class need not take them apart.
        [(name, value) for value in arguments_values.away(name, declared, rank) if type(value) is type(declared)]
        for name, declared in own.items()
    ]
    turns = [one for turn in zip_longest(*(column[:OTHERS] for column in columns)) for one in turn if one is not None]
    for name, value in turns[:INITS]:
        word, small = f"{cases.INIT}[{name}={value}]", probing.rows(declaration)
        # It keeps a divisor from zero where values are small.
        is_small = name == "eps" and probing.of_values(declaration)
        more = {"values": "small", "of": cases.ALL} if is_small else {}
        yield probing.probe(declaration, word, small, init={**own, name: value}, **more)


def is_class(path: Path, name: str) -> bool:
    """Tells whether the Python file at `path` defines a class of that name."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in body)
