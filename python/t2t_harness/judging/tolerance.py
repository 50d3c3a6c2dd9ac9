"""The comparison rules: whether one output is right, and by how much it is off.

Three results meet here: the candidate's, torch's in the tested dtype, and the oracle, torch's in float64 on the same
rounded inputs. Rows are runs along the last dim. docs/reference/judging.md gives the rules in words. torch is imported only
inside functions.

A device takes milliseconds to load each kernel of torch's that a process has not used yet, so elements are compared with few kinds of operations,
and what there is one of for each row is computed on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import torch

TF32_RTOL = 2e-5
"""A declared relative tolerance up to this asks for more than TF32 gives."""

TF32_SHARE = 2.0**-13
"""An absolute error that is this share of a result's size is a quarter of what rounding to TF32 changes."""

OWN = 16
"""How many times torch's largest error an absolute tolerance is at least, where it shrinks with the size of a result."""

SLACK = 8
"""How many times what the last bits of the inputs are worth a result may be off where that is asked for: sums lose a few of them."""

UNDERFLOW = 2.0**10
"""How many times the smallest normal number a result is at which nothing is asked of its digits."""

RELATIVE = 8
"""How many times torch's largest relative error a small result may be off where that is asked for: other formulas that are exact lose a few more bits."""

EXACT = 16
"""So many last bits torch's own results may be off where others are held to their size."""

WHOLE = 64
"""Fewest elements of an output whose error as a whole is judged: over fewer, cancellation in one decides it."""


@dataclass(frozen=True)
class Comparison:
    """What comparing one output found. Errors are against the oracle; `max_rel` is relative to the largest value of its
    row."""

    passed: bool
    class_: str | None
    rule: str | None
    message: str | None
    max_abs: float
    max_rel: float
    torch_max_abs: float
    bad: int
    total: int
    index: list[int] | None
    got: float | None
    expected: float | None


def compare(
    out: torch.Tensor,
    torch_out: torch.Tensor,
    oracle: torch.Tensor | None,
    tolerance: tuple[float, float],
    *,
    whole: bool,
    slack: torch.Tensor | None = None,
    small: float | None = None,
) -> Comparison:
    """Returns the comparison of `out` with torch's result and the oracle, all of one shape and on one device.

    `out` and `torch_out` have the tested dtype. `oracle` is in float64, or None where torch has no float64 for the op;
    then torch's result stands for it. `tolerance` is (atol, rtol). `whole` asks for the relative error of the output as
    a whole, too. Eight times the largest `slack` of a row, by which results change with the last bits of the inputs, is allowed beside torch's own error.
    `small` asks of each element, however small, an error relative to its size, of which so much is allowed at least, where torch's own is no more than a few of the last bits.
    """
    if not torch_out.dtype.is_floating_point and not torch_out.dtype.is_complex:
        return exact(out, torch_out)
    rows = _rows(out, torch_out, oracle)
    found = _floating(rows, list(torch_out.shape), tolerance, whole=whole, slack=slack)
    if small is None or not found.passed or rows.out.equal(rows.plain):
        return found
    return _small(rows, list(torch_out.shape), found, max(tolerance[1], small), slack)


@dataclass(frozen=True)
class Rows:
    """Three results as rows in float64, and the properties of the tested dtype. The oracle is rounded to that dtype."""

    out: torch.Tensor
    plain: torch.Tensor
    """torch's own result in the tested dtype."""
    oracle: torch.Tensor
    wide: torch.Tensor
    """The oracle as it is."""
    eps: float
    smallest: float
    largest: float


def _rows(out: torch.Tensor, torch_out: torch.Tensor, oracle: torch.Tensor | None) -> Rows:
    import torch

    rounded = torch_out if oracle is None else oracle.to(torch_out.dtype)
    found = torch.finfo(torch_out.dtype)
    wide = _as_rows(torch_out if oracle is None else oracle)
    parts = _as_rows(out), _as_rows(torch_out), _as_rows(rounded)
    return Rows(*parts, wide, found.eps, found.tiny * found.eps, found.max)


def _as_rows(value: torch.Tensor) -> torch.Tensor:
    import torch

    if value.dtype.is_complex:
        value = torch.view_as_real(value.resolve_conj())
        value = value.flatten(-2)
    wide = value.double()
    return wide.reshape(-1, wide.shape[-1]) if wide.dim() > 0 and wide.numel() > 0 else wide.reshape(-1, 1)


