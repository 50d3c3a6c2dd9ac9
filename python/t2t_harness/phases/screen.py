"""Screens a candidate beside the kernel that it is to replace: both in one process, in pairs of short runs, until it is clear whether the candidate may be faster.

It chooses nothing: what may be faster is measured by a bench of its own, and judged there. So nothing that kernel code does to this process makes a kernel be chosen. torch is
imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.cases import calling, cases
from t2t_harness.cuda import watching
from t2t_harness.faults import failure, machine
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import quiet, screening, spans, statistics, telemetry, timing
from t2t_harness.phases import passes
from t2t_harness.phases import tune as tuning
from t2t_harness.phases.sweep import untuned
from t2t_harness.sources import loading
from t2t_harness.triton import stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Documents, Reply, Screen, ScreenRequest, Tune, Variant
    from t2t_harness.sources.entry import Entry
    from t2t_harness.triton.tuner import Config, Tuner

SPENT_S = 2.5
"""How many seconds after the first call the device's time is spent: the next look is then the last. A pair that is under way ends."""

LEAST_S = 0.5
"""How many seconds pairs have at least, however long it took to load the kernels and to tune what is autotuned."""

SUBJECTS = ("incumbent", "candidate")


@dataclass
class Screening:
    """A screening in progress."""

    request: ScreenRequest
    clock: clocks.Clock
    protocol: timing.Protocol
    entries: dict[str, Entry] = field(default_factory=dict)
    tuned: dict[str, Tune] = field(default_factory=dict)
    """Subject → the configurations that its autotuned kernels run with."""
    begun_s: float = 0.0
    """When the first call began, by the clock."""
    until_s: float = 0.0
    """When the device's time is spent."""

    @property
    def lane(self) -> str:
        """Returns the lane of the screening."""
        return str(self.request["lane"])

    @property
    def device_s(self) -> float:
        """Returns the seconds since the first call began."""
        return self.clock.counter() - self.begun_s

    @property
    def is_spent(self) -> bool:
        """Tells whether the device's time is spent."""
        return self.clock.counter() > self.until_s


@dataclass
class Size:
    """One size: its inputs, and the runs of each subject."""

    case: cases.Case
    buffers: timing.Buffers
    subjects: dict[str, passes.Subject]
    runs: dict[str, timing.Runs]


@spans.told
def screen(request: ScreenRequest) -> Reply:
    """Returns the reply with the document `screen`, or as `paired` says. Times are in ms, and Finals sums over the sizes."""
    return paired(request, screen_of)


def paired(request: ScreenRequest, measure: Callable[[Screening], Documents]) -> Reply:
    """Returns the reply with what `measure` returns of the two kernels, once both are loaded.

    Rejected with class `exception`, or `memory`, and a `failure` where a wrapper raises, or where a module replaced what times it.
    """
    timing.set_precision(request["op"])
    with watching.lane(request):
        clock = clocks.clock_of(request)
        told = request["protocol"]
        # Parts of a run, which end when the test says so.
        protocol = timing.Protocol(int(told["runs"]), float(told["warmup_ms"]), float(told["rep_ms"]), is_auto=True)
        found = Screening(request, clock, protocol)
        try:
            for who in SUBJECTS:
                with stage.pretending(found.lane):
                    found.entries[who] = loading.load_entry(request["root"], variant_of(request, who))
            documents = measure(found)
        except SystemExit:
            raise
        except BaseException as error:
            machine.raise_if_it_failed(error, request["root"])
            class_, message = watching.class_of(error), failure.describe(error)
            return rejected(request, class_, message, error)
    if replaced := clock.replaced():
        message = f"a kernel's module replaced what times it: {', '.join(replaced)}"
        return rejected(request, "exception", message)
    return {"outcome": "passed", "class": None, "cites": False, "documents": documents, "files": {}}


def screen_of(found: Screening) -> Documents:
    """Returns the document `screen`. Raises what a wrapper raises."""
    finals, end = screened(found)
    document: Screen = {
        "clock": found.clock.name,
        "model": found.request["model"],
        "pairs": end.pairs,
        "why": end.why,
        "may_win": end.may_win,
        "ratio": end.ratio,
        "low": end.low if end.pairs > 1 else None,
        "high": end.high if end.pairs > 1 else None,
        "error": screening.ERROR,
        "incumbent_ms": finals["incumbent"],
        "candidate_ms": finals["candidate"],
        "device_s": found.device_s,
        "telemetry": telemetry.snapshot(found.request),
    }
    return {"screen": document}


