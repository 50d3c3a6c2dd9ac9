"""What one call of a torch operation dispatches, on tensors without values: aten calls, results, memory touched.

Knows torch and the rules of flops.py; nothing of sizes, catalogues or replies. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from t2t_harness.op import results
from t2t_harness.op.flops import rule_of, selected, work_of
from t2t_harness.op.rule import AtenCall, Operand, Rule

if TYPE_CHECKING:
    import torch

VIEW = Rule("0", lambda _: 0, "view")
DECOMPOSED = "counted over torch's own decomposition"


@dataclass(frozen=True)
class Dispatched:
    """An aten operation that a call came down to. `work` is None where no rule and no decomposition of torch covers it.

    `formula` is the rule in words; `parts` are the primitive calls that were counted instead where it has no rule of
    its own.
    """

    op: str
    schema: str
    call: AtenCall
    work: int | None
    formula: str | None
    access: str | None
    parts: tuple[Dispatched, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A call of a torch operation: what it dispatched, in order, and what it returned.

    `outputs` and `bytes` are None where they cannot be told without values; `blocked` then names the aten operation
    that stands in the way, and `why` says how. `bytes` is the compulsory traffic: each element of an input that is
    needed is read once, each element of a result written once.
    """

    dispatched: tuple[Dispatched, ...]
    outputs: tuple[Operand, ...] | None
    bytes: int | None
    blocked: str | None
    why: str | None
    random: tuple[str, ...] = ()
    """The aten operations that draw random numbers, in order of first appearance."""


class Refused(Exception):
    """torch raised in the traced call; its exception is the cause."""


class TooLong(Exception):
    """The traced call dispatches more than was asked for."""


def trace(function: Callable[[], object], inputs: Sequence[torch.Tensor], most: int | None = None) -> Trace:
    """Return what `function()`, a call of torch on the fake tensors `inputs`, dispatches. Raises `Refused`, because of
    `TooLong` where that is more than `most` calls.

    Must run inside the `FakeTensorMode` that made the inputs.
    """
    from torch._subclasses import fake_tensor

    raws: list[_Raw] = []
    drawing: list[str] = []
    result, blocked, why = None, None, None
    try:
        result = _run_recorded(function, raws, most, drawing)
    except (fake_tensor.DynamicOutputShapeException, fake_tensor.DataDependentOutputException) as reason:
        blocked, why = str(reason.func), "its result depends on the values of its input"
    except fake_tensor.UnsupportedOperatorException as reason:
        blocked, why = str(reason.func), "torch cannot tell its result without computing it"
    except Exception as reason:
        raise Refused from reason
    dispatched = tuple(_count(raw) for raw in raws)
    random = tuple(dict.fromkeys(drawing))
    if blocked is not None:
        return Trace(dispatched, None, None, blocked, why, random)
    memory = _Memory(inputs)
    for raw, one in zip(raws, dispatched, strict=True):
        memory.touch(raw, one.call)
    try:
        outputs = results.tensors(results.apart(result))
    except TypeError as reason:
        raise Refused from reason
    return Trace(dispatched, tuple(map(operand_of, outputs)), memory.traffic(outputs), None, None, random)


def operand_of(tensor: torch.Tensor) -> Operand:
    """Return the shape, strides and dtype of a tensor as the rules take them."""
    return Operand(tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype).removeprefix("torch."))


@dataclass(frozen=True)
class _Raw:
    """An aten call as torch made it.

    It keeps its tensors alive, so that no storage of one call is taken for that of another.
    """

    func: Any
    args: Sequence[object]
    kwargs: Mapping[str, object]
    result: object

    def arguments(self) -> dict[str, object]:
        """Return the arguments by the names of the schema, with the schema's defaults where none was given."""
        named: dict[str, object] = {}
        for position, argument in enumerate(self.func._schema.arguments):
            if position < len(self.args):
                named[argument.name] = self.args[position]
            elif argument.name in self.kwargs:
                named[argument.name] = self.kwargs[argument.name]
            elif argument.has_default_value():
                named[argument.name] = argument.default_value
        return named


