"""Probes of keyword arguments away from their declared values, at shapes where it matters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import (
    arguments_away,
    arguments_known,
    arguments_random,
    arguments_turned,
    arguments_values,
    arguments_words,
    bindings,
    cases,
    probe_indices,
    probing,
    seeds,
    windows,
)
from t2t_harness.cases.cases import Case
from t2t_harness.op.declaration import bind_shape, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest


FIRSTS = 8
"""So many arguments have a budget of their own, each at its first other value."""

WORDS = 6
"""So many cases of other words have one, too: code of a word is seldom that of another."""

EVEN = ("interpolation", "mode")
"""Words that say what is taken between two places: there is a middle of even lengths."""

SAMPLED = (67, 16, 2)
"""Lengths from the last dim on of a case of an op that draws random numbers."""


def kwargs(request: VariantRequest) -> Iterator[Case]:
    """Yields cases for each keyword argument away from its declared value, or from torch's default; along another dim, where that is the first, in a long one as well."""
    declaration = request["op"]
    ranks = [len(given["shape"]) for given in tensors(declaration)]
    dims = probing.loose(declaration)
    later: list[Case] = []
    firsts: set[str] = set()
    uneven: set[str] = set()
    odd: set[str] = set()
    turned: set[str] = set()
    listed: list[str] = []
    words = 0
    for label, changed in arguments_away.of_request(request, max(ranks, default=0)):
        name = label.partition("=")[0]
        others = arguments_away.changed_names(declaration, changed)
        more: dict[str, Any] = {}
        binding = probing.tiny(declaration)
        if windows.ARGUMENT in others and windows.is_asked(declaration):
            for lengths in windows.shapes_away(declaration):
                at = f"{windows.along(declaration)[-1]}={lengths[windows.along(declaration)[-1]]}"
                yield probing.probe(declaration, f"kwarg[{label},{at}]", lengths, kwargs=changed)
            continue
        if name == probing.CAUSAL:
            last = probing.free(declaration)[-1:]
            binding = probing.bound(declaration, {**binding, **dict.fromkeys(last, 67)}, probing.NARROW)
        elif "ignore_index" in others:
            # Few classes, so that some rows have the label.
            binding = probing.rows(declaration, (3, 19, 3))
        elif cases.PADDING in others:
            # Few places and many indices, so that some are that one.
            few = {dim: probing.NARROW + 1 for dim in bindings.pointed_into(declaration)}
            many = dict.fromkeys(probe_indices.lengths_of(declaration), probe_indices.MANY)
            binding = probing.bound(declaration, {**binding, **many, **few}, probing.NARROW)
        elif (held := probe_indices.met(declaration, changed, others)) is not None:
            more = {"values": cases.PLANTED, "of": held}
        elif changed.get("ceil_mode") is True and "ceil_mode" in others:
            binding = left_over(declaration, binding, changed)
        elif name in arguments_values.OF_SPECIAL and probing.of_values(declaration):
            more = {"values": "special", "of": probing.of_values(declaration)[0]}
        elif is_small(declaration, name, changed):
            # It matters where values are small.
            more = {"values": "small", "of": cases.ALL} if probing.of_values(declaration) else {}
        elif changed.get("padding") == "same":
            # Of an even window one side has more before it than the other.
            binding = places(declaration, even_windows(declaration, binding), changed)
        elif others & {*arguments_values.PAIRS} and not {"scale_factor", "kernel_size"} & {*changed}:
            # A window of a pool fits in any case.
            binding = places(declaration, binding, changed)
        elif not arguments_random.is_certain(declaration, changed):
            # Enough elements to tell a share by.
            binding = probing.rows(declaration, SAMPLED)
        elif name in arguments_known.DIMS:
            # Halves of a dim are asked for where lengths are even.
            binding = probing.rows(declaration, (6, 4, 4))
        # One argument away is what kernels are wrong for most often, and costs little where nothing is long.
        is_first = len(others) == 1 and not firsts & others and len(firsts) < FIRSTS
        firsts |= others if is_first else set()
        # So is one that differs from dim to dim, where a number stands for all.
        is_uneven = len(others) == 1 and others <= uneven_ones(declaration, changed) and len(uneven) < FIRSTS
        is_uneven = is_uneven and not uneven & others
        uneven |= others if is_uneven else set()
        # Halves of an odd number leave one, where those of the declared one leave nothing.
        is_odd = others <= odd_ones(declaration, changed) and not odd & others and len(odd) < FIRSTS
        odd |= others if is_odd else set()
        # So does what turns a comparison of the reference, where the first one may not, and what is declared as off.
        turning = {one for one in others if arguments_turned.turns(declaration, one, changed.get(one))}
        is_off = any(arguments_turned.is_off(declaration, one) for one in others)
        is_turned = len(others) == 1 and len(turned) < FIRSTS and bool(is_off or turning - turned)
        turned |= turning if is_turned else set()
        is_word = any(isinstance(changed.get(one), str) for one in others) and words < WORDS
        words += int(is_word)
        # So is what a reference has by default, where that is something else.
        is_default = label.startswith(arguments_away.WITHOUT) and declaration.get("reference") is not None
        # And what there is none of by default: another number may say nothing.
        is_none = len(others) == 1 and all(declaration["kwargs"].get(one, 0) is None for one in others)
        is_planted = more.get("values") == cases.PLANTED and len(others) == 1
        # Each number of a list may be forgotten.
        is_listed = len(others) == 1 and all(isinstance(declaration["kwargs"].get(one), list) for one in others)
        is_read = is_word or is_uneven or is_odd or is_turned or is_planted or (is_listed and len(listed) < FIRSTS)
        listed += [label] if is_listed else []
        more["has_own_budget"] = is_first or is_default or is_none or is_read
        binding = divided(declaration, binding, changed)
        yield probing.probe(declaration, f"kwarg[{label}]", binding, kwargs=changed, **more)
        if name in EVEN and isinstance(changed.get(name), str):
            even = probing.rows(declaration, (6, 4, 4))
            at = f"kwarg[{label},{dims[-1]}={even[dims[-1]]}]" if dims else f"kwarg[{label},even]"
            yield probing.probe(declaration, at, even, kwargs=changed, has_own_budget=True)
        if label == "ceil_mode=True":
            later += in_padding(declaration, binding, changed)
        elif later:
            # What flags alone change comes first.
            yield later.pop()
        floating = probing.of_values(declaration)
        if name == "eps" and changed["eps"] == 0 and floating:
            # What a kernel takes for no value at all may show where inputs are not finite, and not where they are small.
            at = f"kwarg[{label},{floating[0]}=special]"
            yield probing.probe(declaration, at, binding, kwargs=changed, values="special", of=floating[0])
        is_factor = name == "beta" and len(others) == 1 and is_multiplied(declaration)
        if is_factor and changed["beta"] == 0 and floating:
            # By 0 torch multiplies nothing: what the input holds does not matter.
            nowhere = f"kwarg[{label},{floating[0]}=special]"
            yield probing.probe(declaration, nowhere, binding, kwargs=changed, values="special", of=floating[0])
        if name in arguments_known.DIMS and changed[name] == 0 and len(dims) > 1:
            longer = probing.bound(declaration, {**binding, dims[0]: 134, dims[-1]: probing.NARROW}, probing.NARROW)
            alone = {**declaration["kwargs"], name: 0}
            yield probing.probe(declaration, f"kwarg[{name}=0,{dims[0]}={longer[dims[0]]}]", longer, kwargs=alone)
    yield from later
    yield from far(request)


