"""When measuring ends by what was seen: by hand, on normal runs, with a clock that only the test moves, and as the judging child makes it out of raw times."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring import clock, stopping, timing
from t2t_harness.phases import baseline, bench, measured, sample

AUTO = timing.Protocol(10, 25, 100, is_auto=True)
DIMS = {"small": {"M": 16}, "large": {"M": 64}}


def test_critical_values_are_those_of_the_tables() -> None:
    table = {(0.05, 1): 12.706, (0.05, 2): 4.303, (0.01, 9): 3.250, (0.001, 5): 6.869, (0.05, 30): 2.042}
    assert {at: round(stopping.critical(*at), 3) for at in table} == table


def test_the_error_is_spent_evenly_on_looks_and_figures() -> None:
    assert stopping.plan(10, 3) == stopping.Plan((6, 10, 20, 50, 100), 0.05 / (2 * 3 * 5))
    assert stopping.plan(1, 1) == stopping.Plan((6, 10), 0.05 / (2 * 2))
    assert stopping.plan(30, 1).looks == (6, 10, 20, 50, 100, 200, 300)


def drawn(mean: float, spread: float, seed: int, runs: int = 100) -> list[float]:
    """Returns so many normal runs."""
    draws = random.Random(seed)
    return [draws.gauss(mean, spread * mean) for _ in range(runs)]


def played(test: stopping.Test, **subjects: list[float]) -> stopping.Stop:
    """Returns the end of a size whose runs would be those of `subjects`."""
    runs = 0
    while True:
        runs += test.next_turn(runs)
        if stop := test.end({who: values[:runs] for who, values in subjects.items()}):
            return stop


def test_runs_that_agree_end_it_at_the_first_look() -> None:
    stop = played(stopping.Test(stopping.plan(10, 3)), variant=[1.0] * 100, torch=[2.0] * 100)
    assert (stop.runs, stop.most, stop.why) == (6, 100, "precise")
    # Runs that agree wholly are not believed to.
    assert stop.within["torch"] == pytest.approx(2 * stop.within["variant"]) and stop.within["variant"] > 0.002


def test_what_varies_ends_where_it_is_decided_and_else_where_all_runs_would_not_help() -> None:
    slow, fast = drawn(2.0, 0.05, 1), drawn(1.0, 0.05, 2)
    assert played(stopping.Test(stopping.plan(10, 1)), variant=fast, torch=slow).why == "decided"
    # Half of an interval of all runs would be 1.4 % of the mean.
    stop = played(stopping.Test(stopping.plan(10, 1)), variant=fast, torch=drawn(1.0, 0.05, 3))
    assert (stop.runs, stop.why) == (20, "varies")
    assert played(stopping.Test(stopping.plan(10, 1)), torch=fast).why == "varies", "alone there is nothing to decide"
    # Of these all runs would tell enough, as far as 20 of them show.
    near = drawn(1.0, 0.025, 6)
    assert played(stopping.Test(stopping.plan(10, 1)), variant=near, torch=near).why == "precise"


def test_the_last_look_ends_what_seemed_to_come_close_enough() -> None:
    calm, wild = drawn(1.0, 0.02, 7, 50), drawn(1.0, 0.2, 8, 50)
    stop = played(stopping.Test(stopping.plan(10, 1)), variant=calm[:20] + [1.0, 1.05] * 15 + wild, torch=calm + calm)
    assert (stop.runs, stop.why) == (100, "runs")


def test_a_small_size_need_not_be_known_closely_beside_a_large_one() -> None:
    varied = drawn(0.01, 0.05, 4)
    test = stopping.Test(stopping.plan(10, 2))
    assert played(test, variant=[1.0] * 100, torch=[1.0] * 100).runs == 6
    assert (played(test, variant=varied, torch=varied).runs, test.last and test.last.why) == (6, "precise")
    assert played(stopping.Test(stopping.plan(10, 2)), variant=varied, torch=varied).runs == 20


@pytest.mark.parametrize("spread", [0.002, 0.01, 0.04])
def test_equal_subjects_are_told_apart_no_oftener_than_said(spread: float) -> None:
    wrong = 0
    for seed in range(400):
        test = stopping.Test(stopping.plan(10, 1))
        played(test, a=drawn(1.0, spread, 2 * seed), b=drawn(1.0, spread, 2 * seed + 1))
        wrong += test.before["a"].differs(test.before["b"])
    assert wrong <= stopping.ERROR * 400


def fake(times: Iterator[float], asked: list[Any]) -> clock.Clock:
    """Returns a device's clock whose runs take what `times` says, and which notes what it is asked for."""

    def timed(call: Any, *how: Any) -> list[float]:
        asked.append(how)
        return [next(times)]

    return clock.Clock("cuda-events", timed, lambda: 0.0, lambda: None, lambda calls: None, lambda: 80.0, ())


