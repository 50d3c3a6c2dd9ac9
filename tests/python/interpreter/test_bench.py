"""Figures by hand, the host's clock, and a bench from end to end on the interpreter."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from children import ask
from t2t_harness.cases import cases
from t2t_harness.measuring import clock, host, quiet, reference_call, spans, statistics, telemetry, timing
from t2t_harness.phases import baseline, bench, compared, sample, tune
from t2t_harness.triton import launching

KERNEL = '''"""A kernel."""
import torch, triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}, num_warps=8)], key=["n"])
@triton.jit
def double_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2.0, mask=offsets < n)


def triton_op(input, other):
    assert input.is_cuda
    out = torch.empty(input.shape, device="cuda", dtype=input.dtype)
    double_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](input, out, out.numel())
    return out
'''


def test_mean_and_quantiles_are_those_of_triton() -> None:
    values = [4.0, 1.0, 3.0, 2.0, 10.0]
    assert statistics.mean(values) == 4.0
    assert statistics.quantile(values, 0.5) == 3.0
    assert statistics.quantile(values, 0.2) == pytest.approx(1.8)
    assert statistics.quantile(values, 0.8) == pytest.approx(5.2)
    assert statistics.quantile([7.0], 0.2) == 7.0


def test_variation_is_the_sample_deviation_over_the_mean() -> None:
    assert statistics.variation([1.0, 2.0, 3.0]) == pytest.approx(0.5)
    assert statistics.variation([2.0]) == 0.0
    assert statistics.variation([0.0, 0.0]) == 0.0


def test_a_figure_is_the_mean_of_its_runs() -> None:
    runs = [statistics.run_facts(samples) for samples in ([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])]
    figure = statistics.figure(runs)
    assert (figure["mean"], figure["median"]) == (3.0, 3.0)
    assert figure["p20"] == pytest.approx(2.4)
    assert figure["p80"] == pytest.approx(3.6)
    assert figure["cv"] == pytest.approx(math.sqrt(2) / 3)
    assert figure["runs"] == runs


def test_speedup_is_the_ratio_of_the_finals() -> None:
    found = statistics.comparison([1.0, 2.0, 6.0], [2.0, 2.0, 3.0])
    assert found["final_ms"] == 3.0
    assert found["torch_final_ms"] == pytest.approx(7 / 3)
    assert found["speedup"] == pytest.approx(7 / 9)
    assert found["geomean_speedup"] == pytest.approx(1.0)


def test_figures_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.mean([])
    with pytest.raises(ValueError, match="no values"):
        statistics.quantile([], 0.5)


class Ticking:
    """A call that takes the same time always, by a clock that only it moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, milliseconds: float) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.milliseconds = milliseconds
        monkeypatch.setattr("time.perf_counter", lambda: self.seconds)
        self.clock = clock.host_clock()

    def __call__(self) -> None:
        self.calls += 1
        self.seconds += self.milliseconds / 1e3


def test_the_host_clock_repeats_for_as_long_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Ticking(monkeypatch, 2.0)
    assert call.clock.sample(call, 10, 20) == pytest.approx([2.0] * 10)
    assert call.calls == 1 + 5 + 10


def test_a_call_longer_than_a_run_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Ticking(monkeypatch, 500.0)
    assert call.clock.sample(call, 0, 20) == pytest.approx([500.0])
    assert call.calls == 1


def test_a_replaced_clock_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = clock.host_clock()
    assert made.replaced() == []
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    assert made.replaced() == ["time.perf_counter"]


