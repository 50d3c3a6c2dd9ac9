"""The rule of a family of aten operations: how much arithmetic one call does, and how it goes through memory.

Knows shapes only, and no family; imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operand:
    """A tensor as a rule sees it: lengths and strides in elements, dtype by torch's name without the prefix."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """The number of elements with a place of their own in memory; an expanded dim adds none."""
        if self.count == 0:
            return 0
        return math.prod(length for length, step in zip(self.shape, self.stride, strict=True) if step != 0)


@dataclass(frozen=True)
class AtenCall:
    """One dispatched operation: name without overload, arguments by schema name with tensors as `Operand`, tensors."""

    name: str
    arguments: Mapping[str, Any]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]

    def argument(self, *names: str) -> Any:
        """Return the first of the named arguments that is present and not None, else None."""
        return next((self.arguments[name] for name in names if self.arguments.get(name) is not None), None)

    def operand(self, *names: str) -> Operand:
        """Return the tensor argument of one of these names; the first input where none is a tensor."""
        found = self.argument(*names)
        return found if isinstance(found, Operand) else self.inputs[0]


Work = Callable[[AtenCall], int | None]


@dataclass(frozen=True)
class Rule:
    """The work of a family: a formula in words, the function that computes it, and how the family goes through memory.

    `gathers` names the argument of which only the selected elements are read. `overwrites` says that the tensor changed
    in place is not read.
    """

    formula: str
    work: Work
    access: str
    gathers: str | None = None
    gathered: Callable[[AtenCall], int] | None = None
    overwrites: bool = False


def family(names: str, formula: str, work: Work, access: str, **more: Any) -> Iterable[tuple[str, Rule]]:
    """Return the rule of each of the `names`, which spaces part."""
    rule = Rule(formula, work, access, **more)
    return ((name, rule) for name in names.split())


def outputs(call: AtenCall) -> int:
    """Return the elements of the first output; of the tensor changed in place where nothing is returned."""
    return call.outputs[0].count if call.outputs else call.inputs[0].count


def nothing(_: AtenCall) -> int:
    """Return the work of what computes nothing."""
    return 0


def per_element(weight: int) -> Work:
    """Return the rule `weight` for each element that comes out."""
    return lambda call: weight * outputs(call)


def is_given(value: object, neutral: float) -> bool:
    """Tell whether a scalar argument makes work: present, and not the one that changes nothing."""
    return value is not None and value != neutral
