"""Measures one variant beside torch, run by run in turns, in one process and with one clock.

The clock is captured before kernel code is imported and compared at the end. Inputs change in place from call to call. An autotuned kernel runs with
the configuration that the document `tune` names. Timed calls go through Triton alone: between the clock and the wrapper is one function, which keeps
the last result. A child in which no kernel ran makes the figures from the raw times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import calling, cases, seeds
from t2t_harness.counting import counting, queues, streams
from t2t_harness.cuda import watching
from t2t_harness.faults import failure, machine
from t2t_harness.judging import watch
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import host, reference_call, spans, statistics, stopping, telemetry, timing
from t2t_harness.op import module_kept, module_state, operation, results
from t2t_harness.phases import passes, permitted, returned, sample
from t2t_harness.phases import tune as tuning
from t2t_harness.sources import loading
from t2t_harness.triton import launching, stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Bench, BenchRequest, BenchSize, Failure, Json, Reply, Snapshot
    from t2t_harness.judging.told import Run
    from t2t_harness.sources.entry import Entry
    from t2t_harness.triton.tuner import Config, Tuner


class StrayWork(Exception):
    """What is timed is not what the calls do."""


@dataclass
class Measurement:
    """A bench in progress."""

    request: BenchRequest
    clock: clocks.Clock
    entry: Entry
    protocol: timing.Protocol
    own: frozenset[str] = frozenset()
    """The operations of torch that the op itself consists of."""
    sizes: dict[str, BenchSize] = field(default_factory=dict)
    times: dict[str, dict[str, timing.Raw]] = field(default_factory=dict)
    """Size → subject → raw times."""
    hits: int = 0
    misses: list[str] = field(default_factory=list)
    host_us: float | None = None
    symbols: set[str] = field(default_factory=set)
    """The names of the kernels that the watched calls at the present size launched."""
    host_beside: float = math.inf
    """The device's time in ms of a call at the size where `host_us` was measured."""
    before: list[Snapshot | None] = field(default_factory=list)
    """The GPU's telemetry before the first measurement, once that has come."""
    test: stopping.Test | None = None
    """What ends the present measurement of all sizes, where that is not the number of runs."""

    @property
    def lane(self) -> str:
        """Returns the lane of the bench."""
        return str(self.request["lane"])


@spans.told
def bench(request: BenchRequest) -> Reply:
    """Returns the reply with the document `bench`, without figures; leaves raw times and sampled outputs in scratch for `sample.judge_sample`, which makes them.

    Rejected with class `exception`, or `memory`, and a `failure` where the wrapper raises, or where it replaced what times it, or
    left work to a stream that nothing times. Not judged where the first calls of an instance of the op's class do not fit on the device. In a process with one queue a wrapper that wants another stream, when it is imported or first called at a size, is not measured: the
    reply is `queues.AGAIN`.
    """
    timing.set_precision(request["op"])
    with watching.lane(request) as modules:
        clock = clocks.clock_of(request)
        # What the harness needs of torch is looked up before kernel code is imported.
        own = permitted.own_operations(request["op"])
        try:
            with queues.kept_to_one(request["lane"]), stage.pretending(request["lane"]):
                entry = loading.load_entry(request["root"], request["variant"])
            found = Measurement(request, clock, entry, timing.protocol_of(request), own)
            disturbed, is_remeasured, after = measure(found)
            before = found.before[0] if found.before else None
            device = telemetry.device_facts(request, before)
        except queues.Wanted:
            return queues.AGAIN.copy()
        except SystemExit:
            raise
        except reference_call.NoRoom as no_room:
            return no_room.reply()
        except BaseException as error:
            machine.raise_if_it_failed(error, request["root"])
            class_, message = watching.class_of(error), failure.describe(error)
            hint = passes.hint(request, error)
            return rejected(failure.failure(class_, message, root=request["root"], error=error, hint=hint))
    if replaced := clock.replaced():
        message = f"the kernel's module replaced what times it: {', '.join(replaced)}"
        return rejected(failure.failure("exception", message, root=request["root"]))
    document: Bench = {
        "clock": clock.name,
        "protocol": request["protocol"].copy(),
        "device": device,
        "sizes": found.sizes,
    }
    sample.keep_times(Path(request["scratch"]), found.times)
    if found.lane == "cuda":
        document |= {
            "host_us": found.host_us,
            "disturbed": disturbed,
            "remeasured": is_remeasured,
            "telemetry": {"before": before, "after": after},
            "triton_cache": {"hits": found.hits, "misses": sorted(found.misses), "launchers": modules.facts()},
        }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"bench": document}, "files": {}}


