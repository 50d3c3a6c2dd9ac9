"""The form of what a run returned: type, number, shape, strides, dtype, device. It does not know the values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from t2t_harness.judging import comparing, oracle
from t2t_harness.judging.finding import Finding
from t2t_harness.op import module_state, results

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.judging.told import Output, Run

PARAMETER = "torch.nn.parameter.Parameter"
"""The type of a parameter, which a class may return where torch's returns one of its own."""


LONGEST = 200
"""So much is said of the form of what was returned."""


class Asked(Protocol):
    """What the form of a result is asked of: a check in progress, or `Alone`."""

    strides: dict[str, None]
    """Results that are not contiguous where torch's are, in words, in order."""

    @property
    def declaration(self) -> Declaration:
        """Returns the op's declaration."""

    @property
    def device(self) -> str:
        """Returns the device that results are to be on."""


@dataclass
class Alone:
    """The same of results that no check is about."""

    declaration: Declaration
    device: str
    strides: dict[str, None] = field(default_factory=dict)


def form(run: Run, right: oracle.Reference, asked: Asked) -> Finding | None:
    """Returns what is wrong with the type, number, shape, dtype or device of the outputs of one run, or None."""
    expected = {name: value for name, value in right.plain.items() if name.isdecimal()}
    outputs = run["outputs"]
    if run["form"] != right.form or len(outputs) != len(expected):
        got, wanted = described(run["form"], len(outputs)), described(right.form, len(expected))
        return Finding("type", f"returns {got}, torch returns {wanted}")
    if found := numbers(run["numbers"], right, asked):
        return found
    for name, value in expected.items():
        if comparing.is_ignored(asked.declaration, name):
            continue
        made = outputs[name]
        called = oracle.result_name(asked.declaration, right, name)
        what = f"{called}: " if called else ""
        if not made["plain"] and not (made["type"] == PARAMETER and name in right.own):
            return Finding("type", f"{what}returns `{made['type']}`, torch returns `torch.Tensor`")
        if made["shape"] != list(value.shape):
            return Finding("shape", f"{what}returns shape {made['shape']}, torch returns {list(value.shape)}")
        if found := shared(asked, made, value, what):
            return found
        dtype = str(value.dtype).removeprefix("torch.")
        if made["dtype"] != dtype:
            return Finding("dtype", f"{what}returns {made['dtype']}, torch returns {dtype}")
        if made["device"] != asked.device:
            on = f"a tensor on `{made['device']}`, torch returns one on `{asked.device}`"
            return Finding("type", f"{what}returns {on}")
    return None


def described(form: str, count: int) -> str:
    """Returns what a run returned in words, of `form` and with `count` tensors in it."""
    if form == results.TENSOR:
        return "one value"
    is_flat = form == f"({', '.join([results.TENSOR] * count)})"
    return f"a tuple of {count}" if is_flat and count > 1 else f"`{form[:LONGEST]}`"


def numbers(got: list[float], right: oracle.Reference, asked: Asked) -> Finding | None:
    """Returns that a fraction beside the outputs is not torch's, or None. It may be as far from torch's as a value in the first floating output."""
    dtypes = [str(value.dtype) for value in right.plain.values() if value.dtype.is_floating_point]
    atol, rtol = comparing.tolerance_of(asked.declaration, next(iter(dtypes), "").removeprefix("torch."))
    for one, wanted in zip(got, right.numbers, strict=True):
        is_near = math.isclose(one, wanted, rel_tol=rtol, abs_tol=atol)
        if not is_near and not (math.isnan(one) and math.isnan(wanted)):
            return Finding("mismatch", f"returns the number {one:.9g}, torch returns {wanted:.9g}")
    return None


def shared(asked: Asked, made: Output, value: torch.Tensor, what: str) -> Finding | None:
    """Returns that elements of a result lie in the same memory where those of torch's, `value`, do not, or None; notes one that is not contiguous where torch's is."""
    shape, strides = made["shape"], made.get("strides")
    if not isinstance(strides, list) or len(strides) != len(shape):
        return None
    own = list(value.stride())
    if shares_memory(shape, strides) and not shares_memory(shape, own):
        words = f"{what}returns elements that share memory: shape {shape} has strides {strides}, torch returns {own}"
        return Finding("shape", words)
    if value.is_contiguous() and not is_contiguous(shape, strides):
        asked.strides[f"{what}returns strides {strides}, torch returns {own}"] = None
    return None


def shares_memory(shape: list[int], strides: list[int]) -> bool:
    """Tells whether two elements must lie in the same place: along a dim with stride 0, or since there are fewer places than elements."""
    if 0 in shape:
        return False
    dims = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size > 1]
    places = 1 + sum((size - 1) * stride for size, stride in dims)
    return any(stride == 0 for _, stride in dims) or places < math.prod(shape)


def is_contiguous(shape: list[int], strides: list[int]) -> bool:
    """Tells whether elements lie one behind the other in row-major order."""
    expected = 1
    for size, stride in reversed(list(zip(shape, strides, strict=True))):
        if size > 1 and stride != expected:
            return 0 in shape
        expected *= size
    return True


def is_after(name: str) -> bool:
    """Tells whether the result `name` is what an input or a buffer holds after the call, which is kept of the first run alone but for inputs that the op changes."""
    return name.startswith(("after.", module_state.AFTER))


def stored_form(tensors: dict[str, torch.Tensor], label: str, right: oracle.Reference, asked: Asked) -> Finding | None:
    """Returns what is wrong with the shapes and dtypes of what was really stored in the run `label`, or None.

    Complex results are stored as pairs, and made complex here. What the candidate says of itself is not relied on.
    """
    import torch

    for name, value in right.plain.items():
        is_elsewhere = is_after(name) and label != "a" and f"{label}.{name}" not in tensors
        if is_elsewhere or comparing.is_ignored(asked.declaration, name):
            continue
        stored = tensors[f"{label}.{name}"].to(asked.device)
        if value.dtype.is_complex:
            stored = torch.view_as_complex(stored)
        tensors[f"{label}.{name}"] = stored
        called = oracle.result_name(asked.declaration, right, name)
        what = f" for {called}" if called else ""
        if stored.shape != value.shape:
            return Finding("shape", f"returns shape {list(stored.shape)}, torch returns {list(value.shape)}{what}")
        if stored.dtype != value.dtype:
            return Finding("dtype", f"returns {stored.dtype}, torch returns {value.dtype}{what}")
    return None