def is_small(declaration: Declaration, name: str, changed: Mapping[str, object]) -> bool:
    """Tells whether a case of an argument is one of small values: one of a small `eps`, or in which it has its default. Beside a large one they would be nothing."""
    own = changed.get("eps")
    is_large = probing.is_plain(own) and own > LARGE
    return (name == "eps" and not is_large) or "eps" in left_out(declaration, changed)


LARGE = 0.5
"""An `eps` that is seen beside ordinary values."""


MULTIPLIED = ("addbmm", "addmm", "addmv", "addr", "baddbmm")
"""Functions of torch whose `beta` multiplies the first input."""


def is_multiplied(declaration: Declaration) -> bool:
    """Tells whether `beta` is a factor of the op's first input."""
    return str(declaration.get("torch") or "").rpartition(".")[2] in MULTIPLIED


def uneven_ones(declaration: Declaration, changed: Mapping[str, object]) -> set[str]:
    """Returns the arguments that are lists in a call with the arguments `changed`, of those that ops.yaml has no list for."""
    own = declaration["kwargs"]
    return {name for name, value in changed.items() if isinstance(value, list) and not isinstance(own.get(name), list)}


def odd_ones(declaration: Declaration, changed: Mapping[str, object]) -> set[str]:
    """Returns the argument of a reference in Python that alone is another number, an odd whole one, in a call with the arguments `changed`, and declared as an even one; nothing where none is, or others are changed, too."""
    own = declaration["kwargs"] if declaration.get("reference") else {}
    others = {name: value for name, value in changed.items() if name in own and own[name] != value}
    found = {name for name, value in others.items() if type(value) is int and value % 2 == 1}
    return {name for name in found if len(others) == 1 and type(value := own[name]) is int and value % 2 == 0}


