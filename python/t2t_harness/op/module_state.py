"""What an `nn.Module` holds, as results of a call: the gradients of its parameters, and the buffers that the call changed.

A reference that is a class, and an entry that is one, are compared by the names that both have. torch is imported only inside functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

OF_MODULE = "module."
"""What the name of a result begins with that is no output and belongs to no input."""

GRADIENT = f"{OF_MODULE}grad."
"""What the gradient of a parameter is called; the parameter's name follows."""

AFTER = f"{OF_MODULE}after."
"""What a buffer after the call is called; its name follows."""

LEAF = "module:"
"""What a parameter is called beside inputs, which have no colon in their names; its name follows."""


BEGAN = f"{OF_MODULE}began."
"""What the first values of a parameter or a buffer are called; its name follows."""

ENDED = f"{OF_MODULE}ended."
"""What the values of a parameter or a buffer after a call are called; its name follows."""

SAMPLED = 4096
"""So many elements of a parameter or a buffer tell whether two of one name begin alike."""


def is_of_module(name: str) -> bool:
    """Tells whether the result `name` is one of a module's own."""
    return name.startswith(OF_MODULE)


def gradient_of(leaf: str) -> str:
    """Returns what the gradient of an input, or of one of `parameters`, is called."""
    return f"{GRADIENT}{leaf.removeprefix(LEAF)}" if leaf.startswith(LEAF) else f"grad.{leaf}"


def parameters(function: object) -> dict[str, torch.Tensor]:
    """Returns the parameters of a module that ask for gradients, each behind `LEAF`; nothing of anything else."""
    import torch

    if not isinstance(function, torch.nn.Module):
        return {}
    return {f"{LEAF}{name}": value for name, value in function.named_parameters() if value.requires_grad}


def buffers(function: object) -> dict[str, torch.Tensor]:
    """Returns the buffers of a module by what they are called as results; nothing of anything else."""
    import torch

    if not isinstance(function, torch.nn.Module):
        return {}
    return {f"{AFTER}{name}": value.detach() for name, value in function.named_buffers()}


def frozen(function: object) -> dict[str, torch.Tensor]:
    """Returns zeros, the gradients of the floating parameters of a module that ask for none, by what they are called as results; nothing of anything else."""
    import torch

    if not isinstance(function, torch.nn.Module):
        return {}
    return {
        f"{GRADIENT}{name}": torch.zeros_like(value)
        for name, value in function.named_parameters()
        if value.is_floating_point() and not value.requires_grad
    }


def began(function: object) -> dict[str, torch.Tensor]:
    """Returns what the parameters and buffers of a module hold, of large ones some elements, by `began_of` of what they are called as results; nothing of anything else."""
    import torch

    if not isinstance(function, torch.nn.Module):
        return {}
    named: dict[str, torch.Tensor] = {f"{GRADIENT}{name}": value for name, value in function.named_parameters()}
    named |= {f"{AFTER}{name}": value for name, value in function.named_buffers()}
    return {began_of(name): sampled(value) for name, value in named.items()}


def ended(function: object) -> dict[str, torch.Tensor]:
    """Returns what `began` does, as it is after a call, by what that is called."""
    return {f"{ENDED}{name.removeprefix(BEGAN)}": value for name, value in began(function).items()}


