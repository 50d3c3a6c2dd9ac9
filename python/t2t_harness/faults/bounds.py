"""Reads and writes of interpreted kernels outside of all memory that a call has.

Before each access of a launch, the addresses of its unmasked lanes are compared with the storages of the launch's arguments, of the case's inputs,
and of what torch returned to the wrapper. A write outside of them is refused; a read there gives values that differ from run to run. On a device
judging/guards.py sees writes near a tensor instead. Triton's interpreter is an argument here; torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from t2t_harness.faults import order

MOST_TOLD = 8
"""Reported reads, by kernel and tensor."""


FAR = 1 << 40
"""A distance of so many bytes tells nothing: no tensor is as long."""


class OutOfBounds(Exception):
    """Raised in a kernel that writes outside of all memory that its call has."""


@dataclass
class Bounds:
    """The memory that one call of a wrapper has, as addresses."""

    run: int = 0
    """Values of reads outside differ between even and odd ones."""
    is_on: bool = False
    spans: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Address of a storage → the address behind it, and the name of the argument or input that it belongs to."""
    recent: list[tuple[int, int]] = field(default_factory=list)
    """Where the latest accesses were."""
    within: tuple[int, int] | None = None
    """The storage that the last access lay in, by its first address and the one behind it; None where it was in several, or in none."""
    kernel: str = ""
    """The kernel that is running."""
    is_whole: bool = True
    """Whether the last access was of all its lanes."""
    mask: Any = None
    """That of the last access."""
    has_all: bool = False
    """Whether that one has all lanes."""
    has_other: bool = False
    """Whether the load that is under way says what masked lanes hold."""
    writes: list[str] = field(default_factory=list)
    """What was written outside, in words; nothing where all is well."""
    reads: list[str] = field(default_factory=list)
    """What was read outside, in words."""

    def add(self, values: Iterable[object], names: Iterable[str] = ()) -> None:
        """Notes that the tensors among `values`, and those that others such as descriptors are made of, are memory of the call; each is called as `names` says.

        Nothing is held against anything any more where one has an address and no size.
        """
        import torch

        named = iter(names)
        for value in values:
            name = next(named, "")
            if isinstance(value, (tuple, list)):
                self.add(value, [name] * len(value))
                continue
            tensor = getattr(value, "base", value)
            if isinstance(tensor, torch.Tensor):
                if type(tensor) is torch.Tensor or not _is_wrapper(tensor):
                    storage = tensor.untyped_storage()
                    start = int(storage.data_ptr())
                    known = self.spans.get(start)
                    stop = max(start + int(storage.nbytes()), 0 if known is None else known[0])
                    self.spans[start] = (stop, name or ("" if known is None else known[1]))
                    self.recent.clear()
                else:
                    self.is_on = False
            elif hasattr(value, "data_ptr"):
                self.is_on = False

    def outside(self, addresses: Any, mask: Any, size: int) -> Any:
        """Returns for each lane whether it is not masked and its `size` bytes lie in no memory of the call; None where there is no such lane. All are arrays of one shape."""
        import numpy as np

        self.within = None
        if mask is not self.mask:
            # Kernels load and store with one mask, as a rule.
            self.mask, self.has_all = mask, bool(np.logical_and.reduce(mask, axis=None))
        self.is_whole = self.has_all
        asked = addresses if self.is_whole else addresses[mask]
        if asked.size == 0:
            return None
        low, high = int(np.minimum.reduce(asked, axis=None)), int(np.maximum.reduce(asked, axis=None)) + size
        for start, stop in self.recent:
            if start <= low and high <= stop:
                self.within = (start, stop)
                return None
        for start, (stop, _) in self.spans.items():
            if start <= low and high <= stop:
                self.within = (start, stop)
                self.recent = [self.within, *self.recent[:3]]
                return None
        starts = np.array(sorted(self.spans), dtype=np.uint64)
        if starts.size == 0:
            return mask
        stops = np.array([self.spans[int(start)][0] for start in starts], dtype=np.uint64)
        # Storages may overlap where torch looks at one in two ways: the last byte of any that began before counts.
        stops = np.maximum.accumulate(stops)
        place = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
        # No sum with an address: one before the first byte of an empty tensor is the largest number.
        ends = stops[np.maximum(place, 0)]
        within = (place >= 0) & (addresses <= ends) & (ends - addresses >= np.uint64(size))
        found = mask & ~within
        return found if found.any() else None

    def name(self) -> str:
        """Returns what the storage of the last access is called."""
        return "" if self.within is None else self.spans[self.within[0]][1]

    def told(self, addresses: Any, lanes: Any, size: int, what: str) -> str:
        """Returns in words where the first of `lanes` is, by the nearest memory of the call."""
        first = int(addresses[lanes].reshape(-1)[0])
        # One before the first byte of an empty tensor, which is at zero, is a negative number.
        first -= 1 << 64 if first >= 1 << 63 else 0
        count = int(lanes.sum())
        of = f"{count} of {lanes.size} elements" if lanes.size > 1 else f"{size} bytes"
        near, words = None, "no tensor of the call is near"
        for start, (stop, name) in self.spans.items():
            behind = first - stop if first + size > stop else start - first
            if first >= start and near is not None and first - start == near:
                continue
            if near is None or abs(behind) < near:
                near = abs(behind)
                whose = f"`{name}`" if name else "a tensor"
                side = "behind the end" if first >= start else "before the beginning"
                is_near = abs(behind) < FAR
                words = f"the first {abs(behind)} bytes {side} of {whose}" if is_near else "far from all of them"
        return f"`{self.kernel}` {what} {of} outside of its tensors, {words}"


