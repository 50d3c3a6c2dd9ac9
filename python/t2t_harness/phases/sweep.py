"""Times all variants of an op, torch and torch.compile at sizes that no build measures: how they grow with the size, not which one is chosen.

One process calls them all, in turns, each once a size by the clock of a bench. What raises at a size has no figure there, and a reason.
torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypedDict

from t2t_harness.cases import calling, cases, declared_inputs
from t2t_harness.cuda import watching
from t2t_harness.faults import failure
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import quiet, statistics, telemetry, timing
from t2t_harness.op import results
from t2t_harness.phases import baseline, beside, passes
from t2t_harness.phases import tune as tuning
from t2t_harness.sources import loading
from t2t_harness.triton import stage

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Documents, Reply, SweepPoint, SweepRequest, SweepTime, Tune
    from t2t_harness.boundary.documents import Sweep as SweepDocument
    from t2t_harness.sources.entry import Entry
    from t2t_harness.triton.tuner import Config, Tuner

INTERPRETED = "ms in the interpreter"
"""The unit of a sweep without a device, whose times compare nothing."""


def untuned() -> Tune:
    """Returns the document `tune` of what was not tuned yet."""
    return {"device": "", "choices": [], "dropped": []}


class Work(TypedDict):
    """The work of a call."""

    bytes: int
    """Bytes that are read and written at least."""
    flop: int
    """Operations of its products."""


@dataclass
class Sweep:
    """A sweep in progress."""

    request: SweepRequest
    clock: clocks.Clock
    entries: dict[str, Entry] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Subject, and size, → why it has no figure."""
    tuned: Tune = field(default_factory=untuned)

    @property
    def lane(self) -> str:
        """Returns the lane of the sweep."""
        return str(self.request["lane"])


def sweep(request: SweepRequest) -> Reply:
    """Returns the reply with the document `sweep`. Request keys: those of a bench, with `variants` for `variant`, and `baselines`.

    Rejected with class `exception` and a `failure` where a module replaced what times it.
    """
    clock = clocks.clock_of(request)
    timing.set_precision(request["op"])
    with watching.lane(request):
        found = Sweep(request, clock)
        load(found)
        timed = timing.timed_cases(request)
        points = [point(found, timed[size]) for size in sorted(timed)]
    if replaced := clock.replaced():
        message = f"a kernel's module replaced what times it: {', '.join(replaced)}"
        record = failure.failure("exception", message, root=request["root"])
        documents: Documents = {"failure": record}
        return {"outcome": "rejected", "class": "exception", "cites": False, "documents": documents, "files": {}}
    is_product = any(one["flop"] for one in points)
    is_rated = clock.is_device and passes.of(request) == passes.FORWARD
    document: SweepDocument = {
        "op": request["op"]["name"],
        "clock": clock.name,
        "protocol": request["protocol"].copy(),
        "model": request["model"],
        "unit": unit_of(request, is_device=clock.is_device, is_product=is_product),
        "subjects": [*request["baselines"], *(variant["name"] for variant in request["variants"])],
        "points": [rated(one, "flop" if is_product else "bytes") if is_rated else unrated(one) for one in points],
        "reasons": found.reasons,
        "telemetry": telemetry.snapshot(request),
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"sweep": document}, "files": {}}


def unit_of(request: SweepRequest, *, is_device: bool, is_product: bool) -> str:
    """Returns the unit of the sweep's figures. The bytes and products that are counted are those of a forward pass, so that alone has a rate."""
    if not is_device:
        return INTERPRETED
    which = passes.of(request)
    if which != passes.FORWARD:
        return "ms of the backward pass" if which == passes.BACKWARD else "ms of both passes"
    return "TFLOP/s" if is_product else "GB/s"


def load(found: Sweep) -> None:
    """Loads every variant that can be loaded."""
    for variant in found.request["variants"]:
        try:
            with stage.pretending(found.lane):
                found.entries[variant["name"]] = loading.load_entry(found.request["root"], variant)
        except Exception as error:
            found.reasons[variant["name"]] = failure.describe(error)[:400]


