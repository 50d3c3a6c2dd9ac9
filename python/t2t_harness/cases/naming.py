"""What a case and its results are called where people read of them: shapes, strides, dtypes in one line, outputs by
name.

Knows nothing of values and verdicts. torch is imported nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_harness.cases.cases import Case

LENGTH = 600
"""The line of a case is cut to this many characters."""

SPECIAL = {
    "large": "large values",
    "equal-rows": "rows of equal values",
    "special": "NaN and infinities in an input",
    "nan-rows": "rows of NaN",
    "sunk": "values far below zero alone",
    "void": "minus infinity alone",
    "raised": "values whose exponentials overflow",
    "below": "negative values alone",
    "zero": "zeros alone",
    "eighths": "eighths",
    "every": "all numbers of a float8",
    "coarse": "small multiples of a number in all inputs",
    "one-nan": "one NaN",
    "first-nan": "NaN in the first place",
    "one-inf": "one infinity",
    "one-negative-inf": "one minus infinity",
    "runs": "each value three times in a row",
    "low": "minus infinity in the first half of an input",
    "late-true": "a mask that is true at the end of each row alone",
    "late": "NaN and infinity late in a row",
    "masked": "minus infinity at the beginning of rows",
    "pairs": "special numbers that meet",
    "counts": "large counts",
    "bounds": "integers at both ends of what they may be",
    "long-count": "a large count",
    "negative": "indices that count from the end",
    "tails": "values at which results approach zero",
    "powers": "powers of two and the numbers beside them",
    "scaled-halves": "halves of a scale",
    "hidden-false": "NaN where a mask is false",
    "hidden-true": "NaN where a mask is true",
    "hidden-behind": "NaN from the place on that an integer says",
    "hidden-low": "NaN beside minus infinity",
    "hidden-pages": "NaN where no row of a paged cache lies",
    "neighbours": "integers that a float does not tell apart",
}
"""What is special about the values of a case, in words."""


def given(case: Case, inputs: Mapping[str, object], kwargs: Mapping[str, object]) -> str:
    """Returns one line that tells of the case: its kind, each input's dtype, shape and, where it is not dense, strides,
    and the keyword arguments."""
    told = [f"{name} {described(value)}" for name, value in inputs.items()]
    told += [f"{name}={value!r}" for name, value in kwargs.items()]
    line = f"{kind(case)}: {', '.join(told)}" if told else kind(case)
    return line if len(line) <= LENGTH else line[: LENGTH - 1] + "…"


def kind(case: Case) -> str:
    """Returns what kind of case it is, in words."""
    special = [
        "" if case.layout is None else f"{case.layout} inputs" if case.of is None else f"`{case.of}` {case.layout}",
        SPECIAL.get(case.values, ""),
        "a broadcast input" if case.broadcast else "",
        "the module in evaluation" if case.evaluates else "",
    ]
    words = [word for word in special if word]
    return f"{case.kind} case" + (f" with {' and '.join(words)}" if words else "")


def described(value: Any) -> str:
    """Returns a tensor as `float32[16, 512] strides (1024, 2)`, a list of them in brackets, anything else as Python
    writes it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(described(item) for item in value)}]"
    if not hasattr(value, "stride"):
        return repr(value)
    shape, strides = list(value.shape), tuple(value.stride())
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}{shape}" + ("" if is_dense(shape, strides) else f" strides {strides}")


def is_dense(shape: list[int], strides: tuple[int, ...]) -> bool:
    """Tells whether rows of `shape` lie one behind the other; the stride of a dim of length 1 says nothing."""
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1 and stride != step:
            return False
        step *= max(length, 1)
    return True