def left_alone(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> frozenset[str]:
    """Returns the names of the parameters and buffers that have the bytes after a call, as `ended` has them, that they `began` with."""
    names = (name.removeprefix(BEGAN) for name in before)
    return frozenset(name for name in names if is_kept(before[f"{BEGAN}{name}"], after.get(f"{ENDED}{name}")))


def is_kept(before: torch.Tensor, after: torch.Tensor | None) -> bool:
    """Tells whether a tensor holds the very bytes that it did; what is NaN, too."""
    import torch

    if after is None or (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    return before.contiguous().view(torch.uint8).equal(after.contiguous().view(torch.uint8))


def began_of(name: str) -> str:
    """Returns what the first values of the parameter or the buffer are called that the result `name` belongs to."""
    return f"{BEGAN}{name.removeprefix(GRADIENT).removeprefix(AFTER)}"


def sampled(value: torch.Tensor) -> torch.Tensor:
    """Returns up to `SAMPLED` elements of a tensor, in memory of their own."""
    flat = value.detach().reshape(-1)
    return flat[:: max(1, -(-flat.numel() // SAMPLED))].clone()


def in_own_memory(function: object, results: Iterable[object]) -> list[int]:
    """Returns the positions of the results that lie in memory of a parameter or a buffer of a module; nothing of anything else."""
    import torch

    if not isinstance(function, torch.nn.Module):
        return []
    own = {value.untyped_storage().data_ptr() for value in (*function.parameters(), *function.buffers())}
    return [
        place
        for place, one in enumerate(results)
        if isinstance(one, torch.Tensor) and one.untyped_storage().data_ptr() in own
    ]


def counters(function: object) -> list[torch.Tensor]:
    """Returns the buffers of a module that are one integer, as how often it was called; nothing of anything else."""
    return [one for one in buffers(function).values() if one.numel() == 1 and not one.is_floating_point()]


def named(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns the floating parameters and buffers of a module by name."""
    found: dict[str, torch.Tensor] = dict(module.named_parameters()) | dict(module.named_buffers())
    return {name: value for name, value in found.items() if value.is_floating_point() and value.dtype.itemsize > 1}


def shared(wrapper: object, reference: object) -> list[str]:
    """Returns the names of the floating parameters and buffers that a wrapper and a reference both hold, in the same shape, dtype and values, if both are modules and hold no other tensors; else nothing.

    What one of them holds beside them may be made of them, and would be wrong if they changed.
    """
    import torch

    if not isinstance(wrapper, torch.nn.Module) or not isinstance(reference, torch.nn.Module):
        return []
    own, right = named(wrapper), named(reference)
    alike = own.keys() == right.keys() and all(is_same(value, right[name]) for name, value in own.items())
    return sorted(own) if alike and not any(holds_more(one) for one in (wrapper, reference)) else []


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tells whether two tensors have the same shape, dtype and values."""
    return (one.shape, one.dtype) == (other.shape, other.dtype) and bool(one.equal(other))


def holds_more(module: torch.nn.Module) -> bool:
    """Tells whether a part of a module holds a tensor that is no parameter and no buffer."""
    import torch

    values = (value for part in module.modules() for value in vars(part).values())
    members = (one for value in values for one in (value if isinstance(value, (list, tuple)) else [value]))
    return any(isinstance(one, torch.Tensor) for one in members)


def draw(module: object, names: Iterable[str], key: str) -> None:
    """Gives parameters and buffers of a module other values, the same in every process: a buffer larger ones, since it may be a variance; an integer and what is infinite none."""
    import torch

    if not isinstance(module, torch.nn.Module):
        return
    parameters = dict(module.named_parameters())
    for name, value in named(module).items():
        if name not in names:
            continue
        seed = int.from_bytes(hashlib.sha256(f"{key}\0{name}".encode()).digest()[:8], "little", signed=True)
        drawn = torch.randn(value.shape, generator=torch.Generator("cpu").manual_seed(seed))
        drawn = (drawn if name in parameters else drawn.abs()).to(value.device)
        with torch.no_grad():
            value.copy_(
                value.detach() * (1 + DRAWN * drawn) + DRAWN * drawn if name in parameters else value + DRAWN * drawn
            )


DRAWN = 0.25
"""By how much drawn values differ from those of the constructor, as a rule."""


def copies(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the values in memory of their own."""
    return {name: value.clone() for name, value in values.items()}


def changed(function: object, before: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns those `buffers` of a module that have other values than `before`, or another shape."""
    return {
        name: value
        for name, value in buffers(function).items()
        if name not in before or value.shape != before[name].shape or not value.equal(before[name])
    }
