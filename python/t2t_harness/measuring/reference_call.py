"""Torch's side of timed calls: a call of the op, and what an instance of its class keeps of one.

torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_harness.faults import failure, memory
from t2t_harness.measuring import timing
from t2t_harness.op import module_kept, module_state, results

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, Reply
    from t2t_harness.cases.cases import Case
    from t2t_harness.measuring.clock import Call
    from t2t_harness.op.operation import Function


@dataclass(frozen=True)
class ReferenceCall:
    """A call of the op's torch callable, with nothing between the clock and torch."""

    call: Call
    function: Function
    kept: module_kept.Kept
    """What an instance of a class kept before, as far as a call changes it."""
    returns_own: bool
    """Whether a result lies in memory of a parameter or a buffer of the instance."""


class NoRoom(Exception):
    """The first calls of an instance of the op's class do not fit on the device: no kernel can be measured beside it. The message says at which size."""

    def reply(self) -> Reply:
        """Returns the reply of the phase that it ends."""
        return {
            "outcome": "not-judged",
            "class": None,
            "reason": str(self),
            "cites": False,
            "documents": {},
            "files": {},
        }


def made(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str = "cpu") -> ReferenceCall:
    """Returns a call of the op on `given`, after one or two calls; an instance is as it was constructed then.

    Raises what torch raises, and NoRoom from what it raises where the device has no memory left.
    """
    try:
        return _made(declaration, case, given, device)
    except Exception as error:
        if not failure.is_device_memory(failure.chain(error)[-1]):
            raise
        memory.raise_if_others_hold_it(error)
        lengths = ", ".join(f"{dim}={length}" for dim, length in case.binding.items())
        raise NoRoom(
            f"torch's own call at {lengths} needs more memory than the device has; "
            "a smaller size in `bench: {sizes: …}`, or a reference that needs less, can be measured"
        ) from error


def _made(declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str) -> ReferenceCall:
    function = timing.function_of(declaration, case, given, device)
    before = module_kept.Kept.of(function)
    call = timing.call_of(function, declaration, case, given, device)
    kept = before.only(before.changed(function))
    kept.restore(function)
    returns_own = False
    if module_kept.is_instance(function):
        returns_own = bool(module_state.in_own_memory(function, results.listed(call())))
        kept.restore(function)
    return ReferenceCall(call, function, kept, returns_own)
