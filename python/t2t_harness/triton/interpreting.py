"""Gives Triton's interpreter what it lacks of the compiler's language, and keeps it from doing the same work again and again.

`blocks.py` reads kernels, `interpreted.py` calls them, `folds.py` reduces; `libdevice.py` has the library's functions. Two kinds of work are saved.
Before each launch the interpreter goes through all of `triton.language` and replaces what a kernel may use, which takes milliseconds. It does so
again before each call of another Triton function, such as `tl.sum`, though within one launch there is nothing left to replace. And it makes a table
of dtypes for each value that it converts. A Triton with other internals than these is left as it is. Triton is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from t2t_harness.triton import binding, replacing

INSIDES = (
    "GridExecutor",
    "InterpretedFunction",
    "InterpreterBuilder",
    "ReduceOps",
    "ScanOps",
    "_convert_float",
    "_get_np_dtype",
    "_interpreter",
    "_implicit_cvt",
    "_patch_builtin",
    "_patch_lang",
    "_patch_lang_core",
    "interpreter_builder",
    "interpreter_semantic",
)
"""What of Triton's module is relied on."""

OWN_RESULT = frozenset("int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 fp32 fp64".split())
"""Types of which an operation on two numbers makes a third of the same type, whatever the operation (triton 3.6, `TritonSemantic.computation_type_impl`)."""

_installed: list[Any] = []


def install() -> None:
    """Changes Triton's interpreter in this process, once. Never undone: the child ends with its action."""
    from triton.runtime import interpreter

    from t2t_harness.faults import bounds, order
    from t2t_harness.triton import effort, integers, interpreted

    if interpreter not in _installed and all(hasattr(interpreter, name) for name in INSIDES):
        _installed.append(interpreter)
        remember_builtins(interpreter)
        patch_once(interpreter)
        remember_dtypes(interpreter)
        remember_shapes(interpreter)
        integers.install(interpreter)
        shorten_loads(interpreter)
        complete_language(interpreter)
        complete_operations(interpreter)
        effort.install(interpreter)
        bounds.install(interpreter)
        order.install(interpreter)
        interpreted.install(interpreter)


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """Leaves `triton.language` as it is now, at the end of the context: what a launch replaces for the functions that it calls, Triton leaves replaced."""
    from triton import language

    core = language.core
    things = (language, core, language.math, core.tensor, core.tensor_descriptor_base, core.dtype)
    before = [(thing, dict(vars(thing))) for thing in things]
    try:
        yield
    finally:
        for thing, own in before:
            for name, value in dict(vars(thing)).items():
                if name not in own:
                    delattr(thing, name)
                elif own[name] is not value:
                    setattr(thing, name, own[name])


def patch_once(interpreter: Any) -> None:
    """Has `triton.language` replaced at the beginning of a launch, and for each further part of it that a called function sees, once."""
    patch_lang: Callable[[Any], Any] = interpreter._patch_lang
    launches: list[Launch] = []
    replacements = replacing.Replacements()

    def patch(function: Any) -> Any:
        launch = launches[-1] if launches else None
        # Of a called function nobody undoes what was replaced: the launch does.
        if launch is not None and id(function.__globals__) in launch.known:
            return None
        seen = parts(interpreter, function)
        scope = None
        if launch is None or not seen or not seen <= launch.replaced:
            scope = patch_lang(function)
        if launch is not None and seen:
            launch.replaced |= seen
            launch.known[id(function.__globals__)] = function.__globals__
        return scope

    @contextlib.contextmanager
    def replaced_for(function: Any) -> Iterator[None]:
        """Has `triton.language` replaced for a kernel, for the length of the context."""
        seen = parts(interpreter, function)
        with afresh(launches, Launch(set(seen))), replacements.for_parts(frozenset(seen), lambda: patch_lang(function)):
            yield

    def launched(self: Any, *args: Any, **kwargs: Any) -> None:
        # As Triton's own, where what is the same for each launch of a kernel is found out once (triton 3.6, `GridExecutor.__call__`).
        known = binding.known_of(self.fn, kwargs)
        for hook in self.pre_run_hooks:
            hook(*args, **known)
        with replaced_for(self.fn):
            given = binding.called_with(self.fn, args, known)
            values = {
                name: value if name in self.constexprs else interpreter._implicit_cvt(value)
                for name, value in given.items()
            }
            x, y, z = (*self.grid, 1, 1, 1)[:3]
            builder = interpreter.interpreter_builder
            builder.set_grid_dim(x, y, z)
            try:
                for place in product(range(x), range(y), range(z)):
                    builder.set_grid_idx(*place)
                    self.fn(**values)
            except Exception as error:
                raise interpreter.InterpreterError(repr(error)) from error

    interpreter._patch_lang = patch
    interpreter.GridExecutor.__call__ = launched


