"""The inputs of any case, those too whose values a check chooses. torch is imported only inside functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    called_with,
    cases,
    declared_inputs,
    drawing,
    probe_alone,
    probe_coarse,
    probe_eights,
    probe_hidden,
    probe_indices,
    probe_raised,
    probe_scaled,
    probing,
    unusual,
    unusual_integers,
)
from t2t_harness.op import declaration as declared

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput

LARGE = {"float16": 1e4}
"""What random values are multiplied by in a case of large values, by type: beyond where `exp` overflows, within the type."""

BEYOND_HALF = 1e6
"""The same for types that hold more than float16 does: what is computed in that on the way overflows."""


def make_inputs(declaration: Declaration, case: cases.Case, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Returns the inputs of a declared or edge case by name, on `device`, with their declared shapes, strides and
    dtypes. Those that the case leaves out are not among them.

    Memory between the elements of a strided input holds NaN, or zero for integers.
    """
    present = [given for given in declared.tensors(declaration) if given["name"] not in case.absent]
    special = case.of or next((given["name"] for given in present if cases.random_floats(given, case.dtype)), None)
    shapes, dense = cases.shapes(declaration, case), {}
    for given in present:
        name = given["name"]
        dense[name] = _values(given, case, shapes[name], device, special=special in (name, cases.ALL))
        if declaration.get("reference"):
            dense[name] = signed(given, declared_inputs.within(given, case, dense[name]))
    if case.values == cases.TIES and special in dense:
        alike = probe_indices.ties(declaration)
        floating = (name for name in cases.comparable(declaration, case.dtype) if name != special)
        other = alike[special] if special in alike else next(floating)
        tied = unusual.ties(dense[special], dense[other])
        given = next(given for given in present if given["name"] == special)
        dense[special] = declared_inputs.within(given, case, tied) if special in alike else tied
    if case.values == cases.IGNORED and special in dense:
        given_by = called_with.kwargs_of(declaration, case)
        dense[special].fill_(given_by[cases.IGNORE if cases.IGNORE in given_by else cases.PADDING])
    if case.values == cases.NEGATIVE:
        for name, places in probe_indices.counted(declaration, shapes).items():
            dense[name] = unusual_integers.negative(dense[name], places)
    for marked, mark, other_mark in probe_indices.marks(declaration, case):
        if marked in dense:
            dense[marked] = dense[marked].masked_fill(dense[marked] == mark, other_mark)
    if case.values == cases.PLANTED and special in dense:
        given = next(given for given in present if given["name"] == special)
        if dense[special].is_floating_point():
            dense[special] = unusual.planted(dense[special], probing.numbers(declaration, given))
        else:
            whole = probe_indices.planted_in(declaration, given, case.binding, case.kwargs)
            dense[special] = declared_inputs.in_order(given, case, unusual.planted(dense[special], whole))
    if case.values == probe_eights.EVERY and special in dense:
        given = next(given for given in present if given["name"] == special)
        dense[special] = probe_eights.with_every(given, dense[special])
    if case.values == cases.BOUNDS:
        for given in present:
            if given["name"] in probe_indices.bounded(declaration):
                low, high = drawing.bounds(declared.bind_init(given["init"], case.binding))
                far = unusual_integers.bounds(dense[given["name"]], low, high)
                dense[given["name"]] = declared_inputs.in_order(given, case, far)
    if case.values == probe_alone.OPPOSED and case.of is not None:
        for sign, name in zip((-1, 1), case.of.split(cases.JOINED), strict=True):
            dense[name] = unusual.far(dense[name], sign)
    if case.values == probe_coarse.COARSE:
        dense |= probe_coarse.with_coarse(declaration, case, dense)
    if case.values in probe_hidden.SHOWN:
        dense |= probe_hidden.with_hidden(declaration, case, dense)
    if case.values == probe_scaled.SCALED:
        dense |= probe_scaled.with_halves(declaration, case, dense)
    if case.values in (cases.PAIRS, cases.CORNERS):
        met = [given for given in present if given["name"] in probing.alike(declaration)]
        numbers = unusual.PAIRED if case.values == cases.PAIRS else unusual.CORNERS
        paired = unusual.pairs(
            [dense[given["name"]] for given in met], [drawing.allowed(given) for given in met], numbers
        )
        dense |= dict(zip((given["name"] for given in met), paired, strict=True))
    return declared_inputs.arranged(declaration, case, dense, device)


