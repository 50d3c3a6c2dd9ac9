"""The clock of a device, on one that is made up: how many calls a run has, and what is done before each."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from triton.runtime.driver import driver

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring import clock, spans

CLEARING_MS, CALL_MS, FRESH_MS = 0.06, 0.02, 0.02


class Device:
    """A device that does at once what it is asked to, and Triton's driver of it."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.done: list[str] = []

    def work(self, name: str, ms: float) -> None:
        """Does something that takes so long."""
        self.done.append(name)
        self.ms += ms

    def get_device_interface(self) -> object:
        """Returns torch's module of the device."""
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> object:
        """Returns what is written to where the cache is cleared."""
        return object()

    def clear_cache(self, cache: object) -> None:
        """Clears the cache."""
        self.work("clear", CLEARING_MS)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Returns a device that torch's events time."""
    made = Device()

    class Event:
        """An event on it."""

        def __init__(self, enable_timing: bool) -> None:
            self.at = 0.0

        def record(self) -> None:
            """Notes when it is reached."""
            self.at = made.ms

        def elapsed_time(self, end: Event) -> float:
            """Returns the ms until `end`."""
            return end.at - self.at

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(driver, "_active", made)
    monkeypatch.setattr(spans, "timing", nullcontext)
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