def rejected(record: Failure) -> Reply:
    """Returns the reply of a bench that `record` ends."""
    return {
        "outcome": "rejected",
        "class": record["class"],
        "cites": failure.cites(record),
        "documents": {"failure": record},
        "files": {},
    }


def snapshot(request: BenchRequest) -> Snapshot | None:
    """Returns the GPU's telemetry, or None where there is no GPU."""
    return telemetry.snapshot(request)


def measure(found: Measurement) -> tuple[list[str], bool, Snapshot | None]:
    """Measures every size, and on a GPU once more what was not stable. Returns what disturbed the GPU, whether it was repeated, and the telemetry.

    Raises what the wrapper raises.
    """
    timed = timing.in_order(found.request, found.protocol)
    if found.lane == "interpreter":
        for size, case in timed.items():
            interpret_size(found, size, case)
        return [], False, None
    found.test = found.protocol.test(len(timed))
    for size, case in timed.items():
        measure_size(found, size, case)
    after = snapshot(found.request)
    disturbed = telemetry.disturbances([*found.before, after])
    # What varies has had more runs already where their number is not fixed.
    varied = [size for size in timed if not found.protocol.is_auto and is_varied(found.times[size])]
    if not (disturbed or varied):
        return [], False, after
    found.test = found.protocol.test(len(timed))
    for size in timed if disturbed else varied:
        measure_size(found, size, timed[size])
    after = snapshot(found.request)
    return telemetry.disturbances([after]), True, after


def is_varied(times: Mapping[str, timing.Raw]) -> bool:
    """Tells whether a figure of one size varies from run to run by more than is stable."""
    return any(timing.figure_of(raw)["cv"] > statistics.STEADY for raw in times.values())


def interpret_size(found: Measurement, size: str, case: cases.Case) -> None:
    """Times one call at one size in Triton's interpreter, run by run. Torch is not timed beside it: nothing compares with these times. Raises what the wrapper raises."""
    buffers, subject, wrapper = prepared(found, case, "cpu")
    timed = sample.Timed(subject.call, buffers)
    before = module_kept.Kept.of(wrapper)
    config, first = first_launch(found, timed, subject)
    if module_kept.is_instance(wrapper):
        undo(buffers, wrapper, before, reference_call.made(found.request["op"], case, passes.arguments(buffers)))
    del before
    runs = timing.Runs(found.clock, found.protocol)
    for run in range(found.protocol.runs):
        buffers.refill(run)
        with stage.pretending(found.lane):
            subject.prepare()
            runs.add(timed, timed.before, buffers.freshen)
        timed.settle()
    seen = [first, last_call(found, timed, subject)]
    sample.keep(Path(found.request["scratch"]), case, size, seen, timed.kept, set(), subject.named, buffers.ignored)
    found.times[size] = {"variant": runs.facts()}
    found.sizes[size] = {"binding": case.binding, "dtype": case.dtype, "config": config or None}


def prepared(found: Measurement, case: cases.Case, device: str) -> tuple[timing.Buffers, passes.Subject, Entry]:
    """Returns the inputs of a size, the passes of the wrapper that are timed on them, and the wrapper. Raises what the constructor of a class raises."""
    which = passes.of(found.request)
    buffers = passes.buffers_of(which, found.request["op"], case, device)
    wrapper, args, kwargs = calling.arranged(found.entry, found.request, case, passes.arguments(buffers))
    buffers.counters = module_state.counters(wrapper)
    return buffers, passes.subject(which, timing.bound(wrapper, args, kwargs), buffers), wrapper


