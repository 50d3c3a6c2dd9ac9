"""How a wrapper is called: a class is constructed first, and arguments go where the declared `call`, or the names of its parameters, put them.

torch is imported only inside functions.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from t2t_harness.cases import cases, inputs
from t2t_harness.op import operation
from t2t_harness.triton import stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import OpRequest, Variant, VariantRequest
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
    wrapper = entry
    if inspect.isclass(entry):
        device = "cuda" if request["lane"] == "cuda" else None
        with stage.pretending(request["lane"]):
            wrapper = operation.constructed(entry, declaration, case.binding, case.dtype, device)
    written = variant.get("call")
    if written is None:
        return (wrapper, *inputs.call_arguments(wrapper, declaration, case, given, label))
    return (wrapper, *placed(written, inputs.named_arguments(declaration, case, given, label)))


def placed(written: str, known: Mapping[str, object]) -> tuple[tuple[object, ...], dict[str, object]]:
    """Returns the arguments of the call `written`, as in `entry(input, dim, keep=True)`: names are those of `known`, all else is literal.

    Raises LookupError for a name that is not known, which a case of the user's own may lack.
    """
    tree = ast.parse(written, mode="eval").body
    if not isinstance(tree, ast.Call):
        raise ValueError(f"`{written}` is no call")
    keywords = {str(one.arg): value_of(one.value, known) for one in tree.keywords}
    return tuple(value_of(one, known) for one in tree.args), keywords


def value_of(node: ast.expr, known: Mapping[str, object]) -> object:
    """Returns the value of one argument."""
    if isinstance(node, ast.Name):
        if node.id not in known:
            raise LookupError(f"`call` names `{node.id}`, which this case does not have")
        return known[node.id]
    if isinstance(node, ast.List):
        return [value_of(one, known) for one in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(value_of(one, known) for one in node.elts)
    return ast.literal_eval(node)
