"""Streams and device memory, as far as no device is needed: a device of our own stands for it. tests/it/gpu.rs has the rest."""

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from triton.runtime import jit

from t2t_harness.counting import queues, streams
from t2t_harness.faults import failure, memory
from t2t_harness.triton import launching

HOST_US = 100.0
"""What the host takes for a call."""


class Device:
    """A device with the caller's stream and another: the times at which both, and the host, are done with what they have."""

    def __init__(self) -> None:
        self.host = self.own = self.other = 0.0
        self.asking = self.held = 0.0

    def finish_own(self) -> None:
        self.host = max(self.host, self.own)

    def finish_all(self) -> None:
        self.host = max(self.host, self.own, self.other) + self.asking

    def hold_up(self, cycles: int) -> None:
        held = cycles / streams.CYCLES_PER_US / 1e6
        self.own = max(self.own, self.host) + held
        self.held += held

    def call(self, milliseconds: float, *, joins: bool) -> None:
        self.host += HOST_US / 1e6
        self.other = max(self.other, self.own, self.host) + milliseconds / 1e3
        if joins:
            self.own = self.other


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    found = Device()
    monkeypatch.setattr(torch.cuda, "synchronize", found.finish_all)
    monkeypatch.setattr(torch.cuda, "_sleep", found.hold_up)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=found.finish_own))
    return found


@pytest.mark.parametrize("milliseconds", [0.004, 0.1, 8.0])
def test_work_that_its_stream_does_not_wait_for_outlasts_it(device: Device, milliseconds: float) -> None:
    # What is timed is the caller's stream, which has next to nothing to do.
    assert streams.outlasts(lambda: device.call(milliseconds, joins=False), lambda: device.host, 0.002, HOST_US)


@pytest.mark.parametrize("milliseconds", [0.004, 0.1, 8.0])
def test_work_that_is_waited_for_does_not_outlast_its_stream(device: Device, milliseconds: float) -> None:
    assert not streams.outlasts(
        lambda: device.call(milliseconds, joins=True), lambda: device.host, milliseconds, HOST_US
    )


@pytest.mark.parametrize("joins", [True, False])
def test_a_host_that_is_slow_to_ask_is_told_from_work_that_goes_on(device: Device, joins: bool) -> None:
    device.asking = 5e-4
    assert streams.outlasts(lambda: device.call(0.1, joins=joins), lambda: device.host, 0.1, HOST_US) is not joins


def test_a_host_that_is_slow_to_ask_after_it_waited_long_is_told_from_work_that_goes_on(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait() -> None:
        device.asking = 5e-4 if device.own - device.host > 1e-3 else 0.0
        device.finish_own()

    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=wait))
    assert not streams.outlasts(lambda: device.call(8.0, joins=True), lambda: device.host, 8.0, HOST_US)
    assert streams.outlasts(lambda: device.call(8.0, joins=False), lambda: device.host, 0.002, HOST_US)


