"""What a call must leave as its caller had it, beside the values of inputs: their form, and torch's settings.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MOST_TOLD = 4
"""The most changes that are reported."""


@contextlib.contextmanager
def left_alone(given: Mapping[str, torch.Tensor], *, draws: bool) -> Iterator[list[str]]:
    """Yields a list that says, at the end of the context, what of the form of the inputs `given` and of torch's settings is not as it was at the beginning. The settings are put back.

    What `draws` may seed torch's generator.
    """
    import torch

    changed: list[str] = []
    # What is asked here is not the call's doing.
    with torch._C.DisableTorchFunction():
        before = {name: form(value) for name, value in given.items()}
        had = settings(draws=draws)
    try:
        yield changed
    finally:
        with torch._C.DisableTorchFunction():
            for name, value in given.items():
                if words := difference(before[name], form(value)):
                    changed.append(f"input `{name}` {words}")
            has = settings(draws=draws)
        for name, value in had.items():
            if has[name] != value:
                changed.append(f"the call leaves {name} as {has[name]}, which was {value} before")
        put_back(had, has)
        del changed[MOST_TOLD:]


def held(upstream: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """Returns copies of the gradients that come in, by the position of their output."""
    return {position: value.clone() for position, value in upstream.items()}


def written(before: Mapping[int, torch.Tensor], upstream: Mapping[int, torch.Tensor]) -> list[str]:
    """Returns in words which gradient that came in has other values than `before`: autograd may give it to others, too."""
    changed = [position for position, value in before.items() if not value.equal(upstream[position])]
    return [f"the backward pass writes to the gradient of output {position}, which comes in" for position in changed]


def form(value: torch.Tensor) -> dict[str, object]:
    """Returns a tensor's form beside its values, by the name of each part."""
    return {
        "shape": tuple(value.shape),
        "strides": value.stride(),
        "offset": value.storage_offset(),
        "dtype": value.dtype,
        "memory": value.untyped_storage().data_ptr(),
        "requires_grad": value.requires_grad,
    }


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Returns in words what of a tensor's form is another `after` a call; nothing where it is the same."""
    names = [name for name, value in before.items() if after[name] != value]
    told = [name for name in names if name != "memory"]
    if not told:
        return "lies in other memory after the call" if names else ""
    has = ", ".join(f"{name} {shown(after[name])}" for name in told)
    had = ", ".join(f"{name} {shown(before[name])}" for name in told)
    return f"has {has} after the call, and had {had} before"


def shown(value: object) -> str:
    """Returns a part of a tensor's form in words."""
    return str(list(value) if isinstance(value, tuple) else value).removeprefix("torch.")


def settings(*, draws: bool) -> dict[str, Any]:
    """Returns torch's settings that hold for all that a program does later, by what they are called. The seed is not one of them where a call `draws`."""
    import torch

    found = {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": default_device(),
        "torch's recording of gradients": "on" if torch.is_grad_enabled() else "off",
    }
    if not draws:
        found["the seed of torch's generator"] = torch.initial_seed()
    return found


def default_device() -> str:
    """Returns the device on which torch makes tensors that name none, as it was set."""
    import torch

    # torch.get_default_device makes a tensor there, which fails where there is no device.
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    return str(getattr(context, "device", "cpu"))


def put_back(had: Mapping[str, Any], has: Mapping[str, Any]) -> None:
    """Gives torch the settings that it `had`, where it `has` others: what comes after the call is the harness's."""
    import torch

    changed = {name: value for name, value in had.items() if has[name] != value}
    if "torch's default dtype" in changed:
        torch.set_default_dtype(changed["torch's default dtype"])
    if "torch's default device" in changed:
        torch.set_default_device(None)
    if "torch's recording of gradients" in changed:
        torch.set_grad_enabled(changed["torch's recording of gradients"] == "on")
