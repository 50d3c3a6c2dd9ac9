"""What a profile keeps of a trace, in the form that torch's profiler writes for a device."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.phases.profile import MARK, calls_of


def event(cat, name, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def kernel(name, ts, dur, correlation):
    facts = {
        "device": 0,
        "stream": 7,
        "correlation": correlation,
        "registers per thread": 32,
        "shared memory": 4096,
        "blocks per SM": 31.0,
        "grid": [4096, 1, 1],
        "block": [128, 1, 1],
        "est. achieved occupancy %": 94,
    }
    return event("kernel", name, ts, dur, **facts)


TRACE = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0.0, "args": {"name": "python"}},
        # The cache is cleared outside of the ranges.
        event("cuda_driver", "cuMemsetD32Async", 5.0, 2.0, correlation=1),
        event("gpu_memset", "Memset (Device)", 8.0, 90.0, correlation=1, bytes=268435456),
        event("user_annotation", MARK, 100.0, 100.0, **{"External id": 1}),
        event("gpu_user_annotation", MARK, 120.0, 60.0, **{"External id": 1}),
        event("cpu_op", "aten::empty", 101.0, 2.0),
        event("cuda_driver", "cuLaunchKernelEx", 110.0, 5.0, correlation=2),
        kernel("second", 140.0, 20.5, 3),
        kernel("first", 120.0, 12.25, 2),
        event("cuda_runtime", "cudaLaunchKernel", 118.0, 5.0, correlation=3),
        event("user_annotation", MARK, 300.0, 100.0),
        # The clocks of host and device differ a little: it was asked for within the range.
        event("cuda_driver", "cuLaunchKernelEx", 301.0, 5.0, correlation=4),
        kernel("first", 299.0, 12.5, 4),
        # Nothing tells who asked for it.
        kernel("second", 320.0, 21.0, 99),
        event("user_annotation", "somebody's own", 500.0, 100.0),
        kernel("other", 520.0, 10.0, 100),
        {"ph": "i", "name": "Record Window End", "ts": 700.0},
    ],
}


def test_work_is_that_of_the_call_that_asked_for_it():
    calls = calls_of(TRACE)
    assert [[(one["kernel"], one["us"]) for one in call] for call in calls] == [
        [("first", 12.25), ("second", 20.5)],
        [("first", 12.5), ("second", 21.0)],
    ]
    assert calls[0][0] == {
        "kernel": "first",
        "us": 12.25,
        "grid": [4096, 1, 1],
        "block": [128, 1, 1],
        "registers": 32,
        "shared": 4096,
    }


def test_a_fill_of_memory_within_a_call_is_work_without_a_grid():
    fill = event("gpu_memset", "Memset (Device)", 130.0, 1.5, correlation=7, bytes=4)
    [first, _] = calls_of({"traceEvents": [*TRACE["traceEvents"], fill]})
    assert first[1] == {
        "kernel": "Memset (Device)",
        "us": 1.5,
        "grid": None,
        "block": None,
        "registers": None,
        "shared": None,
    }


def test_a_trace_without_a_devices_work_has_no_calls():
    host = [one for one in TRACE["traceEvents"] if one.get("cat") in ("user_annotation", "cpu_op")]
    assert calls_of({"traceEvents": host}) == []
