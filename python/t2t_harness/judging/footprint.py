"""References that make more of a long probe than anybody has room for, as all distances between a case's points: found on tensors without values, before any memory is asked for.

torch is imported only inside functions.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with
from t2t_harness.op import operation, valueless

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

MOST = 1 << 27
"""The most elements of a tensor that a reference may make of a probe. In float64 that is 1 GiB, and there are several of them."""

MOST_CALLS = 1000
"""So many calls of torch are followed; behind them nothing is known."""


class _TooLarge(Exception):
    """A tensor has more elements than `MOST`; the argument says how many."""


def too_large(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor]) -> int | None:
    """Returns how many elements the first tensor has, of those that the op makes of `given`, that has more than `MOST`.

    None where there is none, for a case that is no probe, and where torch cannot follow the op without values. It is asked only where two of the longest dim are that many.
    """
    if not case.is_probe or max(case.binding.values(), default=0) < math.isqrt(MOST):
        return None
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    calls = 0

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal calls
            calls += 1
            if calls > MOST_CALLS:
                raise valueless.TooMuch
            made = func(*args, **(kwargs or {}))
            for one in () if func.is_view else tree_leaves(made):
                if isinstance(one, torch.Tensor) and one.numel() > MOST:
                    raise _TooLarge(one.numel())
            return made

    logger, within = logging.getLogger("torch._subclasses.fake_tensor"), valueless.mode()
    # It logs each refusal as an error.
    was, logger.disabled = logger.disabled, True
    try:
        function = valueless.ready(declaration, case.binding, case.dtype, within, MOST_CALLS)
        inputs = {name: within.from_tensor(value) for name, value in given.items()}
        with torch.no_grad(), within, Watch():  # type: ignore[no-untyped-call]
            operation.call(function, declaration, inputs, called_with.kwargs_of(declaration, case))
    except _TooLarge as found:
        return int(found.args[0])
    except Exception:
        return None
    finally:
        logger.disabled = was
    return None
