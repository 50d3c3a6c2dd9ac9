"""Makes the entry of ops.yaml for a wrapper, from the wrapper's source and the op's signature.

Wrappers are read and never imported: what they would run is for a check. Whether a call of the op fits is asked of the op itself: of a torch function on tensors without values, of a reference on small ones with values.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from t2t_harness.op import declaration as declared
from t2t_harness.op import operation, results, valueless
from t2t_harness.phases import likely, trial_calls
from t2t_harness.phases.arranged import Unclear, alias_of, arranged, meanings
from t2t_harness.phases.likely import GUESSES, WEIGHT, Call, Tried
from t2t_harness.phases.trial_calls import LENGTHS, Taken
from t2t_harness.sources import signatures, usage, use
from t2t_harness.sources.signatures import Parameter, Wrapper

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import (
        AdoptedEntry,
        AdoptedInput,
        AdoptRequest,
        Declaration,
        Documents,
        Json,
        Reply,
    )

HOMES = ("torch.nn.functional", "torch", "torch.special", "torch.linalg", "torch.fft")
"""Where a name without a dot is looked for, as in ops.yaml."""

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
    taken = searched(op, parameters, wrapper, request)
    inputs, kwargs = accepted(op, parameters, wrapper) if taken is None else (taken.call.inputs, taken.call.kwargs)
    call, mapped = arranged(wrapper, inputs, kwargs)
    changed = [] if taken is None else taken.changed
    absent = [name for name in may_be_absent(parameters, wrapper, mapped) if name in inputs and name not in changed]
    for name in trial_calls.spare(op, Call(inputs, kwargs), absent) if absent else ():
        inputs[name] = {**inputs[name], "optional": True}
    return {
        "torch": op["torch"],
        "reference": request.get("reference"),
        "inputs": [input_of(name, one) for name, one in inputs.items()],
        "kwargs": kwargs,
        "entry": wrapper.entry,
        "call": call,
        "mapped": mapped,
        "mutates": changed,
    }


def searched(op: Declaration, parameters: list[Parameter], wrapper: Wrapper, request: AdoptRequest) -> Taken | None:
    """Returns the likeliest call that a reference takes; None of a torch function, and where there is none."""
    if request.get("reference") is None:
        return None
    file, _, name = str(request["reference"]).partition("::")
    source, _ = source_of({**request, "file": file})
    own, (theirs, _) = usage.of_function(source, name), source_of(request)
    wrapped = usage.of_function(theirs, wrapper.entry)
    tensors, others = chosen(parameters, wrapper)
    told = {one.name: (own.get(one.name), wrapped.get(alias_of(one.name, wrapper) or "")) for one in parameters}
    may_be_given = [
        one.name
        for one in parameters
        if likely.is_absent(one)
        and (WEIGHT.fullmatch(one.name) or any(use and use.is_tensor for use in told[one.name]))
    ]
    wanted = [
        one
        for one in parameters
        if one in tensors or one in others or (one.name in may_be_given and alias_of(one.name, wrapper) is not None)
    ]
    numbers = {one.name for one in wrapper.parameters if one.is_number}
    wanted = [replace(one, is_number=one.is_number or one.name in numbers) for one in wanted]
    meant = {
        own_name: given for given, own_name in meanings(wrapper, dict.fromkeys(one.name for one in wanted), {}).items()
    }
    uses = {one.name: use.joined(own.get(one.name), wrapped.get(meant.get(one.name, "")), meant) for one in wanted}
    return trial_calls.first(op, likely.calls(wanted, uses))


def may_be_absent(parameters: list[Parameter], wrapper: Wrapper, mapped: list[list[str]]) -> list[str]:
    """Returns the op's arguments that are None by default, for the op and for the wrapper."""
    by_default = {one.name for one in wrapper.parameters if likely.is_absent(one)}
    own = {meant: name for name, meant in mapped}
    return [one.name for one in parameters if likely.is_absent(one) and own.get(one.name) in by_default]


def input_of(name: str, told: Tried) -> AdoptedInput:
    """Returns a tensor as ops.yaml is to say it."""
    return cast("AdoptedInput", {"name": name, **told})


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
        near = near or bound_to(ast.parse(source).body, wanted)
        if not near:
            raise Unclear(f"{place} has no wrapper `{wanted}`; it has {names}", "name one of them after `::`")
        return near[0]
    if len(found) > 1:
        best = [one for one in found if one.entry in (op, f"triton_{op}")]
        found = best or [one for one in found if op in one.entry]
    if len(found) != 1:
        raise Unclear(f"{place} has several wrappers, or none: {names}", f"name one, as in `{request['what']}::NAME`")
    return found[0]


def bound_to(body: list[ast.stmt], wanted: str) -> list[Wrapper]:
    """Returns the entry that a name at module level means: a private function or class, or what another name was given to, as in `norm = Norm.apply`."""
    for place, node in reversed([*enumerate(body)]):
        match node:
            case ast.FunctionDef(name=name) if name == wanted:
                return [] if signatures.is_kernel(node) else [Wrapper(name, (*signatures.parameters_in(node),))]
            case ast.ClassDef(name=name) if name == wanted:
                return signatures.of_class(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value) if name == wanted:
                meant = bound_to(body[:place], ast.unparse(value).removesuffix(".apply"))
                return [one for one in meant if isinstance(value, ast.Name) or ast.unparse(value) == one.entry]
    return []


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
        with contextlib.suppress(LookupError):
            declared.resolve(name)
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
    plainest = None
    for shapes, least in tried(op, tensors):
        inputs: dict[str, Tried] = {name: places.get(name, one).copy() for name, one in shapes.items()}
        for more in ({}, along) if along else ({},):
            problem = refused(op, inputs, {**kwargs, **more}, least)
            if problem is None:
                inputs = freer(op, tensors, inputs, {**kwargs, **more})
                return even(op, inputs, {**kwargs, **more}), {**kwargs, **more}
            plainest = plainest or (None if least else problem)
    names = ", ".join(f"`{one.name}`" for one in tensors)
    message = (
        f"no shapes were found with which the op takes {names}; tried were floats of [M, N], with weights of [N], "
    )
    message += f"as products, and with batches, heads or images. The first try: {plainest}"
    unknown = ", ".join(f"{one.name}: …" for one in others if value_of(one) is None)
    given = f", with `kwargs: {{{unknown}}}`" if unknown else ""
    hint = f"write the entry by hand{given}: docs/reference/ops-yaml.md has every field"
    raise Unclear(message if tensors else "the op takes no tensors", hint)


