"""The analyze phase: what an operation is, how much it computes and moves at each size, and what bounds it.

Everything comes from torch itself, on tensors without values, and from the operation catalogue; no kernel, device,
network or clock. What neither of them tells is None, which a log prints as "not known". docs/reference/analyze.md describes the
document.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from t2t_harness.judging import comparing, random_ops
from t2t_harness.op import access, aten, declaration, docstring, expression, lengths, operation, results, valueless
from t2t_harness.op.rule import Operand
from t2t_harness.phases.traced import Tracer, Unfit

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import (
        Analysis,
        AnalysisFailure,
        AnalyzedInput,
        AnalyzedOutput,
        AnalyzedSize,
        AnalyzeRequest,
        AtenOperation,
        Declaration,
        Documents,
        Growth,
        NotKnown,
        Reply,
        ReplyOutcome,
        Ridge,
        ShapedOutput,
        Taken,
    )

VERSION = 1

NAMESPACES = (
    "torch",
    "torch.Tensor",
    "torch.fft",
    "torch.linalg",
    "torch.nn.functional",
    "torch.ops.aten",
    "torch.special",
)


FAR = 1024


class Machine(TypedDict):
    """The reference machine, as the catalogue tells of it."""

    device: str
    bytes_per_second: float
    flops_per_second: dict[str, float]
    """By dtype, of products."""


class Entry(TypedDict, total=False):
    """An operation of the catalogue."""

    definition: str
    notes: str
    access: str
    same_as: str
    """The operation whose entry it has."""


class Catalogue(TypedDict):
    """The catalogue of operations, `assets/ops_catalogue.json`."""

    reference: Machine
    ops: dict[str, Entry]


def analyze(request: AnalyzeRequest) -> Reply:
    """Return the reply with the documents `analysis` and `lengths`; where torch refuses the call, rejected with `failure`.

    `request` holds `op`, a declaration, and `catalogue`, the path of the operation catalogue. A `failure` holds the
    class and message of torch's exception and the size at which it came.
    """
    catalogue = json.loads(Path(request["catalogue"]).read_text(encoding="utf-8"))
    try:
        tracer = Tracer(request["op"])
        found = analysis(request["op"], catalogue, tracer)
        return _reply("passed", {"analysis": found, "lengths": lengths_of(tracer)})
    except Unfit as unfit:
        return _reply("rejected", {"failure": _failure(unfit)})


def analysis(op: Declaration, catalogue: Catalogue, tracer: Tracer) -> Analysis:
    """Return the analysis of a declared operation in its first dtype. Raises `Unfit` where torch refuses the call."""
    try:
        function = operation.found(op)
    except LookupError as reason:
        raise Unfit(None) from reason
    except Exception as reason:
        if op.get("reference") is None:
            raise
        raise Unfit(None) from reason
    entry: Entry = {} if op["torch"] is None else _catalogue_entry(op["torch"], catalogue)
    traces = {name: tracer.at(binding, name) for name, binding in op["sizes"].items()}
    tracer.require_taken()
    first = next(iter(traces.values()))
    if first.blocked is not None and tracer.values is None:
        tracer.require_tensors()
    _judged_by(op, next(iter(traces)), first)
    patterns = access.patterns(first)
    own = entry.get("access") or access.class_of(first, patterns)
    ridge = _ridge(op, own, catalogue["reference"])
    return {
        "version": VERSION,
        "operation": operation.name_of(op),
        "defined_in": getattr(function, "__module__", None),
        "signature": docstring.signature(operation.described(function)),
        "definition": entry.get("definition"),
        "notes": entry.get("notes"),
        "documentation": {"summary": docstring.summary(function), "math": docstring.formulas(function)}
        if getattr(function, "__doc__", None)
        else {"summary": None, "math": []},
        "dtype": op["dtypes"][0],
        "inputs": _inputs(op, docstring.arguments(function)),
        "outputs": _outputs(tracer, first),
        "aten": _aten(first),
        "sizes": {name: _size(op["sizes"][name], found, ridge) for name, found in traces.items()},
        "growth": _growth(tracer, first),
        "access": {"class": own, "patterns": patterns, "description": access.WORDS.get(own) if own else None},
        "ridge": ridge,
        "unknown": _unknown(first),
    }


def _reply(outcome: ReplyOutcome, documents: Documents) -> Reply:
    why = "exception" if outcome == "rejected" else None
    return {"outcome": outcome, "class": why, "cites": False, "documents": documents, "files": {}}


def _failure(unfit: Unfit) -> AnalysisFailure:
    cause = unfit.__cause__
    message = re.sub(r"0x[0-9a-f]{6,}", "0x…", str(cause)).replace("FakeTensor", "Tensor")[:2000]
    kind = TypeError if isinstance(cause, results.NoTensor) else type(cause)
    told: AnalysisFailure = {"class": kind.__name__, "message": message, "size": unfit.size}
    if unfit.hint is not None:
        told["hint"] = unfit.hint
    return told


def _judged_by(op: Declaration, size: str, found: aten.Trace) -> None:
    """Raise `Unfit` where no kernel can be judged by what torch does: it returns no tensor, it draws random numbers and
    the op does not say what must hold of them, or the op names other outputs than torch returns."""
    if found.outputs == () and not op["mutates"]:
        hint = "end it with `return`, or name what it changes in `mutates`"
        raise Unfit(size, hint) from results.NoTensor(valueless.NOTHING)
    try:
        random_ops.refuse(op, found.random, found.blocked is not None)
        if found.outputs is not None:
            comparing.refuse(op, len(found.outputs))
    except (random_ops.Undeclared, comparing.Misnamed) as reason:
        raise Unfit(size, reason.hint) from reason


def _inputs(op: Declaration, told: Mapping[str, str]) -> list[AnalyzedInput]:
    return [
        {
            "name": declared["name"],
            "shape": list(declared["shape"]),
            "dtype": declared["dtype"] or op["dtypes"][0],
            "layout": declared["layout"] if isinstance(declared["layout"], str) else ", ".join(declared["layout"]),
            "description": told.get(declared.get("list") or declared["name"]),
        }
        for declared in declaration.tensors(op)
    ]


def _outputs(tracer: Tracer, first: aten.Trace) -> list[AnalyzedOutput] | None:
    """Return shape and dtype of each result: a length as the dim, or the expression of dims, that it is at this size and
    wherever one dim is larger; None where none of the declared ones is."""
    if first.outputs is None:
        return None
    op = tracer.op
    binding = next(iter(op["sizes"].values()))
    seen = [(binding, first.outputs)]
    for dim in sorted(binding):
        for factor in (FAR, 2):
            bound = {**binding, dim: factor * binding[dim]}
            grown = tracer.tried(bound)
            if grown is not None and grown.outputs is not None:
                seen.append((bound, grown.outputs))
                break
    written = [length for given in declaration.tensors(op) for length in given["shape"] if isinstance(length, str)]
    named = list(dict.fromkeys([*sorted(binding), *written]))
    shapes = [
        [_symbol([(bound, outputs[place].shape[at]) for bound, outputs in seen], named) for at in range(len(one.shape))]
        for place, one in enumerate(first.outputs)
    ]
    return [{"shape": shape, "dtype": one.dtype} for shape, one in zip(shapes, first.outputs, strict=True)]


def _symbol(lengths: Sequence[tuple[Mapping[str, int], int]], named: Sequence[str]) -> int | str | None:
    """Return what a length is: a number where it is the same under each binding, else the first of `named`, or a
    multiple of a dim, that has all these values."""
    binding, length = lengths[0]
    if all(one == length for _, one in lengths):
        return length
    multiples = [f"{length // binding[dim]}*{dim}" for dim in sorted(binding) if length % binding[dim] == 0]
    for symbol in [*named, *multiples]:
        with contextlib.suppress(expression.Impossible):
            if all(expression.length(symbol, bound) == one for bound, one in lengths):
                return symbol
    return None


def _aten(found: aten.Trace) -> list[AtenOperation]:
    """Return the aten operations dispatched, in order of first appearance, with calls and how they are counted."""
    told: dict[str, AtenOperation] = {}
    for one in found.dispatched:
        entry = told.setdefault(
            one.op, {"op": one.op, "schema": one.schema, "calls": 0, "work": one.formula, "access": access.of_call(one)}
        )
        entry["calls"] += 1
    return list(told.values())


def _size(binding: Mapping[str, int], found: aten.Trace, ridge: Ridge) -> AnalyzedSize:
    work, traffic = aten.total_work(found), found.bytes
    intensity = None if work is None or not traffic else round(work / traffic, 4)
    return {
        "dims": dict(sorted(binding.items())),
        "outputs": None if found.outputs is None else [_operand(output) for output in found.outputs],
        "flops": work,
        "bytes": traffic,
        "intensity": intensity,
        "bound": _bound(work, traffic, ridge["flops_per_byte"]),
    }


def _operand(operand: Operand) -> ShapedOutput:
    return {"shape": list(operand.shape), "dtype": operand.dtype}


def _bound(work: int | None, traffic: int | None, ridge: float | None) -> str | None:
    """Return what limits the operation: `memory`, `compute`, or `none` where it neither computes nor moves."""
    if work is None or traffic is None:
        return None
    if work == 0:
        return "memory" if traffic else "none"
    if ridge is None:
        return None
    return "compute" if work >= ridge * traffic else "memory"


def _ridge(op: Declaration, access: str | None, reference: Machine) -> Ridge:
    """Return the reference machine's rates and the intensity at which they balance.

    A contraction runs at the rate of matrix products in its dtype, everything else at that of float32 arithmetic.
    """
    product = "tf32" if op["precision"] == "tf32" and op["dtypes"][0] == "float32" else op["dtypes"][0]
    rate = reference["flops_per_second"].get(product if access == "contraction" else "float32")
    bandwidth = reference["bytes_per_second"]
    return {
        "device": reference["device"],
        "flops_per_second": rate,
        "bytes_per_second": bandwidth,
        "flops_per_byte": None if rate is None else round(rate / bandwidth, 2),
    }


def _growth(tracer: Tracer, first: aten.Trace) -> Growth:
    """Return, for each dim, the exponent with which work and memory grow in it: log2 of the ratio when the dim doubles.

    Doubled far out, from 1024 times the first size, so that the fastest term decides; where torch refuses that, or a
    reference loops over the dim and would call torch more than `MOST_CALLS` times, from the size itself. Nothing is known where the trace of the `first` size is blocked:
    far out a reference may loop over values that are never known.
    """
    binding = next(iter(tracer.op["sizes"].values()))
    work: dict[str, float | None] = {}
    memory: dict[str, float | None] = {}
    for dim, length in sorted(binding.items()):
        work[dim] = memory[dim] = None
        for scale in (FAR, 1) if first.blocked is None else ():
            once, twice = _doubled(tracer, binding, dim, scale * length)
            if once is not None and twice is not None:
                work[dim] = _exponent(aten.total_work(once), aten.total_work(twice))
                memory[dim] = _exponent(once.bytes, twice.bytes)
                break
    return {"work": work, "memory": memory}


def _doubled(
    tracer: Tracer, binding: Mapping[str, int], dim: str, length: int
) -> tuple[aten.Trace | None, aten.Trace | None]:
    """Return the traces at `length` of `dim` and at twice that; the second is None where the first is."""
    once = tracer.tried({**binding, dim: length})
    return once, None if once is None else tracer.tried({**binding, dim: 2 * length})


def lengths_of(tracer: Tracer) -> dict[str, Taken]:
    """Return the lengths that torch takes, of the dims of which it refuses some."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    # It logs each refusal as an error.
    was, logger.disabled = logger.disabled, True
    try:
        return lengths.taken(tracer.op["sizes"].values(), lambda binding: tracer.tried(binding) is not None)
    finally:
        logger.disabled = was


def _exponent(once: int | None, twice: int | None) -> float | None:
    if once is None or twice is None:
        return None
    if once == twice:
        return 0.0
    return round(math.log2(twice) - math.log2(once), 1) + 0.0 if once > 0 and twice > 0 else None


def _unknown(found: aten.Trace) -> list[NotKnown]:
    """Return the aten operations because of which something is not known, and why."""
    missing = {one.op: "no rule counts its work" for one in aten.leaves(found.dispatched) if one.work is None}
    if found.blocked is not None and found.why is not None:
        missing[found.blocked] = found.why
    return [{"op": op, "why": why} for op, why in sorted(missing.items())]


def _catalogue_entry(torch_name: str, catalogue: Catalogue) -> Entry:
    """Return what the catalogue says of an operation, by its whole name, else its last part, with or without `_`."""
    ops = catalogue["ops"]
    namespace, _, last = torch_name.rpartition(".")
    if torch_name in ops:
        return ops[torch_name]
    if namespace not in NAMESPACES:
        return {}
    nothing: Entry = {}
    found = next((ops[name] for name in (last, last.removesuffix("_")) if name in ops), nothing)
    return ops[found["same_as"]] if "same_as" in found else found