def remember_builtins(interpreter: Any) -> None:
    """Has what a launch replaces of a part of `triton.language` looked up once, and not by going through all its members before each launch."""
    patch_builtin: Callable[[Any, Any, Any], None] = interpreter._patch_builtin
    known: dict[int, tuple[Any, Any, list[tuple[str, Any, Any]]]] = {}

    def patch(part: Any, builder: Any, scope: Any) -> None:
        of_whom, by_whom, members = known.get(id(part), (None, None, []))
        if of_whom is part and by_whom is builder:
            for name, own, replaced in members:
                # What is replaced already, for another function of the same launch, stays so.
                if getattr(part, name, None) is own:
                    scope.set_attr(part, name, replaced)
            return
        had = len(scope._changes)
        before = dict(inspect.getmembers(part))
        patch_builtin(part, builder, scope)
        names = [name for _, name, _ in scope._changes[had:]]
        is_whole = not any(replaced for replaced in map(is_replaced, before.values()))
        if is_whole:
            known[id(part)] = (part, builder, [(name, before[name], getattr(part, name)) for name in names])

    def is_replaced(member: Any) -> bool:
        return getattr(member, "__code__", None) in codes

    codes = {one for one in interpreter._patch_attr.__code__.co_consts if inspect.iscode(one)}
    interpreter._patch_builtin = patch


@dataclass
class Launch:
    """A launch that runs, and what of `triton.language` is replaced for it."""

    replaced: set[int]
    """The ids of the modules."""
    known: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The globals of the functions that were called, by their ids: all that they name is replaced. They hold many hundred names, and a launch calls a function often."""


@contextlib.contextmanager
def afresh(launches: list[Launch], launch: Launch) -> Iterator[None]:
    """Puts a launch on `launches`, for the length of the context."""
    launches.append(launch)
    try:
        yield
    finally:
        launches.pop()


def parts(interpreter: Any, function: Any) -> set[int]:
    """Returns the ids of the modules of `triton.language` that the globals of `function` name: what is replaced for it."""
    language = {id(interpreter.tl), id(interpreter.tl.core)}
    return language & {id(value) for value in function.__globals__.values()}


def remember_dtypes(interpreter: Any) -> None:
    """Has numpy's dtype for a Triton dtype looked up by name, once it was asked for."""
    get_np_dtype: Callable[[Any], Any] = interpreter._get_np_dtype
    language = interpreter.tl
    known: dict[str, Any] = {}

    def remembered(dtype: Any) -> Any:
        element = dtype.element_ty if type(dtype) is language.block_type else dtype
        if type(element) is not language.dtype:
            return get_np_dtype(dtype)
        found = known.get(element.name)
        if found is None:
            found = known[element.name] = get_np_dtype(element)
        return found

    interpreter._get_np_dtype = remembered


