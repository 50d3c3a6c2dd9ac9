"""What a candidate tells of itself, and what is read of it however it ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from t2t_harness.judging import progress

LOAD = {"failure": {"class": "source", "message": "no such function"}}


def test_the_last_state_and_the_facts_of_every_case_are_read(tmp_path: Path) -> None:
    state = progress.blank()
    progress.tell(tmp_path, {**state, "running": "small/float32/0"})
    progress.tell(tmp_path, {**state, "running": "edge"}, [(0, {"status": "ran"})])
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
    progress.tell(tmp_path, {"load": LOAD}, [(0, {"status": "ran"})])
    with (tmp_path / progress.FILE).open("ab") as file:
        file.write(rest)
    found = progress.read(tmp_path)
    assert (found.state, found.facts) == ({**progress.blank(), "load": LOAD}, {0: {"status": "ran"}})


def test_nothing_is_left_open_between_two_lines(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    progress.tell(tmp_path, progress.blank(), [(0, {})])
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    "state",
    [
        {"running": 3},
        {"constants": [1]},
        {"constants": {"BLOCK": "32"}},
        {"constants": {"BLOCK": 1 << 80}},
        {"reach": 3},
        {"reach": {"cases": [], "missed": []}},
        {"reach": {"cases": [], "missed": [7], "fallbacks": []}},
        {"reach": {"cases": [], "missed": [{"size": "large", "reason": "x" * 100_000}], "fallbacks": []}},
        {"load": "no"},
        {"load": {"failure": {"class": 1}}},
        {"load": {}},
        {"configurations": None},
        {"triton_cache": []},
    ],
)
def test_a_state_of_another_form_is_told_by_its_field(tmp_path: Path, state: dict[str, object]) -> None:
    progress.tell(tmp_path, {**progress.blank(), **state})
    with pytest.raises(progress.Malformed, match=next(iter(state))):
        progress.read(tmp_path)


def test_what_is_too_deep_or_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / progress.FILE).write_bytes(b'{"state": ' + b"[" * 200_000 + b"\n")
    with pytest.raises(progress.Malformed, match="deep"):
        progress.read(tmp_path)
    monkeypatch.setattr(progress, "MOST_BYTES", 1000)
    with pytest.raises(progress.Malformed, match="MiB"):
        progress.read(tmp_path)
