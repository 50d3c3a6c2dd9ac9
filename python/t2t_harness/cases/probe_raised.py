"""A probe in which exponentials overflow whose largest exponent is not subtracted first, and no last bit of an exponent is worth much.

`large` values are a million times as large. Sums of products of them are exponents of which the last bit decides everything: what a right kernel makes of it on a device says nothing. It makes no values. torch is imported nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise, probing, reference_code
from t2t_harness.cases.cases import Case

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


def raised(declaration: Declaration) -> Iterator[Case]:
    """Yields the case of an op of exponentials that is not known to work element by element. It takes no other's place."""
    called = reference_code.names_called(declaration) | {elementwise.name_of(declaration)}
    if declaration.get("random") or elementwise.is_elementwise(declaration) or EXPONENTIAL.isdisjoint(called):
        return
    if probing.of_values(declaration):
        small = probing.tiny(declaration)
        yield probing.probe(declaration, RAISED, small, values=RAISED, of=cases.ALL, has_own_budget=True)