def divided(declaration: Declaration, binding: Mapping[str, int], changed: Mapping[str, object]) -> dict[str, int]:
    """Returns `binding` for a whole number that has another value: dims whose lengths torch takes in multiples of the declared one, and those that a shape multiplies by it, as `2*H`, have multiples of the other; of one that is declared as off all free dims have."""
    lengths, known = dict(binding), bindings.taken(declaration)
    shaped = [str(length) for given in tensors(declaration) for length in given["shape"]]
    for name, declared in declaration["kwargs"].items():
        other = changed.get(name)
        if type(declared) is not int or type(other) is not int or other < 1 or other == declared:
            continue
        if arguments_turned.is_off(declaration, name):
            # Which dims it groups nobody says.
            lengths |= {dim: -(-lengths[dim] // other) * other for dim in probing.free(declaration) if dim in lengths}
        if declared < 2:
            continue
        stepped = {dim for dim, one in known.items() if one["step"] == declared}
        stepped |= {dim for one in shaped for dim in multiplied_by(one, declared)}
        for dim in stepped & lengths.keys():
            lengths[dim] = -(-lengths[dim] // other) * other
    return lengths


def multiplied_by(length: str, number: int) -> list[str]:
    """Returns the dim of a shape's expression that is a dim times that number, in either order; nothing of any other expression."""
    found = re.fullmatch(rf"\s*(?:{number}\s*\*\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*\*\s*{number})\s*", length)
    return [] if found is None else [one for one in found.groups() if one]


def left_out(declaration: Declaration, changed: Mapping[str, object]) -> set[str]:
    """Returns the arguments of the op that are left to torch's defaults in a call with the arguments `changed`."""
    return {*declaration["kwargs"]} - {*changed}


def unnamed(request: VariantRequest) -> Iterator[Case]:
    """Yields a case for each word that the reference does not name (`arguments_words`). They take no other's place."""
    declaration, written = request["op"], request["variant"].get("call")
    own = declaration["kwargs"]
    known = arguments_known.of_op(declaration)
    beside = {} if written is not None else {name: known[name] for name in arguments_known.beside(request, known)}
    loose = {name: value for name, value in own.items() if written is None or name in str(written)}
    for name, value in {} if seeds.is_random(declaration) else (loose | beside).items():
        for word in arguments_words.unnamed(request, name, value):
            small, kwargs = probing.tiny(declaration), {**own, name: word}
            yield probing.probe(declaration, f"kwarg[{name}={word}]", small, kwargs=kwargs, has_own_budget=True)


def far(request: VariantRequest) -> Iterator[Case]:
    """Yields cases in which an argument that counts places of a dim goes beyond it."""
    declaration = request["op"]
    binding = probing.tiny(declaration)
    shapes = [bind_shape(given["shape"], binding) for given in tensors(declaration)]
    longest = max(chain.from_iterable(shapes), default=0)
    for label, changed in arguments_away.beyond(request, longest):
        yield probing.probe(declaration, f"kwarg[{label}]", binding, kwargs=changed)


SPARE = 2
"""How many places there are beside those of a window, so that it has more than one."""


def places(declaration: Declaration, binding: Mapping[str, int], changed: Mapping[str, object]) -> dict[str, int]:
    """Returns the lengths of `binding`, with room for a window in each dim of places of the first input, behind batch and channels; the binding itself where there is room."""
    inputs = tensors(declaration)
    loose = probing.loose(declaration)
    dims = [str(dim) for dim in inputs[0]["shape"][2:][::-1] if dim in loose] if inputs else []
    room = span(declaration, binding, changed) + SPARE
    if not dims or all(binding[dim] >= room for dim in dims):
        return dict(binding)
    # No two of them are alike.
    lengths = {dim: room + 2 * place for place, dim in enumerate(dims)}
    rest = {dim: min(length, 3) if dim in loose else length for dim, length in binding.items()}
    # Each image costs as much as the first.
    rest |= {str(dim): 1 for dim in inputs[0]["shape"][:1] if dim in loose}
    return probing.bound(declaration, {**rest, **lengths}, probing.NARROW)


def even_windows(declaration: Declaration, binding: Mapping[str, int]) -> dict[str, int]:
    """Returns the lengths of `binding` with those of a weight's windows, which has as many dims as the first input, even where they may be."""
    inputs, free = tensors(declaration), probing.free(declaration)
    weights = [given["shape"][2:] for given in inputs[1:] if len(given["shape"]) == len(inputs[0]["shape"]) > 2]
    lengths = {str(dim): binding[str(dim)] // 2 * 2 + 2 for dim in chain.from_iterable(weights[:1]) if dim in free}
    return bindings.stepped(declaration, {**binding, **lengths})


def span(declaration: Declaration, binding: Mapping[str, int], changed: Mapping[str, object]) -> int:
    """Returns over how many places the longest window reaches: that of a weight of as many dims as the first input."""
    inputs = tensors(declaration)
    weights = [given["shape"][2:] for given in inputs[1:] if len(given["shape"]) == len(inputs[0]["shape"]) > 2]
    window = bind_shape(weights[0], binding) if weights else 1
    return (most(window) - 1) * most(changed.get("dilation") or 1) + 1


def most(value: Any) -> int:
    """Returns a number, or the largest of a list of them."""
    return int(max(value, default=1) if isinstance(value, list) else value)


def in_padding(declaration: Declaration, binding: Mapping[str, int], changed: Mapping[str, object]) -> Iterator[Case]:
    """Yields a case in which a window of `ceil_mode` would begin in the padding, which torch leaves out: steps as long as windows, padded by half of one, at the first length where that happens."""
    window, dims = changed.get("kernel_size"), probing.loose(declaration)
    if not isinstance(window, int) or window < 2 or not dims or "dilation" in changed:
        return
    padding = window // 2
    for length in range(window, 4 * window):
        windows = -(-(length + 2 * padding - window) // window) + 1
        if (windows - 1) * window >= length + padding:
            lengths = probing.bound(declaration, {**binding, dims[-1]: length}, probing.NARROW)
            own = {**changed, "stride": window, "padding": padding}
            label = f"kwarg[ceil_mode=True,stride={window},padding={padding}]"
            yield probing.probe(declaration, label, lengths, kwargs=own)
            return


def left_over(declaration: Declaration, binding: Mapping[str, int], changed: Mapping[str, object]) -> dict[str, int]:
    """Returns the lengths of `binding`, its last dim one at which windows of the arguments `changed` do not end where the input does: rounding up and down differ."""
    own: dict[str, Any] = {name: value[-1] if isinstance(value, list) else value for name, value in changed.items()}
    window = own.get("kernel_size")
    loose = probing.loose(declaration)
    if not isinstance(window, int) or not loose:
        return dict(binding)
    step = own.get("stride") or window
    covered = (own.get("dilation") or 1) * (window - 1) + 1
    lengths = range(covered + 2 * step, covered + 3 * step)
    # Rounded up, a window must begin inside of the input, or torch leaves it out.
    uneven = [one for one in lengths if (one + 2 * (own.get("padding") or 0) - covered) % step]
    return probing.bound(declaration, {**binding, loose[-1]: uneven[-1]}, probing.NARROW) if uneven else dict(binding)
