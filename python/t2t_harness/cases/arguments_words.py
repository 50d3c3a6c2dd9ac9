"""Words for an argument that its op's reference does not name: what a reference does with one that it compares with nothing, in the last branch of its own, is seen with no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_compared, arguments_refused, reference_code

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration, VariantRequest

OTHER = "other"
"""A word that nobody names."""

MOST = 3
"""So many words of a kernel's file are taken."""


def is_other(declaration: Declaration, changed: Mapping[str, object]) -> bool:
    """Tells whether one of the arguments `changed` is the word that nobody names, and is not declared so."""
    own = declaration["kwargs"]
    return any(value == OTHER and own.get(name) != OTHER for name, value in changed.items())


def unnamed(request: VariantRequest, name: str, value: object) -> list[object]:
    """Returns words that the reference of the op has no name for where it compares its argument `name`, a word, with others: those that the kernel's file compares it with, or where that names none, a word that nobody does. A wrapper may refuse that one. Nothing for a function of torch's, or where the reference says itself that it takes no other."""
    declaration, variant = request["op"], request["variant"]
    code = reference_code.source(declaration)
    if code is None or not isinstance(value, str):
        return []
    known = {one for one in arguments_compared.constants(code, name) if isinstance(one, str)}
    if not known or arguments_refused.refuses(declaration, name, OTHER):
        return []
    try:
        written = Path(request["root"], variant["file"] or "").read_bytes()
    except OSError:
        return []
    own = [one for one in arguments_compared.constants(written, name) if isinstance(one, str)]
    fresh = [one for one in dict.fromkeys(own) if one not in known and one != value]
    return [*fresh[:MOST]] or [OTHER]
