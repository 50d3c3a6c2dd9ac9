"""Two clocks with one protocol: how long a call takes, sampled again and again.

`cuda-events` samples as `triton.testing.do_bench` does: it clears the L2 cache before each call and times it between two events on the device, by the driver (`driver`); but it waits for the device after each few calls. `host`
does the same with the host's clock, for the interpreter. The timing functions are captured when a clock is made, before any kernel's module is
imported, and compared afterwards. Before each timed call the caller may do something untimed, such as writing other inputs.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from t2t_harness.measuring import driver, spans

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Common

Call = Callable[[], object]

ESTIMATED = 5
"""Calls by which it is estimated how long one takes, as `triton.testing.do_bench` does."""

WARM_UP_S = 0.05
"""How long a device is kept at work before it is timed. One that was idle raises its clock within tens of milliseconds."""

IDLE_S = 0.5
"""How long a device that was timed may rest and still runs at the clock that it keeps under load: drivers lower it after seconds."""

CLEARED = 15
"""How often the cache is cleared to know how long that takes."""

GROUP = 16
"""After so many timed calls the device is waited for. A device takes up to a microsecond more or less for all calls from one wait to the next: with few waits runs differ."""

WATCHED = 4
"""Untimed calls by which it is known how long the host takes for one."""

MARGIN = 1.25
"""The host is ahead of the device by so many times as long as it takes for a call."""

MOST_AHEAD = 16
"""The cache is cleared at most so often for that."""

ESTIMATE_FLOOR_MS = 1e-4
"""A call is taken to last at least this long where calls are counted by their estimated time."""


def nothing() -> None:
    """Does nothing before a call."""


class Sampler(Protocol):
    """What times calls."""

    def __call__(
        self,
        call: Call,
        warmup_ms: float,
        rep_ms: float,
        before: Call = nothing,
        estimate_ms: float | None = None,
        fresh: Call = nothing,
    ) -> list[float]:
        """Returns one time in ms for each timed call, of which there is at least one; calls `before` before each of them, untimed.

        How many calls fit is estimated first, unless `estimate_ms` says how long a device takes for one, with the clearing of its cache. `fresh` is the part of `before` that takes time, and
        is called before each call of the estimate: where the host is slower than the device, a run would else last longer than `rep_ms`.
        """


@dataclass(frozen=True)
class Clock:
    """A way to time calls, and what it stands on."""

    name: str
    """`cuda-events` or `host`."""
    sample: Sampler
    """Takes a call, the warm-up and repetition times in ms, and what is to be done before each timed call; returns one time in ms per timed call, at least one."""
    counter: Callable[[], float]
    """The host's clock in seconds."""
    synchronize: Callable[[], None]
    """Waits until the device has finished."""
    warm: Callable[[Sequence[Call]], None]
    """Makes the calls in turns, untimed and once at least, until the device runs at the clock that it keeps under load; nothing where the host is the
    device."""
    hidden_us: Callable[[], float]
    """Measures how long the device takes in µs to clear its cache before a call, which hides as much of what the host does for the call; 0 where the host is the
    device."""
    parts: tuple[tuple[object, str, object], ...]
    """What it stands on: owner, attribute, and the value when the clock was made."""

    @property
    def is_device(self) -> bool:
        """Returns whether it is a device that is timed."""
        return self.name != "host"

    def replaced(self) -> list[str]:
        """Returns the names of the parts that are not what they were when the clock was made."""
        return [
            f"{getattr(owner, '__name__', owner)}.{name}"
            for owner, name, value in self.parts
            if getattr(owner, name, None) is not value
        ]


def clock_of(request: Common) -> Clock:
    """Returns the clock of the lane of `request`, which tells when its device was timed last (`timed_until`, nanoseconds of the monotonic clock). On `cuda` this starts
    CUDA."""
    return event_clock(int(request.get("timed_until") or 0)) if request["lane"] == "cuda" else host_clock()


