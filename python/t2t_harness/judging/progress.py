"""A candidate's progress: a file to which it appends a line of JSON for each step. It is read however the candidate ended.

A line is added whole before the next thing happens, so a crash leaves all before it. What is no whole line does not count.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from t2t_harness.judging import files

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Progress as State
    from t2t_harness.judging.told import Facts

FILE = "progress.jsonl"

MOST_BYTES = 64 << 20
"""The most that is read of a progress file."""

MOST_MISSED, MOST_WORDS = 1000, 20_000
"""The most entries of what no case reached, and characters of a text."""


class Malformed(Exception):
    """The progress file is malformed: kernel code wrote to it."""


STATE, POSITION, FACTS = "state", "position", "facts"


def blank() -> State:
    """Returns a state that says nothing: of a candidate that has not begun."""
    return {
        "running": None,
        "listed": 0,
        "is_over": False,
        "constants": {},
        "reach": {"cases": [], "missed": [], "fallbacks": []},
        "load": None,
        "configurations": {"tried": 0, "dropped": [], "least": {}},
        "triton_cache": {"hits": 0, "misses": [], "launchers": {"hits": 0, "misses": []}},
    }


@dataclass
class Progress:
    """A candidate's progress."""

    state: State = field(default_factory=blank)
    """The last that it said of itself."""
    facts: dict[int, Facts] = field(default_factory=dict)
    """Of each case that was over, by position."""


def tell(folder: Path, state: State, over: Sequence[tuple[int, Facts]] = ()) -> None:
    """Writes the facts of the cases that are `over`, by their positions, and `state`, which replaces that of before: at once, since a file is opened each time."""
    lines: list[Mapping[str, object]] = [{POSITION: position, FACTS: facts} for position, facts in over]
    written = "".join(f"{json.dumps(line)}\n" for line in (*lines, {STATE: state}))
    files.put(f"{folder}/{FILE}", written.encode(), appends=True)


class Reader:
    """Reads the progress of the candidate with a folder while it is written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.found = Progress()
        """The progress so far: blank as long as there is nothing to read."""
        self.read = 0
        """Bytes that were read."""
        self.rest = b""
        """What of them is no whole line yet."""

    def more(self) -> bool:
        """Reads new lines, and tells whether there are any. Raises Malformed where one is malformed."""
        part = self.part()
        self.read += len(part)
        if self.read > MOST_BYTES:
            raise Malformed(f"more than {MOST_BYTES >> 20} MiB")
        *lines, self.rest = (self.rest + part).split(b"\n")
        for line in lines:
            self.take(line)
        if lines:
            check(self.found.state)
        return bool(lines)

    def part(self) -> bytes:
        """Returns the bytes that are new. The candidate may have left anything in its file's place."""
        try:
            with open(self.path, "rb", opener=regular) as file:
                file.seek(self.read)
                return file.read(MOST_BYTES + 1 - self.read)
        except OSError:
            return b""

    def take(self, line: bytes) -> None:
        """Takes one line."""
        try:
            told = json.loads(line)
        except RecursionError:
            raise Malformed("JSON that is too deep") from None
        except ValueError:
            return
        if not isinstance(told, dict):
            return
        if isinstance(told.get(STATE), dict):
            self.found.state = cast("State", {**blank(), **told[STATE]})
        elif isinstance(told.get(POSITION), int) and isinstance(told.get(FACTS), dict):
            self.found.facts[told[POSITION]] = told[FACTS]


def regular(path: str, flags: int) -> int:
    """Opens a file for `open`: a regular one, and no link. Raises OSError for anything else, and waits for nobody."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"`{path}` is no regular file")
    return descriptor


def read(folder: Path) -> Progress:
    """Returns the progress of the candidate that had `folder`; a blank one where there is none to read. Raises Malformed where it is malformed."""
    reader = Reader(folder)
    reader.more()
    return reader.found


def check(state: State) -> None:
    """Raises Malformed where a field of a state has another form than in `blank` and in later lines."""
    constants, reach, load = state["constants"], state["reach"], state["load"]
    require("running", state["running"] is None or isinstance(state["running"], str))
    require("listed", is_length(state["listed"]) and state["listed"] >= 0)
    is_named = isinstance(constants, dict) and all(is_length(value) for value in constants.values())
    require("constants", is_named)
    require(
        "reach",
        isinstance(reach, dict) and all(isinstance(reach.get(key), list) for key in ("cases", "missed", "fallbacks")),
    )
    require("reach", all(is_missed(one) for one in reach["missed"]) and len(reach["missed"]) <= MOST_MISSED)
    fallbacks = reach["fallbacks"]
    is_told = all(
        isinstance(one, dict) and all(is_words(one.get(key)) for key in ("size", "computed")) for one in fallbacks
    )
    require("reach", is_told)
    require("load", load is None or (isinstance(load, dict) and is_load(load)))
    require("configurations", isinstance(state["configurations"], dict))
    require("triton_cache", isinstance(state["triton_cache"], dict))
    least = state["configurations"].get("least", {})
    require("configurations", isinstance(least, dict) and all(is_length(value) for value in least.values()))


def require(field_: str, is_so: bool) -> None:
    """Raises Malformed that names the field unless `is_so`."""
    if not is_so:
        raise Malformed(f"`{field_}`")


def is_length(value: object) -> bool:
    """Tells whether a value is an integer that a kernel may have as a constant."""
    return type(value) is int and abs(value) < 1 << 63


def is_words(value: object) -> bool:
    """Tells whether a value is a text that is not too long."""
    return isinstance(value, str) and len(value) <= MOST_WORDS


def is_missed(one: object) -> bool:
    """Tells whether a value has the form of a result of `reach.missed`."""
    if not isinstance(one, dict) or not (is_words(one.get("size")) and is_words(one.get("reason"))):
        return False
    kernel, constants = one.get("kernel"), one.get("constants")
    return (kernel is None or is_words(kernel)) and (constants is None or isinstance(constants, dict))


def is_load(load: Mapping[str, object]) -> bool:
    """Tells whether a value has the form of a candidate's report on a kernel that did not load."""
    failure, reason = load.get("failure"), load.get("not_judged")
    if failure is None:
        return is_words(reason)
    return isinstance(failure, dict) and all(isinstance(failure.get(key), str) for key in ("class", "message"))
