"""Who wrote a result: a launch, or something that neither is a launch nor went through torch's dispatcher.

Memory that torch has just handed out is poisoned again right before the first launch that gets it, so whatever else wrote there before is gone. After
each launch the bytes of its tensors are noted. Those of a result must be the same when the wrapper returns, but for what torch was seen to write.
torch is imported only inside functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Bytes = bytes | torch.Tensor
    """A copy of bytes: on a device it stays there."""

MOST_BYTES = 256 << 20
"""Storages of more bytes are not noted."""


@dataclass
class Written:
    """What is known of the memory of one call of a wrapper, by the address of its storage."""

    poison: Callable[[torch.Tensor], None]
    """Fills fresh memory."""
    fresh: set[int] = field(default_factory=set)
    """Handed out by torch, and not written yet."""
    began: dict[int, Bytes] = field(default_factory=dict)
    """The bytes before the first launch that was given it, where it had been written; none where it had not."""
    left: dict[int, Bytes] = field(default_factory=dict)
    """The bytes after the last launch that was given it."""

    def handed_out(self, value: object) -> None:
        """Notes unwritten memory that torch made."""
        self.made([value])
        self.fresh |= {address(one) for one in tensors([value])}

    def made(self, values: Iterable[object]) -> None:
        """Notes that the memory of `values` is new, and filled by torch: what is known of its addresses was of tensors that are gone."""
        for one in tensors(values):
            self.fresh.discard(address(one))
            self.began.pop(address(one), None)
            self.left.pop(address(one), None)

    def touched(self, values: Iterable[object]) -> None:
        """Notes that torch wrote to the memory of some of `values`, and may have written to all of it."""
        for one in tensors(values):
            self.fresh.discard(address(one))
            self.left.pop(address(one), None)

    def launching(self, values: Iterable[object]) -> None:
        """To be called before a launch with its arguments."""
        for one in tensors(values):
            where = address(one)
            if where in self.fresh:
                self.poison(one)
                self.fresh.discard(where)
                self.began.setdefault(where, b"")
            elif where not in self.began and is_noted(one):
                self.began[where] = bytes_of(one)

    def launched(self, values: Iterable[object]) -> None:
        """To be called after a launch with its arguments."""
        self.left |= {address(one): bytes_of(one) for one in tensors(values) if is_noted(one)}

    def is_by_hand(self, value: torch.Tensor) -> bool:
        """Tells whether a result's memory has other bytes than its last launch left there."""
        left = self.left.get(address(value))
        return left is not None and not is_same(left, bytes_of(value))

    def is_changed(self, value: torch.Tensor) -> bool:
        """Tells whether a launch changed a result's memory, or may have: it was fresh, or its bytes are not those from before the launches."""
        began = self.began.get(address(value))
        return began is None or len(began) == 0 or not is_same(began, bytes_of(value))


def tensors(values: Iterable[object]) -> list[torch.Tensor]:
    """Returns the tensors with memory among `values`, and those that others, such as descriptors, are made of."""
    import torch

    kind = torch.Tensor
    found = (value if isinstance(value, kind) else getattr(value, "base", value) for value in values)
    return [one for one in found if isinstance(one, kind) and one.untyped_storage().nbytes() > 0]


def address(value: torch.Tensor) -> int:
    """Returns the address of the storage of `value`."""
    return int(value.untyped_storage().data_ptr())


def is_noted(value: torch.Tensor) -> bool:
    """Tells whether the bytes of a storage are few enough to be noted."""
    return int(value.untyped_storage().nbytes()) <= MOST_BYTES


def bytes_of(value: torch.Tensor) -> Bytes:
    """Returns a copy of the bytes in the storage of `value`."""
    import torch

    storage = value.untyped_storage()
    # What a storage says of its device, no function mode hears. torch takes several times as long for a few bytes.
    if storage.device.type == "cpu":
        return ctypes.string_at(storage.data_ptr(), storage.nbytes())
    return torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage).clone()


def is_same(one: Bytes, other: Bytes) -> bool:
    """Tells whether two copies of bytes, made on one device, are equal."""
    if isinstance(one, bytes) or isinstance(other, bytes):
        return one is other or (isinstance(one, bytes) and isinstance(other, bytes) and one == other)
    return one.equal(other)
