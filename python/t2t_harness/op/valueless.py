"""Calls of an op on tensors without values, and what is done where its code asks for values: constructors that read a number off a tensor, references that compute with another library.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from t2t_harness.op import declaration as declared
from t2t_harness.op import operation, results

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from t2t_harness.boundary.documents import Declaration, TensorInput
    from t2t_harness.op.operation import Function

MOST_BYTES = 1 << 26
"""Tensors with values may have so many bytes at lengths that nobody declares."""


NOTHING = "it returns no tensor"
"""What is said of an op that has no result."""


class MutatedInput(ValueError):
    """The op writes to an input that its declaration does not name in `mutates`; `hint` says what to write there."""

    def __init__(self, name: str) -> None:
        super().__init__(f"it writes to its input `{name}`, which `mutates` does not name")
        self.hint = f"with `mutates: [{name}]` a kernel has to leave the same there; a reference that only wants room works on a copy"


class TooMuch(Exception):
    """A call with values takes more calls of torch, or more memory, than it may."""


def mode() -> FakeTensorMode:
    """Returns a mode in which tensors have no values. Those that were made before, as a table of a module is, lose them in a call."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_fallback_kernels=False, allow_non_fake_inputs=True)


def ready(
    op: Declaration, binding: Mapping[str, int], dtype: str, within: FakeTensorMode, most: int | None = None
) -> Function:
    """Returns the op as `operation.ready` does, its weights without values. A constructor that needs values is called with some, within limits where it may make `most` calls of torch.

    Raises what the constructor raises.
    """
    with contextlib.suppress(Exception), within:
        return operation.ready(op, binding, dtype)
    with limited(most):
        function = operation.ready(op, binding, dtype)
    _strip(function, within)
    return function


def call(op: Declaration, binding: Mapping[str, int], dtype: str, most: int | None = None) -> list[torch.Tensor]:
    """Returns what the op gives for zeros, and offsets evenly apart, within limits where it may make `most` calls of torch.

    Raises what torch raises, `TooMuch`, and `results.NoTensor` where it returns something else than tensors.
    """
    import torch

    with torch.no_grad(), limited(most):
        function = operation.ready(op, binding, dtype)
        given = inputs(op, binding, dtype)
        zero(op, binding, given)
        before = versions(given)
        returned = operation.call(function, op, given, declared.bind_kwargs(op["kwargs"], binding))
    require_unwritten(op, given, before)
    found = results.tensors(results.apart(returned))
    if not found and not op["mutates"]:
        raise results.NoTensor(NOTHING)
    return found


def versions(given: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Returns how often torch has noted that each tensor was written to."""
    return {name: value._version for name, value in given.items()}


def require_unwritten(op: Declaration, given: Mapping[str, torch.Tensor], before: Mapping[str, int]) -> None:
    """Raises MutatedInput where the op has written to an input since torch's notes were as `before`, and does not say so."""
    for name, value in given.items():
        declared_name = name.split(".")[0]
        if value._version != before[name] and not {name, declared_name} & set(op["mutates"]):
            raise MutatedInput(declared_name)


def inputs(op: Declaration, binding: Mapping[str, int], dtype: str) -> dict[str, torch.Tensor]:
    """Returns tensors in the form of the op's inputs, by name, with whatever values they have where they are made."""
    return {one["name"]: _input(one, dtype, binding) for one in declared.tensors(op)}


def zero(op: Declaration, binding: Mapping[str, int], given: Mapping[str, torch.Tensor]) -> None:
    """Makes each of the inputs `given`, by name, zeros: they tell no expected value. Offsets, and integers that are declared to be in order, are evenly apart: between zeros there would be no row, and the op would do nothing."""
    for one in declared.tensors(op):
        value = given[one["name"]].zero_()
        init = declared.bind_init(one["init"], binding)
        of = init["of"] if init["kind"] == "sorted" else init
        first, last = 0, 0
        if of["kind"] == "offsets":
            last = int(of["total"])
        elif of["kind"] == "randint" and init is not of:
            first, last = int(of["low"]), int(of["high"]) - 1
        count = value.shape[-1] if value.dim() else 0
        for place in range(count if last > first else 0):
            value[..., place] = first + (last - first) * place // max(count - 1, 1)


def _input(one: TensorInput, dtype: str, binding: Mapping[str, int]) -> torch.Tensor:
    import torch

    shape = declared.bind_shape(one["shape"], binding)
    layout = one["layout"]
    steps = declared.strides(shape, layout if isinstance(layout, str) else layout[0])
    return torch.empty_strided(shape, steps, dtype=getattr(torch, one["dtype"] or dtype), device="cpu")


@contextlib.contextmanager
def limited(most: int | None) -> Iterator[None]:
    """Has torch raise `TooMuch` after `most` calls, or once it has made tensors of `MOST_BYTES`; no limits where that is None."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    if most is None:
        yield
        return
    most_calls, calls, size = most, 0, 0

    class Limit(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal calls, size
            calls += 1
            result = func(*args, **(kwargs or {}))
            for one in tree_leaves(result):
                size += one.nbytes if isinstance(one, torch.Tensor) and not func.is_view else 0
            if calls > most_calls or size > MOST_BYTES:
                raise TooMuch
            return result

    with Limit():  # type: ignore[no-untyped-call]
        yield


def _strip(function: Function, within: FakeTensorMode) -> None:
    """Takes the values of the parameters and buffers of an instance; those that are one tensor stay so."""
    import torch

    owner = getattr(function, "__self__", function)
    for part in owner.modules() if isinstance(owner, torch.nn.Module) else ():
        for held in (part._parameters, part._buffers):
            for name, value in list(held.items()):
                if value is not None:
                    held[name] = within.from_tensor(value)  # type: ignore[assignment]
