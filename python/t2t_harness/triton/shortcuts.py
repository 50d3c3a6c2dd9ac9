"""The usual operations of Triton's interpreter by a shorter way: what Triton finds out for each operation of each program, it is asked once for types and lengths.

Between a kernel's `x + y` and numpy's sum Triton goes through ten functions, which say what is converted, what is spread over a block, and what comes out. Here that is
known by the types and lengths of the operands, and numpy is called at once. What is not simple goes Triton's way: narrow floats, booleans, numbers out of range, errors. As much is
counted as Triton would have made (effort.py). Triton's interpreter is an argument here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from t2t_harness.triton import effort
from t2t_harness.triton.ways import Way

KEPT = 4096
"""So many ways of an operation are known at once."""

OPERATIONS: Mapping[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
"""What numpy calls an operation, by the word in Python's name of it."""

COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
"""Operations whose result is booleans. A number becomes a scalar of its own type before the types are looked at."""

REFLECTED = ("add", "sub", "mul", "truediv")
"""Operations that are known with a number on the left, too."""

FLOATS = frozenset(("fp32", "fp64"))

INTEGERS = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())

OFFSETS = frozenset("int8 int16 int32 int64 uint64".split())
"""Types by which pointers are moved as they are."""

HALVES = frozenset((("fp16", "fp32"), ("fp32", "fp16")))
"""Conversions of further types that numpy makes as the interpreter does."""

SMALL = 1 << 31
"""Integers below this, of either sign, are numbers of 32 bits to Triton."""


