"""Probes of a reference that is a class: other weights than its constructor gives, a second call, and other arguments of the constructor. They take no other's place. Nothing here makes values."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    arguments_compared,
    arguments_refused,
    arguments_values,
    arguments_words,
    bindings,
    cases,
    probing,
    reference_code,
    seeds,
)
from t2t_harness.cases.cases import Case
from t2t_harness.op import declaration as declared
from t2t_harness.op.declaration import tensors
from t2t_harness.sources import signatures

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

OTHERS = 3
"""So many other values are tried of one argument of a constructor."""

EVALUATION = "evaluation"
"""What a case is called in which a class is in that mode."""

LONGER = 9
"""How long dims are in a call that follows one with shorter ones."""

BOTH = 15
"""So many cases have two arguments of it at their first other values at once."""

FLAGS = 4
"""So many flags of it are other ones in evaluation, too."""

INITS = 12
"""So many cases have another argument of it, the first value of each before the second of any."""


def classes(request: VariantRequest) -> Iterator[Case]:
    """Yields all of them; none where the reference is no class."""
    declaration = request["op"]
    reference = declaration.get("reference")
    if reference is None or not is_class(Path(reference["root"], reference["file"]), reference["name"]):
        return
    found = [*weights(declaration)]
    if not seeds.is_random(declaration):
        found += [*again(declaration), *evaluation(declaration), *inits(request, left_to_defaults(request))]
    yield from (replace(case, has_own_budget=True) for case in found)


def weights(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which parameters and buffers have other values than the constructor gave them: ones and zeros are not seen where they are left out. In another, of an op that is checked backward, they alone ask for gradients, as in the first layer of a network."""
    small = probing.rows(declaration)
    yield probing.probe(declaration, cases.WEIGHTS, small, weights=(cases.ALL,))
    if declaration["backward"]:
        yield probing.probe(declaration, "gradients[parameters]", small, asks=(cases.PARAMETERS,))


