"""Which of torch's functions make each element of a result from one element of each input, and which of these are there to be exact where others lose all digits.

torch tells the first of its own operations. It is imported only inside functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

EXACT = frozenset(
    "log1p expm1 erf erfc erfcx sinh asinh arcsinh atanh arctanh sin tan asin arcsin atan arctan hypot xlog1py".split()
)
"""Functions whose small results are as exact as large ones, relative to their size: a formula that adds 1 first has none of their digits."""

GROWING = ("shift", "pow", "lcm", "ldexp", "polygamma")
"""What is in the names of functions for which large integers mean something else than small ones, or nothing."""


def name_of(declaration: Declaration) -> str:
    """Returns the last part of the name of torch's function, in lower case and without the mark of one that writes over its input; nothing for a reference."""
    return "" if declaration.get("reference") else str(declaration["torch"]).rpartition(".")[2].rstrip("_").lower()


def is_elementwise(declaration: Declaration) -> bool:
    """Tells whether torch says of the op that it works element by element."""
    return any(_overloads(name_of(declaration)))


def is_exact(declaration: Declaration) -> bool:
    """Tells whether small results of the op are to be exact relative to their size."""
    return name_of(declaration) in EXACT


def takes_large_integers(declaration: Declaration) -> bool:
    """Tells whether an integer of any size may stand in the place of each integer of the op's inputs."""
    return is_elementwise(declaration) and not any(word in name_of(declaration) for word in GROWING)


def defaults(declaration: Declaration) -> dict[str, float]:
    """Returns the numbers that torch takes for arguments of an elementwise op that are left out, by name."""
    found: dict[str, float] = {}
    for overload in _overloads(name_of(declaration)):
        for argument in overload._schema.arguments:
            value = argument.default_value if argument.has_default_value() else None
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault(argument.name, value)
    return found


def _overloads(name: str) -> list[Any]:
    """Returns torch's elementwise operations of that name."""
    import torch

    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    overloads = [getattr(packet, one) for one in packet.overloads()] if packet is not None else []
    return [one for one in overloads if torch.Tag.pointwise in one.tags]
