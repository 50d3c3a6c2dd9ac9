"""Makes the entry of ops.yaml for a wrapper, from the wrapper's source and the op's signature.

Wrappers are read and never imported: what they would run is for a check. Whether a call of the op fits is asked of the op itself, on tensors without values.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import warnings
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from t2t_harness.op import declaration as declared
from t2t_harness.op import operation, valueless
from t2t_harness.sources import signatures
from t2t_harness.sources.signatures import Parameter, Wrapper

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import (
        AdoptedEntry,
        AdoptedInput,
        AdoptRequest,
        Declaration,
        Documents,
        Json,
        Length,
        Reply,
    )

HOMES = ("torch.nn.functional", "torch", "torch.special", "torch.linalg", "torch.fft")
"""Where a name without a dot is looked for, as in ops.yaml."""

ALIASES = (
    (
        "input",
        "x",
        "inp",
        "a",
        "self",
        "in_tensor",
        "hidden_states",
        "logits",
        "q",
        "query",
        "ids",
        "input_ids",
        "indices",
    ),
    ("other", "y", "b", "k", "key"),
    ("weight", "w", "gamma", "v", "value", "embeddings", "table"),
    ("index", "indices", "idx"),
    ("bias", "beta", "b"),
    ("target", "targets", "label", "labels"),
    ("dim", "axis"),
    ("eps", "epsilon", "variance_epsilon"),
    ("normalized_shape", "shape"),
)
"""Names that are used for one another."""

GUESSES: Mapping[str, Json] = {
    "dim": -1,
    "axis": -1,
    "normalized_shape": ["N"],
    "p": 0.5,
    "k": 4,
    "chunks": 2,
    "eps": 1e-6,
    "num_groups": 4,
}
"""What an argument without a default is tried with."""


class Tried(TypedDict, total=False):
    """A tensor that a call is tried with."""

    shape: list[Length]
    dtype: str
    init: dict[str, Json]
    """As ops.yaml writes it."""


SHAPES: tuple[tuple[tuple[str | int, ...], ...], ...] = (
    (("M", "N"),) * 8,
    (("M", "K"), ("K", "N"), ("N",)),
    (("M", "K"), ("N", "K"), ("N",)),
    (("M", "N"), *((("N",),) * 7)),
    (("B", "M", "K"), ("B", "K", "N")),
    (("B", "H", "S", 64),) * 3,
    (("M", "N"), ("M",)),
    (("N", "C", "H", "W"), ("K", "C", 3, 3), ("K",)),
)
"""Shapes that inputs are tried with, in order."""

INDICES: Mapping[str, Mapping[str, Tried]] = {
    "embedding": {
        "input": {"shape": ["M"], "dtype": "int64", "init": {"randint": [0, "V"]}},
        "weight": {"shape": ["V", "N"]},
    },
    "cross_entropy": {"target": {"shape": ["M"], "dtype": "int64", "init": {"randint": [0, "N"]}}},
    "nll_loss": {"target": {"shape": ["M"], "dtype": "int64", "init": {"randint": [0, "N"]}}},
    "gather": {"index": {"shape": ["M", "N"], "dtype": "int64", "init": {"randint": [0, "N"]}}},
    "index_select": {"index": {"shape": ["K"], "dtype": "int64", "init": {"randint": [0, "N"]}}},
}
"""Inputs that hold places, by the last part of the op's name: what torch says of them without values does not show it."""

LENGTHS = {"M": 8, "N": 16, "K": 12, "B": 2, "H": 4, "S": 24, "C": 6, "W": 20, "V": 40}