def remember_shapes(interpreter: Any) -> None:
    """Has a block's type, and what a value takes from it, made once for an element type and a shape, and not for each value."""
    core = interpreter.tl.core
    block, constant = core.block_type, core.constexpr
    plain = (block, core.dtype, core.pointer_type)
    make_type: Callable[[Any, Any, Any], None] = block.__init__
    make_value: Callable[[Any, Any, Any], None] = core.tensor.__init__
    # Elements are told apart by what they are: each is held, so that no other one takes its place.
    known: dict[tuple[int, tuple[Any, ...]], tuple[Any, dict[str, Any]]] = {}
    same: dict[tuple[Any, ...], Any] = {}
    shapes: dict[int, tuple[Any, Any, Any]] = {}

    def typed(self: Any, element: Any, shape: Any) -> None:
        lengths = tuple([one.value if type(one) is constant else one for one in shape])
        found = known.get((id(element), lengths))
        if found is None:
            make_type(self, element, shape)
            if type(self) is block:
                # One object for all blocks of these lengths: it tells by itself that they are alike.
                self.shape = same.setdefault(lengths, self.shape)
                known[id(element), lengths] = element, dict(vars(self))
            return
        self.__dict__.update(found[1])

    def valued(self: Any, handle: Any, kind: Any) -> None:
        if type(kind) not in plain:
            make_value(self, handle, kind)
            return
        lengths = kind.shape if type(kind) is block else None
        found = shapes.get(id(lengths))
        if found is None or found[0] is not lengths:
            make_value(self, handle, kind)
            shapes[id(lengths)] = lengths, self.shape, self.numel
            return
        self.handle, self.type, self.dtype = handle, kind, kind.scalar
        _, self.shape, self.numel = found

    elements: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
    pointers: dict[tuple[int, Any], tuple[Any, Any]] = {}
    own_builder = interpreter.interpreter_builder
    block_to_ir: Callable[[Any, Any], Any] = block.to_ir
    pointer_to_ir: Callable[[Any, Any], Any] = core.pointer_type.to_ir

    def of_element(self: Any, element: Any) -> Any:
        found = elements.get((id(element), id(self.shape)))
        if found is None:
            found = elements[id(element), id(self.shape)] = element, self.shape, block(element, self.shape)
        return found[2]

    # The interpreter's own types are those of the language.
    def lowered(self: Any, builder: Any) -> Any:
        is_own = builder is own_builder and type(self) is block and type(self.element_ty) in plain
        return of_element(self, self.element_ty.to_ir(builder)) if is_own else block_to_ir(self, builder)

    def lowered_pointer(self: Any, builder: Any) -> Any:
        if builder is not own_builder or type(self.element_ty) is not core.dtype:
            return pointer_to_ir(self, builder)
        found = pointers.get((id(self.element_ty), self.address_space))
        if found is None:
            made = pointer_to_ir(self, builder)
            found = pointers[id(self.element_ty), self.address_space] = self.element_ty, made
        return found[1]

    block.with_element_ty, block.to_ir, core.pointer_type.to_ir = of_element, lowered, lowered_pointer
    semantic = type(interpreter.interpreter_semantic)
    make_alike: Callable[[Any, Any, Any], Any] = semantic.broadcast_impl_value

    def alike(self: Any, one: Any, other: Any) -> Any:
        first, second = one.type, other.type
        if type(first) is block and type(second) is block and first.shape is second.shape:
            return one, other
        return make_alike(self, one, other)

    check: Callable[..., Any] = semantic.binary_op_type_checking_impl
    value = core.tensor

    def checked(self: Any, one: Any, other: Any, *rest: Any, **more: Any) -> Any:
        # Neither is converted, and nothing can be wrong, where both are numbers of one type and one shape.
        if type(one) is value and type(other) is value:
            first, second = one.type, other.type
            is_same = first is second or (
                type(first) is block
                and type(second) is block
                and first.shape is second.shape
                and one.dtype is other.dtype
            )
            if is_same and one.dtype.name in OWN_RESULT:
                return one, other
        return check(self, one, other, *rest, **more)

    semantic.broadcast_impl_value = alike
    semantic.binary_op_type_checking_impl = checked
    block.__init__ = typed
    core.tensor.__init__ = valued


