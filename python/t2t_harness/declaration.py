"""What a declaration means at one size: shapes, strides and arguments with every dim bound, and which torch function it names.

Knows nothing of phases and of tensor values. torch is imported only by what returns one of its objects.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Binding = Mapping[str, int]


def bind_shape(shape: Sequence[int | str], binding: Binding) -> list[int]:
    """Return `shape` with each dim name replaced by its length.

    Raises `KeyError` naming a dim that `binding` lacks.
    """
    return [length if isinstance(length, int) else binding[length] for length in shape]


def bind_kwargs(kwargs: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    """Return `kwargs` as torch takes them: dim names become lengths, `"torch.float64"` the dtype, in lists too."""
    return {name: _bind_value(value, binding) for name, value in kwargs.items()}


def bind_init(init: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    """Return an input's `init` with each number that is a dim name replaced by its length; `kind` is left as it is."""
    return {key: value if key == "kind" else _bind_value(value, binding) for key, value in init.items()}


def strides(shape: Sequence[int], layout: str) -> list[int]:
    """Return the strides, in elements, of a tensor of the bound `shape` in `layout`.

    Layouts are those of docs/design/harness.md. Raises `ValueError` for an unknown layout, or one that the number of
    dims excludes.
    """
    rank = len(shape)
    dense = list(range(rank))
    if layout == "contiguous":
        return _dense_strides(shape, dense)
    if layout == "transposed" and rank >= 2:
        return _dense_strides(shape, [*dense[:-2], rank - 1, rank - 2])
    if layout == "strided" and rank >= 1:
        return [2 * stride for stride in _dense_strides(shape, dense)]
    if layout == "channels_last" and rank == 4:
        return _dense_strides(shape, [0, 2, 3, 1])
    raise ValueError(f"layout `{layout}` does not fit {rank} dims")


def resolve(torch_name: str) -> Callable[..., Any]:
    """Return the callable that a dotted name such as `torch.nn.functional.softmax` stands for.

    Raises `LookupError` where the name is not below `torch`, does not exist, or is no function (a class, a module).
    """
    first, *rest = torch_name.split(".")
    if first != "torch" or not rest:
        raise LookupError(f"`{torch_name}` is not a name below torch")
    found: Any = importlib.import_module("torch")
    for part in rest:
        found = getattr(found, part, None)
        if found is None:
            raise LookupError(f"torch has no `{torch_name}`")
    is_function = callable(found) and not isinstance(found, type)
    if not is_function:
        raise LookupError(f"`{torch_name}` is not a function")
    return found  # type: ignore[no-any-return]


def _bind_value(value: Any, binding: Binding) -> Any:
    if isinstance(value, list):
        return [_bind_value(item, binding) for item in value]
    if not isinstance(value, str):
        return value
    if value in binding:
        return binding[value]
    return _dtype(value) if value.startswith("torch.") else value


def _dtype(name: str) -> Any:
    import torch

    found = getattr(torch, name.removeprefix("torch."), None)
    return found if isinstance(found, torch.dtype) else name


def _dense_strides(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return the strides of a tensor whose dims lie in memory in `order`, outermost first, without gaps."""
    result = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        result[dim] = step
        step *= max(shape[dim], 1)
    return result
