"""Other values for an op's keyword arguments than those that ops.yaml gives: a kernel that has one of them written into it is wrong there.

It makes no values, and knows nothing of shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import (
    arguments_compared,
    arguments_known,
    arguments_random,
    arguments_refused,
    arguments_special,
    elementwise,
    seeds,
)
from t2t_harness.cases.arguments_known import DIMS
from t2t_harness.cases.arguments_values import LAUNCHING, LEFT_ALONE, OPEN, WORDS, away, dims_away
from t2t_harness.op.declaration import along, tensors

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest


POSITIONS = ("shifts", "diagonal", "offset")
"""Integers that count places of a dim, and may go beyond it."""

BOUNDS = (("min", "max"), ("min_val", "max_val"), ("low", "high"), ("lower", "upper"))
"""Arguments between which something is held."""

WITHOUT = "without-"
"""What the name of a case begins with in which arguments are left to their defaults."""

FIRST = ("min", "max", "scale", "padding_idx")
"""Arguments that are tried before others, beside flags and what is none."""


def of_request(request: VariantRequest, rank: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the op's keyword arguments with one away from what is declared, each after what it is called in the name of a case: `alpha=0`, `without-alpha,beta` where they are left to torch's defaults.

    Those are declared arguments that the variant's `call` passes on, and those beside them that both the wrapper and torch know. The first other value of each comes first. `rank` is the largest number of dims of
    an input.
    """
    declaration, variant = request["op"], request["variant"]
    is_random = seeds.is_random(declaration)
    written, own = variant.get("call"), declaration["kwargs"]
    known = arguments_known.of_op(declaration)
    loose = [name for name in own if written is None or name in str(written)]
    values = {name: own[name] for name in loose}
    if written is None:
        values |= {name: known[name] for name in arguments_known.beside(request, known)}
    if is_random:
        loose = [name for name in loose if arguments_random.is_tried(declaration, name)]
        values = {name: value for name, value in values.items() if arguments_random.is_tried(declaration, name)}
    asked = [(name, others(declaration, name, value, rank)) for name, value in values.items()]
    # What flags and arguments that are none change is seen in few elements: the others may use the budget up.
    asked.sort(
        key=lambda one: (
            not (values[one[0]] is None or one[0] in FIRST or any(isinstance(value, bool) for value in one[1]))
        )
    )
    both = dim_and_form(values, rank)
    if any(name in both and not any(value == both[name] for value in tried) for name, tried in asked):
        # Along that dim results cannot be compared.
        both = {}
    if both:
        yield ",".join(f"{name}={one}" for name, one in both.items()), {**own, **both}
        asked = [(name, tried[1:] if name in both and name in DIMS else tried) for name, tried in asked]
    columns = [
        [(f"{name}={value}", {**own, name: value}) for value in tried if not is_empty_range({**own, name: value})]
        for name, tried in asked
    ]
    rounds = [[one for one in turn if one is not None] for turn in zip_longest(*columns)]
    yield from rounds[0] if rounds else ()
    if not is_random:
        yield from crossing(declaration, values)
        yield from whole(declaration, columns)
        yield from two_flags(declaration, columns)
        yield from shifted(declaration, values)
    if written is None:
        # A wrapper may have a dim of its own where torch has all of them.
        own_dims = [name for name in DIMS if has_compared_dim(declaration) or known.get(name) is None]
        left = [name for name in loose if name in known and name not in (*LEFT_ALONE, *OPEN, *own_dims)]
        if left and not is_random and not declaration.get("reference"):
            yield f"{WITHOUT}{','.join(left)}", without(own, left)
    yield from numbers_among_inputs(request, rank)
    yield from with_words(own, columns)
    yield from chain.from_iterable(rounds[1:])
    yield from together(own, columns)
    if not is_random:
        yield from with_flags(declaration, columns)
    if written is None:
        for name in arguments_known.defaulted(request):
            # No dim is all of them, with torch's functions.
            kept = () if declaration.get("reference") else DIMS
            if name in loose and name not in (*LEFT_ALONE, *OPEN, *kept):
                yield f"{WITHOUT}{name}", without(own, [name])


