"""The generator of a CUDA device, where there is none: launchers read its seed and offset, and move the offset on for what their kernels draw.

torch is imported only inside functions.
"""

from __future__ import annotations

from typing import Any


class DeviceGenerator:
    """Stands for an entry of `torch.cuda.default_generators`. Its state is that of a device's: the seed and the offset, eight bytes each."""

    def __init__(self, seed: int) -> None:
        self.seed_, self.offset = seed, 0

    def get_state(self) -> Any:
        """Returns the state as bytes."""
        import torch

        signed = self.seed_ - 2**64 if self.seed_ >= 2**63 else self.seed_
        return torch.tensor([signed, self.offset], dtype=torch.int64).view(torch.uint8)

    def set_state(self, state: Any) -> None:
        """Takes the state from bytes."""
        import torch

        seed, offset = state.view(torch.int64).tolist()
        self.seed_, self.offset = seed % 2**64, offset

    def manual_seed(self, seed: int) -> DeviceGenerator:
        """Begins anew with `seed`."""
        self.seed_, self.offset = seed % 2**64, 0
        return self

    def initial_seed(self) -> int:
        """Returns the seed."""
        return self.seed_

    def get_offset(self) -> int:
        """Returns how many numbers have been drawn."""
        return self.offset

    def set_offset(self, offset: int) -> None:
        """Says how many numbers have been drawn."""
        self.offset = offset


def install() -> None:
    """Gives the process the generator of one device, which `torch.manual_seed` seeds. Never undone: the child ends with its action."""
    import torch

    made = DeviceGenerator(torch.initial_seed())
    torch.cuda.default_generators = (made,)  # type: ignore[assignment]
    torch.cuda.manual_seed = torch.cuda.manual_seed_all = made.manual_seed  # type: ignore[assignment]
    torch.cuda.initial_seed = made.initial_seed
    torch.cuda.get_rng_state = lambda device=None: made.get_state()
    torch.cuda.set_rng_state = lambda new_state, device=None: made.set_state(new_state)
