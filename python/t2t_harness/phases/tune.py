"""Chooses a configuration for each autotuned kernel, size and dtype by timing all of them on this device.

The wrapper is called as it is. Where it launches an autotuned kernel, every configuration is timed with the arguments of that launch. Triton's own
autotuner never runs, so its choice is an artifact and not an accident of the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from t2t_harness.cases import calling, cases, declared_inputs
from t2t_harness.counting import queues
from t2t_harness.cuda import watching
from t2t_harness.faults import failure, machine
from t2t_harness.judging import autograd
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import quiet, spans, statistics, timing
from t2t_harness.phases import passes
from t2t_harness.sources import loading
from t2t_harness.triton import launching, refusals

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Json, Reply, Timing, Tune, TuneRequest
    from t2t_harness.triton.tuner import Config, Tuner

WARMUP_MS = 10.0
REP_MS = 40.0
"""Time given to each configuration, after one launch that loads it."""


@spans.told
@queues.in_one
def tune(request: TuneRequest) -> Reply:
    """Returns the reply with the document `tune`: the choices, empty where nothing is autotuned or the lane is not `cuda`.

    Rejected with class `exception`, or `memory`, where the wrapper raises. In a process with one queue a wrapper that wants another stream is not called on: the reply is
    `queues.AGAIN`.
    """
    document: Tune = {"device": request.get("model"), "choices": [], "dropped": []}
    if request["lane"] == "cuda":
        try:
            with watching.lane(request) as modules:
                tune_all(request, clocks.clock_of(request), document)
            document["triton_cache"]["launchers"] = modules.facts()
        except SystemExit:
            raise
        except BaseException as error:
            machine.raise_if_it_failed(error, request["root"])
            class_, message = watching.class_of(error), failure.describe(error)
            record = failure.failure(class_, message, root=request["root"], error=error)
            return {
                "outcome": "rejected",
                "class": class_,
                "cites": failure.cites(record),
                "documents": {"failure": record},
                "files": {},
            }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"tune": document}, "files": {}}


def tune_all(request: TuneRequest, clock: clocks.Clock, document: Tune) -> None:
    """Calls the wrapper once per size and dtype, with its backward pass where that is timed, and adds what is chosen to `document`. Raises what the wrapper raises."""
    entry = loading.load_entry(request["root"], request["variant"])
    hits, which = 0, passes.of(request)
    misses: list[str] = []
    for case in cases.bench_cases(request["op"]):
        with spans.work("cuda"):
            given = declared_inputs.make_inputs(request["op"], case, "cuda")
        if which != passes.FORWARD:
            given = autograd.with_gradients(given, cases.asking(request["op"], case), request["op"]["mutates"])
        wrapper, args, kwargs = calling.arranged(entry, request, case, given)

        quiet.awaited(request)

        def choose(tuner: Tuner, configs: list[Config]) -> list[Config]:
            return [choice(tuner, configs, recorder, clock, document)]

        with watching.recording("cuda", choose) as recorder:
            passes.call_once(which, timing.bound(wrapper, args, kwargs), given, case)
            clock.synchronize()
        hits, misses = hits + recorder.hits, misses + recorder.misses
        document["dropped"] += [one for one in recorder.dropped if one not in document["dropped"]]
    document["triton_cache"] = {"hits": hits, "misses": sorted(misses)}


def choice(
    tuner: Tuner, configs: list[Config], recorder: launching.Recorder, clock: clocks.Clock, document: Tune
) -> Config:
    """Returns the fastest configuration for the present launch, and notes it in `document` unless its key is known.

    Raises what the last configuration raised where the device can hold none.
    """
    kernel, key = launching.kernel_name(tuner), [str(part) for part in recorder.key]
    known = chosen_facts(document, kernel, key)
    if known is not None:
        return next(config for config in configs if launching.config_facts(config) == known)
    fitting = [config for config in configs if fits(tuner, recorder, config)]
    if not fitting:
        return launching.first_that_fits(recorder, tuner, configs)[0]
    if not document["choices"]:
        # Else the first is timed on a device that has just woken.
        with paused(recorder) as attempt:
            clock.warm([lambda: attempt(fitting[0])])
    timed = [(config, statistics.quantile(samples_of(recorder, clock, config), 0.5)) for config in fitting]
    best = min(timed, key=lambda one: one[1])[0]
    timings: list[Timing] = [[launching.config_facts(config) or {}, milliseconds] for config, milliseconds in timed]
    document["choices"].append(
        {"kernel": kernel, "key": key, "config": launching.config_facts(best) or {}, "timings": timings}
    )
    return best


def fits(tuner: Tuner, recorder: launching.Recorder, config: Config) -> bool:
    """Launches the present call with `config` and tells whether the device can hold it; notes it as dropped if not."""
    try:
        with spans.work("cuda"):
            attempt_of(recorder)(config)
    except refusals.misfits() as error:
        launching.note_dropped(tuner, recorder, config, error)
        return False
    return True


def samples_of(recorder: launching.Recorder, clock: clocks.Clock, config: Config) -> list[float]:
    """Returns the times, in ms, of the present launch with `config`."""
    with paused(recorder) as attempt:
        return clock.sample(lambda: attempt(config), WARMUP_MS, REP_MS)


@contextlib.contextmanager
def paused(recorder: launching.Recorder) -> Iterator[Callable[[Config], object]]:
    """Yields what launches the present call with a configuration; launches are not recorded for the length of the context."""
    recorder.is_paused = True
    try:
        yield attempt_of(recorder)
    finally:
        recorder.is_paused = False


def attempt_of(recorder: launching.Recorder) -> Callable[[Config], object]:
    """Returns what launches the present call. Raises RuntimeError where none is being chosen for."""
    if recorder.attempt is None:
        raise RuntimeError("no launch is being chosen for")
    return recorder.attempt


def chosen_facts(tuned: Tune | None, kernel: str, key: list[str]) -> dict[str, Json] | None:
    """Returns the configuration that the document `tune` holds for `kernel` and `key`, or None."""
    for one in () if tuned is None else tuned["choices"]:
        if one["kernel"] == kernel and one["key"] == key:
            return dict(one["config"])
    return None
