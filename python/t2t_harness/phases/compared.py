"""One result of a call that was timed, or that stands for calls that are, held against torch's by the rules of a check.

torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise
from t2t_harness.judging import comparing, oracle, pointing, rounding
from t2t_harness.phases import passes

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration


def is_timed(which: str, declaration: Declaration, name: str, given: Mapping[str, torch.Tensor]) -> bool:
    """Tells whether the result `name` is one of the passes that are timed."""
    if name.startswith("grad."):
        return which != passes.FORWARD
    if which == passes.BACKWARD:
        return False
    changed = {f"after.{one}" for one in given if one in declaration["mutates"]}
    return name in changed or name.isdecimal()


def wrong(
    declaration: Declaration,
    case: cases.Case,
    name: str,
    stored: dict[str, torch.Tensor],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
    flows: oracle.Flows | None = None,
) -> str | None:
    """Returns what is wrong with the result `name`, by the rules of a check, or None."""
    import torch

    plain = right.plain[name]
    if comparing.is_ignored(declaration, name):
        return None
    if plain.dtype.is_complex and not stored[name].dtype.is_complex:
        stored[name] = torch.view_as_complex(stored[name])
    out = stored[name]
    if (out.shape, out.dtype) != (plain.shape, plain.dtype):
        return f"{list(out.shape)} of {out.dtype}, {list(plain.shape)} of {plain.dtype} expected"
    is_exact = declaration["precision"] == "ieee" or case.dtype != "float32"
    wide = None if right.oracle is None else right.oracle[name]
    judged = comparing.Judged(given, right.plain, stored)
    found = comparing.compare(declaration, case.dtype, name, judged, wide, whole=is_exact)
    if found.class_ == "mismatch" and found.bad and not elementwise.leaves_a_rest(declaration):
        # Of millions of sums over thousands of terms a few lose more bits than torch's in their row: what the last bits of the inputs are worth is allowed.
        loose = (oracle.slack(declaration, case, given, right, plain.device.type, flows) or {}).get(name)
        found = comparing.compare(declaration, case.dtype, name, judged, wide, whole=is_exact, slack=loose)
    if not found.passed:
        found = pointing.compared(declaration, case, name, judged, plain.device.type, flows) or found
    if not found.passed:
        for other in pointing.references(declaration, case, given, plain.device.type, flows):
            other_wide = None if other.oracle is None else other.oracle[name]
            beside = comparing.Judged(given, other.plain, stored)
            again = comparing.compare(declaration, case.dtype, name, beside, other_wide, whole=is_exact)
            found = again if again.passed else found
    if not found.passed and found.class_ == "mismatch":
        either = rounding.either_way(declaration, case, name, judged, wide, plain.device.type, flows)
        if either is not None:
            again = comparing.compare(declaration, case.dtype, name, either, wide, whole=is_exact)
            found = again if again.passed else found
    return found.message
