"""Streams and device memory, as far as no device is needed: a device of our own stands for it. tests/it/gpu.rs has the rest."""

from types import SimpleNamespace

import pytest
import torch

from t2t_harness import failure, memory, streams


class Device:
    """A device with the caller's stream and another, and the clock of both and of the host."""

    def __init__(self) -> None:
        self.now = self.own = self.other = 0.0

    def finish_own(self) -> None:
        self.now = max(self.now, self.own)

    def finish_all(self) -> None:
        self.now = max(self.now, self.own, self.other)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    found = Device()
    monkeypatch.setattr(torch.cuda, "synchronize", found.finish_all)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=found.finish_own))
    return found


def call(device: Device, *, joins: bool) -> None:
    device.now += 1.0
    device.other = max(device.other, device.now) + 10.0
    if joins:
        device.own = device.other


def test_work_that_its_stream_does_not_wait_for_outlasts_it(device: Device) -> None:
    assert streams.outlasts(lambda: call(device, joins=False), lambda: device.now)


def test_work_that_is_waited_for_does_not_outlast_its_stream(device: Device) -> None:
    assert not streams.outlasts(lambda: call(device, joins=True), lambda: device.now)


def test_a_view_whose_elements_share_memory_is_expanded() -> None:
    assert streams.is_expanded(torch.zeros(1, 4).expand(3, 4))
    assert not streams.is_expanded(torch.zeros(4, 3).t())
    assert not streams.is_expanded(torch.zeros(1, 4).expand(1, 4))


def test_a_device_without_memory_is_the_kernels_doing_unless_others_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    error = torch.OutOfMemoryError("CUDA out of memory")
    assert failure.class_of(error) == "memory"
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 4 << 30)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (75 << 30, 80 << 30))
    memory.raise_if_others_hold_it(error)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (20 << 30, 80 << 30))
    memory.raise_if_others_hold_it(ValueError("something else"))
    with pytest.raises(torch.OutOfMemoryError):
        memory.raise_if_others_hold_it(error)
