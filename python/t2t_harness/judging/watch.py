"""Watches what torch does while a wrapper runs: fresh memory is poisoned, and torch may move data but not compute.

The allow-list is closed: an operation that is not on it counts as computing. docs/reference/judging.md prints it. torch is
imported only inside functions.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from t2t_harness.counting import counting, written
from t2t_harness.faults import bounds
from t2t_harness.judging import custom, guards
from t2t_harness.triton import facade

if TYPE_CHECKING:
    import torch

ALLOCATIONS = frozenset(
    """
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ resize_as_ set_
    _efficientzerotensor zeros zeros_like new_zeros zero_ ones ones_like new_ones full full_like new_full fill
    fill_ scalar_tensor arange
    """.split()
)
"""Make memory, and fill it with what no input decides."""

VIEWS = frozenset(
    """
    alias as_strided as_strided_ broadcast_to chunk detach detach_ diagonal expand expand_as flatten
    lift_fresh mT matrix_H movedim narrow permute real imag reshape reshape_as _reshape_alias resolve_conj
    resolve_neg select slice split split_with_sizes squeeze squeeze_ swapaxes swapdims t t_ tensor_split
    transpose transpose_ unbind unflatten unfold unsafe_chunk unsafe_split _unsafe_view unsqueeze unsqueeze_
    view view_as view_as_complex view_as_real
    """.split()
)
"""Look at memory in another way."""

COPIES = frozenset(
    """
    cat clone concat contiguous constant_pad_nd copy copy_ hstack lift lift_fresh_copy _local_scalar_dense
    item pad record_stream repeat stack _to_copy to vstack
    """.split()
)
"""Put values elsewhere, in another dtype or with padding, or read one number."""

READS = frozenset("_local_scalar_dense item".split())
"""Read one number, which a wrapper may want for the shape of a result, whatever the op is."""

QUESTIONS = frozenset("promote_types can_cast is_same_size is_set_to".split())
"""Answer by dtypes and shapes, and compute nothing."""

ALLOWED = ALLOCATIONS | VIEWS | COPIES | QUESTIONS

FRESH = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())
"""Return unwritten memory."""

FILLED = frozenset("zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full".split())
"""Return new memory with one value throughout."""

RESIZING = frozenset("resize_ resize_as_ set_".split())
"""May give a tensor more of its storage, or another one."""


DRAWS = frozenset(("randint", "random_"))
"""Draw integers."""

UNCOUNTED = ("prim", "profiler")
"""Namespaces of operations that compute nothing: questions of Python's, and marks for a profiler."""

SEEDS = 4
"""The most integers that a wrapper of a random op may draw at once."""


@dataclass
class Watch:
    """What torch dispatched on the wrapper's behalf."""

    computed: dict[str, int] = field(default_factory=dict)
    """Operations that are not allowed, with how often each ran."""
    declared: dict[str, int] = field(default_factory=dict)
    """Operations that only the op's `allow` allows, or that it names among others, with how often each ran."""
    made: list[tuple[set[int], set[int]]] = field(default_factory=list)
    """What those made: the addresses of the storages that each was given, and of those that it returned."""
    copies: list[tuple[str, set[int], set[int]]] = field(default_factory=list)
    """What copied, casted or joined values, and the addresses of the storages that it was given, and of those that it wrote."""
    operations: int = 0
    """How many it dispatched."""
    memory: written.Written = field(default_factory=lambda: written.Written(lambda tensor: poison(tensor, 0)))
    """Who wrote what."""

    def derived(self, launched: set[int]) -> set[int]:
        """Returns the storages of `launched`, and those that operations of the op's `allow` made of them, in turn."""
        found = set(launched)
        for given, returned in self.made:
            if given & found:
                found |= returned
        return found

    def copied_by(self, launched: set[int], to: range) -> str | None:
        """Returns the operation that copied values of `launched` storages, maybe by way of others, to the addresses `to` last; None where none did."""
        found, last = set(launched), None
        for name, given, written_to in self.copies:
            if given & found:
                found |= written_to
                last = name if any(address in to for address in written_to) else last
        return last


class TooMany(Exception):
    """A wrapper makes more calls of torch than it may."""


