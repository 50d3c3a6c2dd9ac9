"""Memory around tensors on a device that no kernel may write to, and values there that no result may depend on.

Inputs, and the memory that torch hands out to a wrapper, lie between two guards of `BYTES`. Their bytes differ between the two runs of a case, so a
result that depends on them differs, too. If bytes of a guard change in a run, a kernel wrote too far. Further away nothing is seen. torch is imported
only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

BYTES = 4096
"""On each side of a tensor; a multiple of what any access is aligned to."""

MOST = 1 << 30
"""The most bytes of tensors that are kept for their guards in one call."""


@dataclass
class Guard:
    """A tensor's memory with its guards."""

    name: str
    """What an input is called; nothing for memory that torch handed out."""
    storage: torch.UntypedStorage
    stop: int
    """Where the guard behind the tensor begins, in bytes."""
    before: torch.Tensor
    """The bytes of both guards, as they were."""


@dataclass
class Guards:
    """The guards of one call of a wrapper."""

    poison: Callable[[torch.Tensor], None]
    """Fills the storage of a tensor."""
    found: list[Guard] = field(default_factory=list)
    held: int = 0

    def inputs(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns copies of the tensors `given` between guards, with their strides and all bytes of their storages."""
        return {name: self.between(value, name, copies=True) for name, value in given.items()}

    def handed_out(self, value: Any, *, copies: bool) -> Any:
        """Returns memory that torch handed out to the wrapper, between guards and with its values if it `copies`; what is not on a device, or is no plain dense tensor, as it is."""
        import torch

        is_plain = type(value) is torch.Tensor and value.device.type == "cuda" and value.layout is torch.strided
        return self.between(value, "", copies=copies) if is_plain else value

    def between(self, value: torch.Tensor, name: str, *, copies: bool) -> torch.Tensor:
        """Returns a tensor as `value`, at the beginning of its storage, in memory between guards."""
        import torch

        size = value.untyped_storage().nbytes()
        if size == 0 or value.storage_offset() != 0 or self.held + size > MOST:
            return value
        self.held += size
        # What follows is aligned as memory of torch's own is.
        memory = torch.empty(2 * BYTES + -(-size // 512) * 512, dtype=torch.uint8, device=value.device)
        storage = memory.untyped_storage()
        own = torch.empty(0, dtype=value.dtype, device=value.device)
        own.set_(storage, BYTES // value.element_size(), value.shape, value.stride())
        self.poison(own)
        guard = Guard(name, storage, BYTES + size, memory.new_empty(0))
        guard.before = guarded_bytes(guard).clone()
        if copies:
            memory[BYTES : BYTES + size].copy_(bytes_of(value.untyped_storage()))
        self.found.append(guard)
        return own

    def forget(self, values: list[object]) -> None:
        """Takes that torch may have made the tensors among `values` larger: they may have grown into their guards."""
        import torch

        grown = {one.untyped_storage().data_ptr() for one in values if isinstance(one, torch.Tensor)}
        self.found = [one for one in self.found if one.storage.data_ptr() not in grown]

    def broken(self) -> list[str]:
        """Returns in words which guards have other bytes than before, and lets go of all. To be called once the device has done its work."""
        told = []
        for guard in self.found:
            now = guarded_bytes(guard)
            if now.equal(guard.before):
                continue
            wrong = (now != guard.before).nonzero().reshape(-1)
            whose = f"input `{guard.name}`" if guard.name else "memory that torch handed out"
            first = int(wrong[0])
            at = (
                f"{BYTES - first} bytes before the beginning"
                if first < BYTES
                else f"{first - BYTES} bytes behind the end"
            )
            told.append(f"{wrong.numel()} bytes were written outside of {whose}, the first {at}")
        self.found.clear()
        return told


def bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """Returns a storage as a tensor of its bytes, which shares its memory."""
    import torch

    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def guarded_bytes(guard: Guard) -> torch.Tensor:
    """Returns a copy of the bytes of both guards, one after the other."""
    import torch

    memory = bytes_of(guard.storage)
    return torch.cat([memory[:BYTES], memory[guard.stop :]])
