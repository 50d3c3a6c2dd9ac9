"""One result of a random op: what must hold exactly of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from t2t_harness.cases import called_with
from t2t_harness.judging import comparing, random_ops

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, OpRequest
    from t2t_harness.cases.cases import Case


def wrong(request: OpRequest, case: Case, out: torch.Tensor, given: Mapping[str, torch.Tensor]) -> str | None:
    """Returns what does not hold exactly of the result of a declared case, or None."""
    kwargs = called_with.kwargs_of(request["op"], case)
    return look(request["op"], case, out, given, kwargs, random_ops.own_function(request)).wrong


def look(
    declaration: Declaration,
    case: Case,
    out: torch.Tensor,
    given: Mapping[str, torch.Tensor],
    kwargs: dict[str, object],
    function: Callable[..., Mapping[str, object]] | None,
) -> random_ops.Seen:
    """Returns what one result of a call with these `kwargs` shows; `function` says it for the kind `judged`."""
    allowed = comparing.tolerance_of(declaration, case.dtype, "0")
    return random_ops.see(declaration, case, out, given, kwargs, allowed, function)
