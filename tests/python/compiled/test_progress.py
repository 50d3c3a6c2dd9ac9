"""What a candidate tells of itself, and what is read of it however it ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from t2t_harness import progress


def test_the_last_state_and_the_facts_of_every_case_are_read(tmp_path: Path) -> None:
    state = progress.blank()
    progress.tell_state(tmp_path, {**state, "running": "small/float32/0"})
    progress.tell_case(tmp_path, 0, {"status": "ran"})
    progress.tell_state(tmp_path, {**state, "running": "edge"})
    found = progress.read(tmp_path)
    assert (found.state["running"], found.facts) == ("edge", {0: {"status": "ran"}})


def test_who_told_nothing_has_a_state_that_says_nothing(tmp_path: Path) -> None:
    found = progress.read(tmp_path / "absent")
    assert (found.state, found.facts) == (progress.blank(), {})
    assert found.state["configurations"]["tried"] == 0


@pytest.mark.parametrize(
    "rest", [b'{"state": {"running"', b"\xff\xfe\n", b"[1]\n", b'{"position": 1}\n', b'{"state": 3}\n']
)
def test_what_is_no_whole_line_does_not_count(tmp_path: Path, rest: bytes) -> None:
    progress.tell_state(tmp_path, {"load": {"failure": "x"}})
    progress.tell_case(tmp_path, 0, {"status": "ran"})
    with (tmp_path / progress.FILE).open("ab") as file:
        file.write(rest)
    found = progress.read(tmp_path)
    assert (found.state, found.facts) == ({**progress.blank(), "load": {"failure": "x"}}, {0: {"status": "ran"}})


def test_nothing_is_left_open_between_two_lines(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    progress.tell_case(tmp_path, 0, {})
    assert os.listdir("/proc/self/fd") == before
