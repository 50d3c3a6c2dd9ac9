"""What the results of an op are called where people read of them. It knows nothing of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.op import module_state

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration


def result(name: str, several: bool, names: Mapping[str, str]) -> str:
    """Returns what the result `name` of a reference is called: nothing for the only output, `output values` where torch
    or ops.yaml names it, else `output 1`.

    `names` has the names of outputs by position, `several` tells whether there is more than one.
    """
    if name.startswith(module_state.GRADIENT):
        return f"gradient of the parameter `{name.removeprefix(module_state.GRADIENT)}`"
    if name.startswith(module_state.AFTER):
        return f"buffer `{name.removeprefix(module_state.AFTER)}` after the call"
    kind, _, rest = name.partition(".")
    if kind == "grad":
        return f"gradient of `{rest}`"
    if kind == "after":
        return f"`{rest}` after the call"
    if name in names:
        return f"output `{names[name]}`"
    return f"output {name}" if several or name != "0" else ""


def declared_outputs(declaration: Declaration) -> dict[str, str]:
    """Returns the declared names of outputs by position, nothing where ops.yaml names none."""
    listed = declaration.get("outputs") or []
    return {str(position): str(output["name"]) for position, output in enumerate(listed) if output.get("name")}
