"""Probes in which exponentials overflow, or are all nothing, whose largest exponent is not subtracted first, and no last bit of an exponent is worth much.

`large` values are a million times as large. Sums of products of them are exponents of which the last bit decides everything: what a right kernel makes of it on a device says nothing. It makes no values. torch is imported nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise, probing, reference_code
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

RAISED = "raised"
"""What such a case, and its values, are called."""

TIMES = {"float16": 32.0}
"""What random values are multiplied by, by type: products of two are none that float16 does not hold."""

OTHERS = 64.0
"""The same for other types: beyond where `exp` overflows in float32."""

EXPONENTIAL = frozenset(
    "exp exp2 softmax log_softmax softmin logsumexp logcumsumexp logaddexp logaddexp2 cross_entropy scaled_dot_product_attention".split()
)
"""Functions of exponentials, by name."""


SUNK = "sunk"
"""What a case, and its values, are called in which all of an input is far below zero: a largest value that begins with zero stays so, and each exponential is nothing."""

VOID = "void"
"""The same of one in which all of an input is minus infinity, as the logarithms of sums over nothing."""

INPUTS = 2
"""So many inputs are far below zero, or minus infinity, each in a case of its own."""


def of_exponentials(declaration: Declaration) -> Iterator[Case]:
    """Yields the raised, sunk and void cases of an op of exponentials that is not known to work element by element. They take no other's place."""
    if not is_exponential(declaration):
        return
    small, names = probing.tiny(declaration), probing.of_values(declaration)
    if names:
        # Gradients are nothing there, but for rounding.
        found = probing.probe(declaration, RAISED, small, values=RAISED, of=cases.ALL, has_own_budget=True)
        yield probing.forward(declaration, found)
    inits = {given["name"]: given["init"]["kind"] for given in tensors(declaration)}
    for name in [name for name in names if inits[name] == "normal"][:INPUTS]:
        sunk = probing.probe(declaration, f"{SUNK}[{name}]", small, values=SUNK, of=name, has_own_budget=True)
        yield probing.forward(declaration, sunk)
        if not probing.hides(declaration):
            void = probing.probe(declaration, f"{VOID}[{name}]", small, values=VOID, of=name, has_own_budget=True)
            yield probing.forward(declaration, void)


def is_exponential(declaration: Declaration) -> bool:
    """Tells whether an op takes exponentials, by the names of what it, or its reference, calls, draws nothing, and is not known to work element by element."""
    called = reference_code.names_called(declaration) | {elementwise.name_of(declaration)}
    is_plain = not declaration.get("random") and not elementwise.is_elementwise(declaration)
    return is_plain and not EXPONENTIAL.isdisjoint(called)
