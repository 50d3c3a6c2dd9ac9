"""A calibration with a clock that tells what it is told to, on small tensors of the CPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring import clock, spans, telemetry
from t2t_harness.phases import calibrate
from t2t_harness.triton import facade

REQUEST = {"lane": "cuda", "model": "nvidia-h200"}


def test_the_preferred_side_is_taken_where_its_product_is_quick() -> None:
    assert calibrate.side_for(0.3) == 8192
    assert calibrate.side_for(40.0 / 64) == 8192
    assert calibrate.side_for(1.0) == 4096
    assert calibrate.side_for(20.0) == 2048
    assert calibrate.side_for(1000.0) == 2048


def test_rates_are_those_of_the_median() -> None:
    copy = calibrate.copy_figure(2**30, [0.25, 0.25, 4.0])
    assert copy["bytes"] == 2**30
    assert (copy["median"], copy["mean"]) == (0.25, 1.5)
    assert copy["gb_per_s"] == pytest.approx(4294.967296)
    product = calibrate.product_figure(4096, [2.0, 2.0, 5.0])
    assert product["tflop_per_s"] == pytest.approx(68.719476736)
    assert (product["side"], product["p20"]) == (4096, 2.0)


def test_copies_rise_in_steps_of_four_to_the_one_that_is_the_ceiling() -> None:
    assert calibrate.COPIES[0] == 2**16
    assert calibrate.COPIES[-1] == 2**30
    assert all(larger == 4 * smaller for smaller, larger in zip(calibrate.COPIES, calibrate.COPIES[1:], strict=False))
    assert calibrate.LARGEST_COPY // 2 >= 2**30


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Returns a function that calibrates with small tensors, a clock whose samples it is given, and a device of its own making."""
    monkeypatch.setattr(calibrate, "LARGEST_COPY", 4096)
    monkeypatch.setattr(calibrate, "COPIES", (256, 1024))
    monkeypatch.setattr(calibrate, "SIDES", (16, 8))
    monkeypatch.setattr(spans, "work", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(telemetry, "device_facts", lambda *_: {"model": "nvidia-h200"})
    monkeypatch.setattr(telemetry, "snapshot", lambda _: {"throttle": ["power brake"], "other_processes": 0})

    def measure(sample: Callable[[clock.Call, float, float], list[float]]) -> dict[str, Any]:
        told = clock.Clock("cuda-events", sample, lambda: 0.0, lambda: None, lambda calls: None, lambda: 0.0, ())
        monkeypatch.setattr(clock, "clock_of", lambda request: told)
        with facade.cpu_as_cuda():
            reply = calibrate.calibrate(REQUEST)
        assert (reply["outcome"], reply["files"]) == ("passed", {})
        return dict(reply["documents"]["calibration"])

    return measure


def test_the_document_holds_every_copy_and_product(small: Callable[..., dict[str, Any]]) -> None:
    runs: list[tuple[float, float]] = []
    moved: list[int] = []

    def sample(call: clock.Call, warmup: float, rep: float) -> list[float]:
        made = call()
        runs.append((warmup, rep))
        moved.append(2 * made.nbytes)
        return [0.5, 1.0, 2.0]

    document = small(sample)
    assert [copy["bytes"] for copy in document["copies"]] == [256, 1024, 4096]
    assert moved[:3] == [4096, 256, 1024]
    assert document["copy_gb_per_s"] == document["copies"][-1]["gb_per_s"] == pytest.approx(4096 / 1e6)
    assert list(document["products"]) == ["float64", "float32", "tf32", "float16", "bfloat16"]
    assert all(product["side"] == 16 for product in document["products"].values())
    assert runs[0] == (25, 100)
    assert set(runs[3:]) == {(0, 0), (25, 100)}
    assert document["protocol"] == {"runs": 1, "warmup_ms": 25, "rep_ms": 100}
    assert (document["clock"], document["reasons"]) == ("cuda-events", {})
    assert (document["unstable"], document["why_unstable"]) == (True, "throttled: power brake")


def test_a_product_that_torch_refuses_has_no_figure_and_the_precision_is_as_before(
    small: Callable[..., dict[str, Any]],
) -> None:
    seen: list[tuple[torch.dtype, str]] = []

    def sample(call: clock.Call, warmup: float, rep: float) -> list[float]:
        dtype = call().dtype
        seen.append((dtype, torch.get_float32_matmul_precision()))
        if dtype == torch.float16:
            raise RuntimeError("not here")
        return [1.0]

    before = torch.get_float32_matmul_precision()
    document = small(sample)
    assert document["products"]["float16"] is None
    assert document["reasons"] == {"float16": "not here"}
    assert document["products"]["bfloat16"]["tflop_per_s"] > 0
    assert (torch.float32, "high") in seen
    assert (torch.float32, "highest") in seen
    assert torch.get_float32_matmul_precision() == before
