"""Streams and device memory, as far as no device is needed: a device of our own stands for it. tests/it/gpu.rs has the rest."""

from types import SimpleNamespace

import pytest
import torch

from t2t_harness import failure, memory, streams


class Device:
    """A device with the caller's stream and another: the times at which both, and the host, are done with what they have."""

    def __init__(self) -> None:
        self.host = self.own = self.other = 0.0

    def finish_own(self) -> None:
        self.host = max(self.host, self.own)

    def finish_all(self) -> None:
        self.host = max(self.host, self.own, self.other)

    def hold_up(self, _: int) -> None:
        self.own = max(self.own, self.host) + 0.02

    def call(self, milliseconds: float, *, joins: bool) -> None:
        self.host += 1e-4
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
    assert streams.outlasts(lambda: device.call(milliseconds, joins=False), lambda: device.host, 0.002)


@pytest.mark.parametrize("milliseconds", [0.004, 0.1, 8.0])
def test_work_that_is_waited_for_does_not_outlast_its_stream(device: Device, milliseconds: float) -> None:
    assert not streams.outlasts(lambda: device.call(milliseconds, joins=True), lambda: device.host, milliseconds)


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
