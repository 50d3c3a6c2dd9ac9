"""Whether the work of a call belongs to the stream that it was called on, as the work of torch's own functions does.

A caller waits for its own stream alone, and so do the events that time a call. A wrapper may use other streams if they wait for the caller's stream
first and it waits for them afterwards. A missing wait seldom shows. So a check delays launches on other streams, and the inputs, to make it visible.
torch is imported only inside functions.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

HELD_UP = 40_000_000
"""Cycles for which a launch on another stream is held up: 20 ms or more, longer than a wrapper takes to return."""

SERIES_MS = 2.0
MOST_CALLS, FEWEST_CALLS = 64, 2
"""How long a series of calls should keep the device at work after which it is seen whether work goes on when their stream has finished, and how
many calls it may be."""

CYCLES_PER_US = 3_000
"""Cycles of which no device does more in a microsecond."""

HOST_REACH, HOST_START_US = 1.5, 200.0
"""How many times as long as the host should need for a series its stream is held up, and for how much longer."""

SERIES, MORE_SERIES = 3, 9
"""How many series must all show work that is left, and how many more where they do: a host that is busy is slow to ask in some, and a call that
leaves work does so in each."""

LEFT_S = 1e-4
"""Seconds that may pass between the end of the stream and the end of the device's work; asking takes a few microseconds on an idle host."""


def current() -> int:
    """Returns the handle of the stream that calls of this thread go to."""
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


def hold_up() -> None:
    """Keeps the present stream busy for a while."""
    import torch

    torch.cuda._sleep(HELD_UP)  # type: ignore[no-untyped-call]


def come_late(given: Mapping[str, torch.Tensor]) -> None:
    """Makes the values of `given` arrive on the present stream only after a launch that was held up would have read them; until then they are
    others. Leaves alone what cannot be written in place."""
    import torch

    with torch.no_grad():
        writable = [value for value in given.values() if value.numel() and not is_expanded(value)]
        kept = [value.clone() for value in writable]
        for value in writable:
            value.fill_(float("nan") if value.is_floating_point() else 0)
        torch.cuda.synchronize()
        torch.cuda._sleep(3 * HELD_UP)  # type: ignore[no-untyped-call]
        for value, right in zip(writable, kept, strict=True):
            value.copy_(right)


def is_expanded(value: torch.Tensor) -> bool:
    """Tells whether elements of `value` share memory."""
    return any(stride == 0 and length > 1 for stride, length in zip(value.stride(), value.shape, strict=True))


def outlasts(
    call: Callable[[], object], counter: Callable[[], float], milliseconds: float, host_us: float = math.inf
) -> bool:
    """Tells whether the device still works for calls in a row when the stream that they were made on has finished.

    `milliseconds` is what one call is said to take, `host_us` what the host takes to make one in µs. The stream is held up until all calls are made, so that the host's speed
    decides nothing.
    """
    calls = max(FEWEST_CALLS, min(MOST_CALLS, int(SERIES_MS / max(milliseconds, 1e-6))))
    cycles = int(min(HELD_UP / 2, CYCLES_PER_US * (HOST_REACH * calls * host_us + HOST_START_US)))
    if any(left_after(call, counter, calls, cycles) <= LEFT_S for _ in range(SERIES)):
        return False
    # In turns: a host that becomes slow meanwhile is slow in both. Where the device works for longer, a host that waited sleeps, and is slower to ask: it is asked after as long.
    as_long = cycles + int(min(HELD_UP, CYCLES_PER_US * 1e3 * calls * milliseconds))
    left: list[float] = []
    asking: list[float] = []
    for _ in range(MORE_SERIES):
        left.append(left_after(call, counter, calls, cycles))
        asking.append(left_after(call, counter, 0, as_long))
    return min(left) > LEFT_S + statistics.median(asking)


def left_after(call: Callable[[], object], counter: Callable[[], float], calls: int, cycles: int) -> float:
    """Returns the seconds from the end of the stream of a series of calls, held up for so many cycles, to the end of the device's work."""
    import torch

    torch.cuda.synchronize()
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
    for _ in range(calls):
        call()
    torch.cuda.current_stream().synchronize()
    own = counter()
    torch.cuda.synchronize()
    return counter() - own