def _floating(
    rows: Rows, shape: list[int], tolerance: tuple[float, float], *, whole: bool, slack: torch.Tensor | None = None
) -> Comparison:
    """Returns the comparison of floating rows. Infinities are compared as places, and left out of every figure."""
    import torch

    finite_plain, finite_oracle = _finite(rows.plain), _finite(rows.oracle)
    torch_worst = _largest(_errors(rows.plain, rows.oracle, finite_plain & finite_oracle))
    scale = _largest(rows.oracle.abs().where(finite_oracle, rows.oracle.new_zeros(())))
    if rows.out.equal(rows.plain):
        # Torch's own values, and none of them is NaN: no rule asks for more.
        own = _figures(torch_worst, torch_worst, scale, rows)
        return Comparison(True, None, "allclose", None, bad=0, index=None, got=None, expected=None, **own)
    atol, rtol = tolerance
    finite_out = _finite(rows.out)
    by_oracle = _alike(rows.out, rows.oracle, finite_out, finite_oracle)
    if bool((~finite_out).any()):
        # An infinity that only the tested type makes of a finite number is none where torch has a number: the limit of
        # float64 is no infinity, nor is that of float16.
        by_oracle &= ~(finite_plain & _finite(rows.wide) & (rows.wide.abs() > 2 * rows.largest))
    placed = _alike(rows.out, rows.plain, finite_out, finite_plain) | by_oracle
    finite = placed & finite_out
    reference = torch.where(finite_plain, rows.plain, rows.oracle)
    close = ~finite | ((rows.out - reference).abs() <= atol + rtol * reference.abs())
    known = finite & finite_oracle
    error = _errors(rows.out, rows.oracle, known)
    worst = _largest(error)
    bound = _bound(rows, torch_worst, scale, slack).to(error.device)
    bad = ~(placed & (close | (known & (error <= bound))))
    figures = _figures(worst, torch_worst, scale, rows)
    if bool(bad.any()):
        return _bad(rows, shape, bad, ~finite_out, ~finite_oracle, figures)
    if whole and (off := _whole(rows, known & finite_plain, max(5 * rtol, 4 * rows.eps))) is not None:
        message = f"relative error of the whole output is {off[0]:.2g}, at most {off[1]:.2g} is allowed"
        return Comparison(False, "mismatch", None, message, bad=0, index=None, got=None, expected=None, **figures)
    rule = "oracle" if bool((~close).any()) else "allclose"
    return Comparison(True, None, rule, None, bad=0, index=None, got=None, expected=None, **figures)


def _bound(rows: Rows, torch_worst: torch.Tensor, scale: torch.Tensor, slack: torch.Tensor | None) -> torch.Tensor:
    """Returns how far from the oracle each row may be, on the CPU, of torch's largest error and the largest value of each."""
    bound = 2 * torch_worst + _ulp(scale, rows)
    if slack is None:
        return bound
    loose = _as_rows(slack)
    return bound + SLACK * _largest(loose.where(_finite(loose), loose.new_zeros(())))


