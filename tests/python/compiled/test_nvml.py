"""What NVML answers, asked of a stand-in for its library: units, fallbacks and refusals."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from t2t_harness.measuring import nvml, telemetry


class Library:
    """NVML of a driver that has the old name of the clock reasons alone, and refuses the temperature."""

    def nvmlDeviceGetClockInfo(self, handle: Any, which: Any, out: Any) -> int:
        out._obj.value = 1000 * which.value
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, out: Any) -> int:
        return 3

    def nvmlDeviceGetPowerUsage(self, handle: Any, out: Any) -> int:
        out._obj.value = 351_500
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, out: Any) -> int:
        out._obj.value = 0x24
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, listed: Any) -> int:
        assert count._obj.value == len(listed)
        for index, pid in enumerate((7, 9, 9)):
            listed[index].pid = pid
        count._obj.value = 3
        return 0

    def nvmlDeviceGetName(self, handle: Any, text: Any, length: int) -> int:
        text.value = b"NVIDIA H200"
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, length: int) -> int:
        return 1


def test_a_snapshot_is_in_the_units_of_the_documents_and_null_where_nvml_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, "device", lambda uuid: nvml.Device(Library(), ctypes.c_void_p()))
    assert telemetry.by_library("GPU-1", 1) == {
        "sm_clock_mhz": 1000,
        "memory_clock_mhz": 2000,
        "temperature_c": None,
        "power_w": 351.5,
        "driver": None,
        "name": "NVIDIA H200",
        "throttle": ["power cap", "thermal slowdown (software)"],
        "other_processes": 1,
    }


def test_a_device_that_is_not_there_is_none() -> None:
    assert nvml.device("GPU-00000000-0000-0000-0000-000000000000") is None
    assert telemetry.by_library(None, 1) is None
