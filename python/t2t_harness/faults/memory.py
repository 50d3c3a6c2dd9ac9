"""A device's memory: who is at fault if none is left, the kernel that asked for it or others that hold it, and how a child that stays lets go
of it.
"""

from __future__ import annotations

import functools
import gc
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from t2t_harness.faults import failure

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, Reply

Asked = TypeVar("Asked", bound="Common")
"""The request of a phase."""

OWN_CONTEXT = 4 << 30
"""Bytes that CUDA itself may take beside what torch asked for, for this process and three that t2t keeps ready; each takes less than 1 GiB on an H200. Where more are
ready, the action is repeated without them."""

KEPT = 4
"""One part of so many of the device's memory is what a child which stays may keep for its next call: to ask for memory, or to give it back, waits for every process that starts
or ends on the device, a second where many do. A kernel that finds too little left is called again without that child."""


ASKED = re.compile(r"Tried to allocate (?P<count>[0-9.]+) (?P<unit>bytes|[KMG]iB)")
"""How torch says what it asked for (torch/csrc, `CUDACachingAllocator.cpp`, `format_size`)."""

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def raise_if_others_hold_it(error: BaseException) -> None:
    """Raises `error` again if it says that the device has no memory left, other processes hold some, and the whole device would do: the machine failed, not the kernel."""
    first = failure.chain(error)[-1]
    if failure.is_device_memory(first) and held_by_others() > OWN_CONTEXT and asked(first) <= left_by_itself():
        raise error


def asked(error: BaseException) -> int:
    """Returns how many bytes were asked for where torch raised `error`; 0 where it does not say."""
    found = ASKED.search(str(error))
    return int(float(found["count"]) * UNITS[found["unit"]]) if found else 0


def left_by_itself() -> int:
    """Returns how many bytes of the present device this process's torch has not given out, whoever holds them."""
    import torch

    return part_of_device(1) - int(torch.cuda.memory_allocated(torch.cuda.current_device()))


def held_by_others() -> int:
    """Returns how many bytes of the present device are in use and were not asked for by this process's torch."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return int(total - free - torch.cuda.memory_reserved())


def part_of_device(part: int) -> int:
    """Returns how many bytes one part of so many of the present device's memory is."""
    import torch

    return int(torch.cuda.get_device_properties(0).total_memory) // part


def let_go(function: Callable[[Asked], Reply]) -> Callable[[Asked], Reply]:
    """Returns the phase function of a child that stays: on a device, no more than its part of the memory is held once it has returned."""

    @functools.wraps(function)
    def letting_go(request: Asked) -> Reply:
        try:
            return function(request)
        finally:
            if request["lane"] == "cuda":
                import torch

                if torch.cuda.memory_reserved() > part_of_device(KEPT):
                    # Only now: a look through all objects takes as long as many cases.
                    gc.collect()
                    torch.cuda.empty_cache()

    return letting_go
