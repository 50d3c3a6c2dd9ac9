"""What functions take: wrappers as their source says, which is parsed and never run, and ops as torch says.

torch is imported only inside functions.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

KERNELS = ("jit", "autotune", "heuristics")
"""Decorators of Triton, which make kernels and no wrappers."""


@dataclass(frozen=True)
class Parameter:
    """An argument that a function takes."""

    name: str
    is_tensor: bool
    has_default: bool
    default: object = None
    is_keyword: bool = False
    """Whether it goes by keyword alone."""
    is_number: bool = False
    """Whether its source says that it is a number, or none."""
    each: int | None = None
    """The number that each of several places has by default, where aten takes a list of them, as of strides."""


@dataclass(frozen=True)
class Wrapper:
    """A function or a class of a file that could be an entry."""

    entry: str
    """As ops.yaml names it: `softmax`, or `Softmax.apply` of an autograd function."""
    parameters: tuple[Parameter, ...]
    is_positional: bool = False
    """Whether it takes no keywords, as `apply` does."""


def wrappers(source: str | bytes) -> list[Wrapper]:
    """Returns the public functions and classes at module level that could be entries, in order. Raises SyntaxError, also where it nests deeper than Python parses."""
    return list(_wrappers(source))


@functools.lru_cache(8)
def _wrappers(source: str | bytes) -> tuple[Wrapper, ...]:
    found: list[Wrapper] = []
    try:
        body = ast.parse(source).body
    except (MemoryError, RecursionError) as error:
        raise SyntaxError("it nests deeper than Python parses", (None, 1, None, None)) from error
    functions: dict[str, ast.FunctionDef] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
            if not node.name.startswith("_") and not is_kernel(node):
                found.append(Wrapper(node.name, tuple(parameters_in(node))))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found += of_class(node)
        elif isinstance(node, ast.Assign) and (wrapper := of_partial(node, functions)) is not None:
            found.append(wrapper)
    return tuple(found)


def of_partial(node: ast.Assign, functions: Mapping[str, ast.FunctionDef]) -> Wrapper | None:
    """Returns the entry that `NAME = partial(FUNCTION, …)` makes of one of these functions of the file; None of anything else."""
    made, targets = node.value, node.targets
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or targets[0].id.startswith("_"):
        return None
    if not isinstance(made, ast.Call) or ast.unparse(made.func).split(".")[-1] != "partial" or not made.args:
        return None
    function = functions.get(ast.unparse(made.args[0]))
    if function is None or is_kernel(function):
        return None
    given = {one.arg for one in made.keywords}
    left = [*parameters_in(function)][len(made.args) - 1 :]
    return Wrapper(
        targets[0].id,
        tuple(replace(one, has_default=True, is_keyword=True) if one.name in given else one for one in left),
    )


def of_class(node: ast.ClassDef) -> list[Wrapper]:
    """Returns the entry that a class is: its `apply` where it is an autograd function, itself where it has a `forward` or can be called."""
    methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    method = methods.get("forward") or methods.get("__call__")
    if method is None:
        return []
    parameters = tuple(parameters_in(method))[1:]
    if any(ast.unparse(base).split(".")[-1] == "Function" for base in node.bases):
        return [Wrapper(f"{node.name}.apply", parameters, is_positional=True)]
    return [Wrapper(node.name, parameters)]


def constructor(source: str | bytes, name: str) -> list[Parameter]:
    """Returns the parameters of the constructor of a class at module level; none where it has no own one, or where the source does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
    methods = [one for node in classes for one in node.body if isinstance(one, ast.FunctionDef)]
    return [one for node in methods if node.name == "__init__" for one in [*parameters_in(node)][1:]]


def is_kernel(node: ast.FunctionDef) -> bool:
    """Tells whether a function is decorated by Triton."""
    decorators = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return any(ast.unparse(one).split(".")[-1] in KERNELS for one in decorators)


def parameters_in(node: ast.FunctionDef) -> Iterator[Parameter]:
    """Yields the parameters of a function's source, without `*args` and `**kwargs`."""
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
    defaults += node.args.defaults
    for one, default in zip(plain, defaults, strict=True):
        yield parameter_of(one, default)
    for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        yield parameter_of(one, default, is_keyword=True)


