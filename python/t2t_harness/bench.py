"""Measures one variant beside torch, run by run in turns, in one process and with one clock.

The clock is captured before kernel code is imported and compared at the end. Inputs change in place from run to run. An autotuned kernel runs with the
configuration that the document `tune` names. Timed calls go through Triton alone: nothing of the harness stands between the clock and the wrapper.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_harness import (
    calling,
    cases,
    failure,
    host,
    launching,
    loading,
    memory,
    queues,
    sample,
    spans,
    stage,
    statistics,
    streams,
    telemetry,
    timing,
)
from t2t_harness import clock as clocks
from t2t_harness import tune as tuning


class StrayWork(Exception):
    """What is timed is not what the calls do."""


@dataclass
class Measurement:
    """A bench in progress."""

    request: Mapping[str, Any]
    clock: clocks.Clock
    entry: Callable[..., Any]
    protocol: timing.Protocol
    sampled: dict[str, int]
    """Size → run of which the result of one call is kept."""
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)
    hits: int = 0
    misses: list[str] = field(default_factory=list)
    host_us: float | None = None
    host_beside: float = math.inf
    """The device's time in ms of a call at the size where `host_us` was measured."""
    before: list[dict[str, Any] | None] = field(default_factory=list)
    """The GPU's telemetry before the first measurement, once that has come."""

    @property
    def lane(self) -> str:
        """Returns the lane of the bench."""
        return str(self.request["lane"])


