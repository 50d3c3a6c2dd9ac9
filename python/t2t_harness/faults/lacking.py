"""Distinguishes what Triton's interpreter lacks from what a kernel did wrong: by an exception's place and type, never by its words.

An exception from the interpreter's own code says nothing about the kernel: the compiler may accept it, and if it does not, the compile phase rejects
the kernel. An exception that a kernel or a wrapper raises itself, by `raise` or `assert` in any form, is its own. Triton is imported only where an
exception has to be judged.
"""

from __future__ import annotations

import dis
import sys
import traceback
from types import CodeType, FrameType, ModuleType
from typing import Any

from t2t_harness.faults import bounds, failure

INTERPRETER = ("triton.runtime.interpreter", "triton.language", "triton.experimental.gluon.language")
"""Modules whose code runs in the compiler's place, with those inside of them."""

DRIVERS = ("triton.backends", "triton.runtime.driver")
"""Modules of Triton that ask for a device, with those inside of them."""

SUPPLIED = (
    "bessel",
    "bitwise",
    "blocks",
    "folds",
    "interpreted",
    "interpreting",
    "libdevice",
    "reader",
    "rounding",
    "special",
)
"""Modules of the harness that are part of the interpreter."""

ASKED_FOR = ("create_assert", "create_assume", "static_assert", "asserted", "launch_grid")
"""Functions of the interpreter that raise because the kernel said so, or because no device takes what the wrapper gave."""

RAISING = ("RAISE_VARARGS", "RERAISE")
"""Instructions of the `raise` and `assert` statements."""

_kernels: set[CodeType] = set()


class Lacking(Exception):
    """Raised where kernel code asks for something that the interpreter has not; the message is its name."""


class Refused(Lacking):
    """Raised where the interpreter would go on with what Triton's compiler refuses; the message is its name."""


class LackingAttribute(Lacking, AttributeError):
    """The same, where code may ask first: `hasattr` says no."""


def note_kernel(code: CodeType) -> None:
    """Remembers `code`, and the functions inside of it, as a kernel's: the compiler would read it, and not run it."""
    _kernels.add(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            note_kernel(constant)


def is_kernel(code: CodeType) -> bool:
    """Tells whether `code` was noted as a kernel's."""
    return code in _kernels


def reason(error: BaseException) -> str | None:
    """Returns why a case in which kernel code raised `error` cannot be judged on the interpreter, or None where it is
    the kernel's own doing."""
    for one in reversed(causes(error)):
        if isinstance(one, bounds.OutOfBounds):
            return None
        if isinstance(one, Refused):
            return f"Triton's compiler refuses {one}"
        if isinstance(one, Lacking):
            return f"Triton's interpreter lacks {one}"
        if asks_for_driver(one):
            return f"it asks for a CUDA driver: {failure.describe(one)}"
        if is_interpreters(one):
            return f"Triton's interpreter raised {failure.describe(one)}"
    return None


def asks_for_driver(error: BaseException) -> bool:
    """Tells whether Triton's own code that talks to a device raised `error`: this machine has none, and that is nothing that a kernel did."""
    raised = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    home = module_of(raised[-1]) if raised else ""
    return any(home == one or home.startswith(f"{one}.") for one in DRIVERS)


def causes(error: BaseException) -> list[BaseException]:
    """Returns `error` and what it was raised from or during, the first cause last."""
    found = [error]
    while True:
        last = found[-1]
        cause = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if cause is None or cause in found:
            return found
        found.append(cause)


def is_interpreters(error: BaseException) -> bool:
    """Tells whether `error` was raised by the interpreter, or by a kernel's line that the compiler would have read
    otherwise."""
    if isinstance(error, MemoryError) or type(error).__name__ == "InterpreterError":
        # The second is wrapped around what a kernel raised, and is judged by that.
        return False
    raised = list(traceback.walk_tb(error.__traceback__))[::-1]
    for place, (frame, _) in enumerate(raised):
        if frame.f_code in _kernels:
            return place > 0 or not is_own(error, frame, error.__traceback__)
        if is_of_interpreter(frame):
            return frame.f_code.co_name not in ASKED_FOR
        if not is_seen_through(frame):
            return False
    return False


def is_own(error: BaseException, frame: FrameType, trace: Any) -> bool:
    """Tells whether `error`, raised in the kernel's `frame` itself, is what the compiler would say of that line too: an
    assertion, a name that nothing has, an attribute that no block and no module has, or a division of constants by zero."""
    from triton import language

    # The compiler divides constants in Python. What is no constant divides as numbers of a device do.
    if isinstance(error, (NameError, ZeroDivisionError)):
        return True
    if isinstance(error, AttributeError) and isinstance(error.obj, (language.core.tensor, ModuleType)):
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    return any(
        instruction.offset == trace.tb_lasti and instruction.opname in RAISING
        for instruction in dis.get_instructions(frame.f_code)
    )


def is_of_interpreter(frame: FrameType) -> bool:
    """Tells whether `frame` runs the interpreter's code, Triton's or what the harness adds to it."""
    name = module_of(frame)
    package, _, own = name.rpartition(".")
    return (package == "t2t_harness.triton" and own in SUPPLIED) or any(
        name == home or name.startswith(f"{home}.") for home in INTERPRETER
    )


def is_seen_through(frame: FrameType) -> bool:
    """Tells whether what `frame` does is its caller's doing: Python's library, numpy, torch, Triton and the harness."""
    top = module_of(frame).split(".")[0]
    return top in ("numpy", "torch", "triton", "t2t_harness") or top in sys.stdlib_module_names


def module_of(frame: FrameType) -> str:
    """Returns the name of the module that the code of `frame` is from."""
    return str(frame.f_globals.get("__name__", ""))
