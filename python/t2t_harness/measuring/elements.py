"""Single elements of a tensor that change in place between timed calls.

On a device its driver writes them: a copy by torch takes the host three times as long, and where the host launches slowly, the device waits for it. torch is imported
only inside functions.
"""

from __future__ import annotations

import ctypes
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BITS = 6
PLACES = 1 << BITS
"""Elements that change within a run, and the values that they change to: drawn for each run."""

SETTERS = {2: ("cuMemsetD16Async", ctypes.c_uint16), 4: ("cuMemsetD32Async", ctypes.c_uint32)}
"""The driver's functions that write one element, by its size in bytes, with the type of what they write."""


class NotWritten(RuntimeError):
    """The driver did not write an element."""


def drawn_places(seed: int, elements: int) -> tuple[list[int], list[int], random.Random]:
    """Returns which elements of so many may change in a run, which elements' values they may get, and what draws both for each change."""
    draws = random.Random(seed)
    return [draws.randrange(elements) for _ in range(PLACES)], [draws.randrange(elements) for _ in range(PLACES)], draws


def element(value: torch.Tensor, position: int) -> torch.Tensor:
    """Returns the element at `position` in row-major order, as a view of one element."""
    offset = value.storage_offset()
    for length, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        position, index = divmod(position, length)
        offset += index * stride
    return value.as_strided((1,), (1,), offset)


@dataclass
class Changing:
    """Single elements of a tensor, each in turn changed to one of several values."""

    targets: Sequence[torch.Tensor]
    sources: Sequence[torch.Tensor]
    draws: random.Random = field(default_factory=lambda: random.Random(0))

    def change(self) -> bool:
        """Changes one element, and tells whether there is one."""
        if not self.targets:
            return False
        draw = self.draws.getrandbits
        self.write(draw(BITS), draw(BITS))
        return True

    def write(self, target: int, source: int) -> None:
        """Writes the value of number `source` to the element of number `target`."""
        self.targets[target].copy_(self.sources[source])


class ByDriver(Changing):
    """The same, where `set_word(address, bits)` writes an element and returns zero, or an error of the driver."""

    def __init__(
        self,
        targets: Sequence[torch.Tensor],
        sources: Sequence[torch.Tensor],
        draws: random.Random,
        set_word: Callable[[int, int], int],
    ) -> None:
        super().__init__(targets, sources, draws)
        import torch
        from torch.autograd.graph import increment_version

        kind = {2: torch.int16, 4: torch.int32}[targets[0].element_size()]
        self.words: list[int] = torch.cat(list(sources)).view(kind).tolist()
        self.addresses = [target.data_ptr() for target in targets]
        self.set_word, self.increment_version = set_word, increment_version

    def write(self, target: int, source: int) -> None:
        """Writes as `Changing` does; torch is told that the tensor has changed. Raises NotWritten."""
        if (error := self.set_word(self.addresses[target], self.words[source])) != 0:
            raise NotWritten(f"an input could not be changed: CUDA error {error}")
        self.increment_version(self.targets[target])


def changing(value: torch.Tensor, original: torch.Tensor, seed: int) -> Changing:
    """Returns what changes elements of `value` to those of `original`, as `seed` decides."""
    targets, sources, draws = drawn_places(seed, value.numel())
    at = [element(value, position) for position in targets], [element(original, position) for position in sources]
    if value.device.type == "cuda" and value.element_size() in SETTERS:
        return ByDriver(*at, draws, setter(value.element_size()))
    return Changing(*at, draws)


def setter(size: int) -> Callable[[int, int], int]:
    """Returns a function that has the device write `bits`, an element of `size` bytes, to an address, in the order of torch's current stream, and returns the driver's error, 0 for none."""
    import torch

    fill, stream = filler(*SETTERS[size]), torch.cuda.current_stream().cuda_stream
    mask = (1 << 8 * size) - 1
    return lambda address, bits: fill(address, bits & mask, 1, stream)


@functools.cache
def filler(name: str, kind: type[ctypes.c_uint16 | ctypes.c_uint32]) -> Callable[[int, int, int, int], int]:
    """Returns the function `name` of CUDA's driver, which fills memory from an address on with a word of this `kind`, so many times, in the order of a stream, and returns an error or 0."""
    function: Callable[[int, int, int, int], int] = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_uint64, kind, ctypes.c_size_t, ctypes.c_void_p
    )((name, ctypes.CDLL("libcuda.so.1")))
    return function
