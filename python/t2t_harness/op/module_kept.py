"""What an instance, as an `nn.Module`, keeps from one call to the next, so that a call can be made again as if it were the first: its buffers, and numbers and tensors among its attributes.

torch is imported only inside functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch

Value: TypeAlias = "torch.Tensor | float | None"
"""What is kept under a name; integers and flags are among numbers."""


@dataclass(frozen=True)
class Kept:
    """What an instance kept at one time, by dotted names."""

    buffers: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    """What was in the tensors among both."""

    @classmethod
    def of(cls, function: object) -> Kept:
        """Returns what `function` keeps now; nothing of a function."""
        return cls._with(dict(buffers_of(function)), dict(attributes_of(function)))

    @classmethod
    def of_buffers(cls, function: object) -> Kept:
        """Returns what the buffers of `function` hold now, and nothing else that it keeps."""
        return cls._with(dict(buffers_of(function)), {})

    @classmethod
    def _with(cls, buffers: dict[str, Value], attributes: dict[str, Value]) -> Kept:
        tensors = {**tensors_of(buffers), **tensors_of(attributes)}
        return cls(buffers, attributes, {name: value.detach().clone() for name, value in tensors.items()})

    def only(self, names: Iterable[str]) -> Kept:
        """Returns what was kept under `names`, and lets the memory of everything else go with what it is taken from."""
        taken = set(names)
        return Kept(
            {name: value for name, value in self.buffers.items() if name in taken},
            {name: value for name, value in self.attributes.items() if name in taken},
            {name: value for name, value in self.values.items() if name in taken},
        )

    def changed(self, function: object) -> set[str]:
        """Returns the names of what is kept that is something else now."""
        return self.changed_buffers(function) | self.changed_attributes(function)

    def changed_buffers(self, function: object) -> set[str]:
        """Returns the names of the buffers that hold something else now, or are other tensors."""
        return self._changed(self.buffers, dict(buffers_of(function)))

    def changed_attributes(self, function: object) -> set[str]:
        """Returns the names of the attributes that have another value now, or are other tensors."""
        return self._changed(self.attributes, dict(attributes_of(function)))

    def restore(self, function: object) -> None:
        """Gives `function` back what it kept: the same tensors, with the same values."""
        import torch

        parts = dict(parts_of(function))
        for name in (*self.buffers, *self.attributes):
            place, _, own = name.rpartition(".")
            value = self.buffers[name] if name in self.buffers else self.attributes[name]
            if isinstance(value, torch.Tensor):
                with torch.no_grad():
                    value.copy_(self.values[name])
            # Past what a module does with what it is given: a buffer stays one, whatever it is.
            held = vars(parts[place])
            (held["_buffers"] if name in self.buffers else held)[own] = value

    def _changed(self, before: dict[str, Value], now: dict[str, Value]) -> set[str]:
        return {name for name, value in before.items() if name in now and not self._is_same(name, value, now[name])}

    def _is_same(self, name: str, before: Value, now: Value) -> bool:
        import torch

        if isinstance(before, torch.Tensor):
            return before is now and before.shape == self.values[name].shape and before.equal(self.values[name])
        return not isinstance(now, torch.Tensor) and type(before) is type(now) and before == now


def parts_of(function: object) -> Iterator[tuple[str, object]]:
    """Yields what is called, or what its method is of, and the modules in it, with their dotted names; nothing of a function."""
    import torch

    owner = getattr(function, "__self__", function)
    if isinstance(owner, torch.nn.Module):
        yield from owner.named_modules()
    elif not (inspect.isroutine(owner) or inspect.isclass(owner) or inspect.ismodule(owner)) and hasattr(
        owner, "__dict__"
    ):
        yield "", owner


def is_instance(function: object) -> bool:
    """Tells whether `function` is an instance, or a method of one, which may keep something."""
    return next(parts_of(function), None) is not None


def buffers_of(function: object) -> Iterator[tuple[str, Value]]:
    """Yields the buffers of a module with their dotted names, those that are none among them; nothing of anything else."""
    for place, part in parts_of(function):
        for name, value in vars(part).get("_buffers", {}).items():
            yield f"{place}.{name}".lstrip("."), value


def attributes_of(function: object) -> Iterator[tuple[str, Value]]:
    """Yields what an instance and its parts hold beside parameters and buffers that is a number, a tensor or none, with its dotted name; nothing of a function. Names that begin with an underscore are the part's own affair."""
    import torch

    for place, part in parts_of(function):
        for name, value in vars(part).items():
            if not name.startswith("_") and (value is None or isinstance(value, (int, float, torch.Tensor))):
                yield f"{place}.{name}".lstrip("."), value


def tensors_of(values: dict[str, Value]) -> dict[str, torch.Tensor]:
    """Returns those of the values that are tensors."""
    import torch

    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