def numbers_among_inputs(request: VariantRequest, rank: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the arguments with another number in the place of one among the inputs, which has a value of its own in each call as an argument has."""
    declaration, written = request["op"], request["variant"].get("call")
    for one in declaration["inputs"] if not seeds.is_random(declaration) else ():
        name = one["name"]
        if "scalar" in one and (written is None or name in str(written)):
            found = others(declaration, name, one["scalar"], rank)
            for value in found[:SCALARS]:
                yield f"{name}={value}", {**declaration["kwargs"], name: value}


SCALARS = 3
"""So many other values are tried of a number among the inputs."""


def changed_names(declaration: Declaration, changed: Mapping[str, object]) -> set[str]:
    """Returns the arguments that have another value than the op's own, but for those that are left out."""
    own = declaration["kwargs"]
    return {name for name, value in changed.items() if name not in own or own[name] != value}


def without(own: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    """Returns the arguments but for those that are called `names`."""
    return {name: value for name, value in own.items() if name not in names}


def together(
    own: Mapping[str, object], columns: Sequence[Sequence[tuple[str, dict[str, object]]]]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the arguments of which all that are numbers have their first other value at once, where there are several: one may be right for the other's declared value alone."""
    changed = numbers(columns)
    both = {**own, **changed}
    if len(changed) > 1 and not is_empty_range(both) and not arguments_special.is_crossed(own, both):
        yield labelled(changed), both


FLAGS = 2
"""So many flags meet numbers."""


def with_flags(
    declaration: Declaration, columns: Sequence[Sequence[tuple[str, dict[str, Any]]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the arguments with one flag flipped and all numbers at their first other value, and, where the result has the lengths that an argument says, with lengths of 1: formulas of a flag are written for declared numbers."""
    own, flags, changed = declaration["kwargs"], flags_of(columns), numbers(columns)
    lengths = arguments_special.single(declaration)
    for name, flag in list(flags.items())[:FLAGS]:
        for one in (lengths, {} if lengths else changed):
            both = {**own, **one, name: flag}
            if one and not is_empty_range(both) and not arguments_special.is_crossed(own, both):
                yield labelled({**one, name: flag}), both


def two_flags(
    declaration: Declaration, columns: Sequence[Sequence[tuple[str, dict[str, Any]]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the arguments with two flags flipped at once: code of each may be right for the other's declared value alone."""
    several = dict(list(flags_of(columns).items())[:FLAGS])
    if len(several) > 1:
        yield labelled(several), {**declaration["kwargs"], **several}


def flags_of(columns: Sequence[Sequence[tuple[str, dict[str, Any]]]]) -> dict[str, bool]:
    """Returns the flags among the arguments, flipped, but for `FORMS`."""
    firsts = [(column[0][0].partition("=")[0], column[0][1]) for column in columns if column]
    return {name: values[name] for name, values in firsts if isinstance(values[name], bool) and name not in FORMS}


FORMS = ("keepdim", "inplace", "sparse")
"""Flags that say how a result lies, and not what it is."""


def whole(
    declaration: Declaration, columns: Sequence[Sequence[tuple[str, dict[str, Any]]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the arguments of a reference in Python with all whole numbers at their first other value, and the others as they are: what one of them changes may show with another one alone."""
    changed = {name: value for name, value in numbers(columns).items() if type(value) is int}
    own = declaration["kwargs"]
    if declaration.get("reference") and len(changed) > 1 and not arguments_special.is_crossed(own, {**own, **changed}):
        yield labelled(changed), {**own, **changed}


def with_words(
    own: Mapping[str, object], columns: Sequence[Sequence[tuple[str, dict[str, object]]]]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the arguments with each other word of an argument that is one, and with all that are numbers at their first other value: what is done for one word alone may know the declared numbers alone."""
    changed = numbers(columns)
    for label, values in chain.from_iterable(columns):
        name = label.partition("=")[0]
        word = values[name]
        if not isinstance(word, str) or name not in WORDS:
            continue
        # Torch has no padding of the same length for longer steps.
        fitting = {one: value for one, value in changed.items() if word != "same" or one != "stride"}
        one = {**fitting, name: word}
        if len(one) > 1 and not is_empty_range({**own, **one}):
            yield labelled(one), {**own, **one}


def numbers(columns: Sequence[Sequence[tuple[str, dict[str, object]]]]) -> dict[str, object]:
    """Returns the first other value of each argument that is a number, but for dims."""
    firsts = [(label.partition("=")[0], values) for column in columns for label, values in column[:1]]
    return {name: values[name] for name, values in firsts if name not in DIMS and type(values[name]) in (int, float)}


def labelled(changed: Mapping[str, object]) -> str:
    """Returns what several arguments are called in the name of a case."""
    return ",".join(f"{name}={value}" for name, value in changed.items())


def crossing(declaration: Declaration, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the arguments with the lower one of two bounds above the upper one, of torch's own functions, which say what that means, or refuse it. `values` are those that they have now."""
    own = declaration["kwargs"]
    for names in BOUNDS if declaration.get("torch") else ():
        if not all(name in values and name not in LEFT_ALONE for name in names):
            continue
        low, high = (values[name] for name in names)
        if any(isinstance(one, bool) or not isinstance(one, int | float | None) for one in (low, high)):
            continue
        if low is None:
            low = -1 if high is None else high - 1
        if high is None:
            high = low + 1
        if low < high:
            swapped = dict(zip(names, (high, low), strict=True))
            yield ",".join(f"{name}={value}" for name, value in swapped.items()), {**own, **swapped}


def shifted(declaration: Declaration, values: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the arguments of a range of integers with both ends so much further on that a float32 does not tell them from the next."""
    start, end = values.get("start"), values.get("end")
    if elementwise.name_of(declaration) != "arange" or type(start) is not int or not isinstance(end, int | str):
        return
    moved = {"start": start + FAR, "end": end + FAR if isinstance(end, int) else f"{end}+{FAR}"}
    yield labelled(moved), {**declaration["kwargs"], **moved}


FAR = (1 << 24) + 1
"""An integer that a float32 does not hold, and beyond which it holds each second one at most."""


def beyond(request: VariantRequest, length: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields the arguments with one that counts places of a dim beyond its `length`, in either direction."""
    declaration = request["op"]
    own, written = declaration["kwargs"], request["variant"].get("call")
    if declaration.get("random"):
        return
    values = {name: value for name, value in own.items() if written is None or name in str(written)}
    known = arguments_known.of_op(declaration)
    if written is None:
        values |= {name: known[name] for name in arguments_known.beside(request, known)}
    for name in POSITIONS:
        for far in (length + 3, -length - 4) if name in values else ():
            value = values[name]
            if isinstance(value, list) and value and all(type(one) is int for one in value):
                yield f"{name}={[far, *value[1:]]}", {**own, name: [far, *value[1:]]}
            elif type(value) is int:
                yield f"{name}={far}", {**own, name: far}


def others(declaration: Declaration, name: str, value: object, rank: int) -> list[object]:
    """Returns other values for the argument `name` of the op than `value`, its own or torch's; along another dim only where results can be compared there."""
    if name in LAUNCHING or arguments_compared.is_ignored(declaration, name):
        return []
    if seeds.is_random(declaration):
        return arguments_random.others(declaration, name, value)
    special = arguments_special.others(declaration, name, value, rank)
    if special is not None:
        return special
    is_length = name in DIMS and type(value) is int and value > rank
    found: list[Any] = [] if is_length else away(name, value, rank)
    if not found or isinstance(value, float):
        found += [one for one in arguments_special.whole_away(declaration, name, value, rank) if one not in found]
    compared = arguments_compared.compared(declaration, name, value)
    if compared and isinstance(value, str):
        # Which words there are, a reference says itself; those of torch's functions it may refuse.
        found = [*compared, *(one for one in found if one not in compared)]
    # What a reference compares with another argument is asked for before more values that say nothing of it.
    met = arguments_compared.partners(declaration, name, value)
    found = [*found[:1], *(one for one in met if one not in found[:1]), *(one for one in found[1:] if one not in met)]
    found += [one for one in compared if one not in found]
    if name in declaration["kwargs"]:
        found += longer(declaration, name)
    if name == "padding" and isinstance(value, int) and pads_by_words(declaration):
        found.append("same")
    if not str(declaration.get("torch") or "").endswith("kl_div"):
        # No other loss has it.
        found = [one for one in found if one != "batchmean"]
    if name in DIMS and has_compared_dim(declaration):
        found = [one for one in found if follows(declaration, {**declaration["kwargs"], name: one})]
    return [one for one in found if not arguments_refused.refuses(declaration, name, one)]


def pads_by_words(declaration: Declaration) -> bool:
    """Tells whether torch takes a word for a padding: its convolutions do, but for transposed ones."""
    name = str(declaration.get("torch") or "").rpartition(".")[2]
    return name in ("conv1d", "conv2d", "conv3d")


def has_compared_dim(declaration: Declaration) -> bool:
    """Tells whether an output is compared along a dim that ops.yaml names."""
    return any(how.get("dim") is not None for how in declaration.get("outputs") or ())


def follows(declaration: Declaration, changed: Mapping[str, object]) -> bool:
    """Tells whether results can be compared where the arguments are `changed`: the dim that they are along is that of the call."""
    return along(declaration, changed) is not None


def is_empty_range(changed: Mapping[str, object]) -> bool:
    """Tells whether `min` is not below `max`. Functions treat that differently: as the input's range, or as two steps in order."""
    low, high = changed.get("min"), changed.get("max")
    return isinstance(low, (int, float)) and isinstance(high, (int, float)) and low >= high


def dim_and_form(own: Mapping[str, object], rank: int) -> dict[str, object]:
    """Returns another dim with the other `keepdim`, which tell of both and of what they are together; nothing where the arguments are not both among `own`."""
    dim = next((name for name in DIMS if name in own), None)
    others = [] if dim is None or "keepdim" not in own else dims_away(own[dim], rank)
    return {dim: others[0], "keepdim": not own["keepdim"]} if dim is not None and others else {}


def longer(declaration: Declaration, name: str) -> list[object]:
    """Returns the value of an argument that names the last dims of the only tensor, as `normalized_shape` does, with one dim more."""
    value, shaped = declaration["kwargs"][name], tensors(declaration)
    if not isinstance(value, list) or len(shaped) != 1 or name in DIMS or not value:
        return []
    shape = shaped[0]["shape"]
    return [shape[-len(value) - 1 :]] if len(shape) > len(value) and shape[-len(value) :] == value else []


def is_of_another_kind(declaration: Declaration, changed: Mapping[str, object]) -> bool:
    """Tells whether one of the arguments is a list where ops.yaml has a number, a fraction where it has a whole one, or a word for a padding where it has none."""
    own = declaration["kwargs"]
    return any(
        (isinstance(value, list) and not isinstance(own.get(name), list))
        or (isinstance(value, float) and type(own.get(name)) is int)
        or (name == "padding" and isinstance(value, str) and not isinstance(own.get(name), str))
        for name, value in changed.items()
    )