def own_operations(call: Callable[[], object], declared: frozenset[str] = frozenset()) -> frozenset[str]:
    """Returns the allowed operations that `call`, the op itself, consists of, where it consists of nothing else. `declared` are allowed, too.

    Of an op that only moves data, its own copies and fills count as computing: a wrapper that calls `clone` is no
    kernel for `clone`. An op that computes calls something that is not allowed anyway, and its wrapper may copy.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: set[str] = set()

    class Record(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes seconds (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.namespace == "aten":
                seen.add(base_name(func))
            return func(*args, **(kwargs or {}))

    with Record():  # type: ignore[no-untyped-call]
        call()
    if seen - ALLOWED - declared:
        return frozenset()
    return frozenset(seen - FRESH - VIEWS - READS)


def base_name(func: Any) -> str:
    """Returns the name of an aten overload without its overload: `add` of `aten::add.Tensor`."""
    return str(func._schema.name).partition("::")[2]


@contextlib.contextmanager
def watching(
    own: frozenset[str],
    run: int,
    declared: frozenset[str] = frozenset(),
    *,
    draws: bool = False,
    poisons: bool = True,
    guarded: guards.Guards | None = None,
    inputs: Iterable[object] = (),
    counters: Iterable[torch.Tensor] = (),
    most: int | None = None,
) -> Iterator[Watch]:
    """Watches for the length of the context; fresh memory holds NaN in an even `run`, and another pattern in an odd
    one, unless it is not to be poisoned.

    `own` are operations that are not allowed beside all those that are not on the list, `declared` some that are allowed beyond it.
    A dense copy of one of the `inputs` that is not dense is allowed always. The wrapper of a random op, which `draws`, may draw a few integers: that is how it gets a seed of torch's generator. New memory on a device lies between guards where it is `guarded`. What is done in place to one of the `counters`, integers that a module counts its calls by, is allowed. Raises TooMany in the wrapper after `most` operations.
    """
    import torch

    watch = Watch(memory=written.Written(lambda tensor: poison(tensor, run)))
    allowed = (ALLOWED | declared) - own
    # What is asked here, and of results below, goes past torch's modes: each question would take them as long as a small operation.
    with torch._C.DisableTorchFunction():
        forms = {place for one in inputs if (place := form_of(one)) is not None}
        counted = {one.data_ptr() for one in counters}

    def densifies(args: Any, result: Any) -> bool:
        """Tells whether a copy is that of an input as it is, made since it is not dense. A view of an input is none: a copy of it may be the op's result."""
        return result.is_contiguous() and not args[0].is_contiguous() and form_of(args[0]) in forms

    def noted(func: Any, args: Any, kwargs: Any, result: Any) -> Any:
        """Takes an operation's result, and returns what the wrapper gets instead."""
        watch.operations += 1
        if most is not None and watch.operations > most:
            raise TooMany(f"it makes more than {most} calls of torch")
        name = base_name(func)
        if func.namespace not in ("aten", "prim"):
            name = f"{func.namespace}::{name}"
        is_allowed = (
            name in allowed or (draws and _is_seed(name, result)) or (name == "clone" and densifies(args, result))
        )
        if counted and not is_allowed and func._schema.is_mutable:
            is_allowed = args[0].numel() == 1 and args[0].data_ptr() in counted
        if func.namespace not in UNCOUNTED and not is_allowed:
            watch.computed[name] = watch.computed.get(name, 0) + 1
        elif name in declared:
            watch.declared[name] = watch.declared.get(name, 0) + 1
            watch.made.append((storages((args, kwargs)), storages(result)))
        if name in COPIES:
            source, target = (args[1:], args[:1]) if func._schema.is_mutable else (args, result)
            watch.copies.append((name, storages(source), storages(target)))
        if guarded is not None and name in RESIZING:
            guarded.forget([args[0]])
        if guarded is not None and name in FRESH | FILLED and not _is_output(kwargs):
            result = guarded.handed_out(result, copies=name in FILLED)
        if bounds.PRESENT.is_on:
            bounds.PRESENT.add(leaves(result))
        if func._schema.is_mutable:
            watch.memory.touched(leaves((args, kwargs)))
        elif fresh := new_tensors(result, (args, kwargs)):
            watch.memory.made(fresh)
        if poisons and name in FRESH and not _is_output(kwargs):
            poison(result, run)
            watch.memory.handed_out(result)
        return result

    with facade.launched_as_they_are(), mode_of_watching()(noted):
        yield watch