def point(found: Sweep, case: cases.Case) -> SweepPoint:
    """Returns one size: its lengths, its work, and median, p20 and p80 of each subject in ms, null where it could not be called; without rates."""
    declaration, device = found.request["op"], timing.device_of(found.lane)
    which, buffers = passes.of(found.request), None
    if which == passes.FORWARD:
        given = declared_inputs.make_inputs(declaration, case, device)
    else:
        buffers = passes.buffers_of(which, declaration, case, device)
        given = passes.arguments(buffers)
    subjects, facts = torch_subjects(found, case, given, buffers)
    for name in found.entries:
        attempt(found, case, name, subjects, partial(variant_subject, found, name, case, given, buffers))
    times: dict[str, SweepTime | None] = {name: None for name in (*found.request["baselines"], *found.entries)}
    protocol = timing.protocol_of(found.request)
    quiet.awaited(found.request)
    found.clock.warm([subject.call for subject in subjects.values()])
    for name, subject in subjects.items():
        with stage.pretending(found.lane):
            samples = found.clock.sample(subject.call, protocol.warmup_ms, protocol.rep_ms)
        run = statistics.run_facts(samples)
        times[name] = {"median": run["median"], "p20": run["p20"], "p80": run["p80"]}
    return {"binding": case.binding, "dtype": case.dtype, **facts, "ms": times, "rate": {}}


def torch_subjects(
    found: Sweep, case: cases.Case, given: Mapping[str, torch.Tensor], buffers: timing.Buffers | None
) -> tuple[dict[str, passes.Subject], Work]:
    """Returns what is timed of the baselines, and what torch says of the work of a forward pass: bytes read and written at least, and operations of its products."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    declaration, wanted, which = found.request["op"], found.request["baselines"], passes.of(found.request)
    eager = timing.torch_call(declaration, case, given, timing.device_of(found.lane))
    with FlopCounterMode(display=False) as counter:
        returned = eager()
    made = [one for one in results.listed(returned) if isinstance(one, torch.Tensor)]
    size = sum(value.numel() * value.element_size() for value in (*given.values(), *made))
    subjects: dict[str, passes.Subject] = {}
    if baseline.EAGER in wanted:
        subjects[baseline.EAGER] = passes.subject(which, eager, buffers)
        subjects[baseline.EAGER].prepare()
    compiled = [name for name in wanted if beside.is_compiled(name)]
    if compiled:
        baseline.fresh_compiler(which)
    for name in compiled:
        make = partial(baseline.compiled_subject, found.clock, which, declaration, case, given, buffers, [])
        attempt(found, case, name, subjects, partial(make, mode=beside.mode_of(name)))
    return subjects, {"bytes": size, "flop": int(counter.get_total_flops())}


def attempt(
    found: Sweep, case: cases.Case, name: str, subjects: dict[str, passes.Subject], make: Callable[[], passes.Subject]
) -> None:
    """Adds what `make` returns under `name`; where it raises, notes why there is none."""
    try:
        subjects[name] = make()
    except Exception as error:
        lengths = ", ".join(f"{dim} {length}" for dim, length in case.binding.items())
        found.reasons[f"{name} at {lengths}"] = failure.describe(error)[:400]


def variant_subject(
    found: Sweep, name: str, case: cases.Case, given: Mapping[str, torch.Tensor], buffers: timing.Buffers | None
) -> passes.Subject:
    """Returns the passes of the wrapper that are timed, made once: what is autotuned was tuned for this size. Raises what the wrapper raises."""
    variant = next(one for one in found.request["variants"] if one["name"] == name)
    wrapper, args, kwargs = calling.arranged_for(found.entries[name], variant, found.request, case, dict(given))

    def choose(tuner: Tuner, configs: list[Config]) -> list[Config]:
        is_device = found.lane == "cuda"
        config = tuning.choice(tuner, configs, recorder, found.clock, found.tuned) if is_device else configs[0]
        tuner.cache[recorder.key] = config
        return [config]

    subject = passes.subject(passes.of(found.request), timing.bound(wrapper, args, kwargs), buffers)
    with watching.recording(found.lane, choose) as recorder:
        passes.call_subject(subject, found.lane)
        found.clock.synchronize()
    return subject


def rated(one: SweepPoint, work: Literal["bytes", "flop"]) -> SweepPoint:
    """Returns the point with the rate of each subject, at its median: GB/s of `bytes`, TFLOP/s of `flop`."""
    scale = 1e-6 if work == "bytes" else 1e-9
    rates = {name: None if times is None else one[work] * scale / times["median"] for name, times in one["ms"].items()}
    return {**one, "rate": rates}


def unrated(one: SweepPoint) -> SweepPoint:
    """Returns the point of an interpreted sweep: in the place of rates, how long the interpreter took for a call, in ms."""
    rates = {name: None if times is None else times["median"] for name, times in one["ms"].items()}
    return {**one, "rate": rates}
