"""Which interpreted cases there is time for, and what is said of the others."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]


from test_check import GOOD, check, declaration

from t2t_harness.cases import cases, pace
from t2t_harness.phases import one_case


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


def test_a_case_is_halved_until_there_is_nothing_to_halve_and_a_declared_one_of_the_first_dtype_is_left_as_it_is() -> (
    None
):
    op = declaration(dtypes=["float32", "float16"])
    edge = cases.Case("edge/strided/float32", "edge", "float32", {"M": 8, "N": 16}, layout="strided")
    lengths = [tuple(one.binding.values()) for one in cases.smaller(op, edge)]
    assert lengths == [(8, 8), (4, 8), (4, 4), (2, 4), (2, 2)]
    assert cases.as_told(op, edge, {"M": 4, "N": 4}).binding == {"M": 4, "N": 4}
    assert cases.as_told(op, edge, {"M": 1, "N": 1}) is edge, "no candidate chooses lengths of its own"
    first, other = (cases.Case(f"small/{one}/0", "declared", one, {"M": 8, "N": 16}) for one in op["dtypes"])
    assert cases.as_told(op, first, {"M": 4, "N": 4}) is first
    assert cases.as_told(op, other, {"M": 4, "N": 4}).binding == {"M": 4, "N": 4}


def test_further_dtypes_are_judged_on_smaller_cases_where_the_first_takes_most_of_the_time() -> None:
    op = declaration(dtypes=["float32", "float16"])
    clock = pace.Pace(40.0)
    clock.note(64 * 64, 20.0)
    bench: Any = SimpleNamespace(request={"op": op}, lane="interpreter", pace=clock)
    first, other = (cases.Case(f"small/{one}/0", "declared", one, {"M": 64, "N": 64}) for one in op["dtypes"])
    assert one_case.in_time(bench, first) == (first, None), "a pass needs it as it is"
    smaller, late = one_case.in_time(bench, other)
    assert late is None and (smaller.name, smaller.binding) == (other.name, {"M": 32, "N": 64})
    clock.note(2, 4000.0)
    left, late = one_case.in_time(bench, other)
    assert left is other and late is not None and "set `check: {timeout: …}`" in late
