"""Measures torch: eager, and compiled by torch itself; and functions that stand in its place (`beside`). All have the protocol and the clock of a bench.

What torch cannot compile has no figure and a reason. The time that compiling takes is recorded apart from the figures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_harness.cases import cases
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import host, reference_call, spans, statistics, stopping, telemetry, timing
from t2t_harness.phases import beside, passes

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import (
        Baseline,
        BaselineRequest,
        BaselineSize,
        Declaration,
        Figure,
        Reply,
        Snapshot,
    )
    from t2t_harness.sources.entry import Entry

EAGER, COMPILED = "torch", beside.COMPILED

RECORDING = 2
"""After so many further calls what is compiled in another mode is as it will be timed."""

MOST_AHEAD = 4
"""The most sizes that are compiled ahead: torch keeps the code for all of them at once, and of one function for eight kinds of arguments at most."""


@dataclass(frozen=True)
class Ahead:
    """The op as torch compiled it for one size before the request."""

    function: Entry
    compile_ms: float


AHEAD: dict[str, Ahead] = {}
"""By size: what this process compiled before its request, which is of the same op."""


@spans.told
def baseline(request: BaselineRequest) -> Reply:
    """Returns the reply with the document `baseline`; not judged where the first calls of an instance of the op's class do not fit on the device.

    Raises what else eager torch raises: an op that torch itself refuses is no result.
    """
    clock, protocol = clocks.clock_of(request), timing.protocol_of(request)
    timing.set_precision(request["op"])
    before: list[Snapshot | None] = []
    reasons: dict[str, str] = {}
    compile_ms: list[float] = []
    functions = beside.load(request, reasons)
    timed = timing.in_order(request, protocol)
    test = protocol.test(len(timed))
    try:
        sizes = {
            size: measure_size(request, clock, protocol, test, size, case, before, reasons, compile_ms, functions)
            for size, case in timed.items()
        }
    except reference_call.NoRoom as no_room:
        return no_room.reply()
    if functions and (replaced := clock.replaced()):
        for size in sizes.values():
            size["others"] = {**size["others"], **dict.fromkeys(functions)}
        reasons |= dict.fromkeys(functions, f"a function's module replaced what times it: {', '.join(replaced)}")
    before = before or [telemetry.snapshot(request)]
    device = telemetry.device_facts(request, before[0])
    after = telemetry.snapshot(request)
    document: Baseline = {
        "clock": clock.name,
        "protocol": request["protocol"].copy(),
        "device": device,
        "sizes": sizes,
        "finals": {name: final(sizes, name) for name in beside.names(request)},
        "compile_ms": sum(compile_ms) if compile_ms else None,
        "reasons": reasons,
        "unstable": bool(why := unsteady(request, sizes, [*before, after])),
        "why_unstable": "; ".join(why) or None,
        "telemetry": {"before": before[0], "after": after},
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"baseline": document}, "files": {}}


def measure_size(
    request: BaselineRequest,
    clock: clocks.Clock,
    protocol: timing.Protocol,
    test: stopping.Test | None,
    size: str,
    case: cases.Case,
    before: list[Snapshot | None],
    reasons: dict[str, str],
    compile_ms: list[float],
    functions: Mapping[str, Entry],
) -> BaselineSize:
    """Returns the figures of one size, the baselines timed in turns. Adds the telemetry to `before` if there is none yet, why one has no figures to `reasons`, and
    to `compile_ms`."""
    declaration, device, which = request["op"], timing.device_of(request["lane"]), passes.of(request)
    buffers = passes.buffers_of(which, declaration, case, device)
    given = passes.arguments(buffers)
    eager = reference_call.made(declaration, case, given, device)
    buffers.undoes(eager.function, eager.kept)
    subjects = {EAGER: passes.subject(which, eager.call, buffers)}
    here = beside.Size(which, declaration, case, buffers, device)
    is_fresh = size in AHEAD
    for name in filter(beside.is_compiled, request["baselines"]):
        try:
            if not is_fresh:
                fresh_compiler(which)
                is_fresh = True
            mode, ahead = beside.mode_of(name), AHEAD.get(size) if name == COMPILED else None
            made = compiled_subject(clock, which, declaration, case, given, buffers, compile_ms, ahead, mode)
            if mode is not None:
                here.judge(made)
            subjects[name] = made
        except Exception as error:
            reasons.setdefault(name, beside.described(error))
    for name, function in functions.items():
        try:
            subjects[name] = here.subject(function)
        except Exception as error:
            reasons.setdefault(name, beside.described(error))
    del here
    runs = {name: timing.Runs(clock, protocol) for name in subjects}
    if not before:
        before.append(telemetry.snapshot(request))
    for subject in subjects.values():
        subject.prepare()
    clock.warm([subject.call for subject in subjects.values()])
    for turn in timing.turns(protocol, test, runs):
        for place, (name, subject) in enumerate(subjects.items()):
            for run in turn:
                if place == 0 or len(turn) > 1:
                    buffers.refill(run)
                subject.prepare()
                runs[name].add(subject.call)
    figures = {name: one.figure() for name, one in runs.items()}
    found: BaselineSize = {"binding": case.binding, "dtype": case.dtype}
    if test is not None and test.last is not None:
        found["stopped"] = timing.told(test.last, figures)
    if EAGER in request["baselines"]:
        found["torch"] = figures[EAGER]
    for name, figure in figures.items():
        if clock.is_device and name != EAGER:
            with spans.work(device):
                figure["host_us"] = host.time_us(clock, subjects[name].call, figure["median"])
            figure["hidden_us"] = clock.hidden_us()
    if COMPILED in request["baselines"]:
        found["torch.compile"] = figures.get(COMPILED)
    if others := [name for name in beside.names(request) if name not in (EAGER, COMPILED)]:
        found["others"] = {name: figures.get(name) for name in others}
    return found


def figure_of(size: BaselineSize, name: str) -> Figure | None:
    """Returns the figure of the baseline `name` at a size, None where it has none."""
    if name in (EAGER, COMPILED):
        return size.get("torch") if name == EAGER else size.get("torch.compile")
    return size.get("others", {}).get(name)


def compiled_subject(
    clock: clocks.Clock,
    which: str,
    declaration: Declaration,
    case: cases.Case,
    given: Mapping[str, torch.Tensor],
    buffers: timing.Buffers | None,
    compile_ms: list[float],
    ahead: Ahead | None = None,
    mode: str | None = None,
) -> passes.Subject:
    """Returns the passes of the op on `given` that are timed, as `torch.compile` makes them in `mode` for these very shapes, and adds what the first calls took to `compile_ms`: those that were made
    `ahead`, if there are some.

    Raises what torch raises. What was compiled for another size must be forgotten (`fresh_compiler`).
    """
    device = "cuda" if clock.is_device else "cpu"
    if ahead is not None:
        compile_ms.append(ahead.compile_ms)
        forward = timing.call_of(ahead.function, declaration, case, given, device)
        return passes.subject(which, forward, buffers)
    import torch

    op = timing.function_of(declaration, case, given)
    function = torch.compile(op, dynamic=False, mode=mode)
    begun = clock.counter()
    subject = first_calls(
        which, beside.marked(function) if mode else function, declaration, case, given, buffers, device
    )
    for _ in range(RECORDING if mode else 0):
        # With CUDA graphs the first call compiles, the next ones warm up and record.
        subject.prepare()
        subject.call()
    clock.synchronize()
    compile_ms.append((clock.counter() - begun) * 1e3)
    return subject


def fresh_compiler(which: str) -> None:
    """Prepares the compiler, and has torch forget what it compiled: it keeps the code of one function for eight kinds of arguments and modes at most."""
    import torch._dynamo

    prepare_compiler(which)
    torch._dynamo.reset()


def prepare_compiler(which: str) -> None:
    """Has torch compile in this process alone, as worker processes would outlive the action, and what it compiles keep all that a second pass over the same graph needs, where a backward pass alone is timed."""
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1
    if which == passes.BACKWARD:
        import torch._functorch.config

        torch._functorch.config.donated_buffer = False


def first_calls(
    which: str,
    function: Entry,
    declaration: Declaration,
    case: cases.Case,
    given: Mapping[str, torch.Tensor],
    buffers: timing.Buffers | None,
    device: str,
) -> passes.Subject:
    """Returns the passes of `function`, the compiled op, on `given` that are timed, called once each, by which torch compiles them. Raises what torch raises."""
    forward = timing.call_of(function, declaration, case, given, device)
    subject = passes.subject(which, forward, buffers)
    if subject.passes is not None:
        subject.prepare()
        subject.call()
    return subject


def compile_ahead(request: BaselineRequest, stops: Callable[[], bool]) -> None:
    """Has torch compile the op for each size that is timed, before the request comes, and keeps that in `AHEAD`; ends early once `stops` says so.

    What torch cannot compile is left to the request, which says why. No values stay on the device.
    """
    import torch
    import torch._dynamo

    sizes = timing.timed_cases(request)
    # What a reference in Python says may be another when the request comes.
    is_torch = request["op"].get("reference") is None
    # In several modes torch would have to keep more kinds of code than it does.
    is_plain = [name for name in request["baselines"] if beside.is_compiled(name)] == [COMPILED]
    if not is_plain or len(sizes) > MOST_AHEAD or not is_torch:
        return
    declaration, clock, which = request["op"], clocks.clock_of(request), passes.of(request)
    prepare_compiler(which)
    torch._dynamo.reset()
    timing.set_precision(declaration)
    for size, case in sizes.items():
        if stops():
            break
        device = timing.device_of(request["lane"])
        buffers = passes.buffers_of(which, declaration, case, device)
        given = passes.arguments(buffers)
        function = torch.compile(timing.function_of(declaration, case, given), dynamic=False)
        begun = clock.counter()
        with contextlib.suppress(Exception):
            first_calls(which, function, declaration, case, given, buffers, device)
            clock.synchronize()
            AHEAD[size] = Ahead(function, (clock.counter() - begun) * 1e3)
        del given, buffers
    torch.cuda.empty_cache()


def final(sizes: Mapping[str, BaselineSize], name: str) -> float | None:
    """Returns the mean over sizes of the figures of `name`; None where one is missing."""
    figures = [figure_of(size, name) for size in sizes.values()]
    means = [figure["mean"] for figure in figures if figure is not None]
    return statistics.mean(means) if means and len(means) == len(figures) else None


def unsteady(
    request: BaselineRequest, sizes: Mapping[str, BaselineSize], snapshots: list[Snapshot | None]
) -> list[str]:
    """Returns why the figures cannot be relied on, in words."""
    why = telemetry.disturbances(snapshots)
    for size, figures in sizes.items():
        for name in beside.names(request):
            one = figure_of(figures, name)
            if one is None:
                continue
            if one["cv"] > statistics.STEADY:
                why.append(f"{size}: runs of {name} vary by {100 * one['cv']:.0f} %")
            if "host_us" in one and host.is_bound(one["host_us"], one["hidden_us"], one["median"]):
                took = f"{one['host_us']:.0f} µs, of which the device hides {one['hidden_us']:.0f}"
                why.append(f"{size}: the figure of {name} is the host's, which takes {took}")
    return why