def rejected(request: ScreenRequest, class_: str, message: str, error: BaseException | None = None) -> Reply:
    """Returns the reply of a screening that a failure of this class ends."""
    record = failure.failure(class_, message, root=request["root"], error=error)
    return {
        "outcome": "rejected",
        "class": class_,
        "cites": failure.cites(record),
        "documents": {"failure": record},
        "files": {},
    }


def variant_of(request: ScreenRequest, who: str) -> Variant:
    """Returns the variant of a subject."""
    return request["incumbent"] if who == "incumbent" else request["candidate"]


def screened(found: Screening) -> tuple[dict[str, list[float]], screening.End]:
    """Returns the Finals of each subject, one a pair, and the end of the screening. Raises what a wrapper raises."""
    sizes = list(begun(found).values())
    found.until_s = max(found.begun_s + SPENT_S, found.clock.counter() + LEAST_S)
    finals: dict[str, list[float]] = {who: [] for who in SUBJECTS}
    for pair in range(screening.LOOKS[-1]):
        for size in sizes:
            run_pair(found, size, pair)
        for who in SUBJECTS:
            last = [statistics.mean(size.runs[who].samples[-1]) for size in sizes]
            finals[who].append(math.fsum(last))
        end = screening.end(finals["incumbent"], finals["candidate"], is_spent=found.is_spent)
        if end is not None:
            return finals, end
    raise AssertionError("the last look is no end")


def begun(found: Screening) -> dict[str, Size]:
    """Returns the sizes by name, small ones first, once nothing disturbs a measurement and the device runs at the clock that it keeps under load. Raises what a wrapper raises."""
    found.tuned = {"incumbent": found.request["tune"] or untuned(), "candidate": untuned()}
    timed = timing.timed_cases(found.request)
    quiet.awaited(found.request)
    found.begun_s = found.clock.counter()
    sizes = {size: prepared(found, case) for size, case in timed.items()}
    found.clock.warm([subject.call for size in sizes.values() for subject in size.subjects.values()])
    return sizes


def prepared(found: Screening, case: cases.Case) -> Size:
    """Returns a size whose wrappers have been called once: what they launch is loaded, and what is autotuned is tuned. Raises what they raise."""
    which = passes.of(found.request)
    buffers = passes.buffers_of(which, found.request["op"], case, timing.device_of(found.lane))
    subjects = {who: prepared_subject(found, who, case, buffers) for who in SUBJECTS}
    return Size(case, buffers, subjects, {who: timing.Runs(found.clock, found.protocol) for who in SUBJECTS})


def prepared_subject(found: Screening, who: str, case: cases.Case, buffers: timing.Buffers) -> passes.Subject:
    """Returns the passes of a subject's wrapper that are timed, made once. Raises what the wrapper raises."""
    variant, given = variant_of(found.request, who), passes.arguments(buffers)
    wrapper, args, kwargs = calling.arranged_for(found.entries[who], variant, found.request, case, dict(given))
    subject = passes.subject(passes.of(found.request), timing.bound(wrapper, args, kwargs), buffers)

    def choose(tuner: Tuner, configs: list[Config]) -> list[Config]:
        is_device = found.lane == "cuda"
        config = tuning.choice(tuner, configs, recorder, found.clock, found.tuned[who]) if is_device else configs[0]
        tuner.cache[recorder.key] = config
        return [config]

    with watching.recording(found.lane, choose) as recorder:
        with spans.work(timing.device_of(found.lane)):
            passes.call_subject(subject, found.lane)
        found.clock.synchronize()
    return subject


def run_pair(found: Screening, size: Size, pair: int) -> None:
    """Adds a run of each subject at a size, on the same inputs; who is first changes from pair to pair. Raises what the wrappers raise."""
    for who in SUBJECTS if pair % 2 == 0 else reversed(SUBJECTS):
        size.buffers.refill(pair)
        with stage.pretending(found.lane):
            size.subjects[who].prepare()
            size.runs[who].add(size.subjects[who].call, size.buffers.freshen, size.buffers.freshen)
