"""Which interpreted cases there is time for, and what is said of the others."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]


from test_check import GOOD, check, declaration

from t2t_harness import pace


def test_what_would_not_be_over_before_the_deadline_is_refused_with_what_to_set() -> None:
    clock = pace.Pace(10.0)
    assert clock.refusal(10**9) is None, "nothing is known yet"
    clock.note(1000, 1.0)
    assert clock.refusal(2000) is None
    told = clock.refusal(20_000)
    assert told is not None and "about 20 s" in told and "deadline of 10 s" in told and "timeout" in told
    assert pace.Pace(None).refusal(10**12) is None


def test_few_elements_cost_what_their_calls_cost() -> None:
    clock = pace.Pace(10.0)
    clock.note(1, 1.0)
    assert clock.refusal(1) is None
    assert clock.refusal(pace.MANY * 9) is not None


def test_edges_for_which_there_is_no_time_are_not_judged_and_declared_cases_are(tmp_path: Path) -> None:
    reply = check(tmp_path, GOOD, declaration(), deadline_s=1e-3)
    verdict = reply["documents"]["verdict"]
    assert verdict["verdict"] == "passed"
    declared = [one for name, one in verdict["cases"].items() if name.startswith("small/")]
    assert declared == ["passed", "passed"]
    assert {one for name, one in verdict["cases"].items() if name.startswith("edge/")} == {"not-judged"}
    (left,) = verdict["not_judged"]
    assert "in the interpreter, and of the deadline of 0 s" in left["reason"]
