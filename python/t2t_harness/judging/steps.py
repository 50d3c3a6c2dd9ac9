"""The comparison of results in float8: a result is rounded to few numbers, and a right one is now and then the next of them.

Within a float8 the distance between neighbours is up to an eighth of the number, or a quarter. An absolute or relative tolerance of that size says nothing: a result that is cut off where it should be rounded, or two
steps of a scale off, is within it. What tells is how often it is the next number. torch is imported only inside functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2t_harness.cases import eights
from t2t_harness.judging import tolerance

if TYPE_CHECKING:
    import torch

SHARE = 128
"""One of so many elements may be the next number, and one in any case: a sum in another order lies on the other side of the middle of two numbers seldom."""

NO_NUMBER = 1 << 12
"""The place of NaN, far from all others."""

FLOATS = (*eights.EIGHTS, eights.SCALES)
"""The types that are compared so."""


def are_counted(dtype: torch.dtype) -> bool:
    """Tells whether results of a dtype are compared by steps."""
    return str(dtype).removeprefix("torch.") in FLOATS


def compare(
    out: torch.Tensor, right: torch.Tensor, wide: torch.Tensor | None, allowed: tuple[float, float]
) -> tolerance.Comparison:
    """Returns the comparison of a result in float8 with torch's, and with the oracle's of that type, if there is one; what is within `allowed` (atol, rtol) of torch's is right in any case.

    It may be either of the two. It may be as many steps from the nearer one as torch's is from the oracle's anywhere, or one, in one of `SHARE` elements, or twice as many as torch's differs in, whichever is most. The two are apart where the reference
    computes in a type of 16 bits. A NaN is to be where one of them has one.
    """
    own = places(right)
    other = own if wide is None or wide.shape != right.shape or wide.dtype != right.dtype else places(wide)
    apart = (own - other).abs()
    apart = apart.where(apart < NO_NUMBER // 2, apart.new_zeros(()))
    off = (places(out) - own).abs().minimum((places(out) - other).abs())
    values, expected = out.double(), right.double()
    errors = (values - expected).abs()
    off = off.where(~(errors <= allowed[0] + allowed[1] * expected.abs()), off.new_zeros(()))
    reach, seldom = max(1, _most(apart)), max(1, out.numel() // SHARE, 2 * int((apart > 0).sum()))
    far, near = off > reach, (off > 0) & (off <= reach)
    count = int(near.sum())
    worst = _worst(errors)
    if not bool(far.any()) and count <= seldom:
        rule = "allclose" if count == 0 else "oracle"
        return tolerance.Comparison(
            True, None, rule, None, *_figures(errors, expected), 0, out.numel(), None, None, None
        )
    bad = far | near if count > seldom else far
    first = int(bad.reshape(-1).int().argmax())
    got, told = float(values.reshape(-1)[first]), float(expected.reshape(-1)[first])
    is_nan = bool((values.isnan() ^ expected.isnan()).reshape(-1)[first])
    index = tolerance.unravel(first, list(right.shape))
    words = f"{int(bad.sum())} of {out.numel()} elements are wrong, first {index}: got {got:g}, expected {told:g}"
    if not bool(far.any()):
        words += f" (numbers next to torch's, of which rounding explains {seldom}; the worst is off by {worst:g})"
    figures = _figures(errors, expected)
    class_ = "nan" if is_nan else "mismatch"
    return tolerance.Comparison(False, class_, None, words, *figures, int(bad.sum()), out.numel(), index, got, told)


def places(value: torch.Tensor) -> torch.Tensor:
    """Returns the place of each number of a float8 among all of its type, zero at 0 with either sign, or the least of the powers of two; that of NaN is far from all."""
    import torch

    bits = value.contiguous().view(torch.uint8).int()
    size = bits & 0x7F
    is_scale = str(value.dtype).endswith(eights.SCALES)
    placed = bits if is_scale else torch.where(bits > 0x7F, -size, size)
    return placed.masked_fill(value.float().isnan(), NO_NUMBER)


def _most(steps: torch.Tensor) -> int:
    return int(steps.max()) if steps.numel() else 0


def _worst(errors: torch.Tensor) -> float:
    known = errors[errors.isfinite()]
    return float(known.max()) if known.numel() else 0.0


def _figures(errors: torch.Tensor, expected: torch.Tensor) -> tuple[float, float, float]:
    """Returns the largest error, the same relative to the largest value, and torch's own, which is none."""
    worst = _worst(errors)
    scale = _worst(expected.abs())
    return worst, worst / scale if scale > 0 else worst, 0.0
