"""What is wrong with one case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Failure
    from t2t_harness.judging import tolerance


@dataclass
class Finding:
    """What is wrong with one case."""

    class_: str
    message: str
    comparison: tolerance.Comparison | None = None
    record: Failure | None = None
    """The `Failure` that the candidate made, where its traceback is the news."""
    label: str | None = None
    """The run that showed it, where a single one did."""


def first_of(found: Iterable[Finding | None]) -> Finding | None:
    """Returns the first of `found` that is not None."""
    return next((one for one in found if one is not None), None)