def _is_wrapper(tensor: Any) -> bool:
    """Tells whether a tensor has no memory of its own, as a subclass may."""
    try:
        tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return True
    return False


PRESENT = Bounds()
"""Those of the call that this process makes."""


@contextlib.contextmanager
def of_call(run: int, inputs: dict[str, Any]) -> Iterator[Bounds]:
    """Has accesses of interpreted kernels held against the memory of one call with `inputs`, for the length of the context."""
    global PRESENT
    before, PRESENT = PRESENT, Bounds(run=run, is_on=True)
    PRESENT.add(inputs.values(), inputs)
    try:
        yield PRESENT
    finally:
        PRESENT = before


def launching(kernel: str, names: list[str], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """To be called before a launch of `kernel`, whose parameters have `names`, with its arguments."""
    PRESENT.kernel = kernel
    order.PRESENT.launching(kernel)
    PRESENT.add(args, names)
    PRESENT.add(kwargs.values(), kwargs)


def install(interpreter: Any) -> None:
    """Changes what the interpreter's builder reads and writes by."""
    import numpy as np

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    load_or_zero, store = builder.create_masked_load, builder.create_masked_store
    update, swap = builder.create_atomic_rmw, builder.create_atomic_cas

    def bytes_of(pointers: Any) -> int:
        return max(1, int(pointers.get_element_ty().primitive_bitwidth) // 8)

    semantic = type(interpreter.interpreter_semantic)
    load_by = semantic._load_legacy

    def load_with(self: object, ptr: object, mask: object, other: object, *rest: object, **more: object) -> object:
        # Triton takes a single `other` of zero for none, since it asks whether it is true.
        PRESENT.has_other = other is not None
        try:
            return load_by(self, ptr, mask, other, *rest, **more)
        finally:
            PRESENT.has_other = False

    semantic._load_legacy = load_with

    def load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, is_whole: bool, **more: Any) -> Any:
        found = load_or_zero(self, ptrs, mask, other, *rest, **more)
        if other is None and not is_whole and not PRESENT.has_other:
            # Triton leaves these lanes undefined.
            lanes = ~np.asarray(mask.data, dtype=bool)
            found.data[lanes] = unwritten(found.data.dtype, ptrs.get_element_ty().name, PRESENT.run)
        return found

    def read(self: Any, ptrs: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        if not PRESENT.is_on:
            return load_or_zero(self, ptrs, mask, *rest, **more)
        size, asked = bytes_of(ptrs), np.asarray(mask.data, dtype=bool)
        lanes = PRESENT.outside(ptrs.data, asked, size)
        if lanes is None:
            found = load(self, ptrs, mask, *rest, is_whole=PRESENT.is_whole, **more)
            lanes = in_conflict(ptrs.data, asked, size)
            if lanes is not None:
                found.data[lanes] = unwritten(found.data.dtype, ptrs.get_element_ty().name, 0)
            return found
        note(PRESENT.reads, PRESENT.told(ptrs.data, lanes, size, "reads"))
        found = load(self, ptrs, handle(asked & ~lanes, interpreter.tl.int1), *rest, is_whole=False, **more)
        found.data[lanes] = unwritten(found.data.dtype, ptrs.get_element_ty().name, PRESENT.run)
        return found

    def in_conflict(addresses: Any, asked: Any, size: int, values: Any = None) -> Any:
        """Returns for each lane whether this read, or this store of `values`, conflicts with another program of the launch; None where there is no conflict."""
        now, within = order.PRESENT, PRESENT.within
        if not now.is_watched or within is None:
            return None
        if values is not None:
            lanes = now.stored(within, addresses, asked, size, values, PRESENT.name())
        elif within[0] in now.owners:
            lanes = now.read(within[0], addresses, asked, size, PRESENT.name())
        else:
            return None
        return lanes if now.poisons else None

    def require(ptrs: Any, mask: Any) -> None:
        if not PRESENT.is_on:
            return
        size = bytes_of(ptrs)
        lanes = PRESENT.outside(ptrs.data, np.asarray(mask), size)
        if lanes is not None:
            words = PRESENT.told(ptrs.data, lanes, size, "writes")
            note(PRESENT.writes, words)
            raise OutOfBounds(words)

    def write(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        require(ptrs, mask.data)
        if PRESENT.is_on:
            lanes = in_conflict(ptrs.data, np.asarray(mask.data), bytes_of(ptrs), value.data)
            if lanes is not None:
                element = unwritten(value.data.dtype, ptrs.get_element_ty().name, 0)
                value = handle(np.where(lanes, element, value.data), value.dtype)
        return store(self, ptrs, value, mask, *rest, **more)

    def updated(self: Any, operation: Any, ptr: Any, value: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        require(ptr, mask.data)
        return update(self, operation, ptr, value, mask, *rest, **more)

    def swapped(self: Any, ptr: Any, *rest: Any, **more: Any) -> Any:
        require(ptr, np.ones_like(ptr.data, dtype=bool))
        return swap(self, ptr, *rest, **more)

    builder.create_masked_load, builder.create_masked_store = read, write
    builder.create_atomic_rmw, builder.create_atomic_cas = updated, swapped


def note(told: list[str], words: str) -> None:
    """Adds `words` to the report, once and up to a limit."""
    if words not in told and len(told) < MOST_TOLD:
        told.append(words)


def unwritten(dtype: Any, name: str, run: int) -> Any:
    """Returns the value of unwritten memory, as an element of numpy's `dtype` and Triton's type `name`: NaN in an even run if the type has one, another pattern in others."""
    import numpy as np

    if run % 2 == 0 and name == "bf16":
        return np.uint16(0x7FC0)
    if run % 2 == 0 and dtype.kind == "f":
        return dtype.type("nan")
    if dtype.kind == "b":
        return np.bool_(run % 2 == 0)
    pattern = bytes([0x5A if run % 2 == 0 else 0x7F]) * dtype.itemsize
    return np.frombuffer(pattern, dtype=dtype)[0]
