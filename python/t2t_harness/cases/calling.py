"""How a wrapper is called: a class is constructed first, an operator is called by its methods, and arguments go where the declared `call`, or the names of parameters, put them.

torch is imported only inside functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from t2t_harness.cases import called_with, cases, operators
from t2t_harness.op import operation
from t2t_harness.sources import methods
from t2t_harness.triton import stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, Methods, OpRequest, Variant, VariantRequest
    from t2t_harness.sources.entry import Entry

Arranged: TypeAlias = "tuple[Entry, tuple[object, ...], dict[str, object]]"
"""What is called, with which arguments by position and by keyword."""


def arranged(
    entry: Entry,
    request: VariantRequest,
    case: cases.Case,
    given: Mapping[str, object],
    label: str = "a",
) -> Arranged:
    """Returns the wrapper of the request's variant and its arguments in `case`, for which `given` are the inputs; of a random op with the seed of the run `label`.

    Raises what the constructor of a class raises.
    """
    return arranged_for(entry, request["variant"], request, case, given, label)


def arranged_for(
    entry: Entry,
    variant: Variant,
    request: OpRequest,
    case: cases.Case,
    given: Mapping[str, object],
    label: str = "a",
) -> Arranged:
    """Returns what `arranged` does, for the wrapper of `variant`."""
    declaration = request["op"]
    found: object = entry
    if inspect.isclass(entry):
        device = "cuda" if request["lane"] == "cuda" else None
        with stage.pretending(request["lane"]):
            found = operation.instance(
                entry, declaration, case.binding, case.dtype, device, case.init, evaluates=case.evaluates
            )
    told = methods.of(found, variant)
    if told is not None:
        return of_operator(found, told, declaration, case, given, label)
    wrapper = operation.called(found)
    written = variant.get("call")
    if written is None:
        return (wrapper, *called_with.call_arguments(wrapper, declaration, case, given, label))
    return (wrapper, *placed(written, called_with.named_arguments(declaration, case, given, label)))


def of_operator(
    found: object, told: Methods, declaration: Declaration, case: cases.Case, given: Mapping[str, object], label: str
) -> Arranged:
    """Returns the forward pass of an operator and its arguments; where the op is checked backward, as what autograd differentiates by the method of the backward pass.

    Raises TypeError where it lacks one of the methods, or where a parameter means nothing.
    """
    import torch

    methods.require(found, told, "the entry")
    forward: Entry = getattr(found, methods.name_of(told["forward"]))
    known = called_with.named_arguments(declaration, case, given, label)
    if methods.is_call(told["forward"]):
        args, kwargs = placed(told["forward"], known)
    else:
        args, kwargs = called_with.call_arguments(forward, declaration, case, given, label)
    if not declaration["backward"]:
        return forward, args, kwargs
    leaves = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    backward = operators.backward_of(found, told, declaration, known)
    return operators.Operator(forward, backward, leaves), args, kwargs


def placed(written: str, known: Mapping[str, object]) -> tuple[tuple[object, ...], dict[str, object]]:
    """Returns the arguments of the call `written`, as in `entry(input, dim, keep=True)`: names are those of `known`, all else is literal.

    Raises LookupError for a name that is not known, which a case of the user's own may lack.
    """
    tree = operators.parsed(written)
    keywords = {str(one.arg): operators.value_of(one.value, known) for one in tree.keywords}
    return tuple(operators.value_of(one, known) for one in tree.args), keywords