def again(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which the class was called before: a counter that is set to one is right once; and, of an op that is checked backward, one in which it got other weights in between, as by a step of an optimizer. There is none where the op changes its inputs, which are other ones then."""
    if not declared.changed(declaration):
        small, stepped = probing.rows(declaration), f"{cases.AGAIN}[{cases.WEIGHTS}]"
        yield probing.probe(declaration, cases.AGAIN, small, is_again=True)
        if declaration["backward"]:
            # What is not trained may be kept in another form.
            yield probing.probe(declaration, stepped, small, is_again=True, weights=(cases.ALL,))
        yield from longer(declaration, small)


def evaluation(declaration: Declaration) -> Iterator[Case]:
    """Yields a case in which the module is in evaluation, and one in which its parameters and buffers have other values, too: what it was trained with is what counts then."""
    small = probing.rows(declaration)
    yield probing.probe(declaration, EVALUATION, small, evaluates=True)
    trained = f"{EVALUATION}[{cases.WEIGHTS}]"
    yield probing.probe(declaration, trained, small, weights=(cases.ALL,), evaluates=True)


def longer(declaration: Declaration, small: Mapping[str, int]) -> Iterator[Case]:
    """Yields a case in which the class was called with shorter dims before, but for those that it is constructed with: a table that the first call makes may be too short for the next one."""
    reference = declaration["reference"]
    held = {} if reference is None else reference["init"]
    named = set(re.findall(r"[A-Za-z_]\w*", json.dumps(held)))
    dims = [dim for dim in probing.loose(declaration) if dim not in named]
    lengths = dict.fromkeys(dims, LONGER)
    binding = probing.bound(declaration, {**small, **lengths}, probing.NARROW)
    before = probing.bound(declaration, {**small, **dict.fromkeys(dims, probing.NARROW)}, probing.NARROW)
    is_same_else = all(before[dim] == binding[dim] for dim in named & binding.keys())
    if dims and before != binding and is_same_else and bindings.is_possible(declaration, before):
        at = ",".join(f"{dim}={binding[dim]}" for dim in dims)
        yield probing.probe(declaration, f"{cases.AGAIN}[{at}]", binding, is_again=True, before=before)


def left_to_defaults(request: VariantRequest) -> dict[str, object]:
    """Returns the arguments that the constructors of the reference and of the entry both know and that ops.yaml does not declare, with the reference's defaults: flags, words and numbers."""
    declaration, variant = request["op"], request["variant"]
    reference, code = declaration.get("reference"), reference_code.source(declaration)
    if reference is None or code is None or variant.get("module") or not variant.get("file"):
        return {}
    try:
        written = Path(request["root"], variant["file"]).read_bytes()
    except OSError:
        return {}
    known = {one.name for one in signatures.constructor(written, variant["entry"]) if one.has_default}
    found = {one.name: one.default for one in signatures.constructor(code, reference["name"])}
    return {
        name: value
        for name, value in found.items()
        if name in known and name not in reference["init"] and is_comparable(name, value)
    }


def is_comparable(name: str, value: object) -> bool:
    """Tells whether an argument of a constructor may have another value: not one by which something is drawn, or that says how a kernel is launched."""
    left = (*arguments_values.LEFT_ALONE, *arguments_values.OPEN, *arguments_values.LAUNCHING)
    return isinstance(value, bool | int | float | str) and name not in left and "drop" not in name


def inits(request: VariantRequest, beside: Mapping[str, object]) -> Iterator[Case]:
    """Yields cases in which the constructor has another argument, of those that are declared and of those `beside` them: a number that is written into a kernel is right for that alone."""
    declaration = request["op"]
    reference = declaration["reference"]
    own = {} if reference is None else reference["init"]
    rank = max((len(given["shape"]) for given in tensors(declaration)), default=0)
    columns = [
        # One number may stand for those of all dims, and a class need not take them apart.
        [
            (name, value)
            for value in [
                *arguments_words.unnamed(request, name, declared),
                *others_of(declaration, name, declared, rank),
            ]
        ]
        for name, declared in [*own.items(), *beside.items()]
    ]
    turns = [one for turn in zip_longest(*(column[:OTHERS] for column in columns)) for one in turn if one is not None]
    firsts = [column[0] for column in columns if column]
    pairs = list(combinations(firsts, 2))[:BOTH]
    for changed in [*({name: value} for name, value in turns[:INITS]), *map(dict, pairs)]:
        word = ",".join(f"{name}={value}" for name, value in changed.items())
        # It keeps a divisor from zero where values are small.
        is_small = "eps" in changed and probing.of_values(declaration)
        more = {"values": "small", "of": cases.ALL} if is_small else {}
        init, small = {**own, **changed}, small_for(declaration, changed)
        yield probing.probe(declaration, f"{cases.INIT}[{word}]", small, init=init, **more)
    flags = [one for one in firsts if isinstance(one[1], bool)]
    for name, value in flags[:FLAGS]:
        # What is evaluated has code of its own.
        word, init = f"{cases.INIT}[{name}={value},{EVALUATION}]", {**own, name: value}
        yield probing.probe(declaration, word, probing.rows(declaration), init=init, evaluates=True)


def others_of(declaration: Declaration, name: str, declared: object, rank: int) -> list[object]:
    """Returns other values of the type of the declared one, and behind the first of them None, where the class asks for that."""
    found = [value for value in away(declaration, name, declared, rank) if type(value) is type(declared)]
    is_asked = declared is not None and arguments_compared.may_be_none(declaration, name)
    return [*found[:1], *([None] if is_asked else []), *found[1:]]


DIVIDED = (12, 6, 4)
"""Lengths from the last dim on where a whole number may have to divide one of them."""


def small_for(declaration: Declaration, changed: Mapping[str, object]) -> dict[str, int]:
    """Returns the lengths of a case with the arguments `changed`."""
    is_whole = any(type(value) is int for value in changed.values())
    return probing.rows(declaration, DIVIDED) if is_whole else probing.rows(declaration)


def away(declaration: Declaration, name: str, declared: object, rank: int) -> list[object]:
    """Returns other values for the argument `name` of a constructor: as for one of a call, with the words that the code of the class names first, and whole numbers of which nothing else is known. What makes no sense the class refuses."""
    if isinstance(declared, str) and declared in bindings.own_lengths(declaration):
        return []
    if type(declared) is int and declared >= LENGTH and declared in lengths(declaration):
        # An input has as many, and would not fit.
        return []
    compared = arguments_compared.compared(declaration, name, declared)
    found = [*compared, *arguments_values.away(name, declared, rank)]
    if type(declared) is int and not found:
        found = [2 if declared == 1 else 1, declared + 1]
    if type(declared) is int and declared > 0:
        # What counts something is seldom nothing.
        found.sort(key=lambda one: isinstance(one, int) and one <= 0)
    refused = [one for one in found if arguments_refused.refuses(declaration, name, one)]
    return [one for place, one in enumerate(found) if one not in found[:place] and one not in refused]


LENGTH = 8
"""A number from which on it is no chance that a dim is as long."""


def lengths(declaration: Declaration) -> set[int]:
    """Returns the lengths that dims of inputs have in all cases."""
    written = {one for given in tensors(declaration) for one in given["shape"] if isinstance(one, int)}
    return written | {one for one in bindings.own_lengths(declaration).values() if one is not None}


def is_class(path: Path, name: str) -> bool:
    """Tells whether the Python file at `path` defines a class of that name."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in body)