def parameter_of(node: ast.arg, default: ast.expr | None, *, is_keyword: bool = False) -> Parameter:
    """Returns what is known of one parameter. A default that is no literal is None."""
    written = "" if node.annotation is None else ast.unparse(node.annotation)
    try:
        value = None if default is None else ast.literal_eval(default)
    except ValueError:
        value = None
    is_tensor = "Tensor" in written
    is_number = not is_tensor and any(one in written for one in ("float", "int")) and "." not in written
    return Parameter(node.arg, is_tensor, default is not None, value, is_keyword, is_number)


def of_op(function: Callable[..., object], torch_name: str | None, is_meant: Callable[[str], bool]) -> list[Parameter]:
    """Returns the parameters of an op: by Python's signature, or by the schemas of aten for what has none, of which that counts whose names `is_meant` says most of."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return of_schema(torch_name or "", is_meant)
    if str(signature).startswith("(*args, **kwargs)"):
        return of_schema(torch_name or "", is_meant)
    return [
        Parameter(
            name=one.name,
            is_tensor=is_tensor(one),
            has_default=one.default is not one.empty,
            default=None if one.default is one.empty else plain(one.default),
            is_keyword=one.kind is one.KEYWORD_ONLY,
        )
        for one in signature.parameters.values()
        if one.name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


def is_tensor(parameter: inspect.Parameter) -> bool:
    """Tells whether a parameter is a tensor: as annotated, or, where nothing is said of it, as it has no default."""
    if parameter.annotation is not parameter.empty:
        return "Tensor" in str(parameter.annotation)
    return parameter.default is parameter.empty


def plain(value: object) -> object:
    """Returns a default if ops.yaml can hold it, else None."""
    return value if isinstance(value, (bool, int, float, str)) else None


def of_schema(torch_name: str, is_meant: Callable[[str], bool]) -> list[Parameter]:
    """Returns the parameters of a builtin. Python's `input` is aten's `self`; names of dims are no kernel's."""
    best: tuple[Parameter, ...] = ()
    for found in overloads(torch_name):
        if not best or fit(found, is_meant) > fit(best, is_meant):
            best = found
    return list(best)


@functools.lru_cache(8)
def overloads(torch_name: str) -> tuple[tuple[Parameter, ...], ...]:
    """Returns the parameters of each overload of a builtin, but for those that write where they are told to, or take names of dims; none of what aten does not have."""
    import torch

    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{aten_name(torch_name)}")
    # What a namespace does not prefix is found by its own name.
    schemas = schemas or torch._C._jit_get_schemas_for_operator(f"aten::{torch_name.rpartition('.')[2]}")
    return tuple(
        tuple(of_argument(one) for one in schema.arguments)
        for schema in schemas
        if not any(one.is_out or is_named(one) for one in schema.arguments)
    )


PREFIXES = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}
"""A namespace of torch → what the names of its functions begin with in aten."""

OTHER_NAMES = {"torch.nn.functional.logsigmoid": "log_sigmoid"}
"""A function of torch → what aten calls it, where that is another name."""


def aten_name(name: str) -> str:
    """Returns what aten calls a builtin: `linalg_norm` for `torch.linalg.norm`."""
    space, _, last = name.rpartition(".")
    prefix = PREFIXES.get(space, "")
    return OTHER_NAMES.get(name) or prefix + last.removeprefix(prefix)


def is_named(argument: Any) -> bool:
    """Tells whether an argument of an aten schema is the name of a dim."""
    return "Dimname" in str(argument.type) or (argument.name in ("dim", "dims") and "str" in str(argument.type))


def fit(parameters: Sequence[Parameter], is_meant: Callable[[str], bool]) -> tuple[int, int, int]:
    """Returns how well parameters suit what is meant: how many of them are, how many of those are tensors, and how few there are."""
    meant = [one for one in parameters if is_meant(one.name)]
    return len(meant), sum(one.is_tensor for one in meant), -len(parameters)


def of_argument(argument: Any) -> Parameter:
    """Returns an argument of an aten schema as a parameter."""
    name = "input" if argument.name == "self" else str(argument.name)
    given = argument.default_value if argument.has_default_value() else None
    is_tensor, is_keyword = "Tensor" in str(argument.type), bool(argument.kwarg_only)
    return Parameter(name, is_tensor, argument.has_default_value(), plain(given), is_keyword, each=each_of(given))


def each_of(value: Any) -> int | None:
    """Returns the number that all members of a list are, else None."""
    is_alike = isinstance(value, list) and len(set(value)) == 1 and type(value[0]) is int
    return value[0] if is_alike else None
