"""Probes of channels in other groups than declared ones: the weight of a convolution has another shape then. It makes no values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_known, bindings, elementwise, probe_arguments, probing
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import bind_shape, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
"""Functions whose weight has the channels of a group."""

TRANSPOSED = "transpose"
"""What is in the names of those whose weight has the channels of the input first, and then those of a group of the result."""

GROUPS = "groups"
"""The argument of a convolution that says how many groups there are."""


def groups(request: VariantRequest) -> Iterator[Case]:
    """Yields a case with another number of groups, where the wrapper takes that number and channels allow it. It takes no other's place."""
    declaration = request["op"]
    if not declaration.get("torch") or declaration.get("random"):
        return
    if elementwise.name_of(declaration) in CONVOLUTIONS:
        yield from of_convolution(request)
        return
    numbers = {one["name"]: one["scalar"] for one in declaration["inputs"] if "scalar" in one}
    for name in bindings.GROUPS:
        declared = declaration["kwargs"].get(name, numbers.get(name))
        if type(declared) is int and is_passed(request, name):
            yield from of_channels(declaration, name, declared)


def is_passed(request: VariantRequest, name: str) -> bool:
    """Tells whether the variant's `call` passes on the argument `name`; it passes on all where there is none."""
    written = request["variant"].get("call")
    return written is None or name in str(written)


def declared_groups(request: VariantRequest) -> object:
    """Returns the number of groups of a convolution as ops.yaml has it, 1 where only torch and the wrapper have one; None where the wrapper takes none."""
    declaration = request["op"]
    if GROUPS in declaration["kwargs"]:
        return declaration["kwargs"][GROUPS] if is_passed(request, GROUPS) else None
    if request["variant"].get("call") is not None:
        return None
    return 1 if GROUPS in arguments_known.beside(request, arguments_known.of_op(declaration)) else None


def of_convolution(request: VariantRequest) -> Iterator[Case]:
    """Yields the convolution in two groups, or in one where several are declared."""
    declaration, told = request["op"], declared_groups(request)
    inputs = tensors(declaration)
    if type(told) is not int or len(inputs) < 2 or len(inputs[0]["shape"]) != len(inputs[1]["shape"]):
        return
    other = 2 if told == 1 else 1
    changed = {**declaration["kwargs"], GROUPS: other}
    binding = probe_arguments.places(declaration, probing.tiny(declaration), changed)
    is_transposed = TRANSPOSED in elementwise.name_of(declaration)
    # No two of them are alike, where they are not one.
    for times, dim in ((2, inputs[0]["shape"][1]), (3, inputs[1]["shape"][int(is_transposed)])):
        binding |= multiple(declaration, dim, other, times)
    if (batch := inputs[0]["shape"][0]) in probing.free(declaration):
        # It has nothing to do with groups, and each image costs.
        binding[str(batch)] = 1
    if not bindings.is_possible(declaration, binding):
        return
    image, weight = (bind_shape(given["shape"], binding) for given in inputs[:2])
    channels, made = image[1], weight[1] * told if is_transposed else weight[0]
    # A kernel for groups of one channel need not know of others.
    if channels % other or made % other or channels == told > 1:
        return
    shape = [channels, made // other] if is_transposed else [made, channels // other]
    shapes = {inputs[1]["name"]: [*shape, *weight[2:]]}
    label = f"kwarg[{GROUPS}={other}]"
    yield probing.probe(declaration, label, binding, kwargs=changed, shapes=shapes, has_own_budget=True)


def multiple(declaration: Declaration, dim: int | str, groups: int, times: int) -> dict[str, int]:
    """Returns the length of `dim`, so many `times` the least that `groups` divides, where it is one and may have other lengths."""
    if dim not in probing.free(declaration):
        return {}
    return {str(dim): times * math.lcm(groups, bindings.steps(declaration).get(str(dim), 1))}


def of_channels(declaration: Declaration, name: str, declared: int) -> Iterator[Case]:
    """Yields the case in which the channels of the first input are in another number of groups than is `declared`, as the argument `name`."""
    shape = tensors(declaration)[0]["shape"]
    if len(shape) < 2:
        return
    binding, other = probing.tiny(declaration), 3 if declared == 2 else 2
    binding |= multiple(declaration, shape[1], other, 2)
    channels = bind_shape(shape, binding)[1]
    divisors = [one for one in range(1, channels + 1) if channels % one == 0 and one != declared]
    # One with several groups of several channels, if there is one.
    divisors.sort(key=lambda one: (one != other, one in (1, channels), one))
    for found in divisors[:1]:
        changed = {**declaration["kwargs"], name: found}
        yield probing.probe(declaration, f"kwarg[{name}={found}]", binding, kwargs=changed, has_own_budget=True)