def signed(given: TensorInput, values: torch.Tensor) -> torch.Tensor:
    """Returns the values of an input of a reference in which infinities have the sign of all others, where it is declared with one: the logarithm of a decay is never inf. A part of a whole, between 0 and 1, has none."""
    low, high = drawing.allowed(given)
    if values.is_floating_point() and is_part(given):
        return values.where(values != math.inf, high).where(values != -math.inf, low)
    if not values.is_floating_point() or low < 0 < high or low > high:
        return values
    return values.where(values != (-math.inf if low >= 0 else math.inf), math.inf if low >= 0 else -math.inf)


def is_part(given: TensorInput) -> bool:
    """Tells whether an input is drawn from a range between 0 and 1, as a gate, a decay or a probability."""
    low, high = drawing.allowed(given)
    return given["init"]["kind"] == "uniform" and 0 <= low <= high <= 1


def inputs_of(
    declaration: Declaration, case: cases.Case, device: str, folder: str | Path | None
) -> dict[str, torch.Tensor]:
    """Returns the inputs of any case; those of a hook case are read from its file below `folder`, where prepare left
    them."""
    if case.file is None:
        return make_inputs(declaration, case, device)
    if folder is None:
        raise ValueError(f"case `{case.name}` has its inputs in a file, and no folder is known")
    from safetensors.torch import load_file

    stored = load_file(str(Path(folder) / case.file))
    strides = case.strides or {}
    return {name: declared_inputs.laid_out(stored[name], strides[name], device) for name in strides}


def rehearsed(declaration: Declaration, case: cases.Case) -> dict[str, torch.Tensor]:
    """Returns what `unfilled` does, with integers and booleans as `make_inputs` draws them: wrappers look at indices before they launch."""
    made = declared_inputs.unfilled(declaration, case)
    for given in declared.tensors(declaration):
        value = made.get(given["name"])
        if value is not None and not (value.dtype.is_floating_point or value.dtype.is_complex):
            value.copy_(_values(given, case, cases.shapes(declaration, case)[given["name"]], "cpu", special=False))
    return made


def _values(given: TensorInput, case: cases.Case, shape: Sequence[int], device: str, *, special: bool) -> torch.Tensor:
    """Returns the dense values of one input on `device`."""
    drawn = declared_inputs.drawn(given, case, shape, device)
    if case.values in unusual.KINDS:
        changed = unusual.KINDS[case.values](drawn) if special and drawn.numel() > 0 else drawn
        return declared_inputs.in_order(given, case, changed)
    if case.values == "large" and declared.has_sorted_floats(given, case.dtype):
        times = LARGE.get(cases.dtype_of(given, case), BEYOND_HALF)
        return declared_inputs.in_order(given, case, unusual.large(drawn, times))
    if not cases.random_floats(given, case.dtype):
        return drawn
    if case.values == "large" and given["init"]["kind"] != "uniform":
        times = LARGE.get(cases.dtype_of(given, case), BEYOND_HALF)
        return unusual.large(drawn, times)
    if case.values == probe_raised.RAISED and given["init"]["kind"] != "uniform":
        return unusual.large(drawn, probe_raised.TIMES.get(cases.dtype_of(given, case), probe_raised.OTHERS))
    if case.values == "equal-rows" and drawn.dim() > 0 and drawn.numel() > 0:
        # Multiples of 1/8 add up without rounding, so that a row's mean is exact in whatever order it is summed.
        return (drawn[..., :1].double() * 8).round().div(8).to(drawn.dtype).expand(drawn.shape)
    if case.values == "special" and special:
        return _with_special(drawn)
    return drawn


def _with_special(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with NaN at the beginning of its second row, inf at the end of its third, -inf in its fourth but for its first two elements, NaN at the end and in the middle of the next two, and both infinities in the one after;
    the first row stays as it is.

    With fewer rows the last of these are left out, and a single row gets the NaN.
    """
    if values.numel() == 0:
        return values
    changed = values.clone()
    rows = changed.view(-1, changed.shape[-1] if changed.dim() > 0 else 1)
    width = rows.shape[1]
    places: list[tuple[int, int | slice[int, int, None], str]] = [
        (1, 0, "nan"),
        (2, width - 1, "inf"),
        (3, slice(min(2, width // 2), width), "-inf"),
        (4, width - 1, "-nan"),
        (5, width // 2, "nan"),
        (6, 0, "inf"),
        (6, width - 1, "-inf"),
    ]
    if rows.shape[0] == 1:
        places = [(0, width // 2, "nan")]
    for row, columns, value in places:
        if row < rows.shape[0]:
            rows[row, columns] = float(value)
    return changed