def captured(*parts: tuple[object, str]) -> tuple[tuple[object, str, object], ...]:
    """Returns each owner and attribute with its present value."""
    return tuple((owner, name, getattr(owner, name)) for owner, name in parts)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keeps Python's garbage collector from running: the thousands of events of one sample set it off between two of them.

    What is there is taken out of its sight, so that it looks at all that was imported once, and not before every sample.
    """
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True)
class Clearing:
    """How long it takes to clear the cache once, in ms."""

    device_ms: float
    host_ms: float
    """With two events recorded: what the host does around each timed call."""


def clears_ahead(host_ms: float, clearing: Clearing, estimate_ms: float) -> int:
    """Returns how often the cache is cleared after the device was waited for, beside once before each call, so that it does not wait for the host: a call takes the host `host_ms`, and the
    device `estimate_ms` with the clearing of its cache. 0 where the host is the slower one, which no start ahead changes.
    """
    if host_ms + 1.5 * clearing.host_ms >= estimate_ms:
        return 0
    return min(MOST_AHEAD, int(MARGIN * host_ms / clearing.device_ms))


def event_clock(timed_until: int) -> Clock:
    """Returns the clock of CUDA events. The device was timed last at `timed_until`, in nanoseconds of the monotonic clock."""
    import torch
    from triton.runtime.driver import driver as triton

    device = driver.opened()
    active = type(triton.active)
    counter, synchronize = time.perf_counter, torch.cuda.synchronize
    # When the device was timed last.
    timed = counter() - (time.monotonic_ns() - timed_until) / 1e9
    known: list[Clearing] = []

    def empty_cache() -> torch.Tensor:
        found: torch.Tensor = triton.active.get_empty_cache_for_benchmark()
        return found

    def clearing(cache: torch.Tensor) -> Clearing:
        events = device.events(2 * CLEARED)
        pairs = list(zip(events[::2], events[1::2], strict=True))
        begun = counter()
        for begin, end in pairs:
            device.record(begin)
            device.clear(cache)
            device.record(end)
        host_s = (counter() - begun) / CLEARED
        synchronize()
        return Clearing(sorted(device.elapsed_ms(*pair) for pair in pairs)[CLEARED // 2], host_s * 1e3)

    def sample(
        call: Call,
        warmup_ms: float,
        rep_ms: float,
        before: Call = nothing,
        estimate_ms: float | None = None,
        fresh: Call = nothing,
    ) -> list[float]:
        nonlocal timed
        with uncollected(), spans.timing():
            cache = empty_cache()
            if not known:
                known.append(clearing(cache))
            estimate = estimated(call, cache, fresh) if estimate_ms is None else estimate_ms
            times = timed_calls(call, cache, warmup_ms, rep_ms, before, estimate)
        timed = counter()
        return times

    def estimated(call: Call, cache: torch.Tensor, fresh: Call) -> float:
        call()
        synchronize()
        begin, end = device.events(2)
        device.record(begin)
        for _ in range(ESTIMATED):
            fresh()
            device.clear(cache)
            call()
        device.record(end)
        synchronize()
        return max(device.elapsed_ms(begin, end) / ESTIMATED, ESTIMATE_FLOOR_MS)

    def timed_calls(
        call: Call, cache: torch.Tensor, warmup_ms: float, rep_ms: float, before: Call, estimate: float
    ) -> list[float]:
        clear, record = device.clear, device.record
        untimed, repetitions = (max(1, int(length / estimate)) for length in (warmup_ms, rep_ms))
        watched = min(WATCHED, untimed)
        ahead = clears_ahead(min(host_ms(call) for _ in range(watched)), known[0], estimate)
        for _ in range(untimed - watched):
            call()
        # They are made before the first call: torch would make each when it is recorded.
        events = device.events(2 * repetitions)
        pairs = list(zip(events[:repetitions], events[repetitions:], strict=True))
        for first in range(0, repetitions, GROUP):
            synchronize()
            for _ in range(ahead):
                clear(cache)
            for begin, end in pairs[first : first + GROUP]:
                before()
                clear(cache)
                record(begin)
                call()
                record(end)
        synchronize()
        return [device.elapsed_ms(begin, end) for begin, end in pairs]

    def host_ms(call: Call) -> float:
        synchronize()
        begun = counter()
        call()
        return (counter() - begun) * 1e3

    def warm(calls: Sequence[Call]) -> None:
        cache = empty_cache()
        with spans.work("cuda"):
            end = counter() + WARM_UP_S if counter() - timed > IDLE_S else counter()
            while True:
                for call in calls:
                    device.clear(cache)
                    call()
                synchronize()
                if counter() >= end:
                    return

    def hidden_us() -> float:
        with spans.work("cuda"):
            return clearing(empty_cache()).device_ms * 1e3

    parts = captured(
        (time, "perf_counter"),
        (torch.cuda, "synchronize"),
        (driver.Driver, "record"),
        (driver.Driver, "elapsed_ms"),
        (driver.Driver, "clear"),
        (active, "get_device_interface"),
        (active, "get_empty_cache_for_benchmark"),
    )
    return Clock("cuda-events", sample, counter, synchronize, warm, hidden_us, parts)


def host_clock() -> Clock:
    """Returns the clock of the host."""
    counter = time.perf_counter

    def timed(call: Call) -> float:
        begun = counter()
        call()
        return (counter() - begun) * 1e3

    def sample(
        call: Call,
        warmup_ms: float,
        rep_ms: float,
        before: Call = nothing,
        estimate_ms: float | None = None,
        fresh: Call = nothing,
    ) -> list[float]:
        before()
        first = timed(call)
        estimate = max(first, ESTIMATE_FLOOR_MS)
        for _ in range(int(warmup_ms / estimate)):
            call()
        repetitions = max(1, int(rep_ms / estimate))
        if repetitions == 1 and warmup_ms == 0:
            # A call longer than the whole run, as an interpreted one often is, is not made a second time.
            return [first]
        times = []
        for _ in range(repetitions):
            before()
            times.append(timed(call))
        return times

    return Clock(
        "host", sample, counter, lambda: None, lambda calls: None, lambda: 0.0, captured((time, "perf_counter"))
    )