class Unclear(Exception):
    """Something in the entry cannot be determined; the message says what, and `hint` what to add."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def adopt(request: AdoptRequest) -> Reply:
    """Returns the reply with the document `entry`: what ops.yaml is to say, and how arguments were mapped; or with `unclear`, and a hint.

    `request` holds `root`, `name` (the op's), `file` or `module`, `entry` (a name or null), and `torch`, `reference` (`FILE::NAME`) or neither.
    """
    document: Documents
    try:
        document = {"entry": entry_for(request)}
    except Unclear as unclear:
        document = {"unclear": {"message": str(unclear), "hint": unclear.hint}}
    return {"outcome": "passed", "class": None, "cites": False, "documents": document, "files": {}}


def entry_for(request: AdoptRequest) -> AdoptedEntry:
    """Returns what ops.yaml is to say. Raises Unclear."""
    wrapper = wrapper_of(request)
    op = op_of(request)
    parameters = signatures.of_op(operation_of(op), op["torch"], lambda name: alias_of(name, wrapper) is not None)
    inputs, kwargs = accepted(op, parameters, wrapper)
    call, mapped = arranged(wrapper, inputs, kwargs)
    return {
        "torch": op["torch"],
        "reference": request.get("reference"),
        "inputs": [input_of(name, one) for name, one in inputs.items()],
        "kwargs": kwargs,
        "entry": wrapper.entry,
        "call": call,
        "mapped": mapped,
    }


def input_of(name: str, told: Tried) -> AdoptedInput:
    """Returns a tensor as ops.yaml is to say it."""
    found: AdoptedInput = {"name": name, "shape": list(told["shape"])}
    if "dtype" in told:
        found["dtype"] = told["dtype"]
    if "init" in told:
        found["init"] = dict(told["init"])
    return found


def wrapper_of(request: AdoptRequest) -> Wrapper:
    """Returns the wrapper that is meant. Raises Unclear where there is none, or several."""
    source, place = source_of(request)
    wanted, op = request.get("entry"), str(request["name"])
    try:
        found = signatures.wrappers(source)
    except SyntaxError as error:
        raise Unclear(f"{place}:{error.lineno}: {error.msg}", "make it a Python file") from error
    names = ", ".join(f"`{one.entry}`" for one in found) or "none at all"
    if wanted is not None:
        near = [one for one in found if wanted in (one.entry, one.entry.removesuffix(".apply"))]
        if not near:
            raise Unclear(f"{place} has no wrapper `{wanted}`; it has {names}", "name one of them after `::`")
        return near[0]
    if len(found) > 1:
        best = [one for one in found if one.entry in (op, f"triton_{op}")]
        found = best or [one for one in found if op in one.entry]
    if len(found) != 1:
        raise Unclear(f"{place} has several wrappers, or none: {names}", f"name one, as in `{request['what']}::NAME`")
    return found[0]


def source_of(request: AdoptRequest) -> tuple[str, str]:
    """Returns the source that is to be adopted, and what it is called. Raises Unclear where there is none."""
    if request.get("file") is not None:
        place = str(request["file"])
        path = Path(request["root"], place)
    else:
        place = str(request["module"])
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise Unclear(f"no module `{place}` is installed as Python source", "name a file, or install the package")
        path = Path(spec.origin)
    try:
        return path.read_text(encoding="utf-8"), place
    except (OSError, UnicodeDecodeError) as error:
        raise Unclear(f"cannot read {place}: {error}", "name a Python file of the workspace") from error


def op_of(request: AdoptRequest) -> Declaration:
    """Returns so much of a declaration as says which op it is."""
    if request.get("reference") is not None:
        file, _, name = str(request["reference"]).partition("::")
        reference = {"file": file, "name": name, "init": {}, "root": request["root"]}
        return cast("Declaration", {"torch": None, "reference": reference})
    written = str(request.get("torch") or request["name"])
    short = {"nn": "torch.nn", "linalg": "torch.linalg", "special": "torch.special"}
    short |= dict.fromkeys(("F", "functional"), "torch.nn.functional")
    first, _, rest = written.partition(".")
    names = [f"{home}.{written}" for home in HOMES] if not rest else [f"{short.get(first, first)}.{rest}"]
    for name in names:
        try:
            declared.resolve(name)
        except LookupError:
            continue
        return cast("Declaration", {"torch": name, "reference": None})
    hint = "say which op it is: `--torch torch.nn.functional.gelu`, or `--reference FILE.py::FUNCTION`"
    raise Unclear(f"torch has no function `{written}`", hint)


def operation_of(op: Declaration) -> operation.Function:
    """Returns the op's function. Raises Unclear where it cannot be had."""
    try:
        return operation.described(operation.found(op))
    except Exception as error:
        raise Unclear(f"the reference cannot be used: {type(error).__name__}: {error}", "repair it first") from error


def accepted(
    op: Declaration, parameters: list[Parameter], wrapper: Wrapper
) -> tuple[dict[str, Tried], dict[str, Json]]:
    """Returns inputs and kwargs with which the op takes a call. Raises Unclear where none is found."""
    tensors, others = chosen(parameters, wrapper)
    kwargs = {one.name: value_of(one) for one in others}
    along: dict[str, Json] = {"dim": -1} if "dim" not in kwargs and any(one.name == "dim" for one in parameters) else {}
    places = INDICES.get(str(op["torch"]).rpartition(".")[2], {})
    refusal = "it takes no tensors"
    for shapes in tried(tensors):
        inputs: dict[str, Tried] = {name: places.get(name, one).copy() for name, one in shapes.items()}
        for more in ({}, along) if along else ({},):
            problem = refused(op, inputs, {**kwargs, **more})
            if problem is None:
                return inputs, {**kwargs, **more}
            refusal = problem
    named = ", ".join(f"`{one.name}`" for one in tensors)
    message = f"no shapes were found with which the op takes {named or 'a call'}: {refusal}"
    raise Unclear(message, "write the entry by hand: docs/reference/ops-yaml.md has every field")


def chosen(parameters: list[Parameter], wrapper: Wrapper) -> tuple[list[Parameter], list[Parameter]]:
    """Returns the op's tensors and its other arguments that are passed: those that it needs, and those that the wrapper takes as well."""
    is_wanted = {one.name: not one.has_default or alias_of(one.name, wrapper) is not None for one in parameters}
    tensors = [one for one in parameters if one.is_tensor and is_wanted[one.name]]
    others = [one for one in parameters if not one.is_tensor and is_wanted[one.name]]
    return tensors, [one for one in others if value_of(one) is not None or not one.has_default]


def value_of(parameter: Parameter) -> Json:
    """Returns what an argument that is no tensor is passed as: its default, or a guess."""
    return GUESSES.get(parameter.name) if parameter.default is None else cast("Json", parameter.default)


def tried(tensors: list[Parameter]) -> Iterator[dict[str, Tried]]:
    """Yields shapes for the tensors, the likeliest first."""
    for shapes in SHAPES:
        if tensors and len(shapes) >= len(tensors):
            yield {one.name: {"shape": list(shape)} for one, shape in zip(tensors, shapes, strict=False)}


def refused(op: Declaration, inputs: Mapping[str, Tried], kwargs: Mapping[str, Json]) -> str | None:
    """Returns why the op does not take these inputs and kwargs, None where it does: as tensors without values, or, where it asks for values, as zeros."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    # What torch prints of a trial that fails is no news.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    trial = cast("Declaration", {**op, "inputs": [{"name": name} for name in inputs]})

    def called(function: operation.Function) -> None:
        given = {
            name: torch.zeros(
                declared.bind_shape(one["shape"], LENGTHS), dtype=getattr(torch, one.get("dtype", "float32"))
            )
            for name, one in inputs.items()
        }
        operation.call(function, trial, given, declared.bind_kwargs(kwargs, LENGTHS))

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        # That torch chooses a dim by itself is some.
        warnings.filterwarnings("error", message="Implicit dimension")
        with contextlib.suppress(Exception):
            within = valueless.mode()
            function = valueless.ready(op, LENGTHS, "float32", within)
            try:
                with within:
                    called(function)
            except (DataDependentOutputException, DynamicOutputShapeException):
                return None
            return None
        try:
            called(operation.ready(op, LENGTHS, "float32"))
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def alias_of(name: str, wrapper: Wrapper, taken: Container[str] = ()) -> str | None:
    """Returns the wrapper's parameter that means the op's argument `name`: the same name, or one that is used for it and not `taken`."""
    own = [one.name for one in wrapper.parameters if one.name not in taken]
    if name in own:
        return name
    meant = {one for names in ALIASES if name in names for one in names}
    return next((one for one in own if one.lower() in meant), None)


def arranged(
    wrapper: Wrapper, inputs: Mapping[str, object], kwargs: Mapping[str, object]
) -> tuple[str | None, list[list[str]]]:
    """Returns the `call` that ops.yaml needs, None where names do, and pairs of the wrapper's parameter and what it is given.

    Raises Unclear where a parameter without a default means nothing of the op's.
    """
    given = meanings(wrapper, inputs, kwargs)
    missing = [one.name for one in wrapper.parameters if one.name not in given and not one.has_default]
    if missing:
        named, has = ", ".join(f"`{name}`" for name in missing), ", ".join([*inputs, *kwargs])
        message = f"`{wrapper.entry}` has {named}, which is none of the op's arguments: {has}"
        raise Unclear(message, "write the entry by hand, with a `call` that gives it a value")
    pairs = [[one.name, given[one.name]] for one in wrapper.parameters if one.name in given]
    by_name = all(name == meant for name, meant in pairs) and len(pairs) == len(inputs) + len(kwargs)
    if by_name and not wrapper.is_positional:
        return None, pairs
    return f"entry({', '.join(written(wrapper, given))})", pairs


def meanings(wrapper: Wrapper, inputs: Mapping[str, object], kwargs: Mapping[str, object]) -> dict[str, str]:
    """Returns, for each of the wrapper's parameters, the op's argument that it is given: by name, by alias, and inputs that are left by their order."""
    given: dict[str, str] = {}
    parameters = [one.name for one in wrapper.parameters]
    for name in (*inputs, *kwargs):
        own = name if name in parameters else None
        if own is not None:
            given[own] = name
    for name in (*inputs, *kwargs):
        if name not in given.values() and (own := alias_of(name, wrapper, given)) is not None:
            given[own] = name
    left = [name for name in inputs if name not in given.values()]
    for one in wrapper.parameters:
        if left and one.name not in given and not one.has_default:
            given[one.name] = left.pop(0)
    return given


def written(wrapper: Wrapper, given: Mapping[str, str]) -> Iterator[str]:
    """Yields the arguments of the call: by position up to the first parameter that is left to its default, by keyword from there on. What takes no keywords gets defaults up to
    the last argument that is given."""
    is_skipped = False
    last = max((place for place, one in enumerate(wrapper.parameters) if one.name in given), default=-1)
    for place, one in enumerate(wrapper.parameters):
        if one.name not in given:
            is_skipped = not wrapper.is_positional
            if wrapper.is_positional and place < last:
                yield repr(one.default)
        elif is_skipped or one.is_keyword:
            yield f"{one.name}={given[one.name]}"
        else:
            yield given[one.name]
