"""The calls of a variant that Nsight Compute watches: `ncu` starts this module as a program, and reads the device's counters of what is launched between two marks.

No action has it. `t2t profile --counters` starts it outside of the walls, which the profiler would have to reach through. It makes no figures: those are in what
`ncu` writes. torch is imported only inside functions.

    ncu … python -m t2t_harness.phases.counters REQUEST.json

The file holds the request of a profile. The exit code is 0, or 1 where the kernel raised: the last line of the error output then says what.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cuda import watching
from t2t_harness.faults import failure
from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import timing
from t2t_harness.phases import passes, profile
from t2t_harness.sources import loading
from t2t_harness.triton import stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import BenchRequest

CALLS = 3
"""So many calls are watched. The profiler makes each launch of them again and again, a few counters at a time."""


def main() -> int:
    """Makes the calls of the request that the command line names, and returns the exit code."""
    request: BenchRequest = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        watched(request)
    except Exception as error:
        print(f"{failure.describe(error)}".splitlines()[0], file=sys.stderr)
        return 1
    return 0


def watched(request: BenchRequest) -> None:
    """Makes the calls of a variant at the one size that the request names, each between the marks. Raises what the wrapper raises."""
    import torch

    timing.set_precision(request["op"])
    with watching.lane(request):
        clock = clocks.clock_of(request)
        with stage.pretending(request["lane"]):
            entry = loading.load_entry(request["root"], request["variant"])
        [case] = timing.timed_cases(request).values()
        buffers = passes.buffers_of(passes.of(request), request["op"], case, timing.device_of(request["lane"]))
        subject = profile.prepared(request, clock, entry, case, buffers)
        for _ in range(CALLS):
            subject.prepare()
            buffers.freshen()
            clock.synchronize()
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
            with stage.pretending(request["lane"]):
                subject.call()
            clock.synchronize()
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.exit(main())
