"""The op itself, ready to be called: the torch function that a declaration names, or its reference in Python.

A reference is a function, or a class that is constructed with the declared `init` and then called, as KernelBench's `Model` is. Its file is trusted as an op's
`cases.py` is: it is no variant, and may not import one. torch is imported only inside functions.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness.op import declaration as declared
from t2t_harness.sources import finder, loading

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration

SEED = 42
"""Seeds torch before a class is constructed: a class that draws its weights in the same order gets the same weights."""

Function = Callable[..., Any]


def name_of(declaration: Declaration) -> str:
    """Returns what the op is called in documents: torch's dotted name, or `FILE::NAME` of a reference."""
    reference = declaration.get("reference")
    return str(declaration["torch"]) if reference is None else f"{reference['file']}::{reference['name']}"


def found(declaration: Declaration) -> Function:
    """Returns the torch function, or the function or class of the reference.

    Raises LookupError where there is none of that name, OSError where the reference's file cannot be read, and what the file raises.
    """
    reference = declaration.get("reference")
    if reference is None:
        return declared.resolve(str(declaration["torch"]))
    if not Path(reference["root"], reference["file"]).is_file():
        raise FileNotFoundError(f"{reference['file']}: no such file")
    finder.install_finder(reference["root"])
    with loading.without_variants([reference["file"], declaration.get("cases")]):
        module: Any = loading.load_file(reference["root"], reference["file"])
    value = module
    for part in reference["name"].split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise LookupError(f"{reference['file']} has no callable `{reference['name']}`")
    return value  # type: ignore[no-any-return]


def described(function: Function) -> Function:
    """Returns the function whose signature tells how the op is called: the op's own, or the `forward` of a class."""
    return getattr(function, "forward", function) if inspect.isclass(function) else function


def ready(
    declaration: Declaration,
    binding: Mapping[str, int],
    dtype: str,
    device: str | None = None,
    init: Mapping[str, object] | None = None,
    *,
    evaluates: bool = False,
) -> Function:
    """Returns the op as a function of its inputs and kwargs, for a case of these lengths in `dtype` on `device` (None: where torch makes it); `init` stands in the place of the declared one. A module that `evaluates` is in that mode.

    Raises what `found` raises, and what the constructor raises.
    """
    function = found(declaration)
    if not inspect.isclass(function):
        return function
    return called(instance(function, declaration, binding, dtype, device, init, evaluates=evaluates))


def instance(
    class_: Function,
    declaration: Declaration,
    binding: Mapping[str, int],
    dtype: str,
    device: str | None,
    init: Mapping[str, object] | None = None,
    *,
    evaluates: bool = False,
) -> object:
    """Returns an instance of `class_` made with `init`, the declared one where there is none, its weights drawn from a fixed seed and rounded to `dtype`, on `device`; a module that `evaluates` is in that mode.

    Weights ask for gradients as they are constructed, where the op is checked backward, and else not. Raises what the constructor raises.
    """
    import torch

    reference = declaration.get("reference")
    declared_init = {} if reference is None else reference["init"]
    arguments = declared.bind_kwargs(declared_init if init is None else init, binding)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        made = class_(**arguments)
    if isinstance(made, torch.nn.Module):
        place(made, dtype, device)
        if evaluates:
            made.eval()
        if not declaration.get("backward"):
            made.requires_grad_(False)
    return made


def called(made: object) -> Function:
    """Returns what is called of an instance, or of anything else: it itself, or its `forward` where it cannot be called."""
    return made if callable(made) else made.forward  # type: ignore[attr-defined]


def place(module: Any, dtype: str, device: str | None) -> None:
    """Rounds the floating weights and buffers of `module` to `dtype`, where that is a floating one, and moves all of them to `device` unless that is None. What is of one byte, as quantized weights are, is rounded to nothing.

    Tensors that are tied stay so. A parameter stays the object that it is, which the module may hold elsewhere, too, as with `Module.to`; tensors without values refuse that, and are set anew.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    rounded = getattr(torch, dtype)
    known: dict[int, object] = {}

    def placed(value: Any) -> Any:
        is_rounded = rounded.is_floating_point and value.dtype.is_floating_point and value.dtype.itemsize > 1
        moved = value.detach().to(device=device or value.device, dtype=rounded if is_rounded else value.dtype)
        if (moved.dtype, moved.device) == (value.dtype, value.device):
            return value
        if not isinstance(value, torch.nn.Parameter):
            return moved
        if isinstance(moved, FakeTensor):
            return torch.nn.Parameter(moved, value.requires_grad)
        value.data = moved
        return value

    for part in module.modules():
        listed = [
            *part.named_parameters(recurse=False, remove_duplicate=False),
            *part.named_buffers(recurse=False, remove_duplicate=False),
        ]
        for name, value in listed:
            if id(value) not in known:
                known[id(value)] = placed(value)
            if known[id(value)] is not value:
                setattr(part, name, known[id(value)])


def widened(function: Function) -> Function:
    """Returns the same op in float64: an instance with its weights and buffers widened, which it must not be called again by, anything else as it is."""
    import torch

    return function.double() if isinstance(function, torch.nn.Module) else function


def fresh(function: Function, again: Callable[[], Function]) -> Function:
    """Returns the op as it was made: of an instance, whose buffers a call may change, a copy, or where it cannot be copied what `again` constructs; anything else is itself."""
    import torch

    if not isinstance(function, torch.nn.Module):
        return function
    try:
        return copy.deepcopy(function)
    except Exception:
        # Of a tensor that is made of others, as of a norm and a direction, torch makes no copy.
        return again()


def weights(function: Function) -> list[torch.Tensor]:
    """Returns the parameters and buffers of an instance, nothing for a function."""
    import torch

    return [*function.parameters(), *function.buffers()] if isinstance(function, torch.nn.Module) else []


def is_method(declaration: Declaration) -> bool:
    """Tells whether the op is a method of `torch.Tensor`, which takes its first input by position, as `self`."""
    return declaration.get("reference") is None and str(declaration["torch"]).startswith("torch.Tensor.")


def call(function: Function, declaration: Declaration, inputs: Mapping[str, Any], kwargs: Mapping[str, Any]) -> Any:
    """Returns what `function`, which `ready` returned, gives for the tensors `inputs` and `kwargs`.

    Inputs go by keyword under their declared names, and by position to a callable that refuses those. Raises what torch raises.
    """
    first: tuple[object, ...] = ()
    inputs = declared.arguments(declaration, inputs)
    # A number among the inputs may be another one in a case.
    inputs = {name: kwargs.get(name, value) for name, value in inputs.items()}
    kwargs = {name: value for name, value in kwargs.items() if name not in inputs}
    named = dict(inputs)
    if is_method(declaration):
        first = (named.pop(next(iter(named))),)
    try:
        return function(*first, **named, **kwargs)
    except TypeError as refusal:
        try:
            return function(*inputs.values(), **kwargs)
        except TypeError:
            raise refusal from None
