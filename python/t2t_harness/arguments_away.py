"""Other values for an op's keyword arguments than those that ops.yaml gives: a kernel that has one of them written into it is wrong there.

Wrappers are read and never imported. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from t2t_harness import signatures

DIMS = ("dim", "axis")
"""Arguments that name a dim."""

WORDS = {
    "reduction": ("sum", "mean", "none"),
    "approximate": ("tanh", "none"),
    "rounding_mode": ("floor", "trunc"),
    "side": ("left", "right"),
}
"""Arguments with a few values."""

WHOLE = ("correction", "diagonal", "shifts", "k", "ignore_index", "offset", "n", "ord", "p", "dilation", "stride")
"""Arguments that are integers, and mean no length that another argument must agree with."""


BY_CHANCE = ("dropout_p",)
"""Arguments away from whose value torch's result is drawn, so that no other can be held against it."""

UNSET = {"scale": 0.3, "dtype": "torch.float16"}
"""A value for arguments that have none by default."""


def of_request(request: Mapping[str, Any], rank: int) -> Iterator[tuple[str, Any]]:
    """Yields arguments of the op with another value for each: declared ones that the variant's `call` passes on, and those beside them that both the wrapper and torch know.

    `rank` is the largest number of dims of an input.
    """
    declaration, variant = request["op"], request["variant"]
    if declaration.get("random"):
        return
    written = variant.get("call")
    # How results are compared may name the dim that they are along.
    kept = DIMS if any(how.get("dim") is not None for how in declaration.get("outputs") or ()) else ()
    for name, value in declaration["kwargs"].items():
        if name not in kept and (written is None or name in str(written)):
            yield from ((name, one) for one in away(name, value, rank))
    if written is not None:
        return
    taken = {*declaration["kwargs"], *(given["name"] for given in declaration["inputs"])}
    known = of_torch(declaration)
    for one in of_wrapper(request):
        if one.name not in taken and one.has_default and one.name in known:
            yield from ((one.name, value) for value in away(one.name, known[one.name], rank))


def away(name: str, value: Any, rank: int) -> Iterator[Any]:
    """Yields at most one other value for the argument `name` than `value`; nothing where none is known to make sense."""
    if name in BY_CHANCE:
        return
    if value is None:
        yield from [UNSET[name]] if name in UNSET else []
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, float):
        yield 1e-2 if 0 < abs(value) < 1e-3 else 2.5 * value if value else 0.75
    elif isinstance(value, int):
        if name == "padding":
            # More than half a window is too much for torch.
            yield 0 if value else 1
        elif name in DIMS and rank > 1:
            yield 0 if value in (-1, rank - 1) else -1
        elif name in ("alpha", "beta", "value"):
            yield 3 * value + 1
        elif name in WHOLE:
            yield value + 1
    elif isinstance(value, str) and name in WORDS:
        yield next(word for word in WORDS[name] if word != value)


def of_torch(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of the op's torch function that have a plain default, or none and a place in `UNSET`, with it; of a reference in Python none."""
    from t2t_harness.declaration import resolve

    name = declaration.get("torch")
    if not name:
        return {}
    meant = {given["name"] for given in declaration["inputs"]} | set(declaration["kwargs"])
    try:
        found = signatures.of_op(resolve(name), name, lambda one: one in meant)
    except LookupError:
        return {}
    return {
        one.name: one.default for one in found if one.has_default and (one.default is not None or one.name in UNSET)
    }


def of_wrapper(request: Mapping[str, Any]) -> list[signatures.Parameter]:
    """Returns the parameters of the variant's wrapper, as its source says; none of an installed module's."""
    variant = request["variant"]
    if variant.get("module") or not variant.get("file"):
        return []
    try:
        found = signatures.wrappers((Path(request["root"]) / variant["file"]).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return [one for wrapper in found if wrapper.entry == variant["entry"] for one in wrapper.parameters]
