"""Results that go through exponentials, in a case of large values: the last bit of an exponent is worth much of what becomes of it there.

Two ways of writing a kernel that are as good as any show by it. One keeps the logarithm of a row's sum, beside which that of a small second term is lost. In the other each thread adds up a product of its own, where a fused multiply-add rounds
less than what it gets from its neighbours: the same sum has two values, and the exponential of their difference is far from one. Both happen in few elements. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with, elementwise
from t2t_harness.judging import comparing, oracle, tolerance

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

SHARE = 128
"""One of so many elements may be off so, and one in any case."""

TAKING = frozenset(
    "exp exp2 _softmax _log_softmax _safe_softmax logsumexp logcumsumexp _logcumsumexp logaddexp".split()
)
"""Operations of torch that take exponentials of sums or differences, beside those of attention."""


def seldom(
    declaration: Declaration,
    case: Case,
    name: str,
    judged: comparing.Judged,
    wide: torch.Tensor | None,
    found: tolerance.Comparison,
    device: str,
) -> tolerance.Comparison | None:
    """Returns the comparison in which the result `name`, of which the one `found` tells that it is wrong, is right: few of its elements are off, each by no more than the largest value of its row, of an op that takes exponentials of large values. None where it is wrong by that, too."""
    is_few = 0 < found.bad <= max(1, found.total // SHARE)
    if case.values != "large" or not is_few or elementwise.is_elementwise(declaration):
        return None
    made, right = judged.made[name].double(), (judged.right[name] if wide is None else wide).double()
    if made.is_complex() or made.shape != right.shape or made.dim() == 0:
        return None
    known = right.isfinite()
    scale = right.abs().where(known, right.new_zeros(())).amax(dim=-1, keepdim=True)
    is_within = ((made - right).abs() <= scale) | ~known
    if not bool(is_within.all()) or not are_taken(declaration, case, judged.given, device):
        return None
    return replace(
        found, passed=True, class_=None, rule="oracle", message=None, bad=0, index=None, got=None, expected=None
    )


def are_taken(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str) -> bool:
    """Tells whether torch's function, or the reference, takes exponentials of sums in `case`."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: set[str] = set()

    class Names(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes a second (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(func._schema.name.rpartition("::")[2].rstrip("_"))
            return func(*args, **(kwargs or {}))

    try:
        function = oracle.ready(declaration, case, device)
        kwargs = called_with.kwargs_of(declaration, case)
        with Names():  # type: ignore[no-untyped-call]
            oracle.called(function, declaration, case, oracle.copies(given), kwargs, device, None)
    except Exception as error:
        if oracle.is_own(error):
            raise
        return False
    return any(name in TAKING or "attention" in name for name in seen)
