"""Tells a wrapper that says what it does not take from one that fails there: by the statement that raised, never by its words.

A wrapper refuses by `raise` or `assert`, in its own code or in that of a library, or by a signature that does not fit. What Python, torch or Triton raise
while it computes is a fault.
"""

from __future__ import annotations

import dis
import inspect
import traceback
from types import FrameType

from t2t_harness.faults import failure, lacking

TYPES = (NotImplementedError, ValueError, TypeError, AssertionError)
"""What a wrapper raises where it does not take an argument."""

UNPACKING = ("UNPACK_SEQUENCE", "UNPACK_EX")
"""Instructions that say how many values there are, as `(n,) = normalized_shape` does."""

PASSING = "CALL_FUNCTION_EX"
"""The instruction of a call that hands on what a decorator was called with."""

COMPUTING = (ArithmeticError, NameError)
"""What no value of another kind leads to by itself: divisions by zero, variables that were never set."""

ASSERTING = ("create_assert", "static_assert", "asserted", "_check_with", "_assert")
"""Functions of the interpreter and of torch that raise because the kernel or the wrapper said so."""

STATIC = "CompileTimeAssertionFailure"
"""What Triton's compiler raises for a kernel's own assertion."""

UNCOMPILED = ("CompilationError", "UnsupportedLanguageConstruct", "OutOfResources")
"""What Triton raises where a kernel cannot be compiled, or no device holds it: a call that ends so says that it is not taken."""


def is_deliberate(error: BaseException) -> bool:
    """Tells whether an exception, or one that it was raised from, is a statement of the wrapper's, or of its signature."""
    chain = failure.chain(error)
    if any(type(one).__name__ in UNCOMPILED for one in chain) and is_of_kind(error):
        return True
    return any(is_stated(one) or type(one).__name__ == STATIC for one in chain)


def is_of_kind(error: BaseException) -> bool:
    """Tells whether an exception may be what comes of a value of a kind that the wrapper does not take."""
    return not isinstance(failure.chain(error)[-1], COMPUTING)


def is_stated(error: BaseException) -> bool:
    """Tells whether `error` itself is one."""
    trace = list(traceback.walk_tb(error.__traceback__))
    if not isinstance(error, TYPES) or not trace:
        return False
    places = [(frame, instruction_at(frame, last)) for (frame, _), last in zip(trace, lasts(error), strict=True)]
    frame, instruction = places[-1]
    if frame.f_code.co_name in ASSERTING and not is_of_user(frame):
        return True
    if is_of_user(frame) and instruction in (*lacking.RAISING, *(UNPACKING if type(error) is ValueError else ())):
        return True
    own = [(one, called) for one, called in places if is_of_user(one)]
    return isinstance(error, TypeError) and all(called == PASSING and hands_on(one) for one, called in own)


def lasts(error: BaseException) -> list[int]:
    """Returns the place in its code at which each frame of the traceback stands, outermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace.tb_lasti)
        trace = trace.tb_next
    return found


def instruction_at(frame: FrameType, place: int) -> str:
    """Returns the name of the instruction at `place` of the frame's code, nothing where there is none."""
    return next((one.opname for one in dis.get_instructions(frame.f_code) if one.offset == place), "")


def is_of_user(frame: FrameType) -> bool:
    """Tells whether `frame` runs code of a workspace, or of a library that is none of Python's, torch's and Triton's."""
    return not lacking.is_of_interpreter(frame) and not lacking.is_seen_through(frame)


def hands_on(frame: FrameType) -> bool:
    """Tells whether `frame` takes any arguments, as a decorator's function does."""
    return bool(frame.f_code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
