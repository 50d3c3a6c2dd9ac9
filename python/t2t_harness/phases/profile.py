"""Records what the device does for a few calls of a variant at one size, launch by launch.

CUPTI records it, and torch's profiler, which is there wherever torch is, reads the records. Triton's proton reads the same ones, but keeps of each kernel the number of launches and
the sum of their times alone. The cache is cleared before each call, as a bench does. It makes no statistics. torch is imported only inside functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import calling, cases
from t2t_harness.cuda import watching
from t2t_harness.faults import failure, machine
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import driver, host, quiet, spans, telemetry, timing
from t2t_harness.phases import passes
from t2t_harness.phases import tune as tuning
from t2t_harness.phases.sweep import untuned
from t2t_harness.sources import loading
from t2t_harness.triton import stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import BenchRequest, Profile, ProfiledLaunch, ProfileLimits, Reply
    from t2t_harness.sources.entry import Entry
    from t2t_harness.triton.tuner import Config, Tuner

CALLS = 30
"""How many calls are recorded."""

MARK = "t2t: a call"
"""The name of the ranges in the trace that calls are made in."""

WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""The categories of what a device does, in a trace of torch's profiler."""

API = frozenset({"cuda_runtime", "cuda_driver"})
"""The categories of the calls that ask it to."""

TRACE = "trace.json"


@spans.told
def profile(request: BenchRequest) -> Reply:
    """Returns the reply with the document `profile`; its calls are empty where CUPTI recorded nothing.

    Rejected with class `exception`, or `memory`, and a `failure` where the wrapper raises, or where its module replaced what times it.
    """
    timing.set_precision(request["op"])
    with watching.lane(request):
        clock = clocks.clock_of(request)
        try:
            with stage.pretending(request["lane"]):
                entry = loading.load_entry(request["root"], request["variant"])
            document = profiled(request, clock, entry)
        except SystemExit:
            raise
        except BaseException as error:
            machine.raise_if_it_failed(error, request["root"])
            class_, message = watching.class_of(error), failure.describe(error)
            return rejected(request, class_, message, error)
    if replaced := clock.replaced():
        return rejected(request, "exception", f"the kernel's module replaced what times it: {', '.join(replaced)}")
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"profile": document}, "files": {}}


def rejected(request: BenchRequest, class_: str, message: str, error: BaseException | None = None) -> Reply:
    """Returns the reply of a profile that a failure of this class ends."""
    record = failure.failure(class_, message, root=request["root"], error=error)
    return {
        "outcome": "rejected",
        "class": class_,
        "cites": failure.cites(record),
        "documents": {"failure": record},
        "files": {},
    }


def profiled(request: BenchRequest, clock: clocks.Clock, entry: Entry) -> Profile:
    """Returns the document `profile` of the one size that the request names. Raises what the wrapper raises."""
    import torch

    [(size, case)] = timing.timed_cases(request).items()
    quiet.awaited(request)
    which = passes.of(request)
    buffers = passes.buffers_of(which, request["op"], case, timing.device_of(request["lane"]))
    subject = prepared(request, clock, entry, case, buffers)
    clock.warm([subject.call])
    subject.prepare()
    # How long the device takes only says how many calls are made in a row.
    host_us = host.time_us(clock, subject.call, clock.sample(subject.call, 0.0, 1.0)[0])
    trace = recorded(request, subject, buffers.freshen)
    return {
        "profiler": "cupti",
        "version": str(torch.__version__),
        "model": request["model"],
        "size": size,
        "binding": case.binding,
        "dtype": case.dtype,
        "host_us": host_us,
        "limits": limits(),
        "calls": calls_of(trace),
        "telemetry": telemetry.snapshot(request),
    }