def shorten_loads(interpreter: Any) -> None:
    """Has the zeros that a load without other values begins with made without more ado, and the type of what a block holds told at once where it is plain."""
    import numpy as np

    from t2t_harness.triton import effort

    builder, handle, core = interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.tl.core
    load, element_of, fetch = builder.create_masked_load, handle.get_element_ty, interpreter._interpreter.load

    def element_ty(self: Any) -> Any:
        dtype = self.dtype
        if type(dtype) is core.pointer_type:
            dtype = dtype.element_ty
        return dtype if type(dtype) is core.dtype else element_of(self)

    def masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        if other is not None:
            return load(self, ptrs, mask, other, *rest)
        element = ptrs.get_element_ty()
        dtype = interpreter._get_np_dtype(element)
        places = ptrs.data
        # That of the zeros, and that of what is read.
        effort.METER.spend(2 * effort.of_elements(places.size))
        found = object.__new__(handle)
        found.data, found.dtype, found.attr = (
            fetch(places, mask.data, np.zeros(places.shape, dtype), dtype),
            element,
            {},
        )
        return found

    handle.get_element_ty, builder.create_masked_load = element_ty, masked_load


def complete_language(interpreter: Any) -> None:
    """Has a launch replace what Triton's own replacements get wrong."""
    from t2t_harness.triton import blocks, folds, shortcuts

    patch_lang_core: Callable[[Any, Any], None] = interpreter._patch_lang_core
    reduce, scan = folds.reduction(interpreter), folds.scan(interpreter)
    short = shortcuts.Shortcuts(interpreter)

    def patch(lang: Any, scope: Any) -> None:
        patch_lang_core(lang, scope)
        scope.set_attr(lang, "range", blocks.Counted)
        scope.set_attr(lang, "static_range", blocks.static_counted)
        scope.set_attr(lang, "static_assert", blocks.static_assert)
        scope.set_attr(lang, "static_print", blocks.static_print)
        for home in (interpreter.tl, interpreter.tl.core):
            scope.set_attr(home, "reduce", reduce)
            scope.set_attr(home, "associative_scan", scan)
        short.patch(lang, scope)

    interpreter._patch_lang_core = patch


def complete_operations(interpreter: Any) -> None:
    """Gives the interpreter's builder the operations that it lacks, and those that it has otherwise than a device."""
    import numpy as np
    from triton import language

    from t2t_harness.faults import lacking
    from t2t_harness.triton import libdevice, narrow

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def extern(self: Any, name: str, path: str, symbol: str, operands: list[Any], kind: Any, is_pure: bool) -> Any:
        if name or path:
            raise lacking.Lacking(f"the library function `{symbol}`")
        shape = np.broadcast_shapes(*(one.data.shape for one in operands))
        result = libdevice.call(symbol, [one.data for one in operands], interpreter._get_np_dtype(kind))
        return handle(np.broadcast_to(result, shape), kind.scalar)

    def assembly(self: Any, *_: Any) -> Any:
        raise lacking.Lacking("inline assembly (inline_asm)")

    def clamp(self: Any, value: Any, low: Any, high: Any, propagates: Any) -> Any:
        if propagates == language.PropagateNan.ALL:
            return self.ternary_op(value, low, high, np.clip)
        return self.ternary_op(value, low, high, lambda x, least, most: np.fmin(np.fmax(x, least), most))

    builder.create_extern_elementwise = extern
    builder.create_inline_asm = assembly
    builder.create_clampf = clamp
    # Of a number and NaN these are the number, where the kernel does not ask for NaN.
    builder.create_minnumf = lambda self, left, right: self.binary_op(left, right, np.fmin)
    builder.create_maxnumf = lambda self, left, right: self.binary_op(left, right, np.fmax)
    narrow.install(interpreter)