def test_subjects_take_turns_until_it_ends_and_how_long_a_call_takes_is_estimated_once() -> None:
    asked: list[Any] = []
    told = fake(iter([0.1] * 40), asked)
    runs = {who: timing.Runs(told, AUTO) for who in ("variant", "torch")}
    turns = []
    for turn in timing.turns(AUTO, AUTO.test(1), runs):
        turns.append(list(turn))
        for one in runs.values():
            for _ in turn:
                one.add(print)
    assert turns == [[0, 1, 2, 3, 4, 5]]
    # A tenth of the protocol; the clearing of the cache takes 0.08 ms beside the call.
    assert asked[0] == (2.5, 10.0, clock.nothing, None, clock.nothing)
    assert asked[1] == (2.5, 10.0, clock.nothing, pytest.approx(0.18), clock.nothing)


def test_a_fixed_number_of_runs_is_made_one_by_one_as_ever() -> None:
    fixed = timing.Protocol(3, 25, 100)
    assert fixed.test(3) is None
    assert list(timing.turns(fixed, None, {})) == [[0], [1], [2]]
    asked: list[Any] = []
    timing.Runs(fake(iter([0.1]), asked), fixed).add(print)
    assert asked == [(25, 100, clock.nothing, None, clock.nothing)]


def test_a_host_that_interrupts_every_run_has_as_many_repeated_as_the_protocol_has() -> None:
    def timed(call: Any, *how: Any) -> list[float]:
        return [0.1] * 9 + [9.0]

    told = clock.Clock("cuda-events", timed, lambda: 0.0, lambda: None, lambda calls: None, lambda: 80.0, ())
    for protocol in (AUTO, timing.Protocol(10, 25, 100)):
        runs = timing.Runs(told, protocol)
        for _ in range(20):
            runs.add(print)
        assert (runs.repeated, len(runs.samples)) == (10, 20)


def asked_for(tmp_path: Path) -> Any:
    """Returns the request of a bench of an op that doubles, as a test without a device can measure it."""
    tensor = {"name": "input", "shape": ["M"], "dtype": None, "requires_grad": False, "layout": "contiguous"}
    op = {
        "name": "op",
        "torch": "torch.neg",
        "inputs": [tensor | {"init": {"kind": "normal", "mean": 0.0, "std": 1.0}}],
        "kwargs": {},
        "dtypes": ["float32"],
        "sizes": DIMS,
        "precision": "ieee",
        "mutates": [],
        "overwrites": [],
        "deterministic": True,
    }
    protocol = {"runs": 10, "warmup_ms": 25, "rep_ms": 100, "stop": "auto"}
    variant = {"name": "v1", "file": "kernels/op/v1.py", "entry": "triton_op", "lanes": ["cuda"]}
    return {
        "op": op,
        "variant": variant,
        "lane": "interpreter",
        "protocol": protocol,
        "baselines": ["torch", "torch.compile"],
        "root": str(tmp_path),
        "scratch": str(tmp_path),
    }


def calling(times: Iterator[float]) -> clock.Clock:
    """Returns a device's clock that makes two calls a run, each of which takes what `times` says next."""

    def timed(call: Any, *how: Any) -> list[float]:
        for _ in range(2):
            how[2]()
            call()
        return [next(times)] * 2

    return clock.Clock("cuda-events", timed, lambda: 0.0, lambda: None, lambda calls: None, lambda: 80.0, ())


