"""Has a reference compute in float64 where it asks for float32, as most do to compute half types in that: an oracle that is rounded on the way says nothing of torch's own error.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from typing import Any


def in_float64() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which torch takes float64 for float32, and complex128 for complex64, in the arguments of its functions, and `float()` of a tensor is `double()`."""
    import torch
    from torch.overrides import TorchFunctionMode

    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}

    class Wider(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is torch.Tensor.float:
                return torch.Tensor.double(*args, **kwargs)
            # A view of the same bytes as another type is no conversion.
            if func is not torch.Tensor.view:
                args = tuple(widened(one) for one in args)
                kwargs = {name: widened(one) for name, one in kwargs.items()}
            return func(*args, **kwargs)

    def widened(value: Any) -> Any:
        return wider.get(value, value) if isinstance(value, torch.dtype) else value

    return Wider()
