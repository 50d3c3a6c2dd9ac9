"""A judge that judges cases while the candidate runs comes to what one comes to that judges them all afterwards."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import ask, declared, tensor

from t2t_harness.judging import following, progress
from t2t_harness.phases import judge

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)) WRONG, mask=mask)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""


def ran(tmp_path: Path, wrong: str = "") -> dict[str, Any]:
    """Returns the request to judge a kernel that ran."""
    root, scratch = tmp_path / "workspace", tmp_path / "candidate"
    (root / "kernels").mkdir(parents=True)
    for folder in (scratch, tmp_path / "judge"):
        folder.mkdir()
    (root / "kernels/v1.py").write_text(KERNEL.replace("WRONG", wrong), encoding="utf-8")
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 8, "N": 12}, seeds=1)
    variant = {
        "name": "v1", "file": "kernels/v1.py", "entry": "wrapper", "lanes": ["interpreter"], "deterministic": True,
    }  # fmt: skip
    request = {"op": op, "root": str(root), "lane": "interpreter", "variant": variant, "inputs": None, "prepared": None}
    ask("candidate.run", {**request, "scratch": str(scratch)}, interpreter=True)
    return {**request, "scratch": str(tmp_path / "judge"), "candidate": str(scratch), "end": {"kind": "reply"}}


class Following:
    """A judge that follows the request's candidate on a thread of its own."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = {**request, "attempt": 1}
        self.replies: list[Any] = []
        self.thread = threading.Thread(target=lambda: self.replies.append(judge.follow(self.request)))
        self.thread.start()

    def has_judged(self, least: int) -> None:
        """Waits until it has judged so many cases."""
        since = time.monotonic()
        while not following._begun or len(following._begun[0].cases) < least:
            assert self.thread.is_alive() and time.monotonic() < since + 60
            time.sleep(0.01)

    def ends(self, end: object) -> Any:
        """Tells it how the candidate ended, and returns its reply."""
        part = Path(self.request["scratch"]) / "part"
        part.write_text(json.dumps(end))
        part.rename(part.with_name(following.OVER))
        self.thread.join(60)
        (reply,) = self.replies
        return reply


def count(request: dict[str, Any]) -> int:
    """Returns how many cases the candidate told of."""
    return len(progress.read(Path(request["candidate"]) / "outputs").facts)


def retold(request: dict[str, Any], change: Any) -> None:
    """Writes what the candidate told anew, each line changed."""
    file = Path(request["candidate"]) / "outputs" / progress.FILE
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(change(line)) + "\n" for line in lines))


@pytest.mark.parametrize("wrong", ["", "* 1.5"])
def test_what_was_followed_is_judged_as_what_was_not(tmp_path: Path, wrong: str) -> None:
    request = ran(tmp_path, wrong)
    alone = judge.judge(request)
    follower = Following(request)
    follower.has_judged(count(request))
    assert count(request) > 30
    assert follower.ends(request["end"]) == alone
    assert alone["outcome"] == ("rejected" if wrong else "passed")
    assert not following._begun


def test_what_was_followed_is_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = ran(tmp_path)
    follower = Following(request)
    follower.has_judged(count(request))
    again: list[object] = []
    monkeypatch.setattr(judge, "judge_case", lambda *asked: again.append(asked))
    assert follower.ends(request["end"])["outcome"] == "passed"
    assert not again


def test_a_candidate_that_ended_otherwise_is_judged_by_its_end(tmp_path: Path) -> None:
    request = ran(tmp_path)
    retold(request, lambda line: {**line, "state": {**line["state"], "is_over": False}} if "state" in line else line)
    follower = Following(request)
    follower.has_judged(count(request))
    told = follower.ends({"kind": "signal", "signal": 11, "message": "died of signal 11"})
    assert (told["outcome"], told["class"]) == ("rejected", "crash")


def test_what_was_followed_of_another_candidate_does_not_count(tmp_path: Path) -> None:
    request = ran(tmp_path / "right")
    follower = Following(request)
    follower.has_judged(count(request))
    assert follower.ends(None)["documents"] == {}
    wrong = ran(tmp_path / "wrong", "* 1.5")
    shutil.rmtree(request["candidate"])
    shutil.copytree(wrong["candidate"], request["candidate"])
    assert judge.judge({**request, "attempt": 2})["outcome"] == "rejected"


def test_what_a_candidate_tells_otherwise_in_the_end_is_judged_anew(tmp_path: Path) -> None:
    request = ran(tmp_path)
    follower = Following(request)
    follower.has_judged(count(request))

    def computed(line: dict[str, Any]) -> dict[str, Any]:
        if line.get("position") == 3:
            line["facts"]["runs"]["a"]["computed"] = {"exp": 1}
        return line

    retold(request, computed)
    told = follower.ends(request["end"])
    assert (told["outcome"], told["class"]) == ("rejected", "torch-fallback")


def test_a_candidate_that_tells_of_cases_that_it_has_not_is_judged_by_those_that_there_are(tmp_path: Path) -> None:
    request = ran(tmp_path)
    alone = judge.judge(request)
    retold(request, lambda line: {**line, "state": {**line["state"], "listed": 10**6}} if "state" in line else line)
    follower = Following(request)
    follower.has_judged(count(request))
    assert follower.ends(request["end"]) == alone


def test_what_is_malformed_is_judged_once_the_candidate_has_ended(tmp_path: Path) -> None:
    request = ran(tmp_path)
    retold(request, lambda line: {**line, "state": {**line["state"], "listed": -1}} if "state" in line else line)
    follower = Following(request)
    follower.thread.join(0.3)
    assert follower.thread.is_alive()
    told = follower.ends(request["end"])
    assert (told["outcome"], told["class"]) == ("rejected", "no-reply")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    folder = tmp_path / "outputs"
    folder.mkdir()
    os.mkfifo(folder / progress.FILE)
    assert not progress.Reader(folder).more()
    (folder / progress.FILE).unlink()
    (tmp_path / "elsewhere").write_text('{"position": 0, "facts": {}}\n')
    (folder / progress.FILE).symlink_to(tmp_path / "elsewhere")
    assert not progress.Reader(folder).more()


def test_a_line_counts_once_it_is_whole(tmp_path: Path) -> None:
    reader = progress.Reader(tmp_path)
    file = tmp_path / progress.FILE
    file.write_text('{"position": 0, "fac')
    assert not reader.more()
    with file.open("a") as more:
        more.write('ts": {"status": "ran"}}\n')
    assert reader.more()
    assert reader.found.facts == {0: {"status": "ran"}}
