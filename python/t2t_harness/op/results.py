"""What a call returned, taken apart: its tensors in order, and the form of the whole that they stood in.

A result is a tensor or a tuple of results, as an LSTM returns them, or a mapping of names to them. Beside tensors there may be None, as attention without weights has, and numbers, flags and words. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import torch

TENSOR = "tensor"
"""What stands for a tensor in a form."""


@dataclass(frozen=True)
class Results:
    """What a call returned."""

    values: list[object] = field(default_factory=list)
    """Its tensors, and what is neither that nor plain, in order; those of a mapping in the order of their names."""
    form: str = TENSOR
    """The whole, as in `(tensor, (tensor, None))`: two that have the same form are of the same kind."""
    numbers: list[float] = field(default_factory=list)
    """The fractions in it, each `float` in the form."""
    names: tuple[str, ...] = ()
    """What the values are called in it, one by one, if they are."""

    @property
    def several(self) -> bool:
        """Returns whether it is more than one value, or one in a tuple or a mapping, or none."""
        return self.form != TENSOR


def apart(returned: object, ignored: Container[int] = ()) -> Results:
    """Returns what a call returned, taken apart. What is returned alone is a value, whatever it is but None, and so is what a kernel returns in the place of an output that is `ignored`, by its position among the values."""
    if returned is None and 0 not in ignored:
        # What an op leaves in its inputs is all.
        return Results([], repr(None))
    if not isinstance(returned, (tuple, list, Mapping)):
        return Results([returned])
    values: list[object] = []
    numbers: list[float] = []
    form = _form(returned, values, numbers, ignored)
    if isinstance(returned, Mapping):
        names = tuple(map(str, in_order(returned)))
    else:
        # torch's own tuples have their names here; a plain one has none.
        names = tuple(getattr(type(returned), "__match_args__", ()))
    return Results(values, form, numbers, names if len(names) == len(values) == len(returned) else ())


def listed(returned: object, ignored: Container[int] = ()) -> list[object]:
    """Returns the values that a call returned, as `apart` does."""
    return apart(returned, ignored).values


class NoTensor(TypeError):
    """A call returned something that would not be compared."""


def tensors(returned: Results) -> list[torch.Tensor]:
    """Returns the values, all of which must be tensors. Raises NoTensor where one is none."""
    import torch

    found: list[torch.Tensor] = []
    for one in returned.values:
        if not isinstance(one, torch.Tensor):
            name = type(one).__qualname__
            raise NoTensor(f"it returns a `{name}`: tensors are compared, alone or in tuples and dicts of them")
        found.append(one)
    return found


def in_order(named: Mapping[object, object]) -> list[object]:
    """Returns the names in a mapping in the order in which its values count."""
    return sorted(named, key=str)


def _form(value: object, values: list[object], numbers: list[float], ignored: Container[int]) -> str:
    """Returns the form of a value, and adds the tensors and the fractions in it."""
    if isinstance(value, (tuple, list)):
        parts = [_form(one, values, numbers, ignored) for one in cast("list[object]", value)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, Mapping):
        named = [f"{name!r}: {_form(value[name], values, numbers, ignored)}" for name in in_order(value)]
        return f"{{{', '.join(named)}}}"
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    if not is_plain or len(values) in ignored:
        values.append(value)
        return TENSOR
    if isinstance(value, float):
        numbers.append(value)
        return "float"
    return repr(value)
