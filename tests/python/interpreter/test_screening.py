"""Whether a candidate may be faster: by hand, on normal pairs, and as the child makes it out of two kernels in the interpreter."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from test_sweep import request_of  # noqa: F401

from children import ask
from t2t_harness.measuring import screening

SPREAD = 0.01


def pairs(ratio: float, seed: int, spread: float = SPREAD) -> tuple[list[float], list[float]]:
    """Returns the Finals of the most pairs there are: those of the incumbent, and those of a candidate that takes `ratio` as long."""
    draws = random.Random(seed)
    count = screening.LOOKS[-1]
    incumbent = [2.0 * math.exp(draws.gauss(0, 0.05)) for _ in range(count)]
    return incumbent, [one * ratio * math.exp(draws.gauss(0, spread)) for one in incumbent]


def played(incumbent: list[float], candidate: list[float]) -> screening.End:
    """Returns the end of a screening with these pairs."""
    for pair in range(1, len(incumbent) + 1):
        end = screening.end(incumbent[:pair], candidate[:pair], is_spent=False)
        if end is not None:
            return end
    raise AssertionError("no end")


def test_a_candidate_that_takes_much_longer_ends_it_at_the_first_look() -> None:
    end = played(*pairs(1.5, 1))
    assert (end.pairs, end.why, end.may_win) == (3, "slower", False)
    assert 1 < end.low < end.ratio < end.high and end.ratio == pytest.approx(1.5, rel=0.03)


def test_a_faster_one_may_win_and_an_equal_one_that_is_known_closely_may_not() -> None:
    end = played(*pairs(0.8, 2))
    assert (end.why, end.may_win) == ("faster", True) and end.high < 1
    equal = played(*pairs(1.0, 3, spread=0.002))
    assert (equal.why, equal.may_win) == ("no-gain", False)


def test_what_stays_unclear_may_win_where_it_seems_to() -> None:
    unclear = played(*pairs(0.985, 4, spread=0.05))
    assert (unclear.pairs, unclear.why) == (screening.LOOKS[-1], "pairs")
    assert unclear.may_win is (unclear.ratio < 1)
    spent = screening.end([2.0], [1.0], is_spent=True)
    assert spent is not None and (spent.why, spent.low, spent.high, spent.may_win) == ("time", 0, math.inf, True)
    late = screening.end([2.0, 2.0], [2.5, 2.51], is_spent=True)
    assert late is not None and not late.may_win
    assert screening.end([2.0], [1.0], is_spent=False) is None, "one pair is no look"


def test_pairs_that_agree_by_chance_are_not_believed() -> None:
    end = screening.end([1.0] * 3, [0.99] * 3, is_spent=False)
    assert end is None, "two speeds a per cent apart"


@pytest.mark.parametrize("spread", [0.002, 0.01, 0.04])
def test_it_errs_no_oftener_than_said(spread: float) -> None:
    screenings = 2000
    called = {"equal": 0, "better": 0, "missed": 0}
    for seed in range(screenings):
        equal, better = played(*pairs(1.0, seed, spread)), played(*pairs(0.985, seed, spread))
        called["equal"] += equal.why == "faster"
        called["better"] += better.why in ("slower", "no-gain")
        called["missed"] += not equal.low <= 1 <= equal.high
    half = screening.ERROR / 2
    assert called["equal"] <= half * screenings and called["better"] <= half * screenings, called
    assert called["missed"] <= screening.ERROR * screenings, called


def request(sweep: dict[str, Any], candidate: str) -> dict[str, Any]:
    """Returns the request of a screening of a candidate of the folder of a sweep's request."""
    variants = {one["name"]: one for one in sweep.pop("variants")}
    sweep.pop("baselines")
    return {**sweep, "incumbent": variants["right"], "candidate": variants[candidate], "tune": None}


def test_two_kernels_are_timed_in_pairs(request_of: dict[str, Any]) -> None:  # noqa: F811
    slow = Path(request_of["root"]) / "kernels/op/small.py"
    slow.write_text(
        (slow.parent / "right.py")
        .read_text()
        .replace("    return out", "    __import__('time').sleep(0.2)\n    return out")
    )
    reply = ask("screen.screen", request(request_of, "small"), interpreter=True)
    assert reply["outcome"] == "passed", reply["documents"]
    document = reply["documents"]["screen"]
    assert (document["why"], document["may_win"], document["clock"]) == ("slower", False, "host")
    assert document["pairs"] == len(document["incumbent_ms"]) == len(document["candidate_ms"]) <= 6
    assert document["ratio"] > 1 and document["low"] > 1
    assert 0 < document["device_s"] < 30


@pytest.mark.parametrize(("name", "message"), [("small", "too large"), ("broken", "nothing_of_that_name")])
def test_a_candidate_that_raises_is_rejected(request_of: dict[str, Any], name: str, message: str) -> None:  # noqa: F811
    reply = ask("screen.screen", request(request_of, name), interpreter=True)
    assert (reply["outcome"], reply["class"]) == ("rejected", "exception")
    assert message in reply["documents"]["failure"]["message"]
