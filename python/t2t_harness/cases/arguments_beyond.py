"""Whole numbers that are larger than a kernel's blocks: a window, a prefix or a count that a block of the kernel does not hold is cut off by code without a loop.

Kernels are read and never imported. Nothing here makes values, or imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_compared, literals, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

COUNTS = ("kernel_size", "size", "k", "n", "num_classes", "minlength", "bins")
"""Arguments of torch's functions that count something which a kernel may hold in one block."""

ACROSS = ("size",)
"""Those that count along the second dim, which holds channels."""

NO_COUNTS = ("dim", "axis", "seed", "ignore_index", "padding_idx")
"""What the names of arguments begin with whose values are no counts."""

MOST = 128
"""Larger blocks are not gone beyond: their cases would take an interpreter's budget up."""

SPARE = 3
"""So much longer is a dim than what is counted along it."""

ARGUMENTS = 2
"""So many arguments are tried."""


def beyond(request: VariantRequest, read: Sequence[literals.Nodes]) -> Iterator[Case]:
    """Yields cases in which one whole number of the op is one above an integer of the kernel's files `read`, the smallest that is not below it and the largest that is tried, and a dim has room for it; nothing where the files hold no such integers, or `call` does not pass it on."""
    declaration, written = request["op"], request["variant"].get("call")
    held = sorted(value for value in set(literals.of_files(read)) if value <= MOST)
    names = [name for name in counts(declaration) if written is None or name in str(written)]
    for name in names[:ARGUMENTS] if not declaration.get("random") else ():
        value = most(declaration["kwargs"][name])
        larger = [one for one in held if one >= value]
        for count in dict.fromkeys([*larger[:1], *larger[-1:]]):
            yield with_count(declaration, name, count + 1)


def counts(declaration: Declaration) -> list[str]:
    """Returns the arguments that count something: those of torch's functions that are known to, and every whole number of a reference in Python."""
    is_of_torch = not declaration.get("reference")
    found = []
    for name, value in declaration["kwargs"].items():
        is_list = isinstance(value, list) and bool(value) and all(type(one) is int for one in value)
        if name.startswith(NO_COUNTS) or arguments_compared.is_ignored(declaration, name):
            continue
        if not (type(value) is int or (is_list and name in COUNTS)):
            continue
        if (name in COUNTS or not is_of_torch) and most(value) > 0:
            found.append(name)
    return found


def most(value: object) -> int:
    """Returns a whole number, or the largest of a list of them."""
    return max(value) if isinstance(value, list) else int(str(value))


def with_count(declaration: Declaration, name: str, count: int) -> Case:
    """Returns the case in which the argument `name` is `count`, of several numbers the last, and the dims along which that may be counted are longer."""
    own = declaration["kwargs"][name]
    changed = [*own[:-1], count] if isinstance(own, list) else count
    lengths = {dim: count + SPARE + 2 * place for place, dim in enumerate(places(declaration, name))}
    binding = probing.bound(declaration, lengths, probing.NARROW)
    at = [f"{name}={changed}", *(f"{dim}={binding[dim]}" for dim in lengths)]
    kwargs = {**declaration["kwargs"], name: changed}
    return probing.probe(declaration, f"kwarg[{','.join(at)}]", binding, kwargs=kwargs, has_own_budget=True)


def places(declaration: Declaration, name: str) -> list[str]:
    """Returns the dims along which the argument `name` may be counted: of a reference the one that is longest where it is measured; of torch's functions those of places, or the last one."""
    inputs, loose = tensors(declaration), probing.loose(declaration)
    if not inputs:
        return []
    if declaration.get("reference"):
        longest = {dim: max((size.get(dim, 0) for size in probing.sizes(declaration)), default=0) for dim in loose}
        return sorted(loose, key=lambda dim: -longest[dim])[:1]
    shape = [str(dim) for dim in inputs[0]["shape"]]
    along = shape[1:2] if name in ACROSS else shape[2:] or shape[-1:]
    if isinstance(declaration["kwargs"][name], list):
        along = along[-1:]
    found = [dim for dim in along if dim in loose]
    return found or loose[-1:]
