"""When a check or a measurement asks for all queues of its device. torch's streams are played: tests/it/gpu.rs has a device's."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from t2t_harness.counting import queues
from t2t_harness.cuda import watching
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import spans, timing
from t2t_harness.phases import bench, candidate, passes, permitted, sample, tune
from t2t_harness.sources import loading
from t2t_harness.triton import launchers, launching

REQUEST = {"lane": "cuda"}
PASSED: dict[str, Any] = {"outcome": "passed"}
PROTOCOL = {"runs": 1, "warmup_ms": 1, "rep_ms": 1}


class Stream:
    """A stream of nobody's."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None: ...


class ExternalStream(Stream):
    """A stream that somebody else made."""

    def __new__(cls, pointer: int, **kwargs: Any) -> ExternalStream:
        return object.__new__(cls)


@pytest.fixture(autouse=True)
def with_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "ExternalStream", ExternalStream)
    monkeypatch.setenv(queues.QUEUES, "1")


def caller(*wants: Any, catches: tuple[type[BaseException], ...] = ()) -> Any:
    """Returns a phase function whose kernel does what each of `wants` does."""

    def function(_: Mapping[str, Any]) -> dict[str, Any]:
        for want in wants:
            with contextlib.suppress(*catches):
                want()
        return PASSED

    return queues.in_one(function)


WAYS = {
    "made": lambda: torch.cuda.Stream(),
    "on a device": lambda: torch.cuda.Stream("cuda:0", priority=-1),
    "of another library": lambda: torch.cuda.ExternalStream(4096),
    "launched on": queues.want,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_kernel_that_wants_another_stream_is_called_again_with_all_queues(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert caller(WAYS[way])(REQUEST) == queues.AGAIN
    monkeypatch.delenv(queues.QUEUES)
    assert caller(WAYS[way])(REQUEST) == PASSED


def test_a_kernel_cannot_hide_that_it_wanted_one() -> None:
    assert caller(WAYS["made"], catches=(BaseException,))(REQUEST) == queues.AGAIN

    def leave() -> None:
        raise SystemExit(3)

    assert caller(WAYS["made"], leave, catches=(queues.Wanted,))(REQUEST) == queues.AGAIN


def test_the_present_stream_is_there_already() -> None:
    assert caller(lambda: torch.cuda.Stream(stream_id=0, device_index=0, device_type=1))(REQUEST) == PASSED


def test_what_is_raised_otherwise_is_raised() -> None:
    def fail() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        caller(fail)(REQUEST)


def test_there_is_a_limit_on_a_device_with_one_queue_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.cuda.Stream.__new__, torch.cuda.ExternalStream.__new__
    assert caller(WAYS["made"])({"lane": "interpreter"}) == PASSED
    monkeypatch.setenv(queues.QUEUES, "8")
    assert caller(WAYS["made"])(REQUEST) == PASSED
    monkeypatch.setenv(queues.QUEUES, "1")
    assert caller(WAYS["made"])(REQUEST) == queues.AGAIN
    assert before == (torch.cuda.Stream.__new__, torch.cuda.ExternalStream.__new__)
    queues.want()


def test_a_candidate_that_wants_another_stream_is_called_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "lane", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(candidate, "load", lambda *_: torch.cuda.Stream() and None)
    request = {**REQUEST, "scratch": str(tmp_path), "variant": {"lanes": ["cuda"]}}
    assert candidate.run(request)["outcome"] == "again"
    monkeypatch.delenv(queues.QUEUES)
    assert candidate.run(request)["outcome"] == "passed"


@pytest.mark.parametrize("place", ["import", "call"])
@pytest.mark.parametrize("is_caught", [False, True])
def test_a_bench_of_a_wrapper_that_wants_another_stream_is_called_again(
    place: str, is_caught: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def want(*_: Any) -> Any:
        with contextlib.suppress(*[BaseException] if is_caught else []):
            torch.cuda.Stream()
        return want

    def measure(found: bench.Measurement) -> Any:
        inputs: Any = types.SimpleNamespace(memory=list, counters=[], ignored=())
        call = sample.Timed(found.entry, inputs)
        bench.first_launch(found, call, passes.subject(passes.FORWARD, found.entry, None))
        raise ValueError("measured")

    monkeypatch.setattr(watching, "lane", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(clocks, "clock_of", lambda _: types.SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setattr(timing, "set_precision", lambda _: None)
    monkeypatch.setattr(loading, "load_entry", want if place == "import" else lambda *_: want)
    monkeypatch.setattr(watching, "recording", lambda *_: contextlib.nullcontext(launching.Recorder()))
    monkeypatch.setattr(spans, "work", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(permitted, "own_operations", lambda _: frozenset())
    monkeypatch.setattr(bench, "measure", measure)
    request = {**REQUEST, "op": {}, "variant": {}, "root": str(tmp_path), "protocol": PROTOCOL}
    assert bench.bench(request)["outcome"] == "again"
    monkeypatch.delenv(queues.QUEUES)
    assert bench.bench(request)["documents"]["failure"]["message"].endswith("measured")


def test_a_tuning_of_a_wrapper_that_wants_another_stream_is_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "lane", lambda _: contextlib.nullcontext(launchers.Counted()))
    monkeypatch.setattr(clocks, "clock_of", lambda _: None)
    monkeypatch.setattr(tune, "tune_all", lambda *_: torch.cuda.Stream() and None)
    request = {**REQUEST, "root": "/nonexistent"}
    assert tune.tune(request)["outcome"] == "again"