def _run_recorded(
    function: Callable[[], object], raws: list[_Raw], most: int | None, drawing: list[str] | None = None
) -> object:
    """Return what `function()` returns; append its aten calls, at most `most`, to `raws`, without queries such as
    `prim.device`, and the names of those that draw random numbers to `drawing`."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            # Said before the call: one whose result depends on values raises here.
            if drawing is not None and _draws(_Raw(func, args, kwargs or {}, None)):
                drawing.append(str(func.overloadpacket))
            result = func(*args, **(kwargs or {}))
            if func.namespace != "prim":
                raws.append(_Raw(func, args, kwargs or {}, result))
            if most is not None and len(raws) > most:
                raise TooLong
            return result

    with torch.no_grad(), Recorder():  # type: ignore[no-untyped-call]
        return function()


def _draws(raw: _Raw) -> bool:
    """Tell whether an aten call draws random numbers: torch marks those that may, and one that drops with probability
    0, or not in training, does not."""
    import torch

    if torch.Tag.nondeterministic_seeded not in raw.func.tags:
        return False
    arguments = raw.arguments()
    is_off = any(arguments.get(name) is False for name in ("train", "training"))
    chances = [arguments[name] for name in ("p", "dropout_p", "dropout") if name in arguments]
    return not is_off and not (chances and chances[0] == 0)


def _count(raw: _Raw) -> Dispatched:
    call = _aten_call(raw)
    op, schema = str(raw.func), str(raw.func._schema)
    rule = VIEW if raw.func.is_view else rule_of(call.name)
    if rule is not None:
        work = work_of(call, rule)
        return Dispatched(op, schema, call, work, None if work is None else rule.formula, rule.access)
    parts = _decomposed(raw)
    works = [part.work for part in parts]
    if not parts or None in works:
        return Dispatched(op, schema, call, None, None, None, parts)
    return Dispatched(
        op, schema, call, sum(filter(None, works)), DECOMPOSED, parts[0].access if len(parts) == 1 else None, parts
    )


def _decomposed(raw: _Raw) -> tuple[Dispatched, ...]:
    """Return the primitive calls that torch itself defines an operation by, none where it has no such definition."""
    from torch._decomp import decomposition_table

    definition = raw.func.decompose if raw.func._can_decompose() else decomposition_table.get(raw.func)
    if definition is None:
        return ()
    raws: list[_Raw] = []
    try:
        result = _run_recorded(lambda: definition(*raw.args, **raw.kwargs), raws, None)
    except (RuntimeError, TypeError, NotImplementedError):
        return ()
    return () if result is NotImplemented else tuple(map(_count, raws))


def _tensors(value: object) -> list[torch.Tensor]:
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _aten_call(raw: _Raw) -> AtenCall:
    from torch import Tensor
    from torch.utils._pytree import tree_map_only

    arguments = raw.arguments()
    return AtenCall(
        name=str(raw.func.overloadpacket.__name__),
        arguments=tree_map_only(Tensor, operand_of, arguments),
        inputs=tuple(map(operand_of, _tensors(arguments))),
        outputs=tuple(map(operand_of, _tensors(raw.result))),
    )


@dataclass
class _Memory:
    """Which parts of which storages are read and written: by storage, the regions and their numbers of elements."""

    inputs: Sequence[torch.Tensor]
    read: dict[int, dict[object, int]] = field(default_factory=dict)
    written: dict[int, dict[object, int]] = field(default_factory=dict)

    def touch(self, raw: _Raw, call: AtenCall) -> None:
        """Note what one aten call reads and writes in place. Views and allocations read nothing."""
        rule = rule_of(call.name)
        changed = {
            argument.name
            for argument in raw.func._schema.arguments
            if argument.alias_info and argument.alias_info.is_write
        }
        if call.name == "native_batch_norm" and call.argument("training"):
            changed |= {"running_mean", "running_var"}
        still = raw.func.is_view or (rule is not None and rule.access == "allocation")
        for name, value in raw.arguments().items():
            for tensor in _tensors(value):
                if name in changed:
                    _note(self.written, tensor, None)
                if not still and not (name in changed and rule is not None and rule.overwrites):
                    _note(self.read, tensor, selected(call, rule, name))

    def traffic(self, outputs: Sequence[torch.Tensor]) -> int:
        """Return the bytes that must move: of inputs what is read and what is written, of new results all elements."""
        total = 0
        mine: set[int] = set()
        for tensor in self.inputs:
            key = _storage(tensor)
            if key not in mine:
                size = operand_of(tensor).distinct
                moved = sum(min(size, sum(parts.get(key, {}).values())) for parts in (self.read, self.written))
                total += moved * tensor.element_size()
            mine.add(key)
        fresh: dict[object, int] = {}
        for tensor in outputs:
            if _storage(tensor) not in mine:
                fresh[_region(tensor)] = operand_of(tensor).distinct * tensor.element_size()
        return total + sum(fresh.values())


def _note(parts: dict[int, dict[object, int]], tensor: torch.Tensor, at_most: int | None) -> None:
    """Add the region of a storage that `tensor` covers, with its number of elements, to `parts`."""
    count = operand_of(tensor).distinct
    count = count if at_most is None else min(count, at_most)
    regions = parts.setdefault(_storage(tensor), {})
    region = _region(tensor)
    regions[region] = max(count, regions.get(region, 0))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _region(tensor: torch.Tensor) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """Return what identifies the elements a tensor covers: storage, offset, and the dims with more than one place.

    Adjacent dims that lie densely are merged, so that a reshaped view covers the same region.
    """
    dims = sorted(
        (step, length) for length, step in zip(tensor.shape, tensor.stride(), strict=True) if length != 1 and step != 0
    )
    merged: list[tuple[int, int]] = []
    for step, length in dims:
        if merged and merged[-1][0] * merged[-1][1] == step:
            merged[-1] = (merged[-1][0], merged[-1][1] * length)
        else:
            merged.append((step, length))
    return _storage(tensor), int(tensor.storage_offset()), tuple(merged)


def leaves(dispatched: Sequence[Dispatched]) -> list[Dispatched]:
    """Return the calls that were counted: each call that has a rule, and the parts of those that have none."""
    return [leaf for one in dispatched for leaf in (leaves(one.parts) if one.parts else [one])]


def total_work(found: Trace) -> int | None:
    """Return the elementary results of a whole call, or None where any part of it is not known."""
    works = [one.work for one in found.dispatched]
    if found.blocked is not None or any(work is None for work in works):
        return None
    return sum(work for work in works if work is not None)
