"""How much Triton's interpreter does, counted and not timed: the same on every machine and in every run.

Each value that an interpreted operation makes counts once, and more for each of its elements. It knows nothing of cases. Triton is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

ELEMENTS = 2000
"""So many elements of a block take as long as an operation does by itself."""


def of_elements(count: int) -> float:
    """Returns how much an operation on so many elements counts."""
    return 1 + count / ELEMENTS


class Spent(BaseException):
    """Raised in interpreted code that has done as much as it may; no `except Exception` of a kernel's takes it."""


@dataclass
class Meter:
    """What was done so far, in operations, and at what number of them interpreted code is stopped."""

    done: float = 0.0
    until: float = math.inf
    programs: int = 0
    """Those of the present launch that have not begun."""
    began: float | None = None
    """What was done before the first program of the present launch, while that runs."""
    is_first: bool = False
    """Whether the next program is a launch's first."""

    def add(self, elements: int) -> None:
        """Counts an operation on so many `elements`. Raises Spent where that is more than may be done."""
        self.spend(of_elements(elements))

    def spend(self, operations: float) -> None:
        """Counts so many operations. Raises Spent where that is more than may be done."""
        self.done += operations
        if self.done > self.until:
            self.until = math.inf
            raise Spent

    def launch(self, programs: int) -> None:
        """Takes that a launch of so many `programs` begins."""
        self.programs, self.began, self.is_first = programs, None, True

    def program(self) -> None:
        """Takes that a program of the launch begins. After the first one, raises Spent where all of them, if they do as much, would do more than may be done."""
        if self.began is not None:
            likely = self.programs * (self.done - self.began)
            self.began = None
            if self.done + likely > self.until:
                self.until = math.inf
                raise Spent
        elif self.is_first:
            self.began, self.is_first = self.done, False
        self.programs -= 1

    @contextlib.contextmanager
    def at_most(self, operations: float) -> Iterator[None]:
        """Has Spent raised, inside of the context, once so many more `operations` were done."""
        self.until = self.done + operations
        try:
            yield
        finally:
            self.until = math.inf


@contextlib.contextmanager
def undone_where_spent(meter: Meter, arguments: Iterable[object]) -> Iterator[None]:
    """Gives the memory of the tensors among a launch's `arguments` back what it held, where the launch is stopped for having done too much: a device never stops one, and a counter that is zero between launches is so then, too."""
    kept: dict[int, bytes] = {}
    if meter.until < math.inf:
        for one in arguments:
            if (memory := getattr(one, "untyped_storage", None)) is not None:
                place, size = memory().data_ptr(), memory().nbytes()
                kept[place] = ctypes.string_at(place, size) if place and size else b""
    try:
        yield
    except Spent:
        for place, held in kept.items():
            ctypes.memmove(place, held, len(held))
        raise


METER = Meter()
"""That of this process."""


def install(interpreter: Any) -> None:
    """Counts what the module `interpreter` of Triton does from now on, in `METER`."""
    handle, builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
    made, set_dims, set_index = handle.__post_init__, builder.set_grid_dim, builder.set_grid_idx

    def counted(self: Any) -> None:
        METER.spend(1 + getattr(self.data, "size", 1) / ELEMENTS)
        made(self)

    def launched(self: object, *dims: int) -> None:
        METER.launch(math.prod(dims))
        set_dims(self, *dims)

    def begun(self: object, *place: int) -> None:
        METER.program()
        set_index(self, *place)

    handle.__post_init__ = counted
    builder.set_grid_dim = launched
    builder.set_grid_idx = begun