def test_a_bench_ends_each_size_by_what_it_saw_and_the_judging_child_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked_for(tmp_path)
    monkeypatch.setattr(bench, "host_time", lambda *_: 1.0)
    monkeypatch.setattr(bench, "refuse_stray_work", lambda *_: None)
    # The large size first: a variant that varies beside a slower torch, until that is decided; then runs that agree.
    draws = random.Random(5)
    turns = [("variant", 6), ("torch", 6), ("variant", 4), ("torch", 4), ("variant", 10), ("torch", 10)]
    large = [draws.gauss(1.0, 0.04) if who == "variant" else 2.0 for who, runs in turns for _ in range(runs)]
    found = bench.Measurement(request, calling(iter(large + [0.01] * 12)), torch.neg, AUTO, test=AUTO.test(2))
    timed = timing.in_order(request, AUTO)
    assert list(timed) == ["large", "small"]
    for size, case in timed.items():
        bench.measure_size(found, size, case)
    counts = {size: {who: len(raw["samples"]) for who, raw in found.times[size].items()} for size in timed}
    assert counts == {"large": {"variant": 20, "torch": 20}, "small": {"variant": 6, "torch": 6}}
    assert [len(one["samples"]) for one in sample.kept_facts(tmp_path)] == [2, 2]
    sample.keep_times(tmp_path, found.times)
    document: Any = {"sizes": found.sizes, "disturbed": []}
    told: Any = json.loads(json.dumps({**request, "lane": "cuda", "bench": document}))
    measured.figures(told, tmp_path, document)
    assert {size: document["sizes"][size]["stopped"]["why"] for size in timed} == {
        "large": "decided",
        "small": "precise",
    }
    assert document["final_ms"] == pytest.approx((sum(large[:6] + large[12:16] + large[20:30]) / 20 + 0.01) / 2)


def test_a_baseline_ends_by_what_it_saw_and_one_without_compile_by_torch_alone(tmp_path: Path) -> None:
    request = asked_for(tmp_path) | {"baselines": ["torch"]}
    case = timing.timed_cases(request)["large"]
    found = baseline.measure_size(
        request, calling(iter([1.0] * 6)), AUTO, AUTO.test(1), "large", case, [None], {}, [], {}
    )
    assert (found["stopped"], len(found["torch"]["runs"])) == ({"runs": 6, "most": 100, "why": "precise"}, 6)
    assert 0.0 < found["torch"]["within"] < 0.01


def judged(tmp_path: Path, runs: dict[str, int], protocol: dict[str, Any]) -> Any:
    """Returns the document that the judging child makes of so many runs at each size."""
    op = {
        "inputs": [{"name": "input", "shape": ["M"], "dtype": None, "layout": "contiguous"}],
        "dtypes": ["float32"],
        "sizes": DIMS,
    }
    times = {
        size: {who: {"samples": [[time]] * runs[size], "repeated": 0} for who, time in (("variant", 1.0), ("torch", 2))}
        for size in DIMS
    }
    sample.keep_times(tmp_path, times)
    bench: Any = {"sizes": {size: {"binding": DIMS[size], "dtype": "float32"} for size in DIMS}, "disturbed": []}
    request: Any = {"lane": "cuda", "op": op, "protocol": protocol, "bench": json.loads(json.dumps(bench))}
    measured.figures(request, tmp_path, bench)
    return bench


def test_the_judging_child_makes_out_itself_when_and_why_it_ended(tmp_path: Path) -> None:
    protocol = {"runs": 10, "warmup_ms": 25, "rep_ms": 100, "stop": "auto"}
    found = judged(tmp_path, {"small": 6, "large": 6}, protocol)
    assert found["sizes"]["large"]["stopped"] == {"runs": 6, "most": 100, "why": "precise"}
    assert 0.0 < found["sizes"]["small"]["variant"]["within"] < 0.01
    for runs in ({"small": 6, "large": 5}, {"small": 10, "large": 0}):
        with pytest.raises((measured.Unusable, ValueError)):
            judged(tmp_path, runs, protocol)


def test_a_fixed_number_of_runs_has_no_interval_of_its_own(tmp_path: Path) -> None:
    found = judged(tmp_path, {"small": 3, "large": 3}, {"runs": 3, "warmup_ms": 25, "rep_ms": 100})
    assert "stopped" not in found["sizes"]["large"] and "within" not in found["sizes"]["large"]["variant"]
