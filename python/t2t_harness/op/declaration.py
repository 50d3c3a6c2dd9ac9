"""What a declaration means at one size: shapes, strides and arguments with every dim bound, and which torch function it names.

Knows nothing of phases and of tensor values. torch is imported only by what returns one of its objects.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from t2t_harness.op import expression

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, Init, TensorInput

Binding = Mapping[str, int]


def tensors(declaration: Declaration) -> list[TensorInput]:
    """Return the declared inputs that are tensors, in order; each member of a list is one, as `tensors.0`."""
    return [given for given in declaration["inputs"] if "scalar" not in given]


def arguments(declaration: Declaration, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands in the inputs' places in a call, in declared order: tensors of `given`, lists of them, scalars,
    and None for a tensor that is absent."""
    found: dict[str, Any] = {}
    for one in declaration["inputs"]:
        if "scalar" in one:
            found[one["name"]] = one["scalar"]
        elif (listed := one.get("list")) is not None:
            found.setdefault(listed, []).append(given[one["name"]])
        else:
            found[one["name"]] = given.get(one["name"])
    return found


def names(declaration: Declaration) -> list[str]:
    """Return the names of what stands in the inputs' places in a call, in declared order: a list of tensors has one."""
    return list(dict.fromkeys(str(one.get("list") or one["name"]) for one in declaration["inputs"]))


def bind_shape(shape: Sequence[int | str], binding: Binding) -> list[int]:
    """Return `shape` with each dim and each expression of dims replaced by its length.

    Raises `KeyError` naming a dim that `binding` lacks, `expression.Impossible` where a length would be none.
    """
    return [expression.length(length, binding) for length in shape]


def bind_kwargs(kwargs: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    """Return `kwargs` as torch takes them: dims and expressions of them become lengths, `"torch.float64"` the dtype, in
    lists too."""
    return {name: _bind_value(value, binding) for name, value in kwargs.items()}


def bind_init(init: Init, binding: Binding) -> Init:
    """Return an input's `init` with each number that is a dim, or an expression of dims, replaced by its length; words
    and paths are left as they are."""
    if init["kind"] == "sorted":
        return {"kind": "sorted", "of": bind_init(init["of"], binding)}
    found = {key: value if key in WORDS else _bind_value(value, binding) for key, value in init.items()}
    return cast("Init", found)


WORDS = ("kind", "side", "path", "name")
"""What of an init is no number."""


def along(declaration: Declaration, kwargs: Mapping[str, Any] | None) -> Declaration | None:
    """Return the declaration as it is where the op is called with other `kwargs` than its own: outputs that are compared along the dim of the call are compared along that of this call.

    None where that cannot be told: the call has several dims or none, or the outputs another one than the op's own call.
    """
    outputs = declaration.get("outputs") or ()
    own, new = (
        next((given[name] for name in OF_CALL if name in given), None)
        for given in (declaration["kwargs"], kwargs or declaration["kwargs"])
    )
    if new == own or not any(how.get("dim") is not None for how in outputs):
        return declaration
    rank = max((len(given["shape"]) for given in tensors(declaration)), default=0)
    named = {how["dim"] if type(how["dim"]) is int else None for how in outputs if how.get("dim") is not None}
    # What ops.yaml does not say is torch's own dim, as the outputs have it.
    wanted = named if own is None else {own}
    if type(new) is not int or len({_place(dim, rank) for dim in (*named, *wanted)}) != 1:
        return None
    moved = [how if how.get("dim") is None else {**how, "dim": new} for how in outputs]
    return {**declaration, "outputs": moved}  # type: ignore[return-value]


def _place(dim: Any, rank: int) -> int | None:
    return dim % rank if type(dim) is int and -rank <= dim < rank else None


OF_CALL = ("dim", "axis")
"""Arguments that name the dim of a call."""

APART = 16
"""So many elements lie between rows in the layout `apart`."""

LEAST_DIMS = {
    "transposed": 2,
    "strided": 1,
    "padded": 2,
    "swapped": 3,
    "expanded": 2,
    "channels_last": 4,
    "inner_swapped": 4,
    "apart": 1,
}
"""Layouts that a case may have in the place of the declared ones, with the fewest dims of a tensor that can have each."""

PADDING = 3
"""How many elements lie between the rows of a padded tensor: an odd number, so that rows are not aligned."""


def has_sorted_floats(given: TensorInput, dtype: str) -> bool:
    """Return whether the input has random floating values in ascending order where `dtype` is tested."""
    init, own = given["init"], given["dtype"] or dtype
    return (
        init["kind"] == "sorted"
        and init["of"]["kind"] == "normal"
        and own.endswith(("16", "32", "64"))
        and "float" in own
    )


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
    if layout == "padded" and rank >= 2:
        # As a slice of a larger tensor has it: rows are dense, and there is memory between them, and between blocks of them.
        row = shape[-1] + PADDING
        outer = _dense_strides([shape[0], *(max(length, 1) + 1 for length in shape[1:-1])], list(range(rank - 1)))
        return [*(row * stride for stride in outer), 1]
    if layout == "apart" and rank >= 1:
        # As parts of rows, or columns, of a larger tensor. Rows begin at multiples of 16 elements, where the dense ones do: torch's attention asks that of each input on a device, and does not look.
        outer = _dense_strides(list(shape[:-1]), dense[:-1])
        return [*((shape[-1] + APART) * stride for stride in outer), 1] if rank > 1 else [2]
    if layout == "swapped" and rank >= 3:
        return _dense_strides(shape, [1, 0, *dense[2:]])
    if layout == "expanded" and rank >= 2:
        # As `expand` repeats one row, or one image.
        return [0, *_dense_strides(shape, dense)[1:]]
    if layout == "channels_last" and rank >= 4:
        return _dense_strides(shape, [0, *dense[2:], 1])
    if layout == "inner_swapped" and rank >= 4:
        # As `transpose(1, 2)` leaves heads behind places.
        return _dense_strides(shape, [0, 2, 1, *dense[3:]])
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
    if value.startswith("torch."):
        return _dtype(value)
    return expression.value(value, binding) if expression.stands_for(value, binding) else value


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


def changed(declaration: Declaration) -> list[str]:
    """Returns the names of the inputs that a call may change: as torch does, or in any way."""
    return [*declaration["mutates"], *declaration["overwrites"]]


def ignored(declaration: Declaration) -> frozenset[int]:
    """Returns the positions of the outputs that ops.yaml has a check ignore."""
    outputs = declaration.get("outputs") or ()
    return frozenset(place for place, one in enumerate(outputs) if one["compare"] == "ignore")
