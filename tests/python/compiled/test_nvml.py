"""What NVML answers, asked of a stand-in for its C library, through NVIDIA's own Python package: units, fallbacks and refusals."""

from __future__ import annotations

import sys
from typing import Any

import pynvml
import pytest

from t2t_harness.measuring import nvml, telemetry

UUID = "GPU-1"


class Library:
    """NVML of a driver that has the old name of the clock reasons alone, and refuses the temperature and its version."""

    def nvmlInitWithFlags(self, flags: int) -> int:
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:
        return 0 if uuid.value == UUID.encode() else pynvml.NVML_ERROR_NOT_FOUND

    def nvmlDeviceGetClockInfo(self, handle: Any, which: Any, out: Any) -> int:
        out._obj.value = 1000 * which.value
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, out: Any) -> int:
        return pynvml.NVML_ERROR_NOT_SUPPORTED

    def nvmlDeviceGetPowerUsage(self, handle: Any, out: Any) -> int:
        out._obj.value = 351_500
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, out: Any) -> int:
        out._obj.value = 0x24
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, listed: Any) -> int:
        if listed is None:
            count._obj.value = 3
            return pynvml.NVML_ERROR_INSUFFICIENT_SIZE
        assert count._obj.value == len(listed) >= 3
        for index, pid in enumerate((7, 9, 9)):
            listed[index].pid = pid
        count._obj.value = 3
        return 0

    def nvmlDeviceGetName(self, handle: Any, text: Any, length: Any) -> int:
        text.value = b"NVIDIA H200"
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, length: Any) -> int:
        return pynvml.NVML_ERROR_UNKNOWN


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each test find what the package and the harness remember as a new process would."""
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    nvml.device.cache_clear()


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """Puts the stand-in in the library's place."""
    library = Library()
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    return library


def test_a_snapshot_is_in_the_units_of_the_documents_and_null_where_nvml_refuses(library: Library) -> None:
    assert telemetry.by_library(UUID, 1) == {
        "sm_clock_mhz": 1000,
        "memory_clock_mhz": 2000,
        "temperature_c": None,
        "power_w": 351.5,
        "driver": None,
        "name": "NVIDIA H200",
        "throttle": ["power cap", "thermal slowdown (software)"],
        "other_processes": 1,
    }


def test_the_new_name_of_the_clock_reasons_comes_first(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(handle: Any, out: Any) -> int:
        out._obj.value = 0
        return 0

    monkeypatch.setattr(Library, "nvmlDeviceGetCurrentClocksEventReasons", staticmethod(none), raising=False)
    snapshot = telemetry.by_library(UUID, 1)
    assert snapshot is not None and snapshot["throttle"] == []


def test_a_device_that_is_not_there_is_none(library: Library) -> None:
    assert nvml.device("GPU-00000000-0000-0000-0000-000000000000") is None
    assert telemetry.by_library(None, 1) is None


def test_a_machine_without_the_library_or_its_package_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(pynvml, "CDLL", missing)
    assert telemetry.by_library(UUID, 1) is None
    nvml.device.cache_clear()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert telemetry.by_library(UUID, 1) is None
