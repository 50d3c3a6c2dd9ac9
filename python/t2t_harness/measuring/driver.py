"""CUDA's driver, called by itself where torch's own way to it would take the host longer than the device needs: to record events, and to fill memory.

Before each timed call the cache is cleared, and two events are recorded around it. By torch that takes the host about 30 µs on a slow one, as long as a wrapper. All that while the
device may wait, and then it is the host that is timed. torch is imported only inside functions.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch

LIBRARY = "libcuda.so.1"

POINTER, ADDRESS, STREAM = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p

WORDS: dict[int, tuple[str, type[ctypes.c_uint16 | ctypes.c_uint32]]] = {
    2: ("cuMemsetD16Async", ctypes.c_uint16),
    4: ("cuMemsetD32Async", ctypes.c_uint32),
}
"""The functions that fill memory, by the bytes of a word, with the type of what they write."""


Kind: TypeAlias = "type[ctypes.c_void_p | ctypes.c_uint16 | ctypes.c_uint32 | ctypes.c_uint64 | ctypes.c_size_t]"
"""The type of an argument."""


class Function(Protocol):
    """A function of the driver."""

    def __call__(self, *arguments: object) -> int:
        """Returns an error, or 0."""


class Failed(RuntimeError):
    """The driver did not do what it was asked for."""


class Driver:
    """The driver in this process, of torch's present device. What it is asked for is done in the order of the stream that is torch's current one at that time."""

    def __init__(self) -> None:
        """Finds the driver. Raises OSError where there is none."""
        import torch

        library = ctypes.CDLL(LIBRARY)
        self._device = torch.cuda.current_device()
        self._stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
        self._create = function(library, "cuEventCreate", POINTER, ctypes.c_uint32)
        self._record = function(library, "cuEventRecord", POINTER, STREAM)
        self._elapsed = function(library, "cuEventElapsedTime", POINTER, POINTER, POINTER)
        self._fill = {
            size: function(library, name, ADDRESS, kind, ctypes.c_size_t, STREAM)
            for size, (name, kind) in WORDS.items()
        }
        self._events: list[int] = []

    def events(self, count: int) -> list[int]:
        """Returns so many events, always the same ones: what was recorded before is forgotten. Raises Failed."""
        while len(self._events) < count:
            made = POINTER()
            self._succeed(self._create(ctypes.byref(made), 0))
            self._events.append(int(made.value or 0))
        return self._events[:count]

    def record(self, event: int) -> None:
        """Records an event. Raises Failed."""
        if (error := self._record(event, self._stream(self._device))) != 0:
            self._succeed(error)

    def elapsed_ms(self, begin: int, end: int) -> float:
        """Returns the ms between two events that the device has reached, to half a microsecond. Raises Failed."""
        found = ctypes.c_float()
        self._succeed(self._elapsed(ctypes.byref(found), begin, end))
        return found.value

    def fill(self, size: int, address: int, bits: int, count: int) -> None:
        """Fills memory from `address` on with `count` words of `size` bytes, 2 or 4, that hold `bits`. Raises Failed."""
        if (error := self._fill[size](address, bits, count, self._stream(self._device))) != 0:
            self._succeed(error)

    def clear(self, value: torch.Tensor) -> None:
        """Fills a tensor of 32-bit elements, which lie beside each other, with zeros, as `zero_` does. Raises Failed."""
        self.fill(4, value.data_ptr(), 0, value.numel())

    def _succeed(self, error: int) -> None:
        """Raises Failed for an error. Where a kernel has failed, torch says so in words that others know: then what torch raises."""
        if error != 0:
            import torch

            torch.cuda.synchronize()
            raise Failed(f"CUDA error {error}")


def function(library: ctypes.CDLL, name: str, *kinds: Kind) -> Function:
    """Returns the function `name` of the driver, which takes arguments of these kinds."""
    found: Function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)((name, library))
    return found


@functools.cache
def opened() -> Driver:
    """Returns the driver in this process, the same always. Starts CUDA. Raises OSError where there is none."""
    return Driver()