def measure_size(found: Measurement, size: str, case: cases.Case) -> None:
    """Times the variant and torch in turns at one size, and puts both figures into `found.sizes`. Raises what the wrapper raises."""
    declaration, device = found.request["op"], timing.device_of(found.lane)
    buffers, subject, wrapper = prepared(found, case, device)
    call = subject.call
    timed = sample.Timed(call, buffers, found.lane)
    found.symbols.clear()
    before = module_kept.Kept.of(wrapper)
    config, first = first_launch(found, timed, subject)
    beside = reference_call.made(declaration, case, passes.arguments(buffers), device)
    undo(buffers, wrapper, before, beside)
    # Its copies of what no call changes are not held while it is timed.
    del before
    torch_subject = passes.subject(passes.of(found.request), beside.call, buffers)
    torch_call = sample.Timed(torch_subject.call, buffers)
    if not found.before:
        found.before.append(snapshot(found.request))
    torch_subject.prepare()
    found.clock.warm([call, torch_call.call])
    runs = {who: timing.Runs(found.clock, found.protocol) for who in ("variant", "torch")}
    for turn in timing.turns(found.protocol, found.test, runs):
        timed.begin(turn[0])
        for run in turn:
            buffers.refill(run)
            with stage.pretending(found.lane):
                subject.prepare()
                runs["variant"].add(timed, timed.before, buffers.freshen)
            timed.settle()
        for run in turn:
            if len(turn) > 1:
                buffers.refill(run)
            torch_subject.prepare()
            runs["torch"].add(torch_call, torch_call.before, buffers.freshen)
            torch_call.forget()
    seen = [first, last_call(found, timed, subject)]
    others = timed.symbols - found.symbols
    sample.keep(Path(found.request["scratch"]), case, size, seen, timed.kept, others, subject.named, buffers.ignored)
    milliseconds = statistics.run_facts(runs["variant"].samples[-1])["median"]
    host_us = host_time(found, call, milliseconds)
    refuse_stray_work(found, size, call, milliseconds, host_us)
    found.times[size] = {who: one.facts() for who, one in runs.items()}
    found.sizes[size] = {"binding": case.binding, "dtype": case.dtype, "config": config or None}


def refuse_stray_work(found: Measurement, size: str, call: clocks.Call, milliseconds: float, host_us: float) -> None:
    """Raises StrayWork where the device still works for calls when the stream that they were made on has finished. A call takes the device so many `milliseconds`, and the
    host so many µs."""
    with spans.work("cuda"):
        is_stray = streams.outlasts(call, found.clock.counter, milliseconds, host_us)
    if is_stray:
        raise StrayWork(
            f"at size `{size}` work of the timed calls went on after the stream that they were made on had finished"
        )


def undo(
    buffers: timing.Buffers, wrapper: Entry, before: module_kept.Kept, beside: reference_call.ReferenceCall
) -> None:
    """Has each timed call find the wrapper, where that is an instance that kept `before`, as its first call did, and torch's instance `beside` it, too.

    Of attributes that is what torch's changes under the same name: what the kernel's class alone keeps there, as memory that it works in, is left to it.
    """
    names = before.changed_buffers(wrapper)
    names |= before.changed_attributes(wrapper) & (beside.kept.buffers.keys() | beside.kept.attributes.keys())
    buffers.undoes(wrapper, before.only(names))
    buffers.undoes(beside.function, beside.kept)
    if beside.returns_own:
        buffers.own = operation.weights(wrapper)


