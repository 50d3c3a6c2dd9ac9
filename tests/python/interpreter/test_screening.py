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


def told(ratio: float, seed: int, spread: float) -> tuple[int, screening.Ratio]:
    """Returns at which look two versions of a kernel are told apart, if at any, and their ratio there."""
    present, other = pairs(ratio, seed, spread)
    for look in screening.LOOKS:
        found = screening.ratio(other[:look], present[:look])
        if found.verdict != "open":
            return look, found
    return 0, found


def test_a_ratio_tells_who_is_faster_or_that_both_are_alike_or_nothing() -> None:
    look, twice = told(2.0, 11, 0.02)
    assert (look, twice.verdict) == (3, "faster") and twice.ratio == pytest.approx(2.0, rel=0.05)
    _, half = told(0.5, 12, 0.02)
    assert half.verdict == "slower" and half.low < 0.5 * 1.05 and half.high < 1
    _, alike = told(1.0, 13, 0.002)
    assert alike.verdict == "same" and 0.99 < alike.low < alike.high < 1.0102
    look, unclear = told(1.0, 14, 0.2)
    assert (look, unclear.verdict) == (0, "open") and unclear.low < 1 < unclear.high


def test_equal_versions_are_told_apart_no_oftener_than_said() -> None:
    runs = 2000
    apart = sum(told(1.0, seed, 0.02)[1].verdict in ("faster", "slower") for seed in range(runs))
    assert apart <= screening.ERROR * runs, apart


def request(sweep: dict[str, Any], candidate: str) -> dict[str, Any]:
    """Returns the request of a screening of a candidate of the folder of a sweep's request."""
    variants = {one["name"]: one for one in sweep.pop("variants")}
    sweep.pop("baselines")
    return {**sweep, "incumbent": variants["right"], "candidate": variants[candidate], "tune": None}


def test_two_kernels_are_timed_in_pairs(request_of: dict[str, Any]) -> None:  # noqa: F811
    # Small sizes and much time: on a loaded machine, too, the ratio is large and there are three pairs.
    request_of["op"]["sizes"] = {"01": {"M": 2}, "00": {"M": 1}}
    slow = Path(request_of["root"]) / "kernels/op/small.py"
    slow.write_text(
        (slow.parent / "right.py")
        .read_text()
        .replace("    return out", "    __import__('time').sleep(0.05)\n    return out")
    )
    much = {"phases.screen.SPENT_S": 60.0}
    reply = ask("screen.screen", request(request_of, "small"), interpreter=True, constants=much)
    assert reply["outcome"] == "passed", reply["documents"]
    document = reply["documents"]["screen"]
    assert (document["why"], document["may_win"], document["clock"]) == ("slower", False, "host")
    assert document["pairs"] == len(document["incumbent_ms"]) == len(document["candidate_ms"]) <= 6
    assert document["ratio"] > 1 and document["low"] > 1
    assert 0 < document["device_s"] < 60


@pytest.mark.parametrize(("name", "message"), [("small", "too large"), ("broken", "nothing_of_that_name")])
def test_a_candidate_that_raises_is_rejected(request_of: dict[str, Any], name: str, message: str) -> None:  # noqa: F811
    reply = ask("screen.screen", request(request_of, name), interpreter=True)
    assert (reply["outcome"], reply["class"]) == ("rejected", "exception")
    assert message in reply["documents"]["failure"]["message"]


def test_two_versions_have_an_interval_at_each_size(request_of: dict[str, Any]) -> None:  # noqa: F811
    slow = Path(request_of["root"]) / "kernels/op/small.py"
    text = (slow.parent / "right.py").read_text()
    slow.write_text(text.replace("    return out", "    __import__('time').sleep(0.1)\n    return out"))
    asked = request(request_of, "small")
    reply = ask("against.against", asked, interpreter=True)
    assert reply["outcome"] == "passed", reply["documents"]
    document = reply["documents"]["against"]
    assert set(document["sizes"]) == set(asked["op"]["sizes"]) and document["pairs"] >= 3
    for size in document["sizes"].values():
        # The candidate of the request is the present version.
        assert size["verdict"] == "slower" and 0 < size["low"] <= size["ratio"] <= size["high"] < 1
        assert size["present_ms"] > 100 > size["other_ms"] > 0


@pytest.mark.parametrize(("name", "message"), [("small", "too large"), ("broken", "nothing_of_that_name")])
def test_a_version_that_raises_is_rejected(request_of: dict[str, Any], name: str, message: str) -> None:  # noqa: F811
    reply = ask("against.against", request(request_of, name), interpreter=True)
    assert (reply["outcome"], reply["class"]) == ("rejected", "exception")
    assert message in reply["documents"]["failure"]["message"]
