"""How a wrapper is called with an op's arguments: which of its parameters means which of them, by name, by names that are used for one another, and by order."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from t2t_harness.sources.signatures import Wrapper

ALIASES = tuple(
    tuple(names.split())
    for names in (
        "input x inp a self in_tensor hidden_states logits q query ids input_ids indices",
        "other y b k key",
        "weight w gamma v value embeddings table",
        "index indices idx",
        "bias beta b",
        "target targets label labels",
        "dim axis",
        "eps epsilon variance_epsilon",
        "normalized_shape shape",
    )
)
"""Names that are used for one another."""


class Unclear(Exception):
    """Something in the entry cannot be determined; the message says what, and `hint` what to add."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def alias_of(name: str, wrapper: Wrapper, taken: Container[str] = ()) -> str | None:
    """Returns the wrapper's parameter that means the op's argument `name`: the same name, or one that is used for it and not `taken`."""
    own = [one.name for one in wrapper.parameters if one.name not in taken]
    if name in own:
        return name
    meant = {one for names in ALIASES if name in names for one in names}
    return next((one for one in own if one.lower() in meant), None)


def arranged(
    wrapper: Wrapper, inputs: Mapping[str, object], kwargs: Mapping[str, object]
) -> tuple[str | None, list[list[str]]]:
    """Returns the `call` that ops.yaml needs, None where names do, and pairs of the wrapper's parameter and what it is given.

    Raises Unclear where a parameter without a default means nothing of the op's.
    """
    given = meanings(wrapper, inputs, kwargs)
    missing = [one.name for one in wrapper.parameters if one.name not in given and not one.has_default]
    if missing:
        named, has = ", ".join(f"`{name}`" for name in missing), ", ".join([*inputs, *kwargs])
        message = f"`{wrapper.entry}` has {named}, which is none of the op's arguments: {has}"
        raise Unclear(message, "write the entry by hand, with a `call` that gives it a value")
    pairs = [[one.name, given[one.name]] for one in wrapper.parameters if one.name in given]
    by_name = all(name == meant for name, meant in pairs) and len(pairs) == len(inputs) + len(kwargs)
    if by_name and not wrapper.is_positional:
        return None, pairs
    return f"entry({', '.join(written(wrapper, given))})", pairs


def meanings(wrapper: Wrapper, inputs: Mapping[str, object], kwargs: Mapping[str, object]) -> dict[str, str]:
    """Returns, for each of the wrapper's parameters, the op's argument that it is given: by name, by alias, and inputs that are left by their order."""
    parameters = [one.name for one in wrapper.parameters]
    given = {name: name for name in (*inputs, *kwargs) if name in parameters}
    for name in (*inputs, *kwargs):
        if name not in given.values() and (own := alias_of(name, wrapper, given)) is not None:
            given[own] = name
    left = [name for name in inputs if name not in given.values()]
    for one in wrapper.parameters:
        if left and one.name not in given and not one.has_default:
            given[one.name] = left.pop(0)
    return given


def written(wrapper: Wrapper, given: Mapping[str, str]) -> Iterator[str]:
    """Yields the arguments of the call: by position up to the first parameter that is left to its default, by keyword from there on. What takes no keywords gets defaults up to
    the last argument that is given."""
    is_skipped = False
    last = max((place for place, one in enumerate(wrapper.parameters) if one.name in given), default=-1)
    for place, one in enumerate(wrapper.parameters):
        if one.name not in given:
            is_skipped = not wrapper.is_positional
            if wrapper.is_positional and place < last:
                yield repr(one.default)
        elif is_skipped or one.is_keyword:
            yield f"{one.name}={given[one.name]}"
        else:
            yield given[one.name]
