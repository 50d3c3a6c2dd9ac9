"""The operations that torch may compute for a wrapper: those that the op itself consists of, and those that ops.yaml allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.cases import called_with, cases, declared_inputs
from t2t_harness.judging import watch
from t2t_harness.op import operation, valueless

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration


def own_operations(declaration: Declaration) -> frozenset[str]:
    """Returns what watch.own_operations says of the op, on what `valueless.zero` makes in the form of its smallest declared case; nothing where
    torch refuses."""
    listed = cases.declared_cases(declaration)
    if not listed:
        return frozenset()
    case = min(listed, key=lambda case: cases.elements(declaration, case))
    try:
        # Tensors without values would import torch's compiler, which takes seconds.
        made = declared_inputs.unfilled(declaration, case)
        valueless.zero(declaration, case.binding, made)
        kwargs = called_with.kwargs_of(declaration, case)
        function = operation.ready(declaration, case.binding, case.dtype)
        return watch.own_operations(lambda: operation.call(function, declaration, made, kwargs), allowed(declaration))
    except Exception:
        return frozenset()


def allowed(declaration: Declaration) -> frozenset[str]:
    """Returns the aten operations that the op allows torch to compute for a wrapper, beside those that are always allowed."""
    return frozenset(declaration.get("allow") or ())


def but_accumulation(computed: dict[str, int]) -> dict[str, int]:
    """Returns `computed` without the addition by which autograd joins gradients of one input."""
    return {name: count for name, count in computed.items() if name not in ("add", "add_")}
