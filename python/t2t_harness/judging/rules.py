"""The comparison of one result of a case with what is right, by the rule of the case's values, and with the other results that are right, too.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise, probe_coarse, probe_scaled
from t2t_harness.judging import (
    comparing,
    exponents,
    oracle,
    otherwise,
    pointing,
    rounding,
    sequence,
    tolerance,
    undefined,
)
from t2t_harness.judging.trial import Trial

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

DECIDING = ("zeros", "ties", cases.PLANTED, probe_scaled.SCALED, probe_coarse.COARSE)
"""Values that are numbers of few bits, between which a kernel has to decide: what their last bits are worth says nothing."""

NEAR_ZERO = ("declared", "ends", "small", "denormal", "extreme")
"""Values among which small ones are, of which some functions of torch's make small results without losing digits."""

TAIL = 2.0**-10
"""The relative error that is allowed where results approach zero: formulas that keep digits there differ in their last ones."""


def compared(
    trial: Trial,
    case: cases.Case,
    name: str,
    judged: comparing.Judged,
    right: oracle.Reference,
    slack: Mapping[str, torch.Tensor] | None = None,
) -> tolerance.Comparison:
    """Returns the comparison of one result, as declared, under the tolerance of the case's dtype; `slack` is what the last bits of the inputs are worth."""
    exact = trial.declaration["precision"] == "ieee" or case.dtype != "float32"
    wide = None if right.oracle is None else right.oracle[name]
    whole = exact and case.values in ("declared", "ends")
    loose = None if slack is None else slack.get(name)
    declaration = comparing.of_case(trial.declaration, case)
    small = relative(trial.declaration, case) if name.isdecimal() else None
    dtype = comparing.narrowest(case)
    return comparing.compare(declaration, dtype, name, judged, wide, whole=whole, slack=loose, small=small)


def relative(declaration: Declaration, case: cases.Case) -> float | None:
    """Returns how far from the oracle each element of an output may be at least, relative to its size, where that is asked for in `case`, or None."""
    if case.values == cases.TAILS:
        return TAIL
    is_asked = case.values in NEAR_ZERO and case.dtype in cases.FLOATING and elementwise.is_exact(declaration)
    return 0.0 if is_asked else None


def right_elsewhere(trial: Trial, case: cases.Case, name: str, judged: comparing.Judged) -> tolerance.Comparison | None:
    """Returns the comparison with torch's result on the CPU, as it comes or by the formula of attention or of distances, if the result is right by one of them; None where it is not, or torch raises there. How far a NaN spreads depends on how torch computes, which differs between the CPU and a device, and between shapes."""
    given = {key: value.cpu() for key, value in judged.given.items()}
    made = {key: value.cpu() for key, value in judged.made.items()}
    for right in otherwise.references(trial.declaration, case, given, trial.device):
        with contextlib.suppress(RuntimeError, KeyError, ValueError):
            found = compared(trial, case, name, comparing.Judged(given, right.plain, made), right)
            if found.passed:
                return found
    return None


def says_nothing(trial: Trial, case: cases.Case, rule: str) -> bool:
    """Tells whether a rule need not be asked: the kernel is rejected for another case already, and for one of the same keyword arguments the rule had nothing to say. Each calls the reference anew, which takes seconds where that is a loop over time."""
    return trial.first is not None and (rule, repr(case.kwargs)) in trial.silent


def in_another_order(
    trial: Trial, case: cases.Case, name: str, judged: comparing.Judged
) -> tolerance.Comparison | None:
    """Returns the comparison with what the reference makes where it sorts equal values in another order, if the result is right by it, else None."""
    if says_nothing(trial, case, "order"):
        return None
    rights = pointing.references(trial.declaration, case, judged.given, trial.device)
    first = next(rights, None)
    if first is None:
        trial.silent.add(("order", repr(case.kwargs)))
    for right in chain(() if first is None else (first,), rights):
        with contextlib.suppress(KeyError):
            found = compared(trial, case, name, comparing.Judged(judged.given, right.plain, judged.made), right)
            if found.passed:
                return found
    return None


