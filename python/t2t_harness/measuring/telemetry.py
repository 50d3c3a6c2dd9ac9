"""What the GPU was doing around a measurement: clocks, temperature, power, throttling, other processes; and which GPU it is.

It uses NVML in this process, or `nvidia-smi` where that does not work. A machine with neither gives None and never fails a measurement.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from t2t_harness.measuring import nvml, quiet

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, MeasuredDevice, Snapshot

QUERIES = {
    "sm_clock_mhz": "clocks.sm",
    "memory_clock_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "driver": "driver_version",
    "name": "name",
    "throttle": "clocks_event_reasons.active",
}
"""What a snapshot holds, and what `nvidia-smi` calls it."""

OLD_REASONS = "clocks_throttle_reasons.active"
"""What drivers before 535 call the reasons."""

THROTTLES = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}
"""Bits of the active clock reasons (NVML) that say that the GPU runs slower than it was asked to."""

SLOWDOWNS = frozenset(THROTTLES.values()) - {"power cap"}
"""What makes a figure unstable. A power cap is how a large product runs at all times: it is recorded, and counts only if the figure varies."""


def device_facts(request: Common, told: Snapshot | None) -> MeasuredDevice:
    """Returns the `device` of a bench document: what ran it. `model` is the request's, `interpreter` where there is no GPU.

    `told` is a snapshot, whose driver it is.
    """
    if request["lane"] != "cuda":
        return {"model": "interpreter", "name": None, "uuid": None, "driver": None, "capability": None}
    import torch

    properties = torch.cuda.get_device_properties(0)
    return {
        "model": request.get("model"),
        "name": properties.name,
        "uuid": device_uuid(),
        "driver": told["driver"] if told else None,
        "capability": [properties.major, properties.minor],
    }


def device_uuid() -> str | None:
    """Returns the UUID of this process's GPU as `nvidia-smi` writes it, or None."""
    import torch

    told = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    if told is None:
        return None
    return str(told) if str(told).startswith(("GPU-", "MIG-")) else f"GPU-{told}"


def snapshot(request: Common) -> Snapshot | None:
    """Returns clocks in MHz, temperature in °C, power in W, throttle reasons and the count of other processes, of this process's GPU.

    None where nobody can be asked, and on lanes without a device. CUDA must have been started in this process, which counts as one of those
    listed; so do the children that t2t has made ready there. The first of an action waits until nothing disturbs it.
    """
    beside = quiet.awaited(request)
    if request["lane"] != "cuda":
        return None
    uuid, own = device_uuid(), 1 + beside
    return by_library(uuid, own) or by_program(uuid, own)


def by_library(uuid: str | None, own: int) -> Snapshot | None:
    """Returns the snapshot as NVML tells it, or None where it cannot be asked."""
    device = None if uuid is None else nvml.device(uuid)
    if device is None:
        return None
    reasons, processes = device.slowed(), device.processes()
    return {
        "sm_clock_mhz": device.clock(nvml.SM),
        "memory_clock_mhz": device.clock(nvml.MEMORY),
        "temperature_c": device.temperature(),
        "power_w": device.power(),
        "driver": device.driver(),
        "name": device.name(),
        "throttle": None if reasons is None else reasons_of(reasons),
        "other_processes": None if processes is None else others(map(str, processes), own),
    }


def by_program(uuid: str | None, own: int) -> Snapshot | None:
    """Returns the snapshot as `nvidia-smi` tells it, or None where it cannot be asked."""
    names = list(QUERIES.values())
    rows = ask(uuid, "--query-gpu=" + ",".join(names)) or ask(
        uuid, "--query-gpu=" + ",".join([*names[:-1], OLD_REASONS])
    )
    if not rows:
        return None
    cells = dict(zip(QUERIES, rows[0], strict=False))
    processes = ask(uuid, "--query-compute-apps=pid")
    return {
        "sm_clock_mhz": number_of(cells["sm_clock_mhz"]),
        "memory_clock_mhz": number_of(cells["memory_clock_mhz"]),
        "temperature_c": number_of(cells["temperature_c"]),
        "power_w": number_of(cells["power_w"]),
        "driver": cells["driver"],
        "name": None if is_unknown(cells["name"]) else cells["name"],
        "throttle": throttles(cells["throttle"]),
        "other_processes": None if processes is None else others((row[0] for row in processes), own),
    }


def others(processes: Iterable[str], own: int) -> int:
    """Returns how many of the listed processes are not this build's, which has `own` there.

    In a container the listed ids are not this namespace's, so they can only be counted.
    """
    return max(len(set(processes)) - own, 0)


def ask(uuid: str | None, *query: str) -> list[list[str]] | None:
    """Returns the rows that `nvidia-smi` answers, as texts; None where it fails."""
    chosen = [] if uuid is None else ["-i", uuid]
    command = ["nvidia-smi", *chosen, *query, "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [[cell.strip() for cell in line.split(",")] for line in told.splitlines() if line.strip()]


def number_of(text: str) -> float | None:
    """Returns a cell as a number, None where `nvidia-smi` does not know it."""
    try:
        return float(text)
    except ValueError:
        return None


def is_unknown(text: str) -> bool:
    """Tells whether `nvidia-smi` says in a cell that it does not know."""
    return text.startswith("[") or text == "N/A"


def throttles(mask: str) -> list[str]:
    """Returns what the hexadecimal `mask` of active clock reasons says slows the GPU down; nothing for an unreadable mask."""
    try:
        return reasons_of(int(mask, 16))
    except ValueError:
        return []


def reasons_of(bits: int) -> list[str]:
    """Returns what the mask of active clock reasons says slows the GPU down."""
    return [reason for bit, reason in THROTTLES.items() if bits & bit]


def disturbances(snapshots: Sequence[Snapshot | None]) -> list[str]:
    """Returns why figures measured between the snapshots cannot be relied on, in words; nothing where none of them says so."""
    found: list[str] = []
    for one in snapshots:
        if one is None:
            continue
        found += [f"throttled: {reason}" for reason in one["throttle"] or [] if reason in SLOWDOWNS]
        if one["other_processes"]:
            found.append(f"other processes on the GPU: {one['other_processes']}")
    return list(dict.fromkeys(found))
