"""Results that go through exponentials of large numbers: the last bit of an exponent is worth much of what becomes of it there.

Two ways of writing a kernel that are as good as any show by it. One keeps the logarithm of a row's sum, beside which that of a small second term is lost. In the other each thread adds up products of its own, where a fused multiply-add rounds
less than what the thread gets from its neighbours: the same sum has two values, and the exponential of their difference is not one. What the last bits of the inputs are worth does not tell: a softmax is the same where all of a row moves. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with, elementwise
from t2t_harness.judging import comparing, oracle, otherwise, tolerance

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

SHARE = 128
"""Where the last bit is worth more than `MOST`, one of so many elements may be off by as much as its row has, and one in any case."""

MOST = 2.0**-4
"""How much of a row's largest value the last bit of an exponent may be worth for all elements to be off by that."""

LAST_BIT = 2.0**-22
"""The distance of neighbouring float32 numbers, of two roundings, beside the larger one."""

POWERS = frozenset("exp exp2".split())
"""Operations of torch that take exponentials element by element."""

WEIGHTS = frozenset("_softmax _safe_softmax".split())
"""Operations that take exponentials and sum them up, of which results are."""

LOGARITHMS = frozenset("_log_softmax logsumexp logcumsumexp _logcumsumexp logaddexp logaddexp2".split())
"""Operations that take logarithms of sums of exponentials: gradients are of exponentials, results are as large as the exponents."""

DIFFERENCES = frozenset("sub rsub".split())
"""Operations that make exponents small, as where the largest one is subtracted: what they are of is as large as before."""

SUMS = frozenset("sum mean cumsum mm bmm addmm baddbmm addmv mv dot convolution".split())
"""Operations that sum up: where there is none an exponential is rounded as any other element."""


@dataclass
class Exponents:
    """What is seen of the exponentials of an op."""

    most: float = 0.0
    """The largest number that became an exponent, or that one was subtracted from on the way to an exponent."""
    has_powers: bool = False
    has_sums: bool = False
    has_weights: bool = False
    has_logarithms: bool = False
    are_sums: bool = False
    """Whether an exponent was computed of a sum."""


def worth(declaration: Declaration, case: Case, name: str, given: Mapping[str, torch.Tensor], device: str) -> float:
    """Returns how much of a row's largest value the last bits of exponents are worth in the result `name`; 0 where it has nothing to do with exponentials of sums."""
    if elementwise.is_elementwise(declaration):
        return 0.0
    found = seen(declaration, case, given, device)
    is_of_weights = found.has_weights or (found.has_powers and found.has_sums)
    is_of_weights |= found.has_logarithms and "grad" in name
    return LAST_BIT * found.most if is_of_weights else 0.0


def are_lost(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str) -> bool:
    """Tells whether a case of `large` values says nothing on a device: exponents are sums there whose last bits are worth more than `MOST`. Threads that fuse products and sums have two values of one sum, by which an exponential of their difference overflows."""
    if case.values != "large" or device == "cpu" or elementwise.is_elementwise(declaration):
        return False
    found = seen(declaration, case, given, device)
    return found.are_sums and LAST_BIT * found.most > MOST


def seldom(
    judged: comparing.Judged, name: str, wide: torch.Tensor | None, found: tolerance.Comparison
) -> tolerance.Comparison | None:
    """Returns the comparison in which the result `name`, of which the one `found` tells that it is wrong, is right: few of its elements are off, each by no more than the largest value of its row. None where it is wrong by that, too."""
    if not 0 < found.bad <= max(1, found.total // SHARE):
        return None
    made, right = judged.made[name].double(), (judged.right[name] if wide is None else wide).double()
    if made.is_complex() or made.shape != right.shape or made.dim() == 0:
        return None
    is_within = ((made - right).abs() <= scale_of(right)) | ~right.isfinite()
    if not bool(is_within.all()):
        return None
    return replace(
        found, passed=True, class_=None, rule="oracle", message=None, bad=0, index=None, got=None, expected=None
    )


def scale_of(right: torch.Tensor) -> torch.Tensor:
    """Returns the largest finite value of each row, which is kept as a dim; of what has no dims itself."""
    sizes = right.double().abs().where(right.isfinite(), 0.0)
    return sizes.amax(dim=-1, keepdim=True) if sizes.dim() > 0 and sizes.numel() > 0 else sizes


def seen(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str) -> Exponents:
    """Returns what torch's function, or the reference, makes exponentials of in `case`; nothing where it raises."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.weak import WeakIdKeyDictionary

    found = Exponents()
    before: MutableMapping[torch.Tensor, float] = WeakIdKeyDictionary()
    summed: MutableMapping[torch.Tensor, bool] = WeakIdKeyDictionary()

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes a second (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._schema.name.rpartition("::")[2].rstrip("_")
            found.has_sums |= name in SUMS
            found.has_powers |= name in POWERS
            found.has_weights |= name in WEIGHTS
            found.has_logarithms |= name in LOGARITHMS
            given = [one for one in args[:3] if isinstance(one, torch.Tensor)]
            # What a difference is of is as large in what is computed of it, up to an exponential.
            most = max((before.get(one, 0.0) for one in given), default=0.0)
            if name in WEIGHTS | LOGARITHMS | DIFFERENCES | POWERS:
                most = max(most, *map(largest, args[:2]))
            is_sum = any(one in summed for one in given)
            if name in WEIGHTS | LOGARITHMS | POWERS:
                found.most = max(found.most, most)
                found.are_sums |= is_sum
            made = func(*args, **(kwargs or {}))
            if name not in WEIGHTS | LOGARITHMS | POWERS and isinstance(made, torch.Tensor):
                before[made] = most
                if is_sum or name in SUMS:
                    summed[made] = True
            return made

    try:
        function = oracle.ready(declaration, case, device)
        kwargs = called_with.kwargs_of(declaration, case)
        with otherwise.by_formula(), Watch():  # type: ignore[no-untyped-call]
            oracle.called(function, declaration, case, oracle.copies(given), kwargs, device, None)
    except Exception as error:
        if oracle.is_own(error):
            raise
        return Exponents()
    return found


def largest(value: object) -> float:
    """Returns the largest finite number of a tensor of floats, 0 of anything else."""
    import torch

    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() == 0:
        return 0.0
    return float(value.abs().where(value.isfinite(), 0.0).max())
