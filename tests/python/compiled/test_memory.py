"""What a child that stays keeps of a device's memory, with a device that is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from t2t_harness.faults import memory
from t2t_harness.judging import references

TOTAL = 64 << 30


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Returns what this process holds of the device, to be changed, and how often it gave it back."""
    now = {"reserved": 0, "allocated": 0, "given back": 0}

    def give_back() -> None:
        now["given back"] += 1

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=TOTAL))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: now["reserved"])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: now["allocated"])
    monkeypatch.setattr(torch.cuda, "empty_cache", give_back)
    return now


@pytest.mark.parametrize(("reserved", "lane", "given_back"), [(16, "cuda", 0), (17, "cuda", 1), (17, "interpreter", 0)])
def test_a_judge_gives_memory_back_once_it_holds_more_than_a_quarter(
    held: dict[str, int], reserved: int, lane: str, given_back: int
) -> None:
    def judge(request: Any) -> dict[str, Any]:
        held["reserved"] = reserved << 30
        return {"told": request["lane"]}

    assert memory.let_go(judge)({"lane": lane}) == {"told": lane}
    assert held["given back"] == given_back


def test_a_sixty_fourth_is_remembered(held: dict[str, int]) -> None:
    held["allocated"] = 1 << 30
    assert references.is_little("cuda")
    held["allocated"] += 1
    assert not references.is_little("cuda")
