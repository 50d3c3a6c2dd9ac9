"""Floats that numpy has no type for, on Triton's interpreter: bfloat16 and the two kinds of float8 that NVIDIA's devices have.

The interpreter keeps their bits as integers, and would compute with those. Here an operation takes them as float32, which holds all of them, and its result
is rounded to nearest even, as a device does. And it multiplies matrices exactly, where a device rounds float32 to TF32 unless the kernel asks for more: so do products here. torch is imported only inside functions, Triton nowhere: its interpreter's module is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2t_harness.faults import lacking
from t2t_harness.triton import rounding

EIGHTS = {"fp8e4nv": ("float8_e4m3fn", 448.0), "fp8e5": ("float8_e5m2", 57344.0)}
"""Triton's name of a float8, torch's, and its largest number: a conversion goes no further (PTX: `satfinite`)."""

WIDE = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
"""Triton's names of the floats that numpy has."""


def install(interpreter: Any) -> None:
    """Changes what the interpreter's builder makes of blocks of narrow floats."""
    builder = interpreter.InterpreterBuilder
    convert = interpreter._convert_float

    def converted(data: Any, source: Any, target: Any, mode: Any) -> Any:
        is_nearest = mode is None or mode == interpreter._ir.ROUNDING_MODE.RTNE
        if not is_known(source) or not is_known(target):
            return convert(data, source, target, mode)
        exact = floats(data, source.name)
        if is_nearest or target.name in WIDE:
            return bits(exact, target.name)
        if target.name == "bf16":
            # Towards zero: the lower half of a float's bits is left out.
            return (exact.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return convert(data, source, target, mode)

    interpreter._convert_float = converted
    for name in ("unary_op", "binary_op", "ternary_op"):
        setattr(builder, name, elementwise(interpreter, getattr(builder, name)))
    complete(interpreter, builder)


def elementwise(interpreter: Any, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an operation of the builder that takes bfloat16 as the numbers that they are, and whose result is booleans where it compares."""
    truth = interpreter.tl.int1

    def function(self: Any, *given: Any) -> Any:
        *operands, operation = given
        if not any(map(is_bfloat16, operands)):
            made = usual(self, *operands, operation)
            if made.data.dtype == np.bool_:
                # A comparison bears the type of what it compares: spread over a block, it would be numbers.
                made.dtype = truth
            return made
        # The result bears the type of the first, and of three operands that of the last.
        kind = operands[-1 if len(operands) == 3 else 0].dtype.scalar
        result = np.asarray(operation(*map(numbers, operands)))
        if result.dtype == np.bool_:
            return interpreter.TensorHandle(result, truth)
        is_number = kind.name == "bf16" and np.issubdtype(result.dtype, np.floating)
        return interpreter.TensorHandle(bits(result, "bf16") if is_number else result, kind)

    return function


def complete(interpreter: Any, builder: Any) -> None:
    """Gives the builder the other operations that see what a number is worth."""
    handle, language = interpreter.TensorHandle, interpreter.tl
    cast, dot, atomic, padded, pads = (
        builder.cast_impl,
        builder.create_dot,
        builder.create_atomic_rmw,
        builder.create_tensor_pointer_load,
        interpreter._ir.PADDING_OPTION,
    )

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if target.scalar.name == "bf16" and not is_bfloat16(source):
            exact = source.data if np.issubdtype(source.data.dtype, np.floating) else source.data.astype(np.float64)
            return handle(bits(exact, "bf16"), target.scalar)
        return cast(self, source, target)

    def create_dot(self: Any, a: Any, b: Any, d: Any, precision: Any, *rest: Any) -> Any:
        wide = [handle(numbers(one), language.float32) if is_bfloat16(one) else one for one in (a, b)]
        if precision == interpreter._ir.INPUT_PRECISION.TF32 and a.data.dtype == b.data.dtype == np.float32:
            wide = [handle(through_tf32(one.data), language.float32) for one in wide]
        return dot(self, *wide, d, precision, *rest)

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if is_bfloat16(z):
            exact = rounding.odd_sum(np.multiply(numbers(x), numbers(y), dtype=np.float64), numbers(z))
            return handle(bits(exact, "bf16"), z.dtype.scalar)
        if z.data.dtype == np.float32:
            return handle(rounding.fused(x.data, y.data, z.data), z.dtype.scalar)
        return handle(x.data * y.data + z.data, z.dtype.scalar)

    def create_atomic_rmw(self: Any, operation: Any, pointer: Any, value: Any, *rest: Any) -> Any:
        if is_bfloat16(value) and operation != interpreter._ir.ATOMIC_OP.XCHG:
            raise lacking.Lacking("atomic operations in bfloat16")
        return atomic(self, operation, pointer, value, *rest)

    def create_tensor_pointer_load(self: Any, pointer: Any, checked: Any, padding: Any, *rest: Any) -> Any:
        if pointer.base.get_element_ty() != language.bfloat16 or padding != pads.PAD_NAN:
            return padded(self, pointer, checked, padding, *rest)
        pointers, mask = pointer.materialize_pointers(checked)
        other = handle(np.full(pointers.data.shape, 0x7FFF, dtype=np.uint16), language.bfloat16)
        return self.create_masked_load(pointers, handle(mask, language.int1), other, *rest)

    builder.cast_impl, builder.create_dot, builder.create_fma = cast_impl, create_dot, create_fma
    builder.create_atomic_rmw, builder.create_tensor_pointer_load = create_atomic_rmw, create_tensor_pointer_load
    builder.get_bf16 = lambda self, value: handle(bits(np.array([value], np.float64), "bf16"), language.bfloat16)


def through_tf32(values: Any) -> Any:
    """Returns float32 numbers as tensor cores take them where TF32 is the precision of a product, which is the default: rounded to 10 bits of mantissa."""
    whole = values.view(np.uint32)
    rounded = ((whole + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def is_known(dtype: Any) -> bool:
    """Tells whether numbers of Triton's `dtype` are read and written here."""
    return dtype.name in WIDE or dtype.name in EIGHTS or dtype.name == "bf16"


def is_bfloat16(operand: Any) -> bool:
    """Tells whether a block holds the bits of bfloat16; a comparison's result only bears the type of what was compared."""
    return bool(operand.dtype.scalar.name == "bf16" and operand.data.dtype == np.uint16)


def numbers(operand: Any) -> Any:
    """Returns what a block holds, bfloat16 as float32."""
    return floats(operand.data, "bf16") if is_bfloat16(operand) else operand.data


def floats(data: Any, name: str) -> Any:
    """Returns numbers of Triton's type `name` in a float that numpy has."""
    if name in WIDE:
        return data
    if name == "bf16":
        return (data.astype(np.uint32) << 16).view(np.float32)
    import torch

    eight = torch.from_numpy(np.ascontiguousarray(data)).view(getattr(torch, EIGHTS[name][0]))
    return eight.to(torch.float32).numpy()


def bits(exact: Any, name: str) -> Any:
    """Returns the bits of numbers in Triton's type `name`, rounded to nearest even once."""
    if name in WIDE:
        rounded = np.ascontiguousarray(exact.astype(WIDE[name]))
        return rounded.view(f"u{rounded.itemsize}")
    single = rounded_to_odd(exact)
    if name == "bf16":
        whole = single.view(np.uint32)
        upper = (whole + np.uint32(0x7FFF) + ((whole >> 16) & 1)) >> 16
        return np.where(np.isnan(single), 0x7FFF, upper).astype(np.uint16)
    import torch

    kind, largest = EIGHTS[name]
    clamped = torch.from_numpy(single.clip(-largest, largest))
    return clamped.to(getattr(torch, kind)).view(torch.uint8).numpy()


def rounded_to_odd(exact: Any) -> Any:
    """Returns float32, doubles rounded to odd: no further rounding to fewer bits can go wrong."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(exact.astype(np.float32))
    if exact.dtype != np.float64:
        return single
    rest = np.nan_to_num(exact - single.astype(np.float64))
    whole = single.view(np.int32)
    is_open = np.isfinite(single) & (single != 0) & (rest != 0) & (whole % 2 == 0)
    step = np.where((rest > 0) == (single > 0), np.int32(1), np.int32(-1))
    return np.where(is_open, whole + step, whole).view(np.float32)
