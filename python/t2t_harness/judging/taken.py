"""Whether torch takes a case, asked of its code for the CPU before that of a device.

Out of range, an index, a label or a probability has torch raise on the CPU. On a device it fails by a device-side assert, after which the process can use the device no more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import called_with, cases
from t2t_harness.cases import inputs as making
from t2t_harness.judging import oracle
from t2t_harness.op import module_state, operation
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

Shapes = dict[str, tuple[int, ...]]
"""The shape of each result by its name."""

_known: dict[str, bool] = {}
"""Op → whether torch takes its first declared case on the CPU. Of one op at most."""


def shapes_of(declaration: Declaration, case: cases.Case, given: Mapping[str, torch.Tensor]) -> Shapes | None:
    """Returns the shapes of torch's results on the CPU for the inputs `given`, None where nothing is asked there: the case is no unusual one, or torch takes not even a declared case of the op on the CPU.

    Raises oracle.Refused where torch raises in the case's dtype and in float64, which is there for some ops alone.
    """
    if not is_unusual(declaration, case):
        return None
    try:
        return shapes(at_home(declaration, case, given))
    except oracle.Refused:
        if is_at_home(declaration):
            raise
        return None


def shapes(right: oracle.Reference) -> Shapes:
    """Returns the shape of each result of `right`, but for a module's own: which of its buffers change may differ from device to device."""
    plain = {name: value for name, value in right.plain.items() if not module_state.is_of_module(name)}
    return {name: tuple(value.shape) for name, value in plain.items()}


def is_unusual(declaration: Declaration, case: cases.Case) -> bool:
    """Tells whether torch may have no result for `case`, or another one on a device: it has values that ops.yaml does not declare, or arguments, which may be lengths; integers, which may be indices into what the case has made shorter; or no elements. Of `ends`, which are values as they are declared, those that are shorter: the CPU takes long for long ones."""
    if case.kind != "edge":
        return False
    is_whole = any("int" in cases.dtype_of(one, case) for one in tensors(declaration))
    has_others = case.kwargs is not None or case.init is not None
    has_values = case.values != "declared" and (case.values != "ends" or is_shorter(declaration, case))
    return is_whole or has_others or has_values or 0 in case.binding.values()


def is_shorter(declaration: Declaration, case: cases.Case) -> bool:
    """Tells whether a dim of `case` is shorter than in each size of the op."""
    known = [*declaration["check_sizes"].values(), *declaration["sizes"].values()]
    return any(length < min((size.get(dim, 0) for size in known), default=0) for dim, length in case.binding.items())


def is_at_home(declaration: Declaration) -> bool:
    """Tells whether torch takes the op's first declared case on the CPU."""
    op = json.dumps(declaration, sort_keys=True)
    if op not in _known:
        _known.clear()
        _known[op] = _is_at_home(declaration)
    return _known[op]


def _is_at_home(declaration: Declaration) -> bool:
    first = next(iter(cases.declared_cases(declaration)), None)
    if first is None:
        return False
    try:
        at_home(declaration, first, making.inputs_of(declaration, first, "cpu", None))
    except oracle.Refused:
        return False
    return True


def at_home(declaration: Declaration, case: cases.Case, given: Mapping[str, torch.Tensor]) -> oracle.Reference:
    """Returns torch's results on the CPU in the case's dtype, or in float64 where there are none in that. Raises oracle.Refused where there are none at all."""
    home = oracle.copies({name: value.cpu() for name, value in given.items()})
    kwargs = called_with.kwargs_of(declaration, case)
    try:
        return _called(declaration, case, oracle.copies(home), kwargs, is_wide=False)
    except Exception as error:
        if oracle.is_own(error):
            raise
        exact, wide_kwargs = oracle.in_float64(declaration, case, kwargs)
        wide = {name: oracle.wide(value) for name, value in home.items()}
        try:
            return _called(exact, case, wide, wide_kwargs, is_wide=True)
        except Exception:
            raise oracle.Refused(f"torch refuses: {type(error).__name__}: {error}") from error


def _called(
    declaration: Declaration,
    case: cases.Case,
    inputs: dict[str, torch.Tensor],
    kwargs: dict[str, object],
    *,
    is_wide: bool,
) -> oracle.Reference:
    """Returns what one call on the CPU gives. Raises what torch raises."""
    function = oracle.ready(declaration, case, "cpu")
    ready = operation.widened(function) if is_wide else function
    return oracle.called(ready, declaration, case, inputs, kwargs, "cpu", None, is_wide=is_wide)
