"""The runs of a case, by the labels under which a candidate leaves what came of them and a judge finds it. It does not know what a run does."""

from __future__ import annotations

from t2t_harness.cases import seeds

REVERSED = "r"
"""The label of the run in which programs go in reverse order that may wait for each other, too."""

UPDATED = "u"
"""The label of the run on tensors that the wrapper was called on before, with other values."""

TRIED = "t"
"""The label of the run in which an autotuner tries a configuration before it calls with it."""

CONFIGURATION = "c"
"""What the label of a run with another configuration than the first begins with; its number follows."""


def of_configuration(index: int) -> str:
    """Returns the label of the run with configuration `index`."""
    return f"{CONFIGURATION}{index}"


def whose(label: str) -> str:
    """Returns which run it is in whose result something is wrong, in words; nothing for the first two, and for the one in reverse order, of which more is said."""
    if label in ("a", "b", REVERSED):
        return ""
    if label == UPDATED:
        return " (called again on the same tensors, whose values had changed in place)"
    if label == TRIED:
        return " (in a first call, in which the autotuner has tried a configuration before: see `reset_to_zero` and `restore_value` of triton.autotune)"
    if seeds.is_of_other_seed(label):
        return " (another seed)"
    return f" (configuration {label.removeprefix(CONFIGURATION)})"