def beside_nan(
    trial: Trial, case: cases.Case, name: str, judged: comparing.Judged, right: oracle.Reference
) -> tolerance.Comparison | None:
    """Returns the comparison by what a reference in Python says beside a NaN: nothing, where its formula has no value for infinities, or a number on which the NaN has no bearing. None where the result is wrong by that, too."""
    known = undefined.known(trial.declaration, case, judged, name, right, trial.device)
    found = None if known is None else compared(trial, case, name, *known)
    return found if found is not None and found.passed else None


def where_it_counts(
    trial: Trial, case: cases.Case, name: str, judged: comparing.Judged, right: oracle.Reference
) -> tolerance.Comparison | None:
    """Returns the comparison of what does not depend on what a reference in Python makes of a comparison with NaN. None where the result is wrong by that, too."""
    known = undefined.decided_by_nan(trial.declaration, case, judged, name, right, trial.device)
    found = None if known is None else compared(trial, case, name, known, right)
    return found if found is not None and found.passed else None


LATER = 1000
"""After the first rejected case a reference is asked once more, or several times, for so many operations of torch at most: a loop over time has as many for each case, takes seconds, and what is wrong stays so."""


def either_way(
    trial: Trial, case: cases.Case, name: str, judged: comparing.Judged, right: oracle.Reference
) -> tolerance.Comparison | None:
    """Returns the comparison in which a result is right, too, where a reference in Python has it with its own roundings moved, and decides something by that. None where the result is wrong by that, too."""
    wide = None if right.oracle is None else right.oracle.get(name)
    limit = None if trial.first is None else LATER
    either = rounding.either_way(trial.declaration, case, name, judged, wide, trial.device, limit=limit)
    found = None if either is None else compared(trial, case, name, either, right)
    return found if found is not None and found.passed else None


def in_sequence(
    trial: Trial, case: cases.Case, name: str, judged: comparing.Judged, right: oracle.Reference
) -> tolerance.Comparison | None:
    """Returns the comparison with what torch makes where it adds up long sums term by term. None where the result is wrong by that, too."""
    plain = sequence.reference(trial.declaration, case, judged.given, trial.device)
    if plain is None or name not in plain or plain[name].shape != right.plain[name].shape:
        return None
    other = replace(right, plain={**right.plain, name: plain[name]})
    found = compared(trial, case, name, replace(judged, right=other.plain), other)
    return found if found.passed else None


def weighed(
    trial: Trial,
    case: cases.Case,
    name: str,
    judged: comparing.Judged,
    right: oracle.Reference,
    slack: Mapping[str, torch.Tensor],
) -> tolerance.Comparison | None:
    """Returns the comparison in which a result is right, too, that is off by what the last bits of large exponents are worth; `slack` is what those of the inputs are. None where the result is wrong by that, too."""
    if says_nothing(trial, case, f"exponents {name}"):
        return None
    worth = exponents.worth(trial.declaration, case, name, judged.given, trial.device)
    if worth == 0.0:
        trial.silent.add((f"exponents {name}", repr(case.kwargs)))
    if worth == 0.0 or (worth > exponents.MOST and case.values != "large"):
        return None
    wide = None if right.oracle is None else right.oracle.get(name)
    expected = judged.right[name] if wide is None else wide
    allowed = exponents.scale_of(expected) * (worth / tolerance.SLACK)
    loose = allowed.expand(expected.shape) + slack.get(name, 0.0) if worth <= exponents.MOST else slack.get(name)
    found = compared(trial, case, name, judged, right, {} if loose is None else {name: loose})
    if not found.passed and worth > exponents.MOST:
        found = exponents.seldom(judged, name, wide, found) or found
    return found if found.passed else None
