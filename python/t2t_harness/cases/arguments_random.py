"""Other values for the arguments of an op that draws random numbers: the chance and the range that it draws by, and flags without which it draws none. torch is imported nowhere here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import probing, seeds
from t2t_harness.cases.arguments_special import TRAINING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

CHANCES = ("dropout", "bernoulli")
"""Kinds whose `p` is a chance."""

RANGES = ("low", "high", "mean", "std")
"""What else a kind draws by."""

FLAGS = (*TRAINING, "replacement")
"""Flags that say how is drawn, or whether."""

FAR = 0.35
"""How far another chance is from the declared one, which few samples tell from it."""


def is_tried(declaration: Declaration, name: str) -> bool:
    """Tells whether results at other values of the argument `name` can be judged."""
    return name in FLAGS or name in (chance_of(declaration), *ranges(declaration))


def chance_of(declaration: Declaration) -> str | None:
    """Returns the argument that is the chance, None where there is none; of an op that says itself what must hold, it is `p`."""
    told = declaration["random"]
    if told is None:
        return None
    if told["kind"] == "judged":
        return "p"
    return str(told["p"]) if told["kind"] in CHANCES and isinstance(told.get("p"), str) else None


def ranges(declaration: Declaration) -> list[str]:
    """Returns the arguments of what else is drawn by."""
    told: Mapping[str, object] = declaration["random"] or {}
    return [str(told[name]) for name in RANGES if isinstance(told.get(name), str)]


def others(declaration: Declaration, name: str, value: object) -> list[object]:
    """Returns other values of the argument `name` than `value`, the one that tells most first."""
    if isinstance(value, bool):
        return [False] if value or name == "replacement" else []
    if not probing.is_plain(value):
        return []
    told = declaration["random"]
    if name == chance_of(declaration):
        first, *certain = [one for one in (1.0, 0.0) if one != value]
        # What an op says itself may be of the declared chance alone.
        is_judged = told is not None and told["kind"] == "judged"
        uncertain = [] if is_judged else [round(value - FAR if value > 0.5 else value + FAR, 6)]
        return [first, *uncertain, *certain]
    return [2.5 * value if value else 0.75]


def is_certain(declaration: Declaration, kwargs: Mapping[str, object]) -> bool:
    """Tells whether nothing is left to chance where the op is called with `kwargs`: it does not draw, or by a chance of 0 or 1."""
    if not seeds.is_random(declaration):
        return True
    is_off = any(kwargs.get(name) is False for name in TRAINING)
    return is_off or kwargs.get(chance_of(declaration) or "") in (0, 1)
