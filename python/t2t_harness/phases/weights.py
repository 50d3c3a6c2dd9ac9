"""What a case asks of a wrapper that is a class: to be constructed with other arguments, or to have other weights than its constructor's, which the reference has then, too."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from t2t_harness.op import module_state, operation

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases import cases
    from t2t_harness.sources.entry import Entry


class Unlike(Exception):
    """A case asks for something of the reference that the wrapper has not; the message says what."""


def require_class(case: cases.Case, entry: Entry) -> None:
    """Raises Unlike where `case` constructs a class with another argument, or has it evaluate, and the kernel's `entry` is none that can."""
    import torch

    if case.init is not None and not inspect.isclass(entry):
        raise Unlike("the kernel's entry is no class, which is constructed with arguments")
    if case.evaluates and not (inspect.isclass(entry) and issubclass(entry, torch.nn.Module)):
        raise Unlike("the kernel's entry is no torch.nn.Module, which is in a mode")


def shared(declaration: Declaration, case: cases.Case, wrapper: Entry, device: str) -> list[str]:
    """Returns the names of the parameters and buffers that have other values in `case` than the constructor gave them: those that the wrapper and the reference share; nothing where they have their own.

    Raises Unlike where they share none.
    """
    if not case.weights:
        return []
    names = module_state.shared(wrapper, operation.ready(declaration, case.binding, case.dtype, device))
    if not names:
        raise Unlike("the kernel's class holds other tensors than the reference")
    return names