@functools.cache
def mode_of_watching() -> type[Any]:
    """Returns a class of torch dispatch modes. A mode passes each operation's result to the function that it is made with, and returns that function's result."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self, noted: Callable[[object, object, object, object], object]) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.noted = noted

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            keys = custom.keys(func, args, kwargs or {})
            if keys is not None:
                # The wrapper's own operator: what it calls is watched in its stead.
                with self:
                    return func.redispatch(keys, *args, **(kwargs or {}))
            with counting.accounted():
                result = func(*args, **(kwargs or {}))
                with torch._C.DisableTorchFunction():
                    return self.noted(func, args, kwargs, result)

    return Watching


def form_of(value: object) -> tuple[object, ...] | None:
    """Returns where the elements of a dense or strided tensor lie, and as what; None of anything else."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    place = value.untyped_storage().data_ptr(), value.storage_offset()
    return (*place, tuple(value.shape), tuple(value.stride()), value.dtype)


PLAIN = (tuple, list)
"""What an operation is given or returns, beside single values, as a rule."""


def leaves(value: object) -> list[Any]:
    """Returns the single values in what an operation is given, or returns."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if type(value) in PLAIN:
        return [leaf for one in cast("Iterable[object]", value) for leaf in leaves(one)]
    if value is None or type(value) in (int, float, bool, str):
        return [value]
    if type(value) is dict:
        return [leaf for one in value.values() for leaf in leaves(one)]
    from torch.utils._pytree import tree_leaves

    return tree_leaves(value)


def storages(value: object) -> set[int]:
    """Returns the addresses of the storages of all tensors in `value`."""
    import torch

    tensors = (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel() > 0}


def new_tensors(result: object, given: object) -> list[object]:
    """Returns the tensors in `result` that lie in no memory of those in `given`."""
    import torch

    made = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor) and leaf.numel() > 0]
    if not made:
        return []
    known = storages(given)
    return [one for one in made if one.untyped_storage().data_ptr() not in known]


def _is_seed(name: str, result: object) -> bool:
    """Tells whether an operation draws so few integers that they can only be seeds."""
    import torch

    is_small = isinstance(result, torch.Tensor) and result.numel() <= SEEDS and not result.dtype.is_floating_point
    return name in DRAWS and is_small


def _is_output(kwargs: Mapping[str, object] | None) -> bool:
    return bool(kwargs) and kwargs is not None and kwargs.get("out") is not None


def poison(tensor: object, run: int) -> None:
    """Fills the storage of `tensor`: floating ones with NaN in an even `run`, all others with a byte pattern of the
    run."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size == 0:
        return
    dtype = tensor.dtype if run % 2 == 0 and tensor.dtype in _poisoned_with_nan() else torch.uint8
    if size <= SMALL and storage.device.type == "cpu":
        # torch takes several times as long for a few bytes.
        ctypes.memmove(storage.data_ptr(), _pattern(dtype, run % 2), size)
        return
    torch.empty(0, dtype=dtype, device=tensor.device).set_(storage).fill_(_filling(dtype, run % 2))


SMALL = 1 << 14
"""A storage on the CPU of at most so many bytes is filled without torch."""


@functools.cache
def _poisoned_with_nan() -> frozenset[object]:
    import torch

    return frozenset((torch.float64, torch.float32, torch.float16, torch.bfloat16))


def _filling(dtype: Any, odd: int) -> float:
    """Returns what unwritten memory of `dtype` holds: NaN, or a byte."""
    if dtype.is_floating_point:
        return float("nan")
    return 0x7F if odd else 0x5A


@functools.cache
def _pattern(dtype: Any, odd: int) -> bytes:
    """Returns `SMALL` bytes of unwritten memory."""
    import torch

    filled = torch.full((SMALL // dtype.itemsize,), _filling(dtype, odd), dtype=dtype, device="cpu")
    return ctypes.string_at(filled.data_ptr(), SMALL)
