"""Numbers by chance, drawn ahead."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring.chances import AHEAD, Chances


def test_nothing_is_asked_of_the_system_until_all_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or real(count))
    chances = Chances()
    chances.draw()
    for _ in range(AHEAD):
        chances.below(3)
    assert asked == [AHEAD * 4]
    chances.below(3)
    assert asked == [AHEAD * 4] * 2
    chances.draw()
    assert asked[2:] == [4], "what is there stays"


def test_all_numbers_below_come_with_the_same_chance() -> None:
    chances = Chances()
    drawn = Counter(chances.below(6) for _ in range(60_000))
    assert set(drawn) == set(range(6))
    # 10,000 each, with a deviation of 91: one of six is eleven of them off once in 10^27.
    assert all(abs(count - 10_000) < 1000 for count in drawn.values())
    assert {chances.below(1) for _ in range(100)} == {0}
