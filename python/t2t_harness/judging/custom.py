"""Operators that Python code has registered with torch (`torch.library`), or a library that was built of the variant's own files: torch computes nothing for them, and what they call can be seen.

Knows nothing of what is allowed. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from t2t_harness.cuda import operators


def keys(func: Any, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    """Returns the dispatch keys under which the implementation of the operator `func` is found, or None where that is neither
    Python code outside of torch nor a library built of the variant's files, or no argument is a tensor.
    """
    import torch

    if func.namespace in operators.TORCHS_OWN or not (is_built(func) or is_python(func)):
        return None
    tensor = next(tensors([*args, *kwargs.values()]), None)
    if tensor is None:
        return None
    return torch._C._dispatch_keys(tensor) & torch._C._after_ADInplaceOrView_keyset


def is_built(func: Any) -> bool:
    """Tells whether a library that was built of the variant's files registered the operator `func`."""
    return str(func._schema.name) in operators.BUILT


def is_python(func: Any) -> bool:
    """Tells whether all implementations of the operator `func` were registered by Python code."""
    from torch import library

    name = str(func._schema.name).partition("::")[2]
    overload = func._overloadname
    full = name if overload == "default" else f"{name}.{overload}"
    registered: set[str] = getattr(library, "_impls", set())
    return any(one.startswith(f"{func.namespace}/{full}/") for one in registered)


def tensors(values: Iterable[Any]) -> Iterator[Any]:
    """Yields the tensors among `values`, those in lists too."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors(value)
