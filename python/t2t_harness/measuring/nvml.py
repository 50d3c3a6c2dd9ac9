"""NVIDIA's management library, asked in this process: a few questions in a millisecond, where `nvidia-smi` is a process of its own for each.

It knows numbers and says nothing of what they mean. A machine without the library or its Python package (`nvidia-ml-py`), or one that refuses a question, gives None.
"""

from __future__ import annotations

import functools
from typing import Any

SM, MEMORY = 1, 2
"""NVML's numbers of two clocks."""

TEMPERATURE = 0
"""NVML's number of the sensor on the chip."""


class Device:
    """One device of the running library, which is the module `pynvml`."""

    def __init__(self, library: Any, handle: Any) -> None:
        self.library = library
        self.handle = handle

    def number(self, *names: str, before: tuple[int, ...] = ()) -> int | None:
        """Returns what the first of the functions `names` that there is answers, called with the numbers `before`; None where it fails."""
        for name in names:
            function = getattr(self.library, name, None)
            if function is None:
                continue
            try:
                return int(function(self.handle, *before))
            except self.library.NVMLError_FunctionNotFound:
                continue
            except self.library.NVMLError:
                return None
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
        return self.number("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")

    def processes(self) -> list[int] | None:
        """Returns the ids of the processes that compute on the device, of whichever namespace; this one's may be among them."""
        try:
            return [int(one.pid) for one in self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.handle)]
        except (self.library.NVMLError, AttributeError):
            return None

    def name(self) -> str | None:
        """Returns what the driver calls the device."""
        try:
            return str(self.library.nvmlDeviceGetName(self.handle))
        except self.library.NVMLError:
            return None

    def driver(self) -> str | None:
        """Returns the driver's version."""
        try:
            return str(self.library.nvmlSystemGetDriverVersion())
        except self.library.NVMLError:
            return None


@functools.cache
def device(uuid: str) -> Device | None:
    """Returns the device with this UUID, or None where the package, the library or the device cannot be had.

    The library is started once, which takes 15 ms, and ends with the process.
    """
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return Device(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid))
    except pynvml.NVMLError:
        return None
