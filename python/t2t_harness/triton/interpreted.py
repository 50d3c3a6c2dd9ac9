"""Makes a kernel of Triton's interpreter what launchers expect: a `JITFunction`, with its attributes, that is launched with the types that a device's launch has.

What only a compiled kernel has is raised as `lacking.LackingAttribute`. Triton is imported only inside functions.
"""

from __future__ import annotations

import operator
from typing import Any

from t2t_harness.faults import lacking
from t2t_harness.triton import binding, effort, philox, reader

COMPILED = ("device_caches", "create_binder", "preload", "compile", "CompiledKernel", "ASTSource")
"""Attributes of a JITFunction that compile it."""

OF_FUNCTION = ("__doc__", "__globals__", "__module__", "__qualname__")
"""Attributes that a JITFunction has of its Python function."""

LANGUAGE = "t2t_language"
"""Under which name a kernel's module gets `triton.language`: the interpreter replaces it for modules that name it."""


class Compilable:
    """Is a JITFunction to all that ask by isinstance(), which looks at `__class__` besides the type itself."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Returns the class that `triton.jit` makes where it compiles."""
        from triton.runtime import jit

        return jit.JITFunction


class Launched:
    """What a launch returns: on a device the compiled kernel, which may be launched again with all arguments in order."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> Any:
        """Returns the launcher for `grid`."""
        return lambda *args, **kwargs: self.kernel.run(*args, grid=grid, warmup=False)

    def __getattr__(self, name: str) -> Any:
        """Raises for what only a compiled kernel has."""
        raise lacking.LackingAttribute(f"`{name}` of a compiled kernel")


def install(interpreter: Any) -> None:
    """Changes the kernels of the interpreter's module, and refuses those that it does not interpret."""
    from triton.runtime import jit

    kernel = interpreter.InterpretedFunction
    create, run = kernel.__init__, kernel.run

    def __init__(self: Any, fn: Any, **kwargs: Any) -> None:
        create(self, fn, **kwargs)
        self.t2t_source = reader.source_of(fn)
        for name in OF_FUNCTION:
            setattr(self, name, getattr(fn, name, None))

    def run_(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            asked = launch_grid(grid, self.fn, args, kwargs)
            with effort.undone_where_spent(effort.METER, (*args, *kwargs.values())):
                run(self, *args, grid=asked, warmup=False, **kwargs)
        return Launched(self)

    drawing = philox.Shortcut(interpreter)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if drawing.takes(self.fn, args) and not kwargs:
            return drawing.call(args)
        function = self.rewrite()
        interpreter._patch_lang(function)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    def rewrite(self: Any) -> Any:
        if self.fn not in self.rewritten_fn:
            source = vars(self).get("t2t_source") or reader.source_of(self.fn)
            self.rewritten_fn[self.fn] = reader.rewritten(self.fn, source, {LANGUAGE: interpreter.tl})
        return self.rewritten_fn[self.fn]

    def prepare_(self: Any, fn: Any, arg_names: list[str], grid: Any, pre_run_hooks: Any = ()) -> None:
        # As Triton's own, where annotations are read once a kernel (triton 3.6, `GridExecutor.__init__`).
        self.fn, self.arg_names, self.grid, self.pre_run_hooks = fn, arg_names, grid, pre_run_hooks
        self.constexprs = binding.form_of(fn).constexprs

    kernel.__init__, kernel.run, kernel.__call__, kernel.rewrite = __init__, run_, call, rewrite
    kernel.__getattr__ = attribute
    kernel.__bases__ = (*kernel.__bases__, Compilable)
    kernel.rewritten_fn.clear()
    interpreter.GridExecutor.__init__ = prepare_
    # Tensors are the CPU's already; whatever else has an address is passed as it is.
    interpreter.GridExecutor._init_args_hst = lambda self, args, kwargs: (list(args), dict(kwargs))
    interpreter.GridExecutor._restore_args_dev = lambda self, *_: None
    convert_arguments(interpreter)
    jit.JITFunction.run = not_interpreted


WARPS = (1, 2, 4, 8, 16, 32)
"""So many warps a program may have: Triton refuses others, and a device more than 1024 threads."""


def launch_grid(grid: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """Returns the grid as a device's launch has it. A function of the arguments is asked with those that the wrapper gave.

    Raises TypeError where the arguments are not the kernel's, or the grid is not of integers, and ValueError where no device launches so many warps.
    """
    warps = kwargs.get("num_warps", 1)
    if type(warps) is int and warps not in WARPS:
        raise ValueError(f"num_warps is {warps}, and must be a power of two up to {WARPS[-1]}")
    given = binding.called_with(function, args, binding.known_of(function, kwargs))
    asked = grid(given) if callable(grid) else grid
    return tuple(map(operator.index, list(asked)[:3]))


def not_interpreted(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises Lacking for a kernel that was not made by `triton.jit`."""
    raise lacking.Lacking("Gluon" if self.is_gluon() else "kernels made without `triton.jit`")


def attribute(self: Any, name: str) -> Any:
    """Returns the attribute `name` that the kernel would have as a JITFunction."""
    from triton.runtime import jit

    if name.startswith("__") and name not in OF_FUNCTION:
        raise AttributeError(f"a kernel has no attribute `{name}`")
    if name in COMPILED:
        raise lacking.LackingAttribute(f"`{name}` of a compiled kernel")
    own = vars(self)
    if "t2t_compiled" not in own:
        own["t2t_compiled"] = jit.JITFunction(own["fn"], **own["kwargs"])
    return getattr(own["t2t_compiled"], name)


def convert_arguments(interpreter: Any) -> None:
    """Has numbers passed as scalars of the type that a device's launch gives them, and the type of a tensor's pointer made once."""
    import numpy as np
    import torch
    from triton.runtime import jit

    language, convert = interpreter.tl, interpreter._implicit_cvt
    kinds: dict[torch.dtype, Any] = {}

    def converted(value: Any) -> Any:
        if type(value) is torch.Tensor:
            return pointer(value)
        if isinstance(value, bool):
            return scalar(value, language.int1)
        if isinstance(value, float):
            return scalar(value, language.float32)
        if isinstance(value, int):
            small = -(2**31) <= value < 2**31
            return scalar(value, language.int32 if small else language.uint64 if value >= 2**63 else language.int64)
        return convert(value)

    def pointer(value: Any) -> Any:
        # A pointer's type is that of what it points to, and nothing else of a tensor's.
        kind = kinds.get(value.dtype)
        if kind is None:
            kind = kinds[value.dtype] = language.str_to_ty(jit.mangle_type(value), None)
        return language.tensor(interpreter.TensorHandle(np.array([value.data_ptr()], dtype=np.uint64), kind), kind)

    def scalar(value: Any, dtype: Any) -> Any:
        data = np.array([value]).astype(interpreter._get_np_dtype(dtype))
        return language.tensor(interpreter.TensorHandle(data, dtype), dtype)

    interpreter._implicit_cvt = converted