class Shortcuts:
    """The short ways of Triton's module `interpreter`."""

    def __init__(self, interpreter: Any) -> None:
        language = interpreter.tl
        core = language.core
        self.core, self.handle, self.value = core, interpreter.TensorHandle, core.tensor
        self.semantic, self.builder = interpreter.interpreter_semantic, interpreter.interpreter_builder
        self.dtype_of: Callable[[Any], Any] = interpreter._get_np_dtype
        self.as_is = (interpreter._ir.CACHE_MODIFIER.NONE, interpreter._ir.EVICTION_POLICY.NORMAL)
        """What a load or store says of caches that says nothing."""
        self.codes = {one for one in interpreter._patch_attr.__code__.co_consts if inspect.iscode(one)}
        self.ways: dict[str, dict[Any, Way | None]] = {}
        """By operation; None where an operation goes Triton's way."""
        self.pointers: dict[int, tuple[Any, Any]] = {}
        """Pointer types, by their ids, with the type of what is read and written there; None where that goes Triton's way."""
        self.makers: dict[str, Callable[[Any], Any]] = {"to": self.conversion}
        self.makers |= {f"__{name}__": self.maker(name) for name in OPERATIONS}
        self.makers |= {f"__r{name}__": self.maker(name, is_reflected=True) for name in REFLECTED}
        of_language = {"program_id": self.program, "arange": self.range, "load": self.load, "store": self.store}
        self.places = {core.tensor: [*self.makers], language: [*of_language], core: [*of_language]}
        self.makers |= of_language
        self.own = {(id(owner), name): vars(owner).get(name) for owner, names in self.places.items() for name in names}

    def patch(self, language: Any, scope: Any) -> None:
        """Puts the short ways in the place of what a launch calls for Triton's own functions, in `language` and its values."""
        for owner in (self.value, language):
            for name in self.places[owner]:
                usual = vars(owner).get(name)
                member = (getattr(usual, "__kwdefaults__", None) or {}).get("member")
                if getattr(usual, "__code__", None) in self.codes and member is self.own[id(owner), name]:
                    scope.set_attr(owner, name, self.makers[name](usual))

    def made(self, way: Way, data: Any) -> Any:
        """Returns the block or scalar with the elements `data`, as Triton makes it (triton 3.6, `TensorHandle`, `tensor`)."""
        handle, result = object.__new__(self.handle), object.__new__(self.value)
        handle.data, handle.dtype, handle.attr = data, way.element, {}
        result.handle, result.type, result.dtype = handle, way.kind, way.element
        result.shape, result.numel = way.shape, way.numel
        return result

    def maker(self, name: str, *, is_reflected: bool = False) -> Callable[[Any], Any]:
        """Returns what makes an operation's short way of the usual one."""
        return lambda usual: self.reflected(name, usual) if is_reflected else self.operator(name, usual)

    def operator(self, name: str, usual: Any) -> Any:
        """Returns the operation of a block or scalar and another one, or a number."""
        operation, compares = OPERATIONS[name], name in COMPARISONS
        ways, spend, made = self.ways.setdefault(name, {}), effort.METER.spend, self.made
        value, constant, numbers = self.value, self.core.constexpr, (int, float)
        with_number = None if compares else self.with_number(name, usual, is_reflected=False)

        def short(left: Any, right: Any, _semantic: Any = None) -> Any:
            if type(right) is constant:
                right = right.value
            if type(right) is not value:
                if type(right) not in numbers:
                    return usual(left, right)
                if with_number is not None:
                    return with_number(left, right)
                right = self.semantic.to_tensor(right)
            key = (id(left.dtype), id(left.shape), id(right.dtype), id(right.shape))
            try:
                way = ways[key]
            except KeyError:
                way = self.found(ways, key, lambda: self.of_two(name, left, right))
            if way is None:
                return usual(left, right)
            first, second = left.handle.data, right.handle.data
            if (first.dtype, second.dtype) != way.takes:
                return usual(left, right)
            spend(way.effort)
            if way.width:
                return made(way, first + way.width * second.astype(np.uint64))
            to_first, to_second = way.turns
            if to_first is not None:
                first = first.astype(to_first)
            if to_second is not None:
                second = second.astype(to_second)
            return made(way, operation(first, second))

        return short

    def reflected(self, name: str, usual: Any) -> Any:
        """Returns the operation of a number and a block or scalar."""
        constant, numbers = self.core.constexpr, (int, float)
        with_number = self.with_number(name, usual, is_reflected=True)

        def short(right: Any, left: Any, _semantic: Any = None) -> Any:
            if type(left) is constant:
                left = left.value
            return with_number(right, left) if type(left) in numbers else usual(right, left)

        return short

    def with_number(self, name: str, usual: Any, *, is_reflected: bool) -> Callable[[Any, Any], Any]:
        """Returns the operation of a block or scalar and a number, which is on the left of it where that `is_reflected`."""
        operation, spend, made = OPERATIONS[name], effort.METER.spend, self.made
        ways = self.ways.setdefault(f"{name} with a number", {})

        def short(one: Any, number: Any) -> Any:
            key = (id(one.dtype), id(one.shape), type(number))
            try:
                way = ways[key]
            except KeyError:
                way = self.found(ways, key, lambda: self.of_number(name, one, number))
            if way is None:
                return usual(one, number)
            data, dtype = one.handle.data, way.takes[0]
            if data.dtype is not dtype or (type(number) is int and not way.least <= number <= way.most):
                return usual(one, number)
            spend(way.effort)
            # Triton's zero has no sign.
            scalar = dtype.type(number or 0)
            return made(way, operation(scalar, data) if is_reflected else operation(data, scalar))

        return short

    def found(self, ways: dict[Any, Way | None], key: Any, find: Callable[[], Way | None]) -> Way | None:
        """Returns the way that `find` returns, and keeps it."""
        way = find()
        # What is kept without what its key is made of may be taken for another's, which goes Triton's way then.
        if len(ways) < KEPT:
            ways[key] = way
        return way

    def of_two(self, name: str, left: Any, right: Any) -> Way | None:
        """Returns the way of an operation on two blocks or scalars (triton 3.6, `TritonSemantic.binary_op_type_checking_impl`)."""
        shaped = self.shaped(left, right)
        if shaped is None:
            return None
        like, spread = shaped
        first, second = left.dtype, right.dtype
        if name == "add" and self.is_pointer(first):
            return self.of_pointer(left, right, like, spread)
        element: Any
        if name in ("and", "or"):
            if not first.name == second.name == "int1":
                return None
            element, known = first, frozenset(("int1",))
        else:
            if not {first.name, second.name} <= FLOATS | INTEGERS:
                return None
            element = first
            if first.name != second.name:
                try:
                    element = self.semantic.computation_type_impl(first, False, second, False, name == "truediv")
                except TypeError:
                    return None
            known = FLOATS if name == "truediv" else FLOATS | INTEGERS
        if element.name not in known:
            return None
        dtype = self.dtype_of(element)
        turns = tuple(None if one.name == element.name else dtype for one in (first, second))
        sizes = [one.numel.value for one, to in zip((left, right), turns, strict=True) if to is not None]
        takes = (self.dtype_of(first), self.dtype_of(second))
        if name in COMPARISONS:
            element = self.core.int1
        return self.way((first, left.shape, second, right.shape), takes, turns, (*sizes, *spread), element, like)

    def of_pointer(self, left: Any, right: Any, like: Any, spread: tuple[int, ...]) -> Way | None:
        """Returns the way of a sum of pointers and integers (triton 3.6, `InterpreterBuilder.create_addptr`)."""
        pointer = left.dtype
        if right.dtype.name not in OFFSETS or left.handle.dtype is not pointer:
            return None
        takes = (np.dtype(np.uint64), self.dtype_of(right.dtype))
        held = (pointer, left.shape, right.dtype, right.shape)
        way = self.way(held, takes, (None, None), spread, pointer, like)
        way.width = max(1, pointer.element_ty.primitive_bitwidth // 8)
        return way

    def of_number(self, name: str, one: Any, number: Any) -> Way | None:
        """Returns the way of an operation with a number, whose type follows that of the block or scalar `one`."""
        element = one.dtype
        is_float = element.name in FLOATS
        if name not in REFLECTED or not (is_float or (element.name in INTEGERS and type(number) is int)):
            return None
        if name == "truediv" and not is_float:
            return None
        # The number is made a scalar of its own type and of the block's, then spread.
        spread = (one.numel.value,) if one.type.is_block() else ()
        dtype = self.dtype_of(element)
        way = self.way((element, one.shape), (dtype, dtype), (None, None), (1, 1, *spread), element, one)
        limits = np.iinfo(dtype) if not is_float else None
        way.least, way.most = (-SMALL, SMALL - 1) if limits is None else (int(limits.min), int(limits.max))
        return way

    def shaped(self, left: Any, right: Any) -> tuple[Any, tuple[int, ...]] | None:
        """Returns a block or scalar of the lengths that come out, or a tuple of lengths, and the sizes of what is spread; None where the ranks differ or the lengths do not fit."""
        if left.shape is right.shape:
            return left, ()
        if not left.type.is_block() or not right.type.is_block():
            like = left if left.type.is_block() else right
            return like, (like.numel.value,)
        first, second = list(left.type.shape), list(right.type.shape)
        fits = len(first) == len(second) and all(a == b or 1 in (a, b) for a, b in zip(first, second, strict=True))
        if not fits:
            return None
        lengths = [b if a == 1 else a for a, b in zip(first, second, strict=True)]
        size = int(np.prod(lengths))
        spread = tuple(size for one in (first, second) if one != lengths)
        like = left if first == lengths else right if second == lengths else None
        return (tuple(lengths) if like is None else like), spread

    def way(
        self, held: tuple[Any, ...], takes: tuple[Any, Any], turns: Any, makes: tuple[int, ...], element: Any, like: Any
    ) -> Way:
        """Returns a way whose result has elements of `element` and the lengths of `like`, a block, a scalar, or a tuple of lengths."""
        if isinstance(like, tuple):
            like = self.value(None, self.core.block_type(element, list(like)))
        kind = like.type.with_element_ty(element) if like.type.is_block() else element
        spent = sum(map(effort.of_elements, (*makes, like.numel.value)))
        return Way(held, takes, turns, spent, element, kind, like.shape, like.numel)

    def is_pointer(self, dtype: Any) -> bool:
        """Tells whether values of `dtype` are pointers to single elements."""
        return type(dtype) is self.core.pointer_type and type(dtype.element_ty) is self.core.dtype

    def conversion(self, usual: Any) -> Any:
        """Returns the short way of `to`."""
        ways, spend, made = self.ways.setdefault("to", {}), effort.METER.spend, self.made
        plain, constant = self.core.dtype, self.core.constexpr

        def to(
            one: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, _semantic: Any = None
        ) -> Any:
            if type(dtype) is constant:
                dtype = dtype.value
            if type(dtype) is not plain or fp_downcast_rounding is not None or bitcast is not False:
                return usual(one, dtype, fp_downcast_rounding, bitcast)
            if one.dtype.name == dtype.name:
                return one
            key = (id(one.dtype), id(one.shape), id(dtype))
            try:
                way = ways[key]
            except KeyError:
                way = self.found(ways, key, lambda: self.of_conversion(one, dtype))
            data = one.handle.data
            if way is None or data.dtype is not way.takes[0]:
                return usual(one, dtype)
            spend(way.effort)
            return made(way, data.astype(way.turns[0]))

        return to

    def of_conversion(self, one: Any, dtype: Any) -> Way | None:
        """Returns the way of a conversion that numpy makes as the interpreter does (triton 3.6, `InterpreterBuilder.cast_impl`)."""
        names = (one.dtype.name, dtype.name)
        if not (set(names) <= FLOATS | INTEGERS or names in HALVES):
            return None
        takes, turns = self.dtype_of(one.dtype), self.dtype_of(dtype)
        return self.way((one.dtype, one.shape, dtype), (takes, None), (turns, None), (), dtype, one)

    def program(self, usual: Any) -> Any:
        """Returns the short way of `tl.program_id`."""
        kind = self.core.int32

        def program_id(axis: Any, _semantic: Any = None) -> Any:
            if type(axis) is not int or not 0 <= axis <= 2:
                return usual(axis)
            return self.value(self.builder.create_get_program_id(axis), kind)

        return program_id

    def range(self, usual: Any) -> Any:
        """Returns the short way of `tl.arange`."""
        known: dict[tuple[int, int], Way] = {}
        element, constant, spend = self.core.int32, self.core.constexpr, effort.METER.spend

        def arange(start: Any, end: Any, _semantic: Any = None) -> Any:
            start = start.value if type(start) is constant else start
            end = end.value if type(end) is constant else end
            if type(start) is not int or type(end) is not int:
                return usual(start, end)
            way = known.get((start, end))
            if way is None:
                found = usual(start, end)
                if len(known) < KEPT:
                    known[start, end] = self.way((), (None, None), (None, None), (), element, found)
                return found
            spend(way.effort)
            return self.made(way, np.arange(start, end, dtype=np.int32))

        return arange

    def pointee(self, pointer: Any) -> Any:
        """Returns the type of what the pointers of a block or scalar point to; None where Triton reads and writes it otherwise than it is, or refuses to."""
        dtype = pointer.dtype
        known = self.pointers.get(id(dtype))
        if known is None:
            is_simple = self.is_pointer(dtype) and not dtype.is_const() and dtype.element_ty.name != "int1"
            known = (dtype, dtype.element_ty if is_simple else None)
            if len(self.pointers) < KEPT:
                self.pointers[id(dtype)] = known
        return known[1]

    def is_mask(self, mask: Any, pointer: Any) -> bool:
        """Tells whether `mask` says of each element of a block of pointers, or of one pointer, whether it is asked for."""
        return type(mask) is self.value and mask.shape is pointer.shape and mask.dtype.name == "int1"

    def load(self, usual: Any) -> Any:
        """Returns the short way of `tl.load`: that of a load without other values, or with a number in their place."""
        builder, as_is, value, semantic = self.builder, self.as_is, self.value, self.semantic
        others = (type(None), int, float)

        def load(pointer: Any, mask: Any = None, other: Any = None, *rest: Any, **more: Any) -> Any:
            is_simple = type(other) in others and not rest and not more and type(pointer) is value
            element = self.pointee(pointer) if is_simple else None
            if element is None or not ((mask is None and other is None) or self.is_mask(mask, pointer)):
                return usual(pointer, mask, other, *rest, **more)
            if other is not None:
                return semantic._load_legacy(pointer, mask, semantic.to_tensor(other), (), None, *as_is, False)
            if mask is None:
                found = builder.create_load(pointer.handle, *as_is, False)
            else:
                found = builder.create_masked_load(pointer.handle, mask.handle, None, *as_is, False)
            kind = pointer.type
            return value(found, kind.with_element_ty(element) if kind.is_block() else element)

        return load

    def store(self, usual: Any) -> Any:
        """Returns the short way of `tl.store`: that of as many values as there are pointers."""
        builder, as_is, made, nothing = self.builder, self.as_is, self.value, self.core.void
        cast = self.semantic.cast

        def store(pointer: Any, value: Any, mask: Any = None, *rest: Any, **more: Any) -> Any:
            is_simple = not rest and not more and type(pointer) is made and type(value) is made
            element = self.pointee(pointer) if is_simple and value.shape is pointer.shape else None
            if element is None or not (mask is None or self.is_mask(mask, pointer)):
                return usual(pointer, value, mask, *rest, **more)
            if value.dtype.name != element.name:
                value = cast(value, element)
            if mask is None:
                return made(builder.create_store(pointer.handle, value.handle, *as_is), nothing)
            return made(builder.create_masked_store(pointer.handle, value.handle, mask.handle, *as_is), nothing)

        return store
