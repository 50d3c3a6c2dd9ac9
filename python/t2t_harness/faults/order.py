"""The order of the programs of an interpreted launch, and conflicts between them.

A device runs them at the same time. The interpreter runs one after another, so that a program finds what the one before it stored: a kernel that needs this is wrong, and right
there. So the programs of a second run go in reverse order, and it is noted which program stored what. What another program reads of it in the same launch is a pattern that nobody
wrote, and so is what two programs store differently. Programs may wait for each other by atomic operations or volatile loads: from the first of these on nothing is asked of a launch,
and its kernel keeps the usual order. One more run has these in reverse order, too, and is given up where it does not end: a result that is wrong then was right by luck.
Triton's interpreter is an argument here.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_TOLD = 4
"""Reported conflicts, by kernel and tensor."""

MOST_ELEMENTS = 1 << 24
"""Of storages of more elements it is not noted who stored what."""

ENDLESS = 20
"""A run in reverse order that does so many times what the run in the usual order did, and `SLACK` operations more, does not end."""

SLACK = 100_000


TURNED, TURNED_SLACK = 4, 2000
"""The same of a run in which programs go in reverse order that may wait for each other: those that do not wait do no more than in the usual order."""


class Endless(Exception):
    """Raised for a kernel that goes on and on where its programs run in another order."""


def limit(done: float) -> float:
    """Returns how many operations a run in reverse order may do where that in the usual order did so many."""
    return ENDLESS * done + SLACK


def turned_limit(done: float) -> float:
    """Returns how many operations a run may do in which programs go in reverse order that may wait for each other, where that in the usual order did so many."""
    return TURNED * done + TURNED_SLACK


@dataclass
class Order:
    """The launches of one call of a wrapper."""

    waiting: set[str] = field(default_factory=set)
    """Kernels whose programs may wait for each other, of this and of earlier calls."""
    is_reversed: bool = False
    """Whether programs run in reverse order."""
    turns: bool = False
    """Whether those that may wait for each other do so as well."""
    has_waited: bool = False
    """Whether one of several programs of a launch was one that may wait for the others."""
    poisons: bool = False
    """Whether what is in conflict becomes a pattern."""
    may_differ: bool = False
    """Whether the same memory may get other values from run to run, as is declared: then reads alone are asked about."""
    told: list[dict[str, Any]] = field(default_factory=list)
    """Conflicts: `words`, and `frames`, the lines of kernels that were running, the innermost first."""
    kernel: str = ""
    had: int = 0
    """How much was reported before the present launch."""
    dims: tuple[int, ...] = ()
    """The grid of the present launch."""
    is_watched: bool = False
    """Whether the present launch has several programs and none has waited."""
    reverses: bool = False
    """Whether the present launch runs in reverse order."""
    has_reversed: bool = False
    """Whether any launch did."""
    program: int = 0
    """The running program, counted from 1 in the usual order."""
    owners: dict[int, tuple[int, object]] = field(default_factory=dict)
    """Address of a storage → the size of the elements that the present launch stores there, and the program that stored each, 0 where none did; size 0 where that is not known."""

    def launching(self, kernel: str) -> None:
        """Takes that a launch of `kernel` begins."""
        self.kernel, self.had = kernel, len(self.told)
        self.owners.clear()

    def grid(self, dims: tuple[int, ...]) -> None:
        """Takes the grid of the launch."""
        self.dims = dims
        is_alone, may_wait = math.prod(dims) <= 1, self.kernel in self.waiting
        self.is_watched = not is_alone and not may_wait
        self.reverses = self.is_reversed and not is_alone and (self.turns or not may_wait)
        self.has_reversed |= self.reverses

    def place(self, place: tuple[int, ...]) -> tuple[int, ...]:
        """Returns which program is to run where the one at `place` would."""
        if self.reverses:
            place = tuple(dim - 1 - index for dim, index in zip(self.dims, place, strict=True))
        x, y, z = place
        self.program = 1 + z + self.dims[2] * (y + self.dims[1] * x)
        return place

    def waits(self) -> None:
        """Takes that the running program may wait for others, or others for it."""
        self.waiting.add(self.kernel)
        self.has_waited |= math.prod(self.dims) > 1
        if self.is_watched:
            self.is_watched = False
            self.owners.clear()
            del self.told[self.had :]

    def stored(self, span: tuple[int, int], addresses: Any, mask: Any, size: int, values: Any, name: str) -> Any:
        """Takes that the `addresses` of the lanes in `mask`, of elements of `size` bytes in the storage `name` with that `span`, get `values`.

        Returns for each lane whether another program stored something else there; None where there is no such lane.
        """
        import numpy as np

        start, stop = span
        if start not in self.owners:
            count = (stop - start) // size
            is_noted = count <= MOST_ELEMENTS
            self.owners[start] = (size if is_noted else 0, np.zeros(count if is_noted else 0, dtype=np.int32))
        found = self.owner(start, addresses, mask, size)
        if found is None:
            return None
        index, owner = found
        before = owner[index]
        owner[index] = self.program
        if self.may_differ or not before.any():
            return None
        others = (before != 0) & (before != self.program)
        if not others.any():
            return None
        memory: Any = (ctypes.c_char * (stop - start)).from_address(start)
        content = np.frombuffer(memory, dtype=np.dtype(f"u{size}"), count=owner.size)
        others &= content[index] != bits(values, addresses, mask, size)
        if not others.any():
            return None
        self.tell("stores other values than program {} stored there", before[others][0], name)
        return spread(others, mask, addresses.shape)

    def read(self, start: int, addresses: Any, mask: Any, size: int, name: str) -> Any:
        """Returns for each lane in `mask` whether it reads, in the storage `name` at `start`, what another program stored in this launch; None where there is no such lane."""
        found = self.owner(start, addresses, mask, size)
        if found is None:
            return None
        index, owner = found
        before = owner[index]
        others = (before != 0) & (before != self.program)
        if not others.any():
            return None
        self.tell("reads what program {} stores in the same launch", before[others][0], name)
        return spread(others, mask, addresses.shape)

    def owner(self, start: int, addresses: Any, mask: Any, size: int) -> tuple[Any, Any] | None:
        """Returns where the lanes in `mask` are in the storage at `start`, in elements, and who stored those; None where that is not known. Elements of another size, or not in line with the storage, are not noted."""
        import numpy as np

        known, owner = self.owners[start]
        if not np.logical_and.reduce(mask, axis=None):
            addresses = addresses[mask]
        if known == 0 or addresses.size == 0:
            return None
        offsets = (addresses.reshape(-1) - np.uint64(start)).view(np.int64)
        if known != size or int(offsets[0]) % size:
            self.owners[start] = (0, owner)
            return None
        offsets >>= size.bit_length() - 1
        return offsets, owner

    def tell(self, words: str, other: Any, name: str) -> None:
        """Notes a conflict with the program `other`, counted from 1, at memory that belongs to `name`."""
        whose = f", in `{name}`" if name else ""
        own = self.shown(self.program)
        told = f"`{self.kernel}`: program {own} {words.format(self.shown(int(other)))}{whose}"
        key = (self.kernel, name, words)
        if len(self.told) < MOST_TOLD and all(one["key"] != key for one in self.told):
            self.told.append({"key": key, "words": told, "frames": running()})

    def shown(self, program: int) -> str:
        """Returns the place in the grid of a program that is counted from 1, in words."""
        rest, z = divmod(program - 1, self.dims[2])
        x, y = divmod(rest, self.dims[1])
        return f"({x}, {y}, {z})"


def bits(values: Any, addresses: Any, mask: Any, size: int) -> Any:
    """Returns the bits of the `values` of the lanes in `mask`, one after another, as integers of `size` bytes."""
    import numpy as np

    values = np.broadcast_to(values, addresses.shape)
    values = values.reshape(-1) if mask.all() else values[mask]
    return np.ascontiguousarray(values).view(f"u{size}")


def spread(lanes: Any, mask: Any, shape: tuple[int, ...]) -> Any:
    """Returns `lanes`, which says something of each lane in `mask`, as an array of that `shape`: no for the others."""
    import numpy as np

    if lanes.size == mask.size:
        return lanes.reshape(shape)
    found = np.zeros(shape, dtype=bool)
    found[mask] = lanes
    return found


def running() -> list[tuple[str, int]]:
    """Returns file and line of the kernel that is running, and of what it was called by, the innermost first."""
    from t2t_harness.faults import lacking

    found = []
    frame: Any = sys._getframe()
    while frame is not None:
        if lacking.is_kernel(frame.f_code):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


PRESENT = Order()
"""That of the call that this process makes."""


@contextlib.contextmanager
def of_call(order: Order) -> Iterator[Order]:
    """Has interpreted launches run as `order` says, and noted there, for the length of the context."""
    global PRESENT
    before, PRESENT = PRESENT, order
    try:
        yield PRESENT
    finally:
        PRESENT = before


def install(interpreter: Any) -> None:
    """Has the interpreter's builder run programs in the present order, and tell which may wait."""
    builder = interpreter.InterpreterBuilder
    set_dims, set_index = builder.set_grid_dim, builder.set_grid_idx
    load, update, swap = builder.create_masked_load, builder.create_atomic_rmw, builder.create_atomic_cas
    volatile = interpreter._ir.CACHE_MODIFIER.CV

    def launched(self: object, *dims: int) -> None:
        PRESENT.grid(dims)
        set_dims(self, *dims)

    def begun(self: object, *place: int) -> None:
        set_index(self, *PRESENT.place(place))

    def read(
        self: object,
        ptrs: object,
        mask: object,
        other: object,
        cache_modifier: object,
        eviction_policy: object,
        is_volatile: object,
    ) -> object:
        if is_volatile or cache_modifier == volatile:
            PRESENT.waits()
        return load(self, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)

    def updated(self: object, *args: object, **kwargs: object) -> object:
        PRESENT.waits()
        return update(self, *args, **kwargs)

    def swapped(self: object, *args: object, **kwargs: object) -> object:
        PRESENT.waits()
        return swap(self, *args, **kwargs)

    builder.set_grid_dim, builder.set_grid_idx = launched, begun
    builder.create_masked_load, builder.create_atomic_rmw, builder.create_atomic_cas = read, updated, swapped