def freer(
    op: Declaration, tensors: list[Parameter], inputs: dict[str, Tried], kwargs: Mapping[str, Json]
) -> dict[str, Tried]:
    """Returns the first shapes of as many dims each with which the op takes the call, too, and of which more lengths are apart from each other; `inputs` where there are none. `x @ weight.T` takes two matrices of one shape."""

    def ranks(shapes: Mapping[str, Tried]) -> list[int]:
        return [len(one["shape"]) for one in shapes.values()]

    def lengths(shapes: Mapping[str, Tried]) -> int:
        return len({length for one in shapes.values() for length in one["shape"]})

    if any("init" in one for one in inputs.values()):
        return inputs
    others = (shapes for shapes, _ in tried(op, tensors) if ranks(shapes) == ranks(inputs))
    wider = (one for one in others if lengths(one) > lengths(inputs) and refused(op, one, kwargs) is None)
    return next(wider, inputs)


def even(op: Declaration, inputs: dict[str, Tried], kwargs: Mapping[str, Json]) -> dict[str, Tried]:
    """Returns the inputs, the last dim of the first as `2*N` where the op takes no odd one there."""
    odd, first = {**LENGTHS, "N": 15}, next(iter(inputs))
    if inputs[first]["shape"] != ["M", "N"] or refused(op, inputs, kwargs, lengths=odd) is None:
        return inputs
    twice: dict[str, Tried] = {**inputs, first: {**inputs[first], "shape": ["M", "2*N"]}}
    return twice if refused(op, twice, kwargs, lengths=odd) is None else inputs


def chosen(parameters: list[Parameter], wrapper: Wrapper) -> tuple[list[Parameter], list[Parameter]]:
    """Returns the op's tensors and its other arguments that are passed: those that it needs, and those that the wrapper takes as well."""
    wanted = [one for one in parameters if not one.has_default or alias_of(one.name, wrapper) is not None]
    # Of a reference without annotations the wrapper's tell what is a number.
    numbers = [one.name for one in wrapper.parameters if one.is_number]
    tensors = [one for one in wanted if one.is_tensor and one.name not in numbers]
    others = [one for one in wanted if one not in tensors]
    return tensors, [one for one in others if value_of(one) is not None or not one.has_default]


def value_of(parameter: Parameter) -> Json:
    """Returns what an argument that is no tensor is passed as: its default, or a guess."""
    return GUESSES.get(parameter.name) if parameter.default is None else cast("Json", parameter.default)


def tried(op: Declaration, tensors: list[Parameter]) -> Iterator[tuple[dict[str, Tried], int]]:
    """Yields shapes for the tensors, the likeliest first, and how many dims the result has at least."""
    names = [one.name for one in tensors]
    # Beside `a`, `b` is the other operand.
    weights = [name for name in names[1:] if WEIGHT.fullmatch(name) and (names[0] + name).lower() != "ab"]
    for shapes in (one for one in SHAPES if len(one) >= len(names) > 0):
        found: dict[str, Tried] = {name: {"shape": [*shape]} for name, shape in zip(names, shapes, strict=False)}
        if weights and shapes is SHAPES[0] and op["torch"] is None:
            # A reference broadcasts what torch's own functions refuse. Rows times a vector have one dim: that weight is a matrix.
            yield {**found, **{name: {"shape": ["N"]} for name in weights}}, 2
        yield found, 0


def refused(
    op: Declaration,
    inputs: Mapping[str, Tried],
    kwargs: Mapping[str, Json],
    least: int = 0,
    lengths: Mapping[str, int] = LENGTHS,
) -> str | None:
    """Returns why the op does not take these inputs and kwargs, or has a result of fewer dims than `least`, None where it does: as tensors without values, or, where it asks for values, as zeros."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    # What torch prints of a trial that fails is no news.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    trial = cast("Declaration", {**op, "inputs": [{"name": name} for name in inputs]})

    def called(function: operation.Function) -> None:
        given = {
            name: torch.zeros(
                declared.bind_shape(one["shape"], lengths), dtype=getattr(torch, one.get("dtype", "float32"))
            )
            for name, one in inputs.items()
        }
        result = operation.call(function, trial, given, declared.bind_kwargs(kwargs, lengths))
        made = [one for one in results.listed(result) if isinstance(one, torch.Tensor)]
        if not made and op["torch"] is None:
            raise ValueError("it returns no tensor")
        if made and max(one.dim() for one in made) < least:
            raise ValueError(f"the result has fewer than {least} dims")

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        # That torch chooses a dim by itself is some.
        warnings.filterwarnings("error", message="Implicit dimension")
        with contextlib.suppress(Exception):
            within = valueless.mode()
            function = valueless.ready(op, lengths, "float32", within)
            try:
                with within:
                    called(function)
            except (DataDependentOutputException, DynamicOutputShapeException):
                return None
            return None
        try:
            called(operation.ready(op, lengths, "float32"))
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None
