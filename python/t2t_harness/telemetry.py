"""What the GPU was doing around a measurement: clocks, temperature, power, throttling, other processes; and which GPU it is.

A missing or silent `nvidia-smi` gives None and never fails a measurement.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

QUERIES = {
    "sm_clock_mhz": "clocks.sm",
    "memory_clock_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "driver": "driver_version",
    "name": "name",
}

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


def device_facts(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `device` of a bench document: what ran it. `model` is the request's, `interpreter` where there is no GPU."""
    if request["lane"] != "cuda":
        return {"model": "interpreter", "name": None, "uuid": None, "driver": None, "capability": None}
    import torch

    properties = torch.cuda.get_device_properties(0)
    told = snapshot()
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


def snapshot() -> dict[str, Any] | None:
    """Returns clocks in MHz, temperature in °C, power in W, throttle reasons and the count of other processes, of this process's GPU.

    None where `nvidia-smi` cannot be asked. CUDA must have been started in this process, which counts as one of those listed.
    """
    uuid = device_uuid()
    rows = ask(uuid, "--query-gpu=" + ",".join(QUERIES.values()))
    if not rows:
        return None
    facts: dict[str, Any] = {name: value_of(text) for name, text in zip(QUERIES, rows[0], strict=False)}
    facts["driver"] = rows[0][list(QUERIES).index("driver")]
    reasons = ask(uuid, "--query-gpu=clocks_event_reasons.active") or ask(
        uuid, "--query-gpu=clocks_throttle_reasons.active"
    )
    facts["throttle"] = throttles(reasons[0][0]) if reasons else None
    processes = ask(uuid, "--query-compute-apps=pid")
    # In a container the listed ids are not this namespace's: this process is one of them, whichever.
    facts["other_processes"] = None if processes is None else max(len({row[0] for row in processes}) - 1, 0)
    return facts


def ask(uuid: str | None, *query: str) -> list[list[str]] | None:
    """Returns the rows that `nvidia-smi` answers, as texts; None where it fails."""
    chosen = [] if uuid is None else ["-i", uuid]
    command = ["nvidia-smi", *chosen, *query, "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [[cell.strip() for cell in line.split(",")] for line in told.splitlines() if line.strip()]


def value_of(text: str) -> float | str | None:
    """Returns a cell as a number where it is one, None where `nvidia-smi` does not know, else the text."""
    try:
        return float(text)
    except ValueError:
        return None if text.startswith("[") or text == "N/A" else text


def throttles(mask: str) -> list[str]:
    """Returns what the hexadecimal `mask` of active clock reasons says slows the GPU down; nothing for an unreadable mask."""
    try:
        bits = int(mask, 16)
    except ValueError:
        return []
    return [reason for bit, reason in THROTTLES.items() if bits & bit]


def disturbances(snapshots: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """Returns why figures measured between the snapshots cannot be relied on, in words; nothing where none of them says so."""
    found: list[str] = []
    for one in snapshots:
        if one is None:
            continue
        found += [f"throttled: {reason}" for reason in one["throttle"] or [] if reason in SLOWDOWNS]
        if one["other_processes"]:
            found.append(f"other processes on the GPU: {one['other_processes']}")
    return list(dict.fromkeys(found))