def prepared(
    request: BenchRequest, clock: clocks.Clock, entry: Entry, case: cases.Case, buffers: timing.Buffers
) -> passes.Subject:
    """Returns the passes of the wrapper that a bench times, made once, with the configurations that were tuned. Raises what the wrapper raises."""
    wrapper, args, kwargs = calling.arranged(entry, request, case, passes.arguments(buffers))
    subject = passes.subject(passes.of(request), timing.bound(wrapper, args, kwargs), buffers)
    tuned = request.get("tune") or untuned()

    def choose(tuner: Tuner, configs: list[Config]) -> list[Config]:
        config = tuning.choice(tuner, configs, recorder, clock, tuned)
        tuner.cache[recorder.key] = config
        return [config]

    with watching.recording(request["lane"], choose) as recorder:
        with spans.work("cuda"):
            passes.call_subject(subject, request["lane"])
        clock.synchronize()
    return subject


def recorded(request: BenchRequest, subject: passes.Subject, freshen: Callable[[], None]) -> Mapping[str, Any]:
    """Returns the trace of `CALLS` calls as torch's profiler writes it. Raises what the wrapper raises."""
    import torch
    from torch import profiler
    from triton.runtime.driver import driver as triton

    device = driver.opened()
    cache = triton.active.get_empty_cache_for_benchmark()
    kinds = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
    with spans.timing(), profiler.profile(activities=kinds) as found:
        for _ in range(CALLS):
            subject.prepare()
            freshen()
            device.clear(cache)
            torch.cuda.synchronize()
            # The device is waited for within the range, so that all work of a call ends in it.
            with profiler.record_function(MARK):
                with stage.pretending(request["lane"]):
                    subject.call()
                torch.cuda.synchronize()
    path = Path(request["scratch"]) / TRACE
    found.export_chrome_trace(str(path))
    trace: Mapping[str, Any] = json.loads(path.read_text())
    path.unlink()
    return trace


def limits() -> ProfileLimits:
    """Returns what torch's present device holds."""
    import torch

    # torch's own types lack the registers.
    facts: Any = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "capability": [int(facts.major), int(facts.minor)],
        "multiprocessors": int(facts.multi_processor_count),
        "threads": int(facts.max_threads_per_multi_processor),
        "registers": int(facts.regs_per_multiprocessor),
        "shared": int(facts.shared_memory_per_multiprocessor),
    }


def calls_of(trace: Mapping[str, Any]) -> list[list[ProfiledLaunch]]:
    """Returns of each range of a trace in which a call was made what the device did for it, in the order of its beginning; nothing where no work was recorded in any.

    Work belongs to the range in which it was asked for. Where the trace lacks what asked for it, the range counts in which it began: the device is idle at a range's beginning and end.
    """
    events: Sequence[Mapping[str, Any]] = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
    ranges = sorted(
        (float(one["ts"]), float(one["ts"]) + float(one["dur"]))
        for one in events
        if one.get("cat") == "user_annotation" and one.get("name") == MARK
    )
    asked = {one["args"]["correlation"]: float(one["ts"]) for one in events if is_api(one)}
    calls: list[list[ProfiledLaunch]] = [[] for _ in ranges]
    for work in sorted((one for one in events if one.get("cat") in WORK), key=lambda one: float(one["ts"])):
        moment = asked.get(work.get("args", {}).get("correlation"), float(work["ts"]))
        for call, (begin, end) in zip(calls, ranges, strict=True):
            if begin <= moment <= end:
                call.append(launch_of(work))
    return calls if any(calls) else []


def is_api(event: Mapping[str, Any]) -> bool:
    """Tells whether an event is a call that may ask the device for work."""
    return event.get("cat") in API and "correlation" in event.get("args", {})


def launch_of(work: Mapping[str, Any]) -> ProfiledLaunch:
    """Returns what is kept of a piece of work."""
    facts = work.get("args", {})
    return {
        "kernel": str(work["name"]),
        "us": float(work["dur"]),
        "grid": axes(facts.get("grid")),
        "block": axes(facts.get("block")),
        "registers": whole(facts.get("registers per thread")),
        "shared": whole(facts.get("shared memory")),
    }


def axes(told: object) -> list[int] | None:
    """Returns the three lengths of a grid or a block, None where there are none."""
    return [int(one) for one in told] if isinstance(told, list) and len(told) == 3 else None


def whole(told: object) -> int | None:
    """Returns a number of a trace, None where there is none."""
    return int(told) if isinstance(told, (int, float)) else None
