"""Whole numbers in the interpreter: what an overflow and a division by zero come to. torch and Triton are imported only inside functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np


def install(interpreter: Any) -> None:
    """Has the interpreter compute no overflow, and make of a division by zero what a device may.

    Beside each operation it computes whether that overflows; what it finds it asserts only where kernels are debugged, as the compiler does. A quotient or remainder by zero is 0 in numpy, and unspecified on a
    device (PTX ISA, `div` and `rem`): all bits are one here, as an H200 was seen to make of a quotient.
    """
    builder = interpreter.interpreter_builder
    if not builder.options.debug:
        builder.options = replace(builder.options, sanitize_overflow=False)
    made_by = interpreter.InterpreterBuilder
    for name in ("create_idiv", "create_srem", "create_urem"):
        setattr(made_by, name, of_zero(getattr(made_by, name)))


def of_zero(usual: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Returns the operation `usual` of two blocks, whose elements have all bits set where the second one's are zero."""

    def divided(self: Any, left: Any, right: Any) -> Any:
        result, divisor = usual(self, left, right), right.data
        if not divisor.all():
            result.data = np.where(divisor == 0, ~np.zeros((), result.data.dtype), result.data)
        return result

    return divided
