"""The case lint: wrong results, made from the right ones, that an op's cases must reject before they may judge a
kernel.

Each mutant must be rejected by at least one case per dtype. What all cases accept is reported, and the cases are unfit.
The zeros that public benchmarks accepted, because the reference was smaller than the absolute tolerance, are why. torch
is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from t2t_harness.judging import tolerance

if TYPE_CHECKING:
    import torch

MUTANTS = ("zeros", "ones", "first-input", "mean", "previous", "tail-unwritten", "tf32")

OF_OTHERS = "previous"
"""The mutant that is made of another case, which may differ from check to check."""

CONSTANT = ("zeros", "ones")
"""Mutants that a right result may equal only where the inputs say nothing: never excused."""


def mutant(
    name: str, right: torch.Tensor, first_input: torch.Tensor | None, previous: torch.Tensor | None
) -> torch.Tensor | None:
    """Returns the wrong result `name` of the same shape and dtype as `right`, or None where it does not exist for this
    output.

    `previous` is the right result of another case of the same shape.
    """
    import torch

    if right.numel() == 0:
        return None
    if name == "zeros":
        return torch.zeros_like(right)
    if name == "ones":
        return torch.ones_like(right)
    if name == "first-input":
        return _alike(first_input, right)
    if name == "mean":
        return _mean(right)
    if name == "previous":
        return _alike(previous, right)
    if name == "tail-unwritten":
        return _tail_unwritten(right)
    if name == "tf32":
        return tolerance.through_tf32(right) if right.dtype is torch.float32 else None
    raise ValueError(f"no mutant is called `{name}`")


def _alike(value: torch.Tensor | None, right: torch.Tensor) -> torch.Tensor | None:
    if value is None or value.shape != right.shape or value.dtype != right.dtype:
        return None
    return value


def _mean(right: torch.Tensor) -> torch.Tensor:
    import torch

    if right.dtype.is_complex:
        return torch.full_like(right, complex(right.to(torch.complex128).mean()))
    wide = right.double()
    known = (wide - wide) == 0
    count = int(known.sum())
    mean = float(wide.where(known, wide.new_zeros(())).sum()) / count if count > 0 else 0.0
    return torch.full_like(right, mean) if right.dtype.is_floating_point else torch.full_like(right, int(mean))


def _tail_unwritten(right: torch.Tensor) -> torch.Tensor:
    """Returns `right` with its last row as fresh memory: NaN, or for integers the bits of another number."""
    changed = right.clone()
    tail = changed.reshape(-1)[-1:] if changed.dim() < 2 else changed.flatten(0, -2)[-1]
    if right.dtype.is_floating_point or right.dtype.is_complex:
        tail.fill_(float("nan"))
    else:
        tail.copy_(~tail)
    return changed


def is_same(wrong: torch.Tensor, right: torch.Tensor) -> bool:
    """Tells whether two results of one shape are equal, NaN with NaN: a copy of an input that has some is what an identity returns."""
    return bool(((wrong == right) | ((wrong != wrong) & (right != right))).all())


class Lint:
    """Collects, per dtype, which case rejected which mutant."""

    def __init__(self) -> None:
        self.rejected: dict[tuple[str, str], list[str]] = {}
        """(dtype, mutant) → the case that rejects it, if any; present once the mutant existed in a case."""
        self.differs: set[tuple[str, str]] = set()
        """Mutants that differ from the right result in some case, though it may be within the tolerance."""
        self.single: set[tuple[str, str]] = set()
        """Mutants of results of one element."""

    def judge(
        self,
        case: str,
        dtype: str,
        right: torch.Tensor,
        first_input: torch.Tensor | None,
        previous: torch.Tensor | None,
        rejects: Callable[[str, torch.Tensor], bool],
        names: tuple[str, ...],
        of: str = "",
        is_right: Callable[[torch.Tensor], bool] | None = None,
    ) -> None:
        """Makes the mutants `names` of `right`, and notes the first case in which each is rejected.

        `rejects` takes a mutant's name and the wrong result. `of` tells apart the results of an op that has several.
        `is_right` tells whether a result that is not the same is as right, as a set in another order is.
        """
        for name in names:
            key = (dtype, name + of)
            wrong = None if self.rejected.get(key) else mutant(name, right, first_input, previous)
            if wrong is None:
                continue
            found = self.rejected.setdefault(key, [])
            if right.numel() == 1:
                self.single.add(key)
            if is_same(wrong, right) or (is_right is not None and is_right(wrong)):
                continue
            self.differs.add(key)
            if rejects(name, wrong):
                found.append(case)

    def document(self) -> dict[str, list[str]]:
        """Returns mutant → a case of each dtype that rejects it."""
        found: dict[str, list[str]] = {}
        for (_, name), cases in self.rejected.items():
            found.setdefault(name, []).extend(cases)
        return found

    def unfit(self) -> list[str]:
        """Returns the mutants that every case of a dtype accepts, as `zeros (float32)`.

        One that equals the right result in every case, as a copy of the input does for an identity, is excused, unless
        it is a constant. So is one element of another case that another dtype rejects: means of many values differ by
        less than types of 16 bits tell.
        """
        return [
            f"{name} ({dtype})"
            for (dtype, name), cases in self.rejected.items()
            if not cases
            and ((dtype, name) in self.differs or name.partition(" ")[0] in CONSTANT)
            and not self.is_alike(dtype, name)
        ]

    def is_alike(self, dtype: str, name: str) -> bool:
        """Tells whether a mutant is one element of another case, and is rejected in another dtype."""
        is_one = name.partition(" ")[0] == OF_OTHERS and (dtype, name) in self.single
        return is_one and any(cases for (_, other), cases in self.rejected.items() if other == name)
