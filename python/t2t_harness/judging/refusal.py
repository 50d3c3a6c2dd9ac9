"""Whether a wrapper that raised may: it need not take what nobody declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_away, arguments_special, arguments_words, cases, probes

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.judging.told import Facts


def is_refusal(declaration: Declaration, case: cases.Case, facts: Facts) -> bool:
    """Tells whether a wrapper that raised says that it does not take what nobody declared: it may, if it says so. That is an argument at another value, with a constructor's any exception does, and with a word that nobody names, an index or a count that is never drawn, a shape, a type or a layout of one input alone, a length beyond all that are measured, or none along a dim."""
    is_exception = facts["failure"]["class"] == "exception"
    is_beyond = probes.is_beyond(declaration, case) or probes.is_without(case)
    if is_exception and case.init is not None:
        return True
    if is_exception and (is_beyond or (case.is_probe and probes.is_unlike(case))):
        return True
    is_apart = case.is_probe and case.layout == cases.APART
    if not probes.is_undeclared(case) and not is_apart:
        return False
    changed = case.kwargs or {}
    is_loose = arguments_away.is_of_another_kind(declaration, changed) or arguments_special.has_other_whole(
        declaration, changed
    )
    if is_exception and arguments_special.has_zero(declaration, changed):
        return True
    if is_exception and arguments_words.is_other(declaration, changed):
        # A table of the wrapper's has no such word.
        return True
    if is_exception and is_loose and facts.get("is_of_kind") and not facts.get("is_taken"):
        return True
    return bool(facts.get("is_deliberate"))
