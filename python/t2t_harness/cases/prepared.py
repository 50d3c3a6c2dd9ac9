"""The cases that do not depend on the kernel: those that follow from the declaration, and those of the op's `cases.py` as `prepare` left them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import OpRequest


def salt(request: OpRequest) -> str:
    """Returns what the build drew, on which values depend; empty where nothing was drawn."""
    return str(request.get("salt") or "")


def own_cases(request: OpRequest) -> list[cases.Case]:
    """Returns the cases that the declaration alone decides."""
    declaration = request["op"]
    return cases.declared_cases(declaration) + cases.fixed_edges(declaration, bindings.limit_of(request["lane"]))


def prepared_cases(request: OpRequest, folder: str | Path | None) -> list[cases.Case]:
    """Returns the cases that do not depend on the kernel: those that prepare listed in its scratch `folder`, or, where
    nothing was to prepare, those that the declaration decides."""
    if folder is None:
        return list(cases.unique(own_cases(request)))
    listed = json.loads((Path(folder) / "cases.json").read_text(encoding="utf-8"))
    return [cases.from_facts(facts) for facts in listed["cases"]]
