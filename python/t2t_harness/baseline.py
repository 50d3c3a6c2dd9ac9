"""Measures torch: eager, and compiled by torch itself, with the protocol and the clock of a bench.

What torch cannot compile has no figure and a reason. The time that compiling takes is recorded apart from the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_harness import cases, failure, spans, statistics, telemetry, timing
from t2t_harness import clock as clocks
from t2t_harness import declaration as declared

EAGER, COMPILED = "torch", "torch.compile"


@spans.told
def baseline(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reply with the document `baseline`.

    Raises what eager torch raises: an op that torch itself refuses is no result.
    """
    clock, protocol = clocks.clock_of(request["lane"]), timing.protocol_of(request)
    timing.set_precision(request["op"])
    before = telemetry.snapshot(request)
    device = telemetry.device_facts(request, before)
    reasons: dict[str, str] = {}
    compile_ms: list[float] = []
    sizes = {
        size: measure_size(request, clock, protocol, case, reasons, compile_ms)
        for size, case in timing.timed_cases(request).items()
    }
    after = telemetry.snapshot(request)
    document = {
        "clock": clock.name,
        "protocol": dict(request["protocol"]),
        "device": device,
        "sizes": sizes,
        "finals": {name: final(sizes, name) for name in request["baselines"]},
        "compile_ms": sum(compile_ms) if compile_ms else None,
        "reasons": reasons,
        "unstable": bool(why := unsteady(request, sizes, [before, after])),
        "why_unstable": "; ".join(why) or None,
        "telemetry": {"before": before, "after": after},
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"baseline": document}, "files": {}}


def measure_size(
    request: Mapping[str, Any],
    clock: clocks.Clock,
    protocol: timing.Protocol,
    case: cases.Case,
    reasons: dict[str, str],
    compile_ms: list[float],
) -> dict[str, Any]:
    """Returns the figures of one size, the baselines timed in turns. Adds to `reasons` why one has none, and to `compile_ms`."""
    declaration, device = request["op"], timing.device_of(request["lane"])
    buffers = timing.buffers_of(declaration, case, device)
    calls: dict[str, clocks.Call] = {EAGER: timing.torch_call(declaration, case, buffers.given)}
    if COMPILED in request["baselines"]:
        try:
            calls[COMPILED] = compiled_call(clock, declaration, case, buffers.given, compile_ms)
        except Exception as error:
            reasons.setdefault(COMPILED, failure.describe(error)[:400])
    runs = {name: timing.Runs(clock, protocol) for name in calls}
    clock.warm(list(calls.values()))
    for run in range(protocol.runs):
        buffers.refill(run)
        for name, call in calls.items():
            runs[name].add(call)
    figures = {name: runs[name].figure() if name in runs else None for name in request["baselines"]}
    return {"binding": case.binding, "dtype": case.dtype, **figures}


def compiled_call(
    clock: clocks.Clock,
    declaration: Mapping[str, Any],
    case: cases.Case,
    given: Mapping[str, Any],
    compile_ms: list[float],
) -> clocks.Call:
    """Returns a call of the op as `torch.compile` makes it for these very shapes, and adds what its first call took to `compile_ms`.

    Raises what torch raises. Compiling runs in this process alone: worker processes would outlive the action.
    """
    import torch
    import torch._dynamo
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1
    torch._dynamo.reset()
    function = torch.compile(declared.resolve(declaration["torch"]), dynamic=False)
    begun = clock.counter()
    call = timing.call_of(function, declaration, case, given)
    clock.synchronize()
    compile_ms.append((clock.counter() - begun) * 1e3)
    return call


def final(sizes: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    """Returns the mean over sizes of the figures of `name`; None where one is missing."""
    figures = [size[name] for size in sizes.values()]
    if not figures or any(figure is None for figure in figures):
        return None
    return statistics.mean([figure["mean"] for figure in figures])


def unsteady(
    request: Mapping[str, Any], sizes: Mapping[str, Mapping[str, Any]], snapshots: list[dict[str, Any] | None]
) -> list[str]:
    """Returns why the figures cannot be relied on, in words."""
    why = telemetry.disturbances(snapshots)
    for size, figures in sizes.items():
        for name in request["baselines"]:
            if figures[name] is not None and figures[name]["cv"] > statistics.STEADY:
                why.append(f"{size}: runs of {name} vary by {100 * figures[name]['cv']:.0f} %")
    return why
