"""The figures of a bench, made of the raw times that it left: by a child in which no kernel ran. It does not know what the timed calls returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.measuring import statistics, stopping, timing

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Bench, BenchSize, SampleRequest

SUBJECTS = ("variant", "torch")
"""What is timed in turns at each size."""

TIMES = "bench_times.json"

MOST_TIMES = 256 << 20
"""The most bytes of times that are read."""


class Unusable(Exception):
    """What the bench left is not what a bench leaves."""


def figures(request: SampleRequest, folder: Path, document: Bench) -> None:
    """Fills in the fields of the document that are made of raw times: `sizes`, and on a device the Finals and whether anything varies. Raises Unusable, or what reading raises."""
    sizes = {size: facts.copy() for size, facts in request["bench"]["sizes"].items()}
    path = folder / TIMES
    if path.stat().st_size > MOST_TIMES:
        raise Unusable(f"{path.stat().st_size} bytes of times")
    times = json.loads(path.read_text(encoding="utf-8"))
    if request["lane"] != "cuda":
        for size, facts in sizes.items():
            facts["interpreter_ms"] = timing.figure_of(times[size]["variant"])["median"]
        document["sizes"] = sizes
        return
    protocol = timing.protocol_of(request)
    test = protocol.test(len(sizes))
    for size in timing.in_order(request, protocol):
        found = {who: timing.figure_of(times[size][who]) for who in SUBJECTS}
        sizes[size]["variant"], sizes[size]["torch"] = found["variant"], found["torch"]
        if test is not None:
            sizes[size]["stopped"] = timing.told(ended(test, size, times[size]), found)
    disturbed = list(request["bench"]["disturbed"])
    why = [*disturbed, *varied(sizes)]
    own, torch = (
        [facts["variant"]["mean"] for facts in sizes.values()],
        [facts["torch"]["mean"] for facts in sizes.values()],
    )
    finals = statistics.comparison(own, torch) if sizes else {}
    document["sizes"], document["unstable"], document["why_unstable"] = sizes, bool(why), "; ".join(why) or None
    if finals:
        document["final_ms"], document["torch_final_ms"] = finals["final_ms"], finals["torch_final_ms"]
        document["speedup"], document["geomean_speedup"] = finals["speedup"], finals["geomean_speedup"]


def ended(test: stopping.Test, size: str, times: Mapping[str, timing.Raw]) -> stopping.Stop:
    """Returns the end of a size by its raw times, whatever the process that took them says. Raises Unusable where it had to go on."""
    means = {who: [statistics.mean(samples) for samples in times[who]["samples"]] for who in SUBJECTS}
    stop = test.end(means) if len({len(runs) for runs in means.values()}) == 1 else None
    if stop is None:
        raise Unusable(f"size `{size}` was not measured to its end")
    return stop


def varied(sizes: Mapping[str, BenchSize]) -> list[str]:
    """Returns in words which figures vary from run to run by more than is stable, a line a size."""
    told = []
    for size, facts in sizes.items():
        variations = {"variant": facts["variant"]["cv"], "torch": facts["torch"]["cv"]}
        if max(variations.values()) > statistics.STEADY:
            shares = ", ".join(f"{who} {100 * cv:.0f} %" for who, cv in variations.items())
            told.append(f"{size}: runs vary by {shares}")
    return told
