"""Benches, baselines and sweeps of a backward pass and of both passes, on the interpreter; the changes of what flows in, and results that belong to another call."""

from __future__ import annotations

import random
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import HEAD, declared, tensor
from test_operators import SOFTMAX, softmax_op

from children import ask
from t2t_harness.cases import declared_inputs
from t2t_harness.counting import streams
from t2t_harness.cuda import watching
from t2t_harness.judging import oracle
from t2t_harness.measuring import clock, quiet, spans, telemetry, timing
from t2t_harness.op import operation
from t2t_harness.phases import baseline, bench, passes, sample, tune
from t2t_harness.sources import loading
from t2t_harness.triton import launching

AUTOGRAD = (
    SOFTMAX
    + """

class Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        y = softmax.forward(x, dim)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        return softmax.backward(dy, ctx.saved_tensors[0]), None


def recorded(input, dim):
    return Recorded.apply(input, dim)
"""
)


def request_of(tmp_path: Path, which: str, kernel: str, op: dict[str, Any] | None = None, **variant: Any) -> Any:
    """Returns the request of a bench of `kernel`, which times the passes `which`."""
    file = tmp_path / "kernels" / "op" / "v1.py"
    file.parent.mkdir(parents=True)
    file.write_text(HEAD + kernel, encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    told = {"name": "v1", "file": "kernels/op/v1.py", "entry": "softmax", "lanes": ["interpreter"], **variant}
    protocol = {"runs": 3, "warmup_ms": 0, "rep_ms": 2} | ({} if which == passes.FORWARD else {"passes": which})
    return {
        "op": softmax_op() if op is None else op,
        "variant": told,
        "root": str(tmp_path),
        "scratch": str(tmp_path / "scratch"),
        "lane": "interpreter",
        "model": "interpreter",
        "protocol": protocol,
        "baselines": ["torch"],
        "tune": None,
    }


def judged(request: Any) -> Any:
    """Returns the reply of the judge of the bench's timed calls."""
    reply = ask("bench.bench", request, interpreter=True)
    assert reply["outcome"] == "passed", reply["documents"]["failure"]
    document = reply["documents"]["bench"]
    return ask("sample.judge_sample", {**request, "sample": request["scratch"], "bench": document}, interpreter=True)


@pytest.mark.parametrize("entry", ["softmax", "recorded"])
@pytest.mark.parametrize("which", ["backward", "both"])
def test_gradients_of_timed_calls_are_judged(tmp_path: Path, which: str, entry: str) -> None:
    request = request_of(tmp_path, which, AUTOGRAD, entry=entry)
    reply = judged(request)
    assert reply["outcome"] == "passed", reply["documents"]["failure"]
    document = reply["documents"]["bench"]
    assert document["protocol"]["passes"] == which
    assert all(size["interpreter_ms"] > 0 for size in document["sizes"].values())
    for facts in sample.kept_facts(tmp_path / "scratch"):
        stored = operation_names(tmp_path / "scratch" / sample.file_of(facts["size"], 0))
        assert stored == ({"grad.input"} if which == "backward" else {"0", "grad.input"})
        assert [seen["launches"] for seen in facts["untimed"]] == [2, 2]


def operation_names(path: Path) -> set[str]:
    """Returns the names of the tensors in a file."""
    from safetensors import safe_open

    with safe_open(str(path), "np") as stored:
        return set(stored.keys())


def test_a_forward_pass_is_timed_without_its_backward_pass(tmp_path: Path) -> None:
    kernel = SOFTMAX.replace("        return dx\n", "        raise AssertionError('nobody asks for it')\n")
    reply = judged(request_of(tmp_path, "forward", kernel))
    assert reply["outcome"] == "passed", reply["documents"]["failure"]
    assert "passes" not in reply["documents"]["bench"]["protocol"]


KEPT = {
    "a gradient of an earlier call": (
        "        dx = torch.empty(output.shape",
        "        if getattr(self, 'kept', None) is not None and self.kept.shape == output.shape:\n"
        "            return self.kept\n"
        "        self.kept = dx = torch.empty(output.shape",
        "mismatch",
    ),
    "memory that the next call writes to": (
        "        dx = torch.empty(output.shape",
        "        if getattr(self, 'kept', None) is None or self.kept.shape != output.shape:\n"
        "            self.kept = torch.empty(output.shape)\n"
        "        dx = self.kept.view(output.shape) if True else torch.empty(output.shape",
        "mismatch",
    ),
    "torch computes it": (
        "        return dx\n",
        "        return torch._softmax_backward_data(dy, output, -1, output.dtype)\n",
        "torch-fallback",
    ),
}


@pytest.mark.parametrize("which", ["backward", "both"])
@pytest.mark.parametrize("fault", KEPT)
def test_a_gradient_that_was_not_computed_for_the_call_is_found(tmp_path: Path, which: str, fault: str) -> None:
    written, instead, class_ = KEPT[fault]
    assert written in SOFTMAX
    reply = judged(request_of(tmp_path, which, SOFTMAX.replace(written, instead)))
    assert (reply["outcome"], reply["class"]) == ("rejected", class_), reply["documents"]
    if class_ == "mismatch":
        assert "gradient of `input`" in reply["documents"]["failure"]["message"]


def test_what_has_no_gradient_is_not_timed_backward(tmp_path: Path) -> None:
    given = [tensor("input", ["M", "N"], dtype="int32", init={"kind": "randint", "low": 0, "high": 9})]
    op = declared("torch.neg", given, {"M": 4, "N": 12}, backward=True)
    kernel = "def wrapper(input):\n    return input\n"
    reply = ask("bench.bench", request_of(tmp_path, "backward", kernel, op, entry="wrapper"), interpreter=True)
    assert reply["class"] == "exception"
    assert "no input has a gradient" in reply["documents"]["failure"]["message"]


def cases_of(op: dict[str, Any]) -> Any:
    """Returns the case of the first timed size."""
    return next(iter(timing.timed_cases({"op": op, "lane": "interpreter"}).values()))


@pytest.mark.parametrize("which", ["backward", "both"])
def test_another_process_makes_what_flows_in_and_the_inputs_of_any_call(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of 48 elements one may be drawn that gets the value it has: with these draws each call differs.
    draws = random.Random(1)
    monkeypatch.setattr(random, "SystemRandom", lambda: draws)
    op = softmax_op()
    case = cases_of(op)
    buffers = passes.buffers_of(which, op, case, "cpu")
    forward = timing.torch_call(op, case, passes.arguments(buffers))
    subject = passes.subject(which, forward, buffers)
    subject.prepare()
    earlier = []
    for run in range(2):
        buffers.refill(run)
        subject.prepare()
        for _ in range(3):
            buffers.freshen()
            found = subject.named(subject.call())["grad.input"]
            state = buffers.state()
            given = timing.run_inputs(op, case, passes.inputs_state(which, state))
            assert given["input"].equal(buffers.given["input"])
            right = oracle.reference(op, case, given, flows=passes.flowing(state))
            assert right.plain["grad.input"].equal(found)
            assert not any(found.equal(one) for one in earlier)
            earlier.append(found.clone())


def test_torch_s_backward_pass_is_timed_over_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    calls: list[str] = []
    real = torch.nn.functional.softmax

    def counted(input: torch.Tensor, dim: int) -> torch.Tensor:
        calls.append("forward")
        return real(input, dim)

    monkeypatch.setattr(operation, "ready", lambda *_: counted)
    op = softmax_op()
    case = cases_of(op)
    for which, expected in [("backward", 0), ("both", 3)]:
        buffers = passes.buffers_of(which, op, case, "cpu")
        subject = passes.subject(which, timing.torch_call(op, case, passes.arguments(buffers)), buffers)
        subject.prepare()
        calls.clear()
        for _ in range(3):
            subject.call()
        assert len(calls) == expected


@pytest.mark.parametrize("which", ["backward", "both"])
def test_a_baseline_has_the_figures_of_these_passes(tmp_path: Path, which: str) -> None:
    reply = ask("baseline.baseline", request_of(tmp_path, which, SOFTMAX), interpreter=True)
    document = reply["documents"]["baseline"]
    assert document["protocol"]["passes"] == which
    assert document["finals"]["torch"] > 0 and document["reasons"] == {}


def test_a_compiled_backward_pass_runs_again_over_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._functorch.config as config

    monkeypatch.setattr(config, "donated_buffer", True)
    baseline.prepare_compiler("both")
    assert config.donated_buffer
    baseline.prepare_compiler("backward")
    assert not config.donated_buffer


def test_a_sweep_of_a_backward_pass_tells_no_rates_of_the_forward_pass() -> None:
    from t2t_harness.phases import sweep

    def unit(which: str, *, is_device: bool = True) -> str:
        return sweep.unit_of({"protocol": {"passes": which}}, is_device=is_device, is_product=False)

    assert [unit(which) for which in ("forward", "backward", "both")] == [
        "GB/s",
        "ms of the backward pass",
        "ms of both passes",
    ]
    assert unit("backward", is_device=False) == sweep.INTERPRETED


def test_a_sweep_and_a_screening_call_these_passes(tmp_path: Path) -> None:
    request = request_of(tmp_path, "backward", SOFTMAX)
    variant = request.pop("variant")
    reply = ask("sweep.sweep", {**request, "variants": [variant]}, interpreter=True)
    document = reply["documents"]["sweep"]
    assert document["reasons"] == {}
    assert all(point["ms"]["v1"]["median"] > 0 for point in document["points"])
    told = {**request, "incumbent": variant, "candidate": variant}
    reply = ask("screen.screen", told, interpreter=True)
    assert reply["outcome"] == "passed", reply["documents"]


@pytest.mark.parametrize("which", ["forward", "backward", "both"])
def test_a_device_times_these_passes_of_the_variant_and_of_torch_in_turns(
    tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    for owner, name, value in [
        (spans, "work", lambda device, waits=True: nullcontext()),
        (streams, "outlasts", lambda *_: False),
        (telemetry, "snapshot", lambda request: None),
        (torch.cuda, "synchronize", lambda: None),
    ]:
        monkeypatch.setattr(owner, name, value)
    told: list[str] = []

    class Exp:
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            told.append("forward")
            return torch.exp(input)

        def backward(self, grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            told.append("backward")
            return grad * output

    given = [tensor("input", ["M", "N"], requires_grad=True)]
    op = declared("torch.exp", given, {"M": 4, "N": 12}, backward=True, allow=[], edges={}, fixed=[])
    request = request_of(tmp_path, which, "", op)
    entry: Any = Exp()
    found = bench.Measurement(request, clock.host_clock(), entry, timing.protocol_of(request))
    bench.measure_size(found, "small", cases_of(op))
    assert {who: len(raw["samples"]) for who, raw in found.times["small"].items()} == {"variant": 3, "torch": 3}
    forward, backward = told.count("forward"), told.count("backward")
    if which == "forward":
        assert backward == 0
    elif which == "backward":
        # A graph for each run, and those of the two calls that are watched.
        assert forward == 3 + 2 and backward > forward
    else:
        assert forward >= backward > 3
    sample.keep_times(tmp_path / "scratch", found.times)
    document = {"sizes": found.sizes, "protocol": request["protocol"], "disturbed": []}
    facts = sample.kept_facts(tmp_path / "scratch")
    assert len(facts[0]["samples"]) == sample.KEPT
    timing_of = {**request, "sample": request["scratch"], "bench": document}
    for number, one in enumerate(facts[0]["samples"]):
        state = timing.State(**one["state"])
        flows = None if which == "forward" else passes.flowing(state)
        values = timing.run_inputs(op, cases_of(op), passes.inputs_state(which, state))
        right = oracle.reference(op, cases_of(op), values, flows=flows)
        path = tmp_path / "scratch" / sample.file_of("small", number)
        assert sample.wrong_sample(timing_of, cases_of(op), path, values, right, flows) is None


@pytest.mark.parametrize("which", ["forward", "backward", "both"])
def test_a_tune_launches_the_kernels_of_the_passes_that_are_timed(
    tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    told: list[str] = []

    class Exp:
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            told.append("forward")
            return torch.exp(input)

        def backward(self, grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
            told.append("backward")
            return grad * output

    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 4, "N": 12}, backward=True)
    made = declared_inputs.make_inputs
    for owner, name, value in [
        (spans, "work", lambda device: nullcontext()),
        (quiet, "awaited", lambda request: None),
        (loading, "load_entry", lambda *_: Exp()),
        (declared_inputs, "make_inputs", lambda op, case, device: made(op, case)),
        (watching, "recording", lambda *_: nullcontext(launching.Recorder())),
    ]:
        monkeypatch.setattr(owner, name, value)
    document: Any = {"choices": [], "dropped": []}
    tune.tune_all(request_of(tmp_path, which, "", op), clock.host_clock(), document)
    once = ["forward"] if which == "forward" else ["forward", "backward"]
    assert told == once * 2