@spans.told
def bench(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reply with the document `bench`; leaves a sampled output in scratch for `sample.judge_sample`.

    Rejected with class `exception`, or `memory`, and a `failure` where the wrapper raises, or where it replaced what times it, or
    left work to a stream that nothing times. In a process with one queue a wrapper that wants another stream, when it is imported or first called at a size, is not measured: the
    reply is `queues.AGAIN`.
    """
    timing.set_precision(request["op"])
    with stage.lane(request) as modules:
        clock = clocks.clock_of(request)
        try:
            with queues.kept_to_one(request["lane"]), stage.pretending(request["lane"]):
                entry = loading.load_entry(request["root"], dict(request["variant"]))
            found = Measurement(request, clock, entry, timing.protocol_of(request), sampled_runs(request))
            why, is_remeasured, after = measure(found)
            before = found.before[0] if found.before else None
            device = telemetry.device_facts(request, before)
        except queues.Wanted:
            return dict(queues.AGAIN)
        except SystemExit:
            raise
        except BaseException as error:
            memory.raise_if_others_hold_it(error)
            class_, message = failure.class_of(error), failure.describe(error)
            return rejected(failure.failure(class_, message, root=request["root"], error=error))
    if replaced := clock.replaced():
        message = f"the kernel's module replaced what times it: {', '.join(replaced)}"
        return rejected(failure.failure("exception", message, root=request["root"]))
    document: dict[str, Any] = {
        "clock": clock.name,
        "protocol": dict(request["protocol"]),
        "device": device,
        "sizes": found.sizes,
        "judged": judged(request),
    }
    if found.lane == "cuda":
        document |= {
            **finals(found.sizes),
            "host_us": found.host_us,
            "unstable": bool(why),
            "why_unstable": "; ".join(why) or None,
            "remeasured": is_remeasured,
            "telemetry": {"before": before, "after": after},
            "triton_cache": {"hits": found.hits, "misses": sorted(found.misses), "launchers": modules.facts()},
        }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"bench": document}, "files": {}}


def rejected(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the reply of a bench that `record` ends."""
    return {
        "outcome": "rejected",
        "class": record["class"],
        "cites": failure.cites(record),
        "documents": {"failure": record},
        "files": {},
    }


def snapshot(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the GPU's telemetry, or None where there is no GPU."""
    return telemetry.snapshot(request)


def sampled_runs(request: Mapping[str, Any]) -> dict[str, int]:
    """Returns a run at random for each size; none for an op that changes its inputs, whose results depend on the calls before."""
    if request["op"]["mutates"]:
        return {}
    chance, runs = random.SystemRandom(), timing.protocol_of(request).runs
    return {size: chance.randrange(runs) for size in timing.timed_cases(request)}


def measure(found: Measurement) -> tuple[list[str], bool, dict[str, Any] | None]:
    """Measures every size, and on a GPU once more what was not stable. Returns why it still is not, whether it was repeated, and the telemetry.

    Raises what the wrapper raises.
    """
    timed = timing.timed_cases(found.request)
    if found.lane == "interpreter":
        for size, case in timed.items():
            interpret_size(found, size, case)
        return [], False, None
    for size, case in timed.items():
        measure_size(found, size, case)
    after = snapshot(found.request)
    disturbed = telemetry.disturbances([*found.before, after])
    varied = [size for size in timed if is_varied(found.sizes[size])]
    if not (disturbed or varied):
        return [], False, after
    for size in timed if disturbed else varied:
        measure_size(found, size, timed[size])
    after = snapshot(found.request)
    varied = [size for size in timed if is_varied(found.sizes[size])]
    return [*telemetry.disturbances([after]), *map(varied_words(found.sizes), varied)], True, after


def is_varied(size: Mapping[str, Any]) -> bool:
    """Tells whether a figure of one size varies from run to run by more than is stable."""
    return bool(max(size["variant"]["cv"], size["torch"]["cv"]) > statistics.STEADY)


def varied_words(sizes: Mapping[str, Any]) -> Callable[[str], str]:
    """Returns what says in words how far the figures of a size vary."""

    def words(size: str) -> str:
        told = [f"{who} {100 * sizes[size][who]['cv']:.0f} %" for who in ("variant", "torch")]
        return f"{size}: runs vary by {', '.join(told)}"

    return words


def interpret_size(found: Measurement, size: str, case: cases.Case) -> None:
    """Puts how long Triton's interpreter takes for one call at one size into `found.sizes`: the median of all runs. Torch is not timed beside it: nothing compares
    with these times. Raises what the wrapper raises."""
    declaration = found.request["op"]
    buffers = timing.buffers_of(declaration, case, "cpu")
    wrapper, args, kwargs = calling.arranged(found.entry, found.request, case, buffers.given)
    call = timing.bound(wrapper, args, kwargs)
    config = first_launch(found, call)
    runs = timing.Runs(found.clock, found.protocol)
    for run in range(found.protocol.runs):
        buffers.refill(run)
        with sampling(found, case, size, run, call) as timed, stage.pretending(found.lane):
            runs.add(timed)
    took = runs.figure()["median"]
    found.sizes[size] = {"binding": case.binding, "dtype": case.dtype, "interpreter_ms": took, "config": config or None}


def measure_size(found: Measurement, size: str, case: cases.Case) -> None:
    """Times the variant and torch in turns at one size, and puts both figures into `found.sizes`. Raises what the wrapper raises."""
    declaration, device = found.request["op"], timing.device_of(found.lane)
    buffers = timing.buffers_of(declaration, case, device)
    wrapper, args, kwargs = calling.arranged(found.entry, found.request, case, buffers.given)
    call = timing.bound(wrapper, args, kwargs)
    config = first_launch(found, call)
    torch_call = timing.torch_call(declaration, case, buffers.given, device)
    if not found.before:
        found.before.append(snapshot(found.request))
    found.clock.warm([call, torch_call])
    runs = {who: timing.Runs(found.clock, found.protocol) for who in ("variant", "torch")}
    for run in range(found.protocol.runs):
        buffers.refill(run)
        with sampling(found, case, size, run, call) as timed, stage.pretending(found.lane):
            runs["variant"].add(timed)
        runs["torch"].add(torch_call)
    if found.lane == "cuda":
        milliseconds = runs["variant"].facts[-1]["median"]
        host_us = host_time(found, call, milliseconds)
        refuse_stray_work(found, size, call, milliseconds, host_us)
    figures = {who: one.figure() for who, one in runs.items()}
    found.sizes[size] = {"binding": case.binding, "dtype": case.dtype, **figures, "config": config or None}


@contextlib.contextmanager
def sampling(found: Measurement, case: cases.Case, size: str, run: int, call: clocks.Call) -> Iterator[clocks.Call]:
    """Yields what is timed for `call` in a run. Of the run that is sampled at this size, the result of one call is kept afterwards; once is enough."""
    if found.sampled.get(size) != run:
        yield call
        return
    del found.sampled[size]
    sampled = sample.Sampled(call)
    yield sampled
    sample.keep(Path(found.request["scratch"]), case, size, run, sampled.kept)


def refuse_stray_work(found: Measurement, size: str, call: clocks.Call, milliseconds: float, host_us: float) -> None:
    """Raises StrayWork where the device still works for calls when the stream that they were made on has finished. A call takes the device so many `milliseconds`, and the
    host so many µs."""
    with spans.work("cuda"):
        is_stray = streams.outlasts(call, found.clock.counter, milliseconds, host_us)
    if is_stray:
        raise StrayWork(
            f"at size `{size}` work of the timed calls went on after the stream that they were made on had finished"
        )


def first_launch(found: Measurement, call: clocks.Call) -> dict[str, Any]:
    """Makes a call of the wrapper, untimed, and returns the configuration of each autotuned kernel, by its name.

    Triton loads the kernels and builds their launchers here. Each configuration is put where Triton's autotuner keeps the winner of such a
    call, so that the timed calls find it there.
    """

    def choose(tuner: Any, configs: list[Any]) -> list[Any]:
        key = [str(part) for part in recorder.key]
        wanted = tuning.chosen_facts(found.request.get("tune"), launching.kernel_name(tuner), key)
        ordered = sorted(configs, key=lambda config: launching.config_facts(config) != wanted)
        # Nothing fails to fit the interpreter, where a launch takes long.
        chosen = ordered[:1] if found.lane == "interpreter" else launching.first_that_fits(recorder, tuner, ordered)
        tuner.cache[recorder.key] = chosen[0]
        return chosen

    with launching.recording(found.lane, choose) as recorder, stage.pretending(found.lane):
        with spans.work(timing.device_of(found.lane)), queues.kept_to_one(found.lane):
            call()
        found.clock.synchronize()
    found.hits += recorder.hits
    found.misses += recorder.misses
    return {launch.kernel: launch.config for launch in recorder.launches if launch.config is not None}


def host_time(found: Measurement, call: clocks.Call, milliseconds: float) -> float:
    """Returns the host's time of a call in µs. It is measured here unless it was at a size where the device takes about as little for one, or less."""
    if found.host_us is None or milliseconds < found.host_beside / host.MUCH_LESS:
        with spans.work("cuda"):
            found.host_us = host.time_us(found.clock, call, milliseconds)
        found.host_beside = milliseconds
    return found.host_us


def finals(sizes: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Returns the figures over all sizes; None each where nothing was measured."""
    if not sizes:
        return dict.fromkeys(("final_ms", "torch_final_ms", "speedup", "geomean_speedup"))
    variant = [size["variant"]["mean"] for size in sizes.values()]
    torch = [size["torch"]["mean"] for size in sizes.values()]
    return {**statistics.comparison(variant, torch)}


def judged(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what was left for the judge of each measured size, not judged yet."""
    runs = {facts["size"]: facts["run"] for facts in sample.kept_facts(Path(request["scratch"]))}
    return {size: {"run": runs.get(size), "verdict": sample.NOT_JUDGED} for size in timing.timed_cases(request)}
