"""All cases of a check, in the order in which they run, from what the candidate told of the kernel.

A judge lists them so, and whoever else has no kernel. torch is imported only by what it asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, block_edges, cases, probes, reach
from t2t_harness.cases.prepared import prepared_cases, salt

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Reached, VariantRequest


def listed(
    request: VariantRequest,
    folder: str | Path | None,
    constants: Mapping[str, int],
    least: Mapping[str, int] | None,
    reached: Sequence[Reached],
) -> list[cases.Case]:
    """Returns the cases that prepare left in `folder`, or that the declaration decides where that is None; the edges around the `constants` of the kernel's first launch and the `least` ones of its
    configurations; those that reach what measured sizes launch, of which `reached` tells; and the probes."""
    declaration, lane = request["op"], request["lane"]
    edges = block_edges.length_edges(declaration, dict(constants), bindings.limit_of(lane), least)
    reaching = reach.cases_of(declaration, reached, bindings.reach_limit(lane))
    known = list(cases.unique([*prepared_cases(request, folder), *edges, *reaching]))
    return cases.salted([*known, *probes.cases_of(request, known)], salt(request))
