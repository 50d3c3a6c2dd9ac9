"""The clock of a device, on one that is made up: how many calls a run has, and what is done before each."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from triton.runtime.driver import driver as triton

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring import clock, driver, spans

CLEARING_MS, CALL_MS, FRESH_MS = 0.06, 0.02, 0.02


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


def test_a_run_lasts_as_long_as_it_is_told_with_what_is_done_before_each_call(device: Device) -> None:
    call, fresh = (lambda: device.work("call", CALL_MS)), (lambda: device.work("fresh", FRESH_MS))
    timed = clock.event_clock(0).sample(call, 25, 100, fresh, None, fresh)
    assert timed == pytest.approx([CALL_MS] * 1000)
    counts = Counter(device.done)
    assert counts == {"fresh": 5 + 1000, "clear": 5 + 1000, "call": 1 + 5 + 250 + 1000}
    assert device.done[-3:] == ["fresh", "clear", "call"]


def test_what_an_estimate_says_is_not_estimated_again(device: Device) -> None:
    call, fresh = (lambda: device.work("call", CALL_MS)), (lambda: device.work("fresh", FRESH_MS))
    timed = clock.event_clock(0).sample(call, 0, 100, fresh, 0.5, fresh)
    assert (len(timed), Counter(device.done)) == (200, {"fresh": 200, "clear": 200, "call": 201})


def test_clearing_the_cache_hides_as_much_of_the_host(device: Device) -> None:
    assert clock.event_clock(0).hidden_us() == pytest.approx(CLEARING_MS * 1e3)
    assert Counter(device.done) == {"clear": clock.CLEARED}


def test_what_replaces_the_driver_is_seen(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    found = clock.event_clock(0)
    assert found.replaced() == []
    monkeypatch.setattr(driver.Driver, "elapsed_ms", lambda *_: 1e-6)
    assert found.replaced() == ["Driver.elapsed_ms"]
