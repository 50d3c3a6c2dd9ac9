"""NVIDIA's management library, asked in this process: a few questions in a millisecond, where `nvidia-smi` is a process of its own for each.

It knows numbers and says nothing of what they mean. A machine without the library, or one that refuses a question, gives None.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

LIBRARY = "libnvidia-ml.so.1"

SM, MEMORY = 1, 2
"""NVML's numbers of two clocks."""

TEMPERATURE = 0
"""NVML's number of the sensor on the chip."""

PROCESSES = 256
"""Most processes that are listed."""

TEXT = 96
"""Bytes that NVML's texts fit into."""


class Process(ctypes.Structure):
    """A process on a device, as NVML 3 lists it."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Device:
    """One device of the running library."""

    def __init__(self, library: Any, handle: ctypes.c_void_p) -> None:
        self.library = library
        self.handle = handle

    def number(self, *names: str, before: tuple[int, ...] = (), wide: bool = False) -> int | None:
        """Returns what the first of the functions `names` that the library has answers, called with the numbers `before`; None where it fails."""
        found = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        for name in names:
            function = getattr(self.library, name, None)
            if function is None:
                continue
            failed = function(self.handle, *map(ctypes.c_uint, before), ctypes.byref(found))
            return None if failed else int(found.value)
        return None

    def clock(self, which: int) -> int | None:
        """Returns a clock in MHz."""
        return self.number("nvmlDeviceGetClockInfo", before=(which,))

    def temperature(self) -> int | None:
        """Returns the chip's temperature in °C."""
        return self.number("nvmlDeviceGetTemperature", before=(TEMPERATURE,))

    def power(self) -> float | None:
        """Returns the power in W."""
        milliwatts = self.number("nvmlDeviceGetPowerUsage")
        return None if milliwatts is None else milliwatts / 1000

    def slowed(self) -> int | None:
        """Returns the mask of the reasons for the present clocks."""
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        return self.number(*names, wide=True)

    def processes(self) -> list[int] | None:
        """Returns the ids of the processes that compute on the device, of whichever namespace; this one's may be among them."""
        listed = (Process * PROCESSES)()
        count = ctypes.c_uint(PROCESSES)
        function = getattr(self.library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if function is None or function(self.handle, ctypes.byref(count), listed):
            return None
        return [int(one.pid) for one in listed[: count.value]]

    def name(self) -> str | None:
        """Returns what the driver calls the device."""
        text = ctypes.create_string_buffer(TEXT)
        return None if self.library.nvmlDeviceGetName(self.handle, text, TEXT) else text.value.decode()

    def driver(self) -> str | None:
        """Returns the driver's version."""
        text = ctypes.create_string_buffer(TEXT)
        return None if self.library.nvmlSystemGetDriverVersion(text, TEXT) else text.value.decode()


@functools.cache
def device(uuid: str) -> Device | None:
    """Returns the device with this UUID, or None where the library or the device cannot be had.

    The library is started once, which takes 15 ms, and ends with the process.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
        if library.nvmlInit_v2() != 0:
            return None
    except (OSError, AttributeError):
        return None
    handle = ctypes.c_void_p()
    return None if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) else Device(library, handle)
