"""Operators: entries with one method for the forward pass and one for the backward pass. Which entries are some, and how their methods are called.

A method is declared by its name, or by a call of it, as in `backward(grad, output, dim)`. It knows no tensors, and does not know how autograd is told.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Methods, Variant
    from t2t_harness.sources.entry import Entry

DEFAULT: Methods = {"forward": "forward", "backward": "backward"}

GRADIENT, OUTPUT = "grad", "output"
"""What a call of the backward pass calls the gradient that flows in, and what the forward pass returned: a tuple of several."""

GRADIENTS = (GRADIENT, "grad_output", "grad_outputs", "grad_out", "dy", "dout")
OUTPUTS = (OUTPUT, "outputs", "out", "y")
"""The names of parameters that mean these, where no input and no kwarg has them."""


def name_of(written: str) -> str:
    """Returns the name of the method that is declared as `written`."""
    return written.partition("(")[0]


def is_call(written: str) -> bool:
    """Tells whether a method is declared by a call of it."""
    return "(" in written


def of(found: object, variant: Variant) -> Methods | None:
    """Returns the methods of an entry, or of what was constructed of one, None where it is called itself.

    Without a word in ops.yaml it is an operator if it cannot be called, and has both methods.
    """
    declared = variant.get("methods")
    if declared is not None:
        return declared
    return DEFAULT if not callable(found) and has(found, DEFAULT) else None


def has(found: object, methods: Methods) -> bool:
    """Tells whether `found` has both methods."""
    return all(callable(getattr(found, name_of(one), None)) for one in (methods["forward"], methods["backward"]))


def entry_of(found: object, variant: Variant) -> object:
    """Returns the entry that a module's `found` leads to: what a factory of operators returns when it is called without arguments, anything else as it is.

    Raises TypeError where there is neither what can be called nor an operator, and what a factory raises.
    """
    declared, name = variant.get("methods"), f"{variant['file']}: `{variant['entry']}`"
    if inspect.isclass(found):
        return found
    if declared is None:
        if not callable(found) and of(found, variant) is None:
            raise TypeError(f"{name} is not callable, and has no methods `forward` and `backward`")
        return found
    is_factory = callable(found) and not has(found, declared)
    made: object = found() if is_factory and callable(found) else found
    require(made, declared, f"what {name} returns" if is_factory else name)
    return made


def require(made: object, methods: Methods, words: str) -> None:
    """Raises TypeError where `made`, called `words`, lacks one of the methods."""
    for one in (methods["forward"], methods["backward"]):
        if not callable(getattr(made, name_of(one), None)):
            raise TypeError(f"{words} has no method `{name_of(one)}`: `{type(made).__qualname__}`")


def parameters_of(method: Entry) -> list[inspect.Parameter] | None:
    """Returns the parameters of a method, None where Python knows none."""
    try:
        return list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        return None


def aliases(forward: Sequence[inspect.Parameter] | None, written: str, arguments: Sequence[str]) -> dict[str, str]:
    """Returns what the parameters of the forward pass are given by position or keyword: parameter → input or kwarg of the op. `arguments` are the op's inputs in their order."""
    parameters = [one.name for one in forward or () if one.kind is not one.KEYWORD_ONLY]
    if not is_call(written):
        return dict(zip(parameters, arguments, strict=False))
    call = ast.parse(written, mode="eval").body
    assert isinstance(call, ast.Call)
    given = [*zip(parameters, call.args, strict=False), *((str(one.arg), one.value) for one in call.keywords)]
    return {parameter: value.id for parameter, value in given if isinstance(value, ast.Name)}


def by_names(
    parameters: Sequence[inspect.Parameter] | None,
    name: str,
    known: Sequence[str],
    outputs: Sequence[str],
    aliases: Mapping[str, str],
) -> str:
    """Returns the call of the backward pass `name` that the names of its parameters mean: those of inputs and kwargs (`known`, or `aliases` in the forward pass), of declared `outputs`, and those that usually
    mean a gradient or an output. A parameter of another name is left out if it has a default. What has no signature is called with the gradient and the output.

    Raises TypeError for a parameter that means nothing.
    """
    if parameters is None:
        return f"{name}({GRADIENT}, {OUTPUT})"
    meanings = {
        **dict.fromkeys(OUTPUTS, OUTPUT),
        **dict.fromkeys(GRADIENTS, GRADIENT),
        **{one: one for output in outputs for one in (output, f"{GRADIENT}_{output}")},
        **aliases,
        **{one: one for one in known},
        GRADIENT: GRADIENT,
        OUTPUT: OUTPUT,
    }
    told: list[str] = []
    for one in parameters:
        is_open = one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if one.name in meanings and not is_open:
            is_positional = one.kind is one.POSITIONAL_ONLY
            told.append(meanings[one.name] if is_positional else f"{one.name}={meanings[one.name]}")
        elif not is_open and one.default is one.empty:
            example = f"methods: {{backward: '{name}({GRADIENT}, {OUTPUT})'}}"
            raise TypeError(
                f"the parameter `{one.name}` of `{name}` is the name of no input, kwarg or output: say how it is called, as in `{example}` in ops.yaml"
            )
    return f"{name}({', '.join(told)})"


def written_backward(
    told: Methods,
    forward: Sequence[inspect.Parameter] | None,
    backward: Sequence[inspect.Parameter] | None,
    inputs: Sequence[str],
    known: Sequence[str],
    outputs: Sequence[str],
) -> str:
    """Returns the call of the backward pass: the declared one, else the one that the names of its parameters mean. `known` are the names of inputs and kwargs.

    Raises TypeError for a parameter that means nothing.
    """
    if is_call(told["backward"]):
        return told["backward"]
    return by_names(backward, told["backward"], known, outputs, aliases(forward, told["forward"], inputs))
