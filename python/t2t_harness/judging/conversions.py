"""Conversions of a reference that no integer holds the result of. torch is imported only inside functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with
from t2t_harness.judging import oracle
from t2t_harness.op import operation

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case


def is_undefined(declaration: Declaration, case: Case, inputs: Mapping[str, torch.Tensor], device: str) -> bool:
    """Tells whether a reference in Python turns a number into an integer that holds none such, NaN, an infinity or one out of range: what comes of it differs between machines (ISO C, 6.3.1.4). Raises what the reference raises."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    found = False

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes a second (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal found
            to = (kwargs or {}).get("dtype")
            if (
                func.overloadpacket is torch.ops.aten._to_copy
                and to is not None
                and not (to.is_floating_point or to.is_complex or to is torch.bool)
                and args[0].is_floating_point()
            ):
                limits = torch.iinfo(to)
                within = args[0].double().trunc().clamp(limits.min, limits.max) == args[0].double().trunc()
                found = found or not bool(within.all())
            return func(*args, **(kwargs or {}))

    function = oracle.ready(declaration, case, next((value.device.type for value in inputs.values()), device))
    kwargs = called_with.kwargs_of(declaration, case)
    with torch.no_grad(), Watch():  # type: ignore[no-untyped-call]
        operation.call(function, declaration, oracle.copies(inputs), kwargs)
    return found
