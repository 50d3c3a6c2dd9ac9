"""The inputs of a case: tensors made from its name and seed, the same bits in every process and on every device of one class.

Values are drawn where they are used: a device draws others than the CPU does, and in no time. The device class is in the key of whatever depends on
them. torch is imported only inside functions.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness import cases
from t2t_harness import declaration as declared

if TYPE_CHECKING:
    import torch

LARGE = 1e4
"""What random values are multiplied by in a case of large values: beyond where `exp` overflows, within float16."""


def make_inputs(declaration: Mapping[str, Any], case: cases.Case, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Returns the inputs of a declared or edge case by name, on `device`, with their declared shapes, strides and
    dtypes.

    Memory between the elements of a strided input holds NaN, or zero for integers.
    """
    special = next((given["name"] for given in declaration["inputs"] if cases.random_floats(given, case.dtype)), None)
    made = {}
    for given in declaration["inputs"]:
        name = given["name"]
        shape = cases.shapes(declaration, case)[name]
        values = _values(given, case, shape, device, special=name == special)
        made[name] = laid_out(values, declared.strides(shape, layout_of(given, case)), device)
    return made


def inputs_of(
    declaration: Mapping[str, Any], case: cases.Case, device: str, folder: str | Path | None
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
    return {name: laid_out(stored[name], strides[name], device) for name in strides}


def unfilled(declaration: Mapping[str, Any], case: cases.Case) -> dict[str, torch.Tensor]:
    """Returns tensors with the shapes, strides, offsets and dtypes of `make_inputs`, in memory that nobody has written.

    They are on torch's default device; inside `facade.fake_cuda` they are its tensors.
    """
    import torch

    made = {}
    for given in declaration["inputs"]:
        shape = cases.shapes(declaration, case)[given["name"]]
        strides = declared.strides(shape, layout_of(given, case))
        made[given["name"]] = torch.empty_strided(shape, strides, dtype=dtype_of(given["dtype"] or case.dtype))
    return made


def laid_out(values: torch.Tensor, strides: Sequence[int], device: str) -> torch.Tensor:
    """Returns a tensor on `device` with the values of `values` and the given `strides`, in elements, at offset 0."""
    import torch

    reach = 0
    if values.numel() > 0:
        reach = 1 + sum((length - 1) * stride for length, stride in zip(values.shape, strides, strict=True))
    gap = float("nan") if values.dtype.is_floating_point or values.dtype.is_complex else 0
    memory = torch.full((reach,), gap, dtype=values.dtype, device=device)
    return memory.as_strided(values.shape, tuple(strides)).copy_(values)


def layout_of(given: Mapping[str, Any], case: cases.Case) -> str:
    """Returns the layout of the declared input `given` in `case`: the case's own where the input has the dims for
    it."""
    least = {"transposed": 2, "strided": 1}
    if case.layout is not None and len(given["shape"]) >= least[case.layout]:
        return case.layout
    return str(given["layout"])


def dtype_of(name: str) -> torch.dtype:
    """Returns the torch dtype called `name`. Raises ValueError where there is none."""
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"torch has no dtype `{name}`")
    return found


def generator_of(*names: object, device: str = "cpu") -> torch.Generator:
    """Returns a generator of `device` whose seed is the SHA-256 of `names`."""
    import torch

    text = "\0".join(map(str, names)).encode()
    return torch.Generator(device).manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:8], "little", signed=True))


def _values(
    given: Mapping[str, Any], case: cases.Case, shape: Sequence[int], device: str, *, special: bool
) -> torch.Tensor:
    """Returns the dense values of one input on `device`."""
    drawn = _drawn(given, case, shape, device)
    if not cases.random_floats(given, case.dtype):
        return drawn
    if case.values == "large":
        return (drawn.double() * LARGE).clamp(-6e4, 6e4).to(drawn.dtype)
    if case.values == "equal-rows" and drawn.dim() > 0 and drawn.numel() > 0:
        # Multiples of 1/8 add up without rounding, so that a row's mean is exact in whatever order it is summed.
        return (drawn[..., :1].double() * 8).round().div(8).to(drawn.dtype).expand(drawn.shape)
    if case.values == "special" and special:
        return _with_special(drawn)
    return drawn


def _drawn(given: Mapping[str, Any], case: cases.Case, shape: Sequence[int], device: str) -> torch.Tensor:
    """Returns the values that the input's `init` describes, before a case changes them."""
    import torch

    init = declared.bind_init(given["init"], case.binding)
    dtype = dtype_of(given["dtype"] or case.dtype)
    generator = generator_of(case.name, case.seed, given["name"], device=device)
    drawn_in = dtype if dtype.is_complex or dtype is torch.float64 else torch.float32
    if init["kind"] == "normal":
        values = torch.randn(shape, generator=generator, dtype=drawn_in, device=device)
        return moved(values, init["std"], init["mean"]).to(dtype)
    if init["kind"] == "uniform":
        values = torch.rand(shape, generator=generator, dtype=drawn_in, device=device)
        return moved(values, init["high"] - init["low"], init["low"]).to(dtype)
    if init["kind"] == "randint":
        high = max(init["high"], init["low"] + 1)
        return torch.randint(init["low"], high, list(shape), generator=generator, device=device).to(dtype)
    if init["kind"] == "constant":
        return torch.full(list(shape), init["value"], dtype=dtype, device=device)
    if init["kind"] == "ones":
        return torch.ones(list(shape), dtype=dtype, device=device)
    raise ValueError(f"no init is called `{init['kind']}`")


def moved(values: torch.Tensor, by: float, to: float) -> torch.Tensor:
    """Returns `values` times `by` plus `to`, without the operations that would change nothing: a device has to load each."""
    scaled = values if by == 1 else values.mul(by)
    return scaled if to == 0 else scaled.add(to)


def _with_special(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with NaN in its second row, inf in its third, -inf in its fourth; the first row stays as it is.

    With fewer than four rows the last of these are left out, and a single row gets the NaN.
    """
    if values.numel() == 0:
        return values
    changed = values.clone()
    rows = changed.view(-1, changed.shape[-1] if changed.dim() > 0 else 1)
    width = rows.shape[1]
    places = [(1, 0, "nan"), (2, width - 1, "inf"), (3, width // 2, "-inf")]
    if rows.shape[0] == 1:
        places = [(0, width // 2, "nan")]
    for row, column, value in places:
        if row < rows.shape[0]:
            rows[row, column] = float(value)
    return changed


def kwargs_of(declaration: Mapping[str, Any], case: cases.Case) -> dict[str, Any]:
    """Returns the keyword arguments of `case` as torch takes them."""
    return declared.bind_kwargs(declaration["kwargs"] if case.kwargs is None else case.kwargs, case.binding)


def call_arguments(
    callable_: Callable[..., Any], declaration: Mapping[str, Any], case: cases.Case, inputs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments that the wrapper `callable_` is called with: positional and by keyword.

    Inputs go by keyword if the wrapper's parameters have all their names, else by position in declared order; kwargs by
    keyword.
    """
    kwargs = kwargs_of(declaration, case)
    if _takes(callable_, inputs):
        return (), {**inputs, **kwargs}
    return tuple(inputs.values()), kwargs


def _takes(callable_: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    try:
        parameters = inspect.signature(callable_).parameters.values()
    except (TypeError, ValueError):
        return False
    named = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return set(inputs) <= named
