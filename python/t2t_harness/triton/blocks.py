"""Reads a kernel as Triton's compiler does, and not as Python: `and`, `or` and `not` of blocks are taken element by element, numbers that are assigned,
returned, looped over or passed become scalars of a type, and what only the compiler resolves is resolved.

A kernel's tree is rewritten by `reader.py` before the interpreter runs it; the functions that the new tree calls are here. Constants keep Python's meaning, as they
do in the compiler. Triton is imported only inside functions.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from t2t_harness.faults import lacking

PORTABLE = "triton.language.extra.libdevice"
"""The module of libdevice's functions for all devices, which the compiler takes for the device's own."""


@functools.cache
def semantic() -> Any:
    """Returns the interpreter's semantic: what the compiler makes of operations, with numpy behind it."""
    from triton.runtime import interpreter

    return interpreter.interpreter_semantic


@functools.cache
def core() -> Any:
    """Returns `triton.language.core`."""
    from triton.language import core as found

    return found


def is_block(value: object) -> bool:
    """Tells whether `value` is a block or a scalar of a kernel."""
    return isinstance(value, core().tensor)


def constant(value: Any) -> Any:
    """Returns `value` out of a constant's wrapper."""
    return value.value if isinstance(value, core().constexpr) else value


def value_of(value: object) -> object:
    """Returns the `value` of a constant, which may be without a wrapper here."""
    return getattr(value, "value", value)


def assigned(value: object) -> object:
    """Returns what a name is given: numbers become scalars, in tuples too."""
    if type(value) is core().tensor:
        return value
    value = constant(value)
    if isinstance(value, (bool, int, float)):
        return semantic().to_tensor(value)
    if type(value) is tuple:
        return tuple(map(assigned, value))
    return value


returned = assigned
"""What a function returns is what the name would be given that it is assigned to."""


def all_of(*operands: Callable[[], object]) -> object:
    """Returns `and` of the operands: of blocks element by element."""
    return joined(operands, decides=False)


def any_of(*operands: Callable[[], object]) -> object:
    """Returns `or` of the operands: of blocks element by element."""
    return joined(operands, decides=True)


def joined(operands: tuple[Callable[[], object], ...], *, decides: bool) -> object:
    """Returns the operands joined: a constant that `decides` ends it, any other is left out."""
    blocks: list[object] = []
    value: object = None
    for operand in operands:
        value = constant(operand())
        if is_block(value):
            blocks.append(value)
        elif bool(value) is decides:
            return value
    if not blocks:
        return value
    join = semantic().logical_or if decides else semantic().logical_and
    return functools.reduce(lambda right, left: join(left, right), reversed(blocks))


def negated(value: object) -> object:
    """Returns `not`: of a block element by element."""
    value = constant(value)
    return semantic().not_(value) if is_block(value) else not value


def refused(what: str) -> Any:
    """Raises Refused for what the compiler does not take."""
    raise lacking.Refused(what)


def truth(condition: Any) -> bool:
    """Returns the truth of a condition, which is a constant or a scalar."""
    condition = constant(condition)
    if not is_block(condition):
        return bool(condition)
    if condition.handle.data.size != 1:
        refused("a condition of several elements")
    return bool(condition.handle.data.reshape(-1)[0])


def chosen(condition: object, body: Callable[[], object], orelse: Callable[[], object]) -> object:
    """Returns one arm of a conditional expression."""
    is_constant = not is_block(constant(condition))
    value = body() if truth(condition) else orelse()
    return value if is_constant else assigned(value)


class Counted:
    """Stands for `range` and `tl.range`: a loop over it counts in scalars."""

    def __init__(self, arg1: object, arg2: object = None, step: object = None, **hints: object) -> None:
        self.bounds = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step

    def __iter__(self) -> Iterator[object]:
        """Counts in the integer type that the compiler gives the loop."""
        semantics = semantic()
        bounds = [semantics.to_tensor(constant(bound)) for bound in (*self.bounds, self.step)]
        if not all(bound.dtype.is_int() for bound in bounds):
            refused("a range of other than integers")
        dtype = functools.reduce(semantics.integer_promote_impl, [bound.dtype for bound in bounds])
        whole = [int(bound.handle.data.reshape(-1)[0]) for bound in bounds]
        for value in builtins.range(*whole):
            yield semantics.scalar_constant(value, dtype)


def static_counted(arg1: object, arg2: object = None, step: object = None, **hints: object) -> builtins.range:
    """Stands for `tl.static_range`, which counts in constants."""
    bounds = (0, arg1) if arg2 is None else (arg1, arg2)
    return builtins.range(*(int(constant(bound)) for bound in (*bounds, 1 if step is None else step)))


def static_assert(cond: object, msg: object = "") -> None:
    """Stands for `tl.static_assert`: raises AssertionError where the condition does not hold."""
    if not truth(cond):
        raise AssertionError(constant(msg) or "static assertion failed")


def asserted(condition: Any, message: Any = "") -> None:
    """Stands for `assert`: raises AssertionError where the condition does not hold for an element."""
    condition = constant(condition)
    if not (condition.handle.data.all() if is_block(condition) else condition):
        raise AssertionError(constant(message))


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Stands for `tl.static_print`."""
    print(*map(constant, values), sep=sep, end=end, file=file, flush=flush)


def called(function: Any) -> Any:
    """Returns the function that the compiler would call for `function`."""
    if type(function) is not FunctionType:
        function = constant(function)
    if type(function) is FunctionType:
        if function.__module__ == PORTABLE:
            function = of_device(function.__name__)
        if getattr(function, "__triton_builtin__", False):
            return functools.partial(function, _semantic=semantic())
        return function
    if type(function) in (BuiltinFunctionType, type):
        return stand_ins().get(function, function)
    return function


@functools.cache
def stand_ins() -> dict[object, object]:
    """Returns what stands for classes and for Python's functions that the compiler takes as its own."""
    return {
        builtins.min: least,
        builtins.max: most,
        builtins.int: whole,
        builtins.float: real,
        builtins.range: Counted,
        core().range: Counted,
        core().static_range: static_counted,
    }


def of_device(name: str) -> object:
    """Returns CUDA's function of libdevice for the portable one. Raises Lacking where it has none."""
    from triton.language.extra.cuda import libdevice

    if not hasattr(libdevice, name):
        raise lacking.Lacking(f"the library function `{name}`")
    return getattr(libdevice, name)


def least(*values: object, **hints: object) -> object:
    """Stands for `min`."""
    return constant(core_function("builtin_min")(*values, **hints))


def most(*values: object, **hints: object) -> object:
    """Stands for `max`."""
    return constant(core_function("builtin_max")(*values, **hints))


def core_function(name: str) -> Any:
    """Returns the function `name` of `triton.language.core`, replaced by a launch or not."""
    return called(getattr(core(), name))


def whole(value: Any = 0) -> int:
    """Stands for `int`, of constants."""
    value = constant(value)
    return refused("`int` of a block") if is_block(value) else int(value)


def real(value: Any = 0.0) -> float:
    """Stands for `float`, of constants."""
    value = constant(value)
    return refused("`float` of a block") if is_block(value) else float(value)
