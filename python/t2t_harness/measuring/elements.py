"""Single elements of a tensor that change in place between timed calls.

On a device its driver writes them: a copy by torch takes the host three times as long, and where the host launches slowly, the device waits for it. torch is imported
only inside functions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.measuring import driver

if TYPE_CHECKING:
    import torch

BITS = 6
PLACES = 1 << BITS
"""Elements that change within a run, and the values that they change to: drawn for each run."""


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
    """The same, where `fill(size, address, bits, count)` writes to memory as `driver.Driver.fill` does."""

    def __init__(
        self,
        targets: Sequence[torch.Tensor],
        sources: Sequence[torch.Tensor],
        draws: random.Random,
        fill: Callable[[int, int, int, int], None],
    ) -> None:
        super().__init__(targets, sources, draws)
        import torch
        from torch.autograd.graph import increment_version

        self.size = targets[0].element_size()
        kind, mask = {2: torch.int16, 4: torch.int32}[self.size], (1 << 8 * self.size) - 1
        self.words: list[int] = [word & mask for word in torch.cat(list(sources)).view(kind).tolist()]
        self.addresses = [target.data_ptr() for target in targets]
        self.fill, self.increment_version = fill, increment_version

    def write(self, target: int, source: int) -> None:
        """Writes as `Changing` does; torch is told that the tensor has changed. Raises what `fill` raises."""
        self.fill(self.size, self.addresses[target], self.words[source], 1)
        self.increment_version(self.targets[target])


def changing(value: torch.Tensor, original: torch.Tensor, seed: int) -> Changing:
    """Returns what changes elements of `value` to those of `original`, as `seed` decides."""
    targets, sources, draws = drawn_places(seed, value.numel())
    at = [element(value, position) for position in targets], [element(original, position) for position in sources]
    if value.device.type == "cuda" and value.element_size() in driver.WORDS:
        return ByDriver(*at, draws, driver.opened().fill)
    return Changing(*at, draws)
