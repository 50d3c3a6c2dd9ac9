"""Probes of inputs that mark what counts: masks that are false or true throughout, and labels of which none counts. It makes no values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_known, bindings, cases, elementwise, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

BAGS = "embedding_bag"
"""The function whose rows may hold padding alone."""

LABEL = 1
"""The label that does not count where ops.yaml names none."""

LENGTHS = (131, 67)
"""Lengths of a mask that several blocks read."""

TARGETS = ("target", "targets", "label", "labels")
"""What the input with the labels is called."""


def marks(request: VariantRequest) -> Iterator[Case]:
    """Yields the cases of an op's masks and labels."""
    declaration = request["op"]
    if declaration.get("random"):
        return
    yield from ignored(request)
    for name in masks(declaration):
        # What torch makes of a query that may see nothing differs between its kernels.
        kinds = ("true",) if is_attention(declaration) else ("false", "true")
        for kind in kinds:
            yield probing.probe(declaration, f"all-{kind}[{name}]", probing.tiny(declaration), values=kind, of=name)
        yield from padded(declaration, name, bindings.reach_limit(request["lane"]))


def padded(declaration: Declaration, name: str, limit: int) -> Iterator[Case]:
    """Yields a case in which a long mask is true at the end of each row alone: whole blocks of it hide all."""
    along = next(given["shape"][-1:] for given in tensors(declaration) if given["name"] == name)
    for dim in along:
        if dim in probing.loose(declaration):
            for case in probing.long(declaration, str(dim), LENGTHS, limit, probing.NARROW):
                word = f"all-late[{name},{dim}={case.binding[str(dim)]}]"
                yield probing.probe(declaration, word, case.binding, values="late-true", of=name, has_own_budget=True)


def masks(declaration: Declaration) -> list[str]:
    """Returns the names of the inputs that are booleans."""
    dtype = declaration["dtypes"][0]
    return [given["name"] for given in tensors(declaration) if (given["dtype"] or dtype) == "bool"]


def is_attention(declaration: Declaration) -> bool:
    """Tells whether the op is torch's attention."""
    return "attention" in str(declaration.get("torch") or "")


def ignored(request: VariantRequest) -> Iterator[Case]:
    """Yields a case in which no label counts, where torch's function has a label that does not, and ops.yaml or the wrapper, too.

    Of gradients nothing is asked: they are products of zero and of an infinite factor, or none at all.
    """
    declaration = request["op"]
    own, written = declaration["kwargs"], request["variant"].get("call")
    if not declaration.get("torch"):
        return
    if elementwise.name_of(declaration) == BAGS and type(own.get(cases.PADDING)) is int:
        # A bag of nothing.
        rows = probing.rows(declaration)
        bag = probing.probe(declaration, "all-ignored[input]", rows, values=cases.IGNORED, of="input")
        yield probing.forward(declaration, replace(bag, has_own_budget=True))
    label = own.get(cases.IGNORE)
    known = arguments_known.of_op(declaration)
    is_beside = written is None and cases.IGNORE in arguments_known.beside(request, known)
    kwargs = {**own, cases.IGNORE: LABEL} if label is None and is_beside else None
    for given in tensors(declaration) if type(label) is int or kwargs else ():
        if given["name"] in TARGETS and str(given["dtype"]).startswith("int"):
            few, name = probing.rows(declaration), given["name"]
            found = probing.probe(
                declaration, f"all-ignored[{name}]", few, values=cases.IGNORED, of=name, kwargs=kwargs
            )
            yield probing.forward(declaration, found)