def test_a_host_that_is_slow_in_some_series_says_nothing(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    series = iter(range(100))

    def stutter() -> None:
        device.asking = 5e-4 if next(series) < 16 else 0.0
        device.finish_all()

    monkeypatch.setattr(torch.cuda, "synchronize", stutter)
    assert not streams.outlasts(lambda: device.call(0.1, joins=True), lambda: device.host, 0.1, HOST_US)


@pytest.mark.parametrize(("milliseconds", "host_us", "calls"), [(0.005, 10.0, 64), (0.005, 60.0, 64), (8.0, 60.0, 2)])
def test_a_stream_is_held_up_for_as_long_as_the_host_needs_and_not_for_much_longer(
    device: Device, milliseconds: float, host_us: float, calls: int
) -> None:
    assert not streams.outlasts(
        lambda: device.call(milliseconds, joins=True), lambda: device.host, milliseconds, host_us
    )
    assert calls * host_us < device.held * 1e6 < 2 * calls * host_us + 300


def test_a_stream_is_held_up_for_milliseconds_where_nobody_knows_the_host(device: Device) -> None:
    assert not streams.outlasts(lambda: device.call(0.005, joins=True), lambda: device.host, 0.005)
    assert device.held == pytest.approx(streams.HELD_UP / 2 / streams.CYCLES_PER_US / 1e6)


def test_a_view_whose_elements_share_memory_is_expanded() -> None:
    assert streams.is_expanded(torch.zeros(1, 4).expand(3, 4))
    assert not streams.is_expanded(torch.zeros(4, 3).t())
    assert not streams.is_expanded(torch.zeros(1, 4).expand(1, 4))


def test_a_device_without_memory_is_the_kernels_doing_unless_others_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    error = torch.OutOfMemoryError("CUDA out of memory")
    of_the_device(monkeypatch, allocated=0)
    assert failure.class_of(error) == "memory"
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 4 << 30)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (75 << 30, 80 << 30))
    memory.raise_if_others_hold_it(error)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (20 << 30, 80 << 30))
    memory.raise_if_others_hold_it(ValueError("something else"))
    with pytest.raises(torch.OutOfMemoryError):
        memory.raise_if_others_hold_it(error)


def of_the_device(monkeypatch: pytest.MonkeyPatch, *, allocated: int) -> None:
    """Plays a device with 80 GiB of which this process's tensors hold some."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=80 << 30))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: allocated)


@pytest.mark.parametrize(
    ("words", "allocated", "is_others"),
    [
        ("Tried to allocate 4096.00 GiB. GPU 0 has a total capacity of 80 GiB", 0, False),
        ("Tried to allocate 80.00 GiB.", 0, True),
        ("Tried to allocate 80.00 GiB.", 1, False),
        ("Tried to allocate 512.00 MiB.", 79 << 30, True),
        ("Tried to allocate 1025.00 MiB.", 79 << 30, False),
        ("Tried to allocate 20.00 KiB.", 0, True),
        ("Tried to allocate 512 bytes.", 0, True),
    ],
)
def test_what_the_whole_device_would_not_hold_is_the_kernels_doing_whoever_holds_some(
    monkeypatch: pytest.MonkeyPatch, words: str, allocated: int, is_others: bool
) -> None:
    of_the_device(monkeypatch, allocated=allocated)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: allocated)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (0, (80 << 30) + allocated))
    error = torch.OutOfMemoryError(f"CUDA out of memory. {words}")
    with pytest.raises(torch.OutOfMemoryError) if is_others else contextlib.nullcontext():
        memory.raise_if_others_hold_it(error)


@pytest.mark.parametrize(("stream", "done"), [(0, ["launched"]), (7, ["compiled", "loaded", "held up", "launched"])])
def test_a_launch_on_another_stream_is_held_up_when_its_kernel_is_there(
    monkeypatch: pytest.MonkeyPatch, stream: int, done: list[str]
) -> None:
    seen: list[str] = []

    class Compiled:
        @property
        def run(self) -> None:
            seen.append("loaded")

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Compiled:
        seen.append("compiled" if warmup else "launched")
        return Compiled()

    present = [0]
    monkeypatch.setattr(jit.JITFunction, "run", run)
    monkeypatch.setattr(streams, "current", lambda: present[0])
    monkeypatch.setattr(streams, "hold_up", lambda: seen.append("held up"))
    kernel = SimpleNamespace(fn=lambda: None)
    with launching.recording("cuda", lambda tuner, configs: configs) as recorder:
        present[0] = stream
        jit.JITFunction.run(kernel, grid=(1,), warmup=False)
        assert (seen, recorder.elsewhere, len(recorder.launches)) == (done, int(stream != 0), 1)
        seen.clear()
        with queues.limit() as wanted, pytest.raises(queues.Wanted) if stream else contextlib.nullcontext():
            jit.JITFunction.run(kernel, grid=(1,), warmup=False)
        assert (bool(wanted), seen) == (stream != 0, [] if stream else done)
