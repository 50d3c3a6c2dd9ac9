"""What torch gives where long sums are added up term by term in float32, as a thread of a kernel does that goes through all of a dim.

A term that is less than half of the last bit of the sum so far is lost. Where many terms are that small, as the weights of a vocabulary beside the likeliest word, the sum is off by more than rounding by chance would have it. torch adds up in blocks, as a rule, and loses less. torch is imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with, seeds
from t2t_harness.judging import oracle

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

LONG = 1 << 10
"""Sums of fewer terms are left to torch."""

MOST = 1 << 17
"""Longer ones are too: their terms are added one after the other here."""

ELEMENTS = 1 << 16
"""So many sums at most are added up so."""


def reference(
    declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str
) -> dict[str, torch.Tensor] | None:
    """Returns torch's results for `given`, by name, with each long sum of float32 added up in order; None where there is none, of an op that draws random numbers, or where torch raises."""
    from torch.utils._python_dispatch import TorchDispatchMode

    if seeds.is_random(declaration) or max(case.binding.values(), default=0) < LONG:
        return None
    is_any = False

    class Ordered(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes a second (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal is_any
            name = func._schema.name.rpartition("::")[2]
            made = SUMS[name](*args) if name in SUMS and not kwargs else None
            if made is None:
                return func(*args, **(kwargs or {}))
            is_any = True
            return made

    try:
        function = oracle.ready(declaration, case, device)
        kwargs = called_with.kwargs_of(declaration, case)
        with Ordered():  # type: ignore[no-untyped-call]
            found = oracle.called(function, declaration, case, oracle.copies(given), kwargs, device, None).plain
    except Exception as error:
        if oracle.is_own(error):
            raise
        return None
    return found if is_any else None


def is_long(terms: int, sums: int, *values: torch.Tensor) -> bool:
    """Tells whether so many sums of so many terms, of these tensors, are added up in order."""
    is_single = all(str(value.dtype) == "torch.float32" for value in values)
    return is_single and LONG <= terms <= MOST and 0 < sums <= ELEMENTS


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """Returns the product of two matrices, or of batches of them, with sums in order; None of what is left to torch."""
    terms, shape = a.shape[-1], (*a.shape[:-1], b.shape[-1])
    if not is_long(terms, math.prod(shape), a, b):
        return None
    total = a.new_zeros(shape)
    for place in range(terms):
        total.addcmul_(a[..., place : place + 1], b[..., place : place + 1, :])
    return total


def added(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """Returns the product of two matrices, and a bias."""
    found = product(a, b)
    return None if found is None else found + bias


def applied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """Returns the product of a matrix and a vector."""
    found = product(a, b.unsqueeze(-1))
    return None if found is None else found.squeeze(-1)


def total(value: torch.Tensor, dims: object = None, keepdim: bool = False) -> torch.Tensor | None:
    """Returns the sum along dims, all of them where none is named."""
    named = [dims] if isinstance(dims, int) else list(dims) if isinstance(dims, (list, tuple)) else []
    along = [dim % max(value.dim(), 1) for dim in named] or list(range(value.dim()))
    terms = math.prod(value.shape[dim] for dim in along)
    if terms == 0 or not is_long(terms, value.numel() // terms, value):
        return None
    kept = [dim for dim in range(value.dim()) if dim not in along]
    flat = value.permute([*kept, *along]).reshape([*(value.shape[dim] for dim in kept), terms])
    found = flat.new_zeros(flat.shape[:-1])
    for place in range(terms):
        found += flat[..., place]
    shape = [1 if dim in along else length for dim, length in enumerate(value.shape)]
    return found.reshape(shape) if keepdim else found


def mean(value: torch.Tensor, dims: object = None, keepdim: bool = False) -> torch.Tensor | None:
    """Returns the mean along dims, all of them where none is named."""
    found = total(value, dims, keepdim)
    return None if found is None else found / (value.numel() // max(found.numel(), 1))


SUMS: dict[str, Callable[..., torch.Tensor | None]] = {
    "mm": product,
    "bmm": product,
    "addmm": added,
    "mv": applied,
    "sum": total,
    "mean": mean,
}
"""Operations that add up, by name, with what does so in order."""