def around_oracle(
    torch_out: torch.Tensor, oracle: torch.Tensor, slack: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the oracle rounded to torch's dtype, and how far from it each element may be, both in float64, in torch's shape, and on the CPU; of complex results the parts, in a further dim."""
    import torch

    rows = _rows(torch_out, torch_out, oracle)
    known = _finite(rows.plain) & _finite(rows.oracle)
    torch_worst = _largest(_errors(rows.plain, rows.oracle, known))
    scale = _largest(rows.oracle.abs().where(_finite(rows.oracle), rows.oracle.new_zeros(())))
    bound = _bound(rows, torch_worst, scale, slack).expand(rows.oracle.shape)
    shape = torch.view_as_real(torch_out.resolve_conj()).shape if torch_out.dtype.is_complex else torch_out.shape
    return rows.oracle.cpu().reshape(shape), bound.reshape(shape)


def _small(rows: Rows, shape: list[int], found: Comparison, rtol: float, slack: torch.Tensor | None) -> Comparison:
    """Returns `found`, or in its place that elements are off by more than `rtol`, and than `RELATIVE` times what torch's worst is, relative to their size."""
    known = _finite(rows.out) & _finite(rows.plain) & _finite(rows.oracle)
    size = rows.oracle.abs()
    normal = known & (size >= rows.smallest / rows.eps)
    if not bool(normal.any()):
        return found
    own = float((_errors(rows.plain, rows.oracle, normal) / size.where(normal, size.new_ones(()))).max())
    if own > EXACT * rows.eps:
        return found
    allowed = max(rtol, RELATIVE * (own + rows.eps))
    error = _errors(rows.out, rows.oracle, known)
    bound = allowed * size + RELATIVE * rows.smallest + _lost(size, known, rows)
    if slack is not None:
        loose = _as_rows(slack).to(error.device)
        bound = bound + SLACK * loose.where(_finite(loose), loose.new_zeros(()))
    bad = known & (error > bound)
    if not bool(bad.any()):
        return found
    figures: Figures = {
        "max_abs": found.max_abs,
        "max_rel": found.max_rel,
        "torch_max_abs": found.torch_max_abs,
        "total": found.total,
    }
    told = _bad(rows, shape, bad, ~known, ~known, figures)
    worst = float((error / size.where(size > 0, size.new_ones(()))).where(bad, error.new_zeros(())).max())
    return replace(
        told, message=f"{told.message} (off by {worst:.2g} of the value, where torch is by at most {own:.2g})"
    )


def _lost(size: torch.Tensor, known: torch.Tensor, rows: Rows) -> float:
    """Returns what a result beside others of usual size may be off by, whatever its own size, in types with the exponents of float32 and float64.

    A formula that keeps all digits elsewhere loses such a one: `x / (1 + exp(-x))` is 0 where the exponential is infinite, and -89 times 2e-39 in truth.
    """
    normal = rows.smallest / rows.eps
    is_usual = float(size.where(known, size.new_zeros(())).max()) > rows.eps
    return UNDERFLOW * normal if is_usual and normal < rows.eps**2 else 0.0


class Figures(TypedDict):
    """The figures of a comparison."""

    max_abs: float
    max_rel: float
    torch_max_abs: float
    total: int


def _figures(worst: torch.Tensor, torch_worst: torch.Tensor, scale: torch.Tensor, rows: Rows) -> Figures:
    """Returns the figures of a comparison, of the largest error, torch's, and the largest value of each row."""
    import torch

    return {
        "max_abs": _number(worst),
        "max_rel": _number(worst / scale.where(scale > 0, torch.ones_like(scale))),
        "torch_max_abs": _number(torch_worst),
        "total": rows.out.numel(),
    }


def _bad(
    rows: Rows,
    shape: list[int],
    bad: torch.Tensor,
    odd: torch.Tensor,
    odd_oracle: torch.Tensor,
    figures: Figures,
) -> Comparison:
    """Returns the comparison of an output with `bad` elements. The first of them is the one shown, and where some are of NaN or infinity, the first of those."""
    infinite = bad & (odd | odd_oracle)
    is_nan = bool(infinite.any())
    first = int(bad.reshape(-1).int().argmax())
    shown = int(infinite.reshape(-1).int().argmax()) if is_nan else first
    count = int(bad.sum())
    got, expected = float(rows.out.reshape(-1)[shown]), float(rows.oracle.reshape(-1)[shown])
    index = unravel(shown, shape)
    place = f"[{', '.join(map(str, index))}]" if index else "the only element"
    # The class is of what is shown.
    which = "first" if shown == first else "first of NaN or infinity"
    message = (
        f"{count} of {rows.out.numel()} elements are wrong, {which} {place}: got {got:.9g}, expected {expected:.9g}"
    )
    class_ = "nan" if is_nan else "mismatch"
    return Comparison(False, class_, None, message, bad=count, index=index, got=got, expected=expected, **figures)


def exact(out: torch.Tensor, torch_out: torch.Tensor) -> Comparison:
    """Returns the comparison of what must be equal, as integers and booleans must; NaN equals NaN."""
    wrong = (out != torch_out) & ((out == out) | (torch_out == torch_out))
    count, total = int(wrong.sum()), out.numel()
    if count == 0:
        return Comparison(True, None, "allclose", None, 0.0, 0.0, 0.0, 0, total, None, None, None)
    first = int(wrong.reshape(-1).int().argmax())
    got, expected = float(out.reshape(-1)[first]), float(torch_out.reshape(-1)[first])
    worst = float((out.double() - torch_out.double()).abs().max())
    index = unravel(first, list(torch_out.shape))
    message = f"{count} of {total} elements are wrong, first {index}: got {got:g}, expected {expected:g}"
    return Comparison(False, "mismatch", None, message, worst, worst, 0.0, count, total, index, got, expected)


def torch_is_ill_conditioned(torch_out: torch.Tensor, oracle: torch.Tensor) -> str | None:
    """Returns why no result can be judged by torch's: in some row its own error is large beside the row; else None."""
    if not torch_out.dtype.is_floating_point:
        return None
    rows = _rows(torch_out, torch_out, oracle)
    known = _finite(rows.plain) & _finite(rows.oracle)
    worst = _largest(_errors(rows.plain, rows.oracle, known))
    scale = _largest(rows.oracle.abs().where(known, rows.oracle.new_zeros(())))
    allowed = max(1e-2, 64 * rows.eps)
    # One ulp of the smallest number of the dtype is no error of torch's.
    off = (worst > allowed * scale) & (worst > 64 * rows.smallest)
    if not bool(off.any()):
        return None
    ratio = float((worst[off] / scale[off].clamp(min=rows.smallest)).max())
    return f"ill-conditioned: torch's own error is {ratio:.2g} of the row"


def through_tf32(value: torch.Tensor) -> torch.Tensor:
    """Returns float32 values rounded to TF32's 10 bits of mantissa, to nearest."""
    import torch

    bits = value.contiguous().view(torch.int32)
    rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(_finite(value), rounded, value)


def asks_beyond_tf32(tolerance: tuple[float, float]) -> bool:
    """Tells whether TF32 cannot meet `tolerance` (atol, rtol) for float32."""
    return tolerance[1] <= TF32_RTOL


def below_tf32(size: float, torch_out: torch.Tensor, oracle: torch.Tensor) -> float:
    """Returns the absolute tolerance of a result of this `size` (the root of its mean square) that rejects it rounded to TF32, or several times torch's own largest error, or the last bit of one, where that is more: a result that cancels has few digits."""
    rows = _rows(torch_out, torch_out, oracle)
    known = _finite(rows.plain) & _finite(rows.oracle)
    own = _number(_largest(_errors(rows.plain, rows.oracle, known)))
    return max(TF32_SHARE * size, OWN * own, rows.eps)


def unravel(position: int, shape: list[int]) -> list[int]:
    """Returns the index in `shape` of the element at `position` in row-major order; complex parts count as their
    element."""
    index: list[int] = []
    for length in reversed(shape):
        index.insert(0, position % length)
        position //= length
    return index


def _finite(value: torch.Tensor) -> torch.Tensor:
    """Returns where `value` is neither NaN nor infinite: elsewhere it is itself less itself NaN, which equals nothing."""
    nothing = value - value
    return nothing == nothing


def _alike(one: torch.Tensor, other: torch.Tensor, is_one: torch.Tensor, is_other: torch.Tensor) -> torch.Tensor:
    """Returns where both are finite (`is_one`, `is_other`), both NaN, or the same infinity."""
    return (is_one & is_other) | (one == other) | ~((one == one) | (other == other))


def _errors(value: torch.Tensor, oracle: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    return (value - oracle).abs().where(where, value.new_zeros(()))


def _largest(value: torch.Tensor) -> torch.Tensor:
    """Returns the maximum of each row as a column on the CPU; 0 of an empty row."""
    if value.numel() == 0:
        return value.new_zeros((value.shape[0], 1)).cpu()
    return value.amax(dim=1, keepdim=True).cpu()


def _ulp(scale: torch.Tensor, rows: Rows) -> torch.Tensor:
    """Returns the distance between neighbouring numbers of the tested dtype at `scale`."""
    import torch

    _, exponent = torch.frexp(scale)
    step = torch.ldexp(torch.full_like(scale, rows.eps), exponent - 1)
    return step.clamp(min=rows.smallest)


def _whole(rows: Rows, both: torch.Tensor, floor: float) -> tuple[float, float] | None:
    """Returns (relative error, what is allowed) of the output as a whole where it is more than that, else None.

    `both` is where the output is known to be finite as torch's and the oracle's are.
    """
    if rows.out.numel() < WHOLE:
        return None
    zero = rows.out.new_zeros(())
    size = float(rows.oracle.where(both, zero).norm())
    if size == 0:
        return None
    error = float(_errors(rows.out, rows.oracle, both).norm()) / size
    allowed = max(floor, 2 * float(_errors(rows.plain, rows.oracle, both).norm()) / size)
    return (error, allowed) if error > allowed else None


def _number(value: torch.Tensor) -> float:
    return float(value.max()) if value.numel() > 0 else 0.0
