"""What a candidate tells of itself while it runs, and what is read of it however the candidate ended: a file to which it adds one line of JSON after the other.

A line is added whole before the next thing happens, so a crash leaves all before it. What is no whole line does not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "progress.jsonl"
STATE, POSITION, FACTS = "state", "position", "facts"


def blank() -> dict[str, Any]:
    """Returns a state that says nothing: of a candidate that has not begun."""
    return {
        "running": None,
        "constants": {},
        "reach": {"cases": [], "missed": []},
        "load": None,
        "configurations": {"tried": 0, "dropped": []},
        "triton_cache": {"hits": 0, "misses": [], "launchers": {"hits": 0, "misses": []}},
    }


@dataclass
class Progress:
    """What a candidate told."""

    state: dict[str, Any] = field(default_factory=blank)
    """The last that it said of itself."""
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Of each case that was over, by position."""


def tell_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Tells `state`, which stands for all told before."""
    _tell(folder, {STATE: state})


def tell_case(folder: Path, position: int, facts: Mapping[str, Any]) -> None:
    """Tells the facts of the case at `position`."""
    _tell(folder, {POSITION: position, FACTS: facts})


def _tell(folder: Path, line: Mapping[str, Any]) -> None:
    # Opened anew each time: a kernel may close what it finds open.
    with (folder / FILE).open("ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


def read(folder: Path) -> Progress:
    """Returns what the candidate told that had `folder`; a blank one where it told nothing, or nothing that can be read."""
    found = Progress()
    try:
        lines = (folder / FILE).read_bytes().split(b"\n")
    except OSError:
        return found
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if not isinstance(told, dict):
            continue
        if isinstance(told.get(STATE), dict):
            found.state = {**blank(), **told[STATE]}
        elif isinstance(told.get(POSITION), int) and isinstance(told.get(FACTS), dict):
            found.facts[told[POSITION]] = told[FACTS]
    return found
