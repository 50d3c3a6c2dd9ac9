"""What the verdicts on single cases come to: whether a check has judged enough to pass.

It reads rows of evidence and knows nothing of tensors. Whether a case is right is not decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CaseRow, Declaration, UnjudgedDtype

Rows: TypeAlias = "Sequence[CaseRow]"


def not_judged(rows: Rows, declaration: Declaration, unloaded: str | None) -> str | None:
    """Returns why a check without a failing case does not pass: how many of its cases were not judged, and the reason most have.

    It passes if each declared case of the first dtype was judged and one judged case launched a kernel. `unloaded` is
    why nothing was run at all. None if it passes.
    """
    first = declaration["dtypes"][0]
    needed = [row for row in rows if row["kind"] == "declared" and row["dtype"] == first]
    missing = [row for row in needed if row["verdict"] != "passed"]
    has_launched = any(row["verdict"] == "passed" and row["launches"] > 0 for row in rows)
    if needed and not missing and has_launched:
        return None
    left = [row for row in rows if row["verdict"] == "not-judged" or row in missing]
    counted = f"{len(left)} of {_cases(len(rows))} not judged" if left else "no case launched a kernel"
    reason = unloaded or _most_common(missing or left)
    return counted if reason is None else f"{counted}: {reason}"


def unjudged_dtypes(rows: Rows) -> list[UnjudgedDtype]:
    """Returns, for each dtype with cases that were not judged, how many of its cases were not, and the reason most have."""
    found: list[UnjudgedDtype] = []
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        own = [row for row in rows if row["dtype"] == dtype]
        left = [row for row in own if row["verdict"] == "not-judged"]
        if left:
            found.append({"dtype": dtype, "cases": len(left), "of": len(own), "reason": _most_common(left)})
    return found


def _most_common(rows: Rows) -> str | None:
    """Returns the reason that most of `rows` have; of equally common ones the first."""
    reasons = Counter(str(row["reason"]) for row in rows if row["reason"])
    return reasons.most_common(1)[0][0] if reasons else None


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