@pytest.mark.parametrize(("milliseconds", "calls"), [(0.005, 5 * 100), (0.5, 5 * 8), (20.0, 5 * 4)])
def test_the_host_is_timed_for_a_little_of_the_devices_time(
    milliseconds: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    made: list[int] = []
    waits: list[int] = []
    told = clock.Clock(
        "cuda-events",
        lambda *_: [],
        lambda: len(made) * 2e-5,
        lambda: waits.append(1),
        lambda calls: None,
        lambda: 0.0,
        (),
    )
    found = bench.Measurement({}, told, print, timing.Protocol(1, 0, 0))
    bench.host_time(found, lambda: made.append(1), milliseconds)
    assert (len(made), len(waits), found.host_us) == (calls, 6, pytest.approx(20.0))


def test_the_host_is_timed_where_the_device_takes_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    seconds = [0.0]

    def spend(microseconds: float) -> None:
        seconds[0] += microseconds / 1e6

    told = clock.Clock(
        "cuda-events", lambda *_: [], lambda: seconds[0], lambda: None, lambda calls: None, lambda: 0.0, ()
    )
    found = bench.Measurement({}, told, print, timing.Protocol(1, 0, 0))
    figures = []
    for milliseconds, spent in [(0.5, 10), (0.4, 20), (0.02, 70), (3.0, 40)]:
        figures.append(bench.host_time(found, partial(spend, spent), milliseconds))
    assert figures == [pytest.approx(figure) for figure in (10.0, 10.0, 70.0, 70.0)]
    assert found.host_us == figures[-1]


@pytest.mark.parametrize("is_stray", [False, True])
def test_work_left_to_another_stream_is_looked_for_as_long_as_the_host_needs(
    is_stray: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    asked: list[tuple[float, float]] = []

    def outlasts(call: object, counter: object, milliseconds: float, host_us: float) -> bool:
        asked.append((milliseconds, host_us))
        return is_stray

    monkeypatch.setattr("t2t_harness.counting.streams.outlasts", outlasts)
    told = clock.Clock("cuda-events", lambda *_: [], lambda: 0.0, lambda: None, lambda calls: None, lambda: 0.0, ())
    found = bench.Measurement({}, told, print, timing.Protocol(1, 0, 0))
    with pytest.raises(bench.StrayWork, match="`small`") if is_stray else nullcontext():
        bench.refuse_stray_work(found, "small", print, 0.5, 20.0)
    assert asked == [(0.5, 20.0)]


def test_small_sizes_are_timed_first() -> None:
    sizes = {"large": {"M": 64}, "medium": {"M": 8}, "small": {"M": 2}}
    op = {"inputs": [{"name": "input", "shape": ["M", 4]}], "sizes": sizes, "dtypes": ["float32", "float16"]}
    timed = timing.timed_cases({"op": op, "lane": "interpreter"})
    assert [(size, case.dtype) for size, case in timed.items()] == [(size, "float32") for size in reversed(sizes)]


def interrupted_clock(name: str, interrupted: int) -> clock.Clock:
    """Returns a clock whose first runs hold one sample of a host that was stopped."""
    left = [interrupted]

    def sample(call: clock.Call, *_: object) -> list[float]:
        left[0] -= 1
        return [0.005] * 99 + [5.0 if left[0] >= 0 else 0.005]

    return clock.Clock(name, sample, lambda: 0.0, lambda: None, lambda calls: None, lambda: 0.0, ())


@pytest.mark.parametrize(
    ("name", "interrupted", "repeated", "is_steady"),
    [("cuda-events", 0, 0, True), ("cuda-events", 2, 2, True), ("cuda-events", 9, 4, False), ("host", 2, 0, False)],
)
def test_a_run_that_the_host_interrupted_is_made_again_and_counted(
    name: str, interrupted: int, repeated: int, is_steady: bool
) -> None:
    runs = timing.Runs(interrupted_clock(name, interrupted), timing.Protocol(4, 25, 100))
    for _ in range(4):
        runs.add(lambda: None)
    figure = runs.figure()
    assert (figure["repeated"], len(figure["runs"])) == (repeated, 4)
    assert (figure["cv"] < 0.01 and figure["mean"] == pytest.approx(0.005)) == is_steady


def test_tune_warms_the_device_once_and_takes_the_smallest_median(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "work", lambda device: nullcontext())
    milliseconds = {1: [3.0], 2: [1.0, 1.0, 9.0], 3: [2.0]}
    launched: list[tuple[int, bool]] = []
    recorder = launching.Recorder(key=(64,), attempt=lambda config: launched.append((config.BLOCK, recorder.is_paused)))

    def sample(call: clock.Call, *_: object) -> list[float]:
        call()
        return milliseconds[launched[-1][0]]

    def warm(calls: Sequence[clock.Call]) -> None:
        for call in calls:
            call()

    told = clock.Clock("cuda-events", sample, lambda: 0.0, lambda: None, warm, lambda: 0.0, ())
    configs = [SimpleNamespace(BLOCK=block, all_kwargs=partial(dict, BLOCK=block)) for block in milliseconds]
    tuner = SimpleNamespace(base_fn=SimpleNamespace(__name__="kernel"))
    document: dict[str, Any] = {"choices": [], "dropped": []}
    assert tune.choice(tuner, configs, recorder, told, document) is configs[1]
    assert launched == [(1, False), (2, False), (3, False), (1, True), (1, True), (2, True), (3, True)]
    [choice] = document["choices"]
    assert (choice["kernel"], choice["config"]) == ("kernel", {"BLOCK": 2})
    assert choice["timings"] == [[{"BLOCK": 1}, 3.0], [{"BLOCK": 2}, 1.0], [{"BLOCK": 3}, 2.0]]
    launched.clear()
    assert tune.choice(tuner, configs, recorder, told, document) is configs[1]
    assert launched == []


def test_spread_without_a_stop_is_no_interruption() -> None:
    assert not statistics.is_interrupted(statistics.run_facts([1.0, 1.1, 1.2, 1.3, 1.4] * 20))


def test_telemetry_tells_what_disturbs() -> None:
    assert telemetry.throttles("0x0000000000000024") == ["power cap", "thermal slowdown (software)"]
    quiet = {"throttle": ["power cap"], "other_processes": 0}
    assert telemetry.disturbances([quiet, None]) == []
    hot = {"throttle": ["thermal slowdown (hardware)"], "other_processes": 2}
    assert telemetry.disturbances([quiet, hot, hot]) == [
        "throttled: thermal slowdown (hardware)",
        "other processes on the GPU: 2",
    ]


def given(name: str) -> dict[str, Any]:
    init = {"kind": "normal", "mean": 0.0, "std": 1.0}
    shape = ["M", "N"]
    return {"name": name, "shape": shape, "dtype": None, "init": init, "requires_grad": False, "layout": "contiguous"}


@pytest.fixture
def request_of(tmp_path: Path) -> Any:
    """Returns a function that makes the request of a bench of a kernel's text: it doubles, as `torch.add` of equal inputs does."""

    def make(source: str, **changes: Any) -> dict[str, Any]:
        file = tmp_path / "kernels" / "op" / "v1.py"
        file.parent.mkdir(parents=True)
        file.write_text(source)
        (tmp_path / "scratch").mkdir()
        size = {"M": 8, "N": 16}
        op = {
            "name": "op",
            "torch": "torch.mul",
            "inputs": [given("input"), given("other") | {"init": {"kind": "constant", "value": 2.0}}],
            "kwargs": {},
            "dtypes": ["float32", "bfloat16"],
            "sizes": {"small": size, "medium": {"M": 16, "N": 16}},
            "check_sizes": {"small": size},
            "seeds": 1,
            "tolerances": {"float32": [1e-5, 1e-5]},
            "precision": "ieee",
            "mutates": [],
            "overwrites": [],
            "backward": False,
            "broadcast": False,
            "deterministic": True,
            "cases": None,
        }
        variant = {"name": "v1", "file": "kernels/op/v1.py", "entry": "triton_op", "lanes": ["interpreter", "cuda"]}
        return {
            "op": op,
            "variant": variant,
            "root": str(tmp_path),
            "scratch": str(tmp_path / "scratch"),
            "lane": "interpreter",
            "protocol": {"runs": 3, "warmup_ms": 0, "rep_ms": 2},
            "baselines": ["torch"],
            "tune": None,
            **changes,
        }

    return make


def test_a_bench_from_end_to_end(request_of: Any) -> None:
    request = request_of(KERNEL)
    reply = ask("bench.bench", request, interpreter=True)
    assert reply["outcome"] == "passed", reply["documents"]
    document = reply["documents"]["bench"]
    assert document["clock"] == "host"
    assert document["device"]["model"] == "interpreter"
    assert list(document["sizes"]) == ["small", "medium"]
    for size in document["sizes"].values():
        assert size["dtype"] == "float32"
        assert size["config"]["double_kernel"]["BLOCK"] == 32
    assert set(document) == {"clock", "protocol", "device", "sizes"}
    judged = ask("sample.judge_sample", {**request, "sample": request["scratch"], "bench": document}, interpreter=True)
    assert judged["outcome"] == "passed", judged["documents"]
    for size in judged["documents"]["bench"]["sizes"].values():
        # The interpreter's times compare nothing: no torch, no speedup, no Final.
        assert set(size) == {"binding", "dtype", "interpreter_ms", "config"}
        assert size["interpreter_ms"] > 0
    verdicts = judged["documents"]["bench"]["judged"]
    assert {size: told["verdict"] for size, told in verdicts.items()} == {"small": "passed", "medium": "passed"}


def test_the_tuned_configuration_is_the_one_timed(request_of: Any) -> None:
    facts = {"BLOCK": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 1}
    keys = [[str(size), "torch.float32", "torch.float32"] for size in (128, 256)]
    choices = [{"kernel": "double_kernel", "key": key, "config": facts, "timings": []} for key in keys]
    reply = ask("bench.bench", request_of(KERNEL, tune={"device": "x", "choices": choices}), interpreter=True)
    configs = [size["config"] for size in reply["documents"]["bench"]["sizes"].values()]
    assert configs == [{"double_kernel": facts}] * 2


def test_a_timed_call_that_is_wrong_is_found(request_of: Any) -> None:
    # The first call, as a check would make it, is right; later ones return what nobody computed.
    source = KERNEL.replace("def triton_op(", "CALLS = []\n\n\ndef triton_op(").replace(
        "    assert input.is_cuda\n",
        "    CALLS.append(1)\n    if len(CALLS) > 1:\n        return torch.zeros_like(input)\n",
    )
    request = request_of(source)
    document = ask("bench.bench", request, interpreter=True)["documents"]["bench"]
    reply = ask("sample.judge_sample", {**request, "sample": request["scratch"], "bench": document}, interpreter=True)
    assert (reply["outcome"], reply["class"]) == ("rejected", "no-kernel-launched")
    assert {told["verdict"] for told in reply["documents"]["bench"]["judged"].values()} == {"rejected"}


def test_a_timed_call_of_every_size_is_judged_and_must_return_tensors(request_of: Any) -> None:
    source = KERNEL.replace("    assert input.is_cuda\n", "    if input.numel() >= 256:\n        return None\n")
    request = request_of(source)
    document = ask("bench.bench", request, interpreter=True)["documents"]["bench"]
    reply = ask("sample.judge_sample", {**request, "sample": request["scratch"], "bench": document}, interpreter=True)
    judged = reply["documents"]["bench"]["judged"]
    assert {size: told["verdict"] for size, told in judged.items()} == {"small": "passed", "medium": "rejected"}
    message = reply["documents"]["failure"]["message"]
    assert "at size `medium`" in message and "returns `None`, torch returns one value" in message


@pytest.mark.parametrize("field", ["samples", "untimed"])
def test_a_size_of_which_nothing_was_kept_does_not_pass(request_of: Any, field: str) -> None:
    request = request_of(KERNEL)
    document = ask("bench.bench", request, interpreter=True)["documents"]["bench"]
    told = Path(request["scratch"]) / "bench_samples.json"
    facts = json.loads(told.read_text(encoding="utf-8"))
    facts[-1][field] = []
    told.write_text(json.dumps(facts), encoding="utf-8")
    reply = ask("sample.judge_sample", {**request, "sample": request["scratch"], "bench": document}, interpreter=True)
    assert (reply["outcome"], reply["class"]) == ("rejected", "no-reply")
    assert reply["documents"]["bench"]["judged"][facts[-1]["size"]]["verdict"] == "not-judged"


def test_a_module_that_replaces_the_clock_is_rejected(request_of: Any) -> None:
    source = KERNEL + "\n\nimport time\n\ntime.perf_counter = time.monotonic\n"
    reply = ask("bench.bench", request_of(source), interpreter=True)
    assert reply["outcome"] == "rejected"
    assert "time.perf_counter" in reply["documents"]["failure"]["message"]


def test_an_exception_in_a_timed_call_names_its_line(request_of: Any) -> None:
    source = KERNEL.replace("    assert input.is_cuda\n", "    assert input.is_cuda\n    input.nothing()\n")
    reply = ask("bench.bench", request_of(source), interpreter=True)
    assert (reply["class"], reply["cites"]) == ("exception", True)
    assert reply["documents"]["failure"]["excerpt"] == "input.nothing()"


def test_a_baseline_has_a_figure_for_each_and_a_reason_for_none(request_of: Any) -> None:
    reply = ask("baseline.baseline", request_of(KERNEL), interpreter=True)
    document = reply["documents"]["baseline"]
    assert document["reasons"] == {}
    assert document["compile_ms"] is None
    means = [size["torch"]["mean"] for size in document["sizes"].values()]
    assert document["finals"] == {"torch": pytest.approx(sum(means) / 2)}


def test_a_baseline_takes_what_torch_compiled_before_its_request(
    request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(KERNEL, baselines=["torch", "torch.compile"])
    called: list[str] = []

    def compiled(size: str) -> baseline.Ahead:
        def function(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            called.append(size)
            return input.mul(other)

        return baseline.Ahead(function, 7.0)

    monkeypatch.setattr(baseline, "AHEAD", {size: compiled(size) for size in ("small", "medium")})
    document = baseline.baseline(request)["documents"]["baseline"]
    assert (document["compile_ms"], document["reasons"]) == (14.0, {})
    assert all(size["torch.compile"]["mean"] > 0 for size in document["sizes"].values())
    assert sorted(set(called)) == ["medium", "small"]


def test_a_figure_is_the_hosts_where_the_device_neither_hides_nor_outlasts_the_call() -> None:
    assert host.is_bound(75.0, 62.0, 0.055)
    assert not host.is_bound(50.0, 62.0, 0.005), "clearing the cache hides it"
    assert not host.is_bound(75.0, 62.0, 0.3), "it is made while the one before it runs"


def test_a_baseline_that_the_host_bounds_is_unstable_and_says_why() -> None:
    steady = {"cv": 0.01, "median": 0.055}
    sizes = {"large": {"torch": steady, "torch.compile": {**steady, "host_us": 75.0, "hidden_us": 62.0}}}
    request = {"baselines": ["torch", "torch.compile"]}
    why = ["large: the figure of torch.compile is the host's, which takes 75 µs, of which the device hides 62"]
    assert baseline.unsteady(request, sizes, []) == why
    sizes["large"]["torch.compile"]["host_us"] = 40.0
    assert baseline.unsteady(request, sizes, []) == []


def test_what_measures_waits_for_the_word_and_learns_who_else_has_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def look(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            (tmp_path / quiet.QUIET).write_text("2")

    monkeypatch.setattr("time.sleep", look)
    request = {"scratch": str(tmp_path), "is_told_of_quiet": True}
    assert [quiet.awaited(request), quiet.awaited(request), len(looks)] == [2, 2, 3]
    assert quiet.awaited({"scratch": "/nonexistent"}) == 0, "nobody says so"


def test_nothing_is_tuned_on_the_interpreter(request_of: Any) -> None:
    reply = ask("tune.tune", request_of(KERNEL), interpreter=True)
    assert reply["documents"]["tune"]["choices"] == []


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_the_inputs_of_any_call_can_be_made_again(layout: str) -> None:
    from t2t_harness.cases import cases

    op = {
        "inputs": [given("input") | {"layout": layout}, given("other")],
        "mutates": ["other"],
        "overwrites": [],
        "kwargs": {},
        "sizes": {"small": {"M": 5, "N": 7}},
        "dtypes": ["float32"],
    }
    case = cases.Case("small/float32", "declared", "float32", {"M": 5, "N": 7})
    buffers = timing.buffers_of(op, case, "cpu")
    seen = []
    for run in range(3):
        buffers.refill(run)
        for _ in range(40):
            buffers.freshen()
            seen.append(buffers.given["input"].clone())
            buffers.given["other"].add_(1.0)
        made = timing.run_inputs(op, case, buffers.state())
        assert made["input"].equal(buffers.given["input"])
        assert not made["other"].equal(buffers.given["other"]), "the op changed it"
        buffers.freshen()
        assert timing.run_inputs(op, case, buffers.state())["other"].equal(buffers.given["other"])
    distinct = sum(not one.equal(other) for one, other in zip(seen, seen[1:], strict=False))
    # Of 35 elements one may get the value that it has: 107 of 120 were seen.
    assert distinct > 0.75 * len(seen), "nearly every call has inputs of its own"


def test_a_long_sum_of_a_timed_call_may_lose_what_the_last_bits_of_its_inputs_are_worth(request_of: Any) -> None:
    import torch

    from t2t_harness.cases import cases, inputs
    from t2t_harness.judging import oracle

    size = {"M": 4, "N": 4096}
    op = request_of(KERNEL)["op"]
    op |= {"torch": "torch.cumsum", "inputs": [given("input")], "kwargs": {"dim": -1}, "sizes": {"large": size}}
    case = cases.Case("large/float32", "declared", "float32", size)
    made = inputs.make_inputs(op, case, "cpu")
    wide = made["input"].double().cumsum(-1)
    # As a device has it: torch's own result there is exact but for a bit or two.
    right = oracle.Reference({"0": wide.float()}, {"0": wide})
    at = wide.abs()[:, 2048:].argmin(-1) + 2048

    def off_by(error: float) -> str | None:
        found = wide.float()
        found[torch.arange(4), at] += error
        return compared.wrong(op, case, "0", {"0": found}, made, right)

    # A sum of 2048 terms near zero, which tolerances of 1e-5 do not allow to be off by as much as honest scans in float32 are now and then.
    assert off_by(3e-5) is None
    assert off_by(1e-3) is not None


def test_what_is_kept_of_timed_calls_is_chosen_after_they_returned() -> None:
    class Inputs:
        def __init__(self) -> None:
            self.given: dict[str, Any] = {}
            self.mutated: list[str] = []
            self.own: list[Any] = []
            self.ignored: frozenset[int] = frozenset()
            self.calls = 0

        def freshen(self) -> None:
            self.calls += 1

        def state(self) -> timing.State:
            return timing.State(0, 0, self.calls)

        def memory(self) -> list[Any]:
            return []

    chosen = []
    for _ in range(300):
        inputs: Any = Inputs()
        timed = sample.Timed(lambda inputs=inputs: inputs.calls, inputs)
        timed()
        for _ in range(20):
            timed.before()
            timed()
        timed()
        timed.settle()
        assert all(one.result == one.state.changes for one in timed.kept)
        chosen += [one.result for one in timed.kept]
    assert len(chosen) == 300 * sample.KEPT
    assert set(chosen) == set(range(1, 21)), "every timed call has its chance, and no other"


FUNCTIONS = """
import time

import torch


def right(input, other):
    return input * other


def by_place(a, b):
    return torch.mul(a, b)


def off(input, other):
    return input * other + 1e-3


def narrow(input, other):
    return (input * other).half()


def raises(input, other):
    raise ValueError("not for these inputs")


def changes(input, other):
    out = input * other
    input.add_(1)
    return out


def replaces(input, other):
    time.perf_counter = time.time
    return input * other


number = 3
"""


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "file": "lib/functions.py", "function": name, **more}


def test_functions_are_baselines_and_one_that_is_none_says_why_and_takes_no_other_along(
    request_of: Any, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "functions.py").write_text(FUNCTIONS)
    named = ["right", "by_place", "off", "narrow", "raises", "changes", "number", "none"]
    functions = [
        *map(function, named),
        {"name": "installed", "function": "torch.mul"},
        {"name": "absent", "function": "no_such_package.ops.mul"},
        function("ended", function="right", ended="the process ended"),
    ]
    reply = ask("baseline.baseline", request_of(KERNEL, functions=functions), interpreter=True)
    document = reply["documents"]["baseline"]
    timed = {"right", "by_place", "installed"}
    assert {name for name, ms in document["finals"].items() if ms is not None} == {"torch", *timed}
    for size in document["sizes"].values():
        assert {name for name, figure in size["others"].items() if figure is not None} == timed
        assert set(size["others"]) == {*named, "installed", "absent", "ended"}
        assert all(len(size["others"][name]["runs"]) == 3 for name in timed)
    reasons = document["reasons"]
    assert set(reasons) == {*named, "absent", "ended"} - timed
    assert reasons["off"].startswith("its result is not torch's at size `small`: ")
    assert "torch.float16" in reasons["narrow"] and "torch.float32 expected" in reasons["narrow"]
    assert reasons["raises"] == "ValueError: not for these inputs"
    assert reasons["changes"] == "its result is not torch's at size `small`: it changes its input `input`"
    assert "cannot be called" in reasons["number"]
    assert "no_such_package" in reasons["absent"] and "none" in reasons["none"]
    assert reasons["ended"] == "the process ended"


def test_a_function_that_replaces_the_clock_has_no_figure_and_torch_has_its_own(
    request_of: Any, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "functions.py").write_text(FUNCTIONS)
    functions = [function("right"), function("replaces")]
    reply = ask("baseline.baseline", request_of(KERNEL, functions=functions), interpreter=True)
    document = reply["documents"]["baseline"]
    finals = document["finals"]
    assert finals["torch"] > 0 and finals["right"] is None and finals["replaces"] is None
    assert "perf_counter" in document["reasons"]["right"]


def test_torch_compile_is_a_baseline_in_each_of_its_modes(request_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[Any] = []

    def compiled(op: Any, *, dynamic: bool, mode: str | None = None) -> Any:
        modes.append(mode)
        if mode == "max-autotune":
            return lambda input, other: input.mul(other) + 1
        return lambda input, other: input.mul(other)

    monkeypatch.setattr("torch.compile", compiled)
    names = ["torch.compile", "torch.compile:max-autotune", "torch.compile:reduce-overhead"]
    request = request_of(KERNEL, baselines=["torch", *names])
    document = baseline.baseline(request)["documents"]["baseline"]
    assert modes == [None, "max-autotune", "reduce-overhead"] * 2
    assert [name for name, ms in document["finals"].items() if ms] == ["torch", names[0], names[2]]
    assert list(document["reasons"]) == [names[1]]
    for size in document["sizes"].values():
        assert size["torch.compile"]["mean"] > 0
        assert size["others"][names[1]] is None and size["others"][names[2]]["mean"] > 0


def test_a_baseline_without_further_ones_has_the_keys_that_it_had(request_of: Any) -> None:
    document = ask("baseline.baseline", request_of(KERNEL), interpreter=True)["documents"]["baseline"]
    for size in document["sizes"].values():
        assert set(size) == {"binding", "dtype", "torch"}


def test_torch_that_has_no_room_is_nobodys_fault_and_another_error_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    told = RuntimeError("no such thing")

    def raising(*_: object) -> None:
        raise told

    op: Any = {"name": "softmax"}
    case = cases.Case("large/float32/seed0", "declared", "float32", {"M": 4, "N": 8})
    monkeypatch.setattr(reference_call.timing, "function_of", raising)
    with pytest.raises(RuntimeError, match="no such thing"):
        reference_call.made(op, case, {})
    told = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 40.23 GiB.")
    monkeypatch.setattr(reference_call.memory, "held_by_others", lambda: 0)
    with pytest.raises(reference_call.NoRoom, match="at M=4, N=8 needs more memory") as caught:
        reference_call.made(op, case, {})
    reply = caught.value.reply()
    assert (reply["outcome"], reply["reason"]) == ("not-judged", str(caught.value))
    # Where others hold the device the machine failed, and it is tried again.
    monkeypatch.setattr(reference_call.memory, "held_by_others", lambda: 100 << 30)
    monkeypatch.setattr(reference_call.memory, "left_by_itself", lambda: 100 << 30)
    with pytest.raises(torch.OutOfMemoryError):
        reference_call.made(op, case, {})
