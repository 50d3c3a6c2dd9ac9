"""The clock of a device, on one that is made up: how many calls a run has, and what is done before each."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from triton.runtime.driver import driver as triton

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring import clock, driver, spans

# Sums of them are exact.
CLEARING_MS, CALL_MS, FRESH_MS = 2**-4, 2**-5, 2**-5


class Device:
    """A device that does at once what it is asked to, CUDA's driver of it, and Triton's."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.done: list[str] = []
        self.reached: dict[int, float] = {}

    def work(self, name: str, ms: float) -> None:
        """Does something that takes so long."""
        self.done.append(name)
        self.ms += ms

    def events(self, count: int) -> list[int]:
        """Returns so many events."""
        return list(range(count))

    def record(self, event: int) -> None:
        """Notes when an event is reached."""
        self.reached[event] = self.ms

    def elapsed_ms(self, begin: int, end: int) -> float:
        """Returns the ms between two events."""
        return self.reached[end] - self.reached[begin]

    def clear(self, value: object) -> None:
        """Clears the cache."""
        self.work("clear", CLEARING_MS)

    def get_device_interface(self) -> object:
        """Returns torch's module of the device."""
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> object:
        """Returns what is written to where the cache is cleared."""
        return object()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Returns a device whose events are timed."""
    made = Device()
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(triton, "_active", made)
    monkeypatch.setattr(driver, "opened", lambda: made)
    monkeypatch.setattr(spans, "timing", nullcontext)
    monkeypatch.setattr(spans, "work", lambda _: nullcontext())
    return made


@pytest.fixture
def waits(device: Device, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns how many calls had been made at each wait for the device, while there was one."""
    found: list[int] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: found.append(device.done.count("call")))
    return found


def test_a_run_lasts_as_long_as_it_is_told_with_what_is_done_before_each_call(device: Device) -> None:
    call, fresh = (lambda: device.work("call", CALL_MS)), (lambda: device.work("fresh", FRESH_MS))
    timed = clock.event_clock(0).sample(call, 25, 100, fresh, None, fresh)
    assert timed == pytest.approx([CALL_MS] * 800)
    counts = Counter(device.done)
    assert counts == {"fresh": 5 + 800, "clear": clock.CLEARED + 5 + 800, "call": 1 + 5 + 200 + 800}
    assert device.done[-3:] == ["fresh", "clear", "call"]


def test_what_an_estimate_says_is_not_estimated_again(device: Device) -> None:
    call, fresh = (lambda: device.work("call", CALL_MS)), (lambda: device.work("fresh", FRESH_MS))
    timed = clock.event_clock(0).sample(call, 0, 100, fresh, 0.5, fresh)
    assert (len(timed), Counter(device.done)) == (200, {"fresh": 200, "clear": clock.CLEARED + 200, "call": 201})


def test_the_device_is_waited_for_after_each_few_calls(device: Device, waits: list[int]) -> None:
    clock.event_clock(0).sample(lambda: device.work("call", CALL_MS), 0, 50, estimate_ms=1.0)
    groups = [1 + first for first in range(0, 50, clock.GROUP)]
    assert waits[-len(groups) - 1 :] == [*groups, 51]


@pytest.mark.parametrize(
    ("host_ms", "estimate_ms", "clears"),
    [(0.03, 0.07, 0), (0.05, 0.1, 1), (0.1, 0.2, 2), (0.35, 0.5, 7), (5.0, 50.0, 16)],
)
def test_the_slower_the_host_the_further_it_is_ahead(host_ms: float, estimate_ms: float, clears: int) -> None:
    assert clock.clears_ahead(host_ms, clock.Clearing(CLEARING_MS, 0.012), estimate_ms) == clears


def test_a_host_slower_than_the_device_is_not_ahead() -> None:
    clearing = clock.Clearing(CLEARING_MS, 0.012)
    assert clock.clears_ahead(0.066, clearing, 0.083) == 0, "an iteration takes as long as the host"


def test_a_slow_call_is_made_when_the_cache_was_cleared_more_often(device: Device) -> None:
    def call() -> None:
        begun = time.perf_counter()
        while time.perf_counter() < begun + 0.1e-3:
            pass
        device.work("call", CALL_MS)

    # As if the device took a second for each: the host is not the slower one, however seldom this process has its turn.
    clock.event_clock(0).sample(call, 0, 32_000, estimate_ms=1000.0)
    ahead = device.done.count("clear") - clock.CLEARED - 32
    assert ahead >= 2 * 2, "0.1 ms are hidden by clearing it twice, after each wait"


def test_clearing_the_cache_hides_as_much_of_the_host(device: Device) -> None:
    assert clock.event_clock(0).hidden_us() == pytest.approx(CLEARING_MS * 1e3)
    assert Counter(device.done) == {"clear": clock.CLEARED}


def test_what_replaces_the_driver_is_seen(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    found = clock.event_clock(0)
    assert found.replaced() == []
    monkeypatch.setattr(driver.Driver, "elapsed_ms", lambda *_: 1e-6)
    assert found.replaced() == ["Driver.elapsed_ms"]