def first_launch(found: Measurement, call: sample.Timed, subject: passes.Subject) -> tuple[dict[str, Json], Run]:
    """Makes a call of the wrapper, untimed, under all rules of a check. Returns the configuration of each autotuned kernel, by its name, and what was seen, as a check's
    run has it. Triton loads the kernels and builds their launchers here.
    """
    seen, recorder = watched_call(found, call, subject)
    found.hits += recorder.hits
    found.misses += recorder.misses
    return {launch.kernel: launch.config for launch in recorder.launches if launch.config is not None}, seen


def last_call(found: Measurement, call: sample.Timed, subject: passes.Subject) -> Run:
    """Makes one more call when all others are over, under the same rules, and returns what was seen: a wrapper that changed its ways after some calls is seen to do so."""
    seen, _ = watched_call(found, call, subject)
    call.forget()
    return seen


def watched_call(found: Measurement, call: sample.Timed, subject: passes.Subject) -> tuple[Run, launching.Recorder]:
    """Makes a call under the rules of a check, and returns what was seen, as a check's run has it, and what was launched. Where a backward pass is timed, both passes are watched, one after the other.

    The configuration of an autotuned kernel is put where Triton's autotuner keeps the winner of such a call, so that the timed calls find it there.
    """

    def choose(tuner: Tuner, configs: list[Config]) -> list[Config]:
        key = [str(part) for part in recorder.key]
        wanted = tuning.chosen_facts(found.request.get("tune"), launching.kernel_name(tuner), key)
        ordered = sorted(configs, key=lambda config: launching.config_facts(config) != wanted)
        # Nothing fails to fit the interpreter, where a launch takes long.
        chosen = ordered[:1] if found.lane == "interpreter" else launching.first_that_fits(recorder, tuner, ordered)
        tuner.cache[recorder.key] = chosen[0]
        return chosen

    both = subject.passes
    with watching.recording(found.lane, choose) as recorder:
        got, seen, unaccounted = watched(found, call if both is None else both.forward, call.buffers, recorder)
        found.clock.synchronize()
        if both is not None:
            # What flows in is drawn by the harness, which nobody watches, where no tensor pretends to be on a device.
            both.keep(got)
            _, seen_back, more = watched(found, both.back, call.buffers, None)
            found.clock.synchronize()
            seen.computed |= permitted.but_accumulation(seen_back.computed)
            unaccounted += more
    whole = results.apart(got, call.buffers.ignored)
    described = {str(place): returned.describe(value, recorder, seen) for place, value in enumerate(whole.values)}
    return {
        "form": whole.form,
        "numbers": whole.numbers,
        "outputs": described,
        "computed": seen.computed,
        "unaccounted": unaccounted,
        "launches": len(recorder.launches),
    }, recorder


def watched(
    found: Measurement, call: clocks.Call, buffers: timing.Buffers, recorder: launching.Recorder | None
) -> tuple[object, watch.Watch, list[str]]:
    """Makes `call` and returns what it returned, what torch computed in it, and the kernels on a device that nobody accounts for. The `recorder` is told of its memory."""
    declaration = found.request["op"]
    observed = watch.watching(
        found.own,
        0,
        permitted.allowed(declaration),
        draws=seeds.is_random(declaration),
        inputs=buffers.memory(),
        counters=buffers.counters,
    )
    working = spans.work(timing.device_of(found.lane))
    with stage.pretending(found.lane), working, queues.kept_to_one(found.lane), observed as seen:
        if recorder is not None:
            recorder.memory = seen.memory
        with counting.counting(found.lane) as counted:
            got = call()
        if recorder is not None:
            recorder.memory = None
    found.symbols |= counted.symbols
    return got, seen, counted.unaccounted


def host_time(found: Measurement, call: clocks.Call, milliseconds: float) -> float:
    """Returns the host's time of a call in µs. It is measured here unless it was at a size where the device takes about as little for one, or less."""
    if found.host_us is None or milliseconds < found.host_beside / host.MUCH_LESS:
        with spans.work("cuda"):
            found.host_us = host.time_us(found.clock, call, milliseconds)
        found.host_beside = milliseconds
    return found.host_us
