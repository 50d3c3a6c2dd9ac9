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


def ready(declaration: Declaration, binding: Mapping[str, int], dtype: str, device: str | None = None) -> Function:
    """Returns the op as a function of its inputs and kwargs, for a case of these lengths in `dtype` on `device` (None: where torch makes it).

    Raises what `found` raises, and what the constructor raises.
    """
    function = found(declaration)
    if not inspect.isclass(function):
        return function
    return constructed(function, declaration, binding, dtype, device)


def constructed(
    class_: Function, declaration: Declaration, binding: Mapping[str, int], dtype: str, device: str | None
) -> Function:
    """Returns what `called` makes of an `instance` of `class_`. Raises what the constructor raises."""
    return called(instance(class_, declaration, binding, dtype, device))


def instance(
    class_: Function, declaration: Declaration, binding: Mapping[str, int], dtype: str, device: str | None
) -> object:
    """Returns an instance of `class_` made with the declared `init`, its weights drawn from a fixed seed and rounded to `dtype`, on `device`.

    Weights ask for gradients only where the op is checked backward. Raises what the constructor raises.
    """
    import torch

    reference = declaration.get("reference")
    init = declared.bind_kwargs({} if reference is None else reference["init"], binding)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        made = class_(**init)
    if isinstance(made, torch.nn.Module):
        place(made, dtype, device)
        made.requires_grad_(bool(declaration.get("backward")))
    return made


def called(made: object) -> Function:
    """Returns what is called of an instance, or of anything else: it itself, or its `forward` where it cannot be called."""
    return made if callable(made) else made.forward  # type: ignore[attr-defined]


def place(module: Any, dtype: str, device: str | None) -> None:
    """Rounds the floating weights and buffers of `module` to `dtype`, where that is a floating one, and moves all of them to `device` unless that is None.

    They are set anew one by one: `Module.to` swaps tensors, which tensors without values refuse.
    """
    import torch

    rounded = getattr(torch, dtype)
    known: dict[int, object] = {}

    def placed(value: Any) -> Any:
        wanted = rounded if rounded.is_floating_point and value.dtype.is_floating_point else value.dtype
        moved = value.detach().to(device=device or value.device, dtype=wanted)
        return torch.nn.Parameter(moved, value.requires_grad) if isinstance(value, torch.nn.Parameter) else moved

    for part in module.modules():
        for name, value in [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]:
            if id(value) not in known:
                known[id(value)] = placed(value)
            setattr(part, name, known[id(value)])


def widened(function: Function) -> Function:
    """Returns the same op in float64: an instance with its weights and buffers widened, anything else as it is."""
    import torch

    return copy.deepcopy(function).double() if isinstance(function, torch.nn.Module) else function


def fresh(function: Function) -> Function:
    """Returns the op as it was made: an instance whose buffers a call may change is copied, anything else is itself."""
    import torch

    return copy.deepcopy(function) if isinstance(function, torch.nn.Module) else function


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
