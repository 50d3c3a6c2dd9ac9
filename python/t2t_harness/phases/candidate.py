"""The second child of a check: runs the kernel on every case and leaves what it returned; it holds no expected value.

The functions that handle the results are captured before kernel code is imported. Every case is written before the next one begins, so a crash leaves
the earlier ones, and shows which one was running. The judge trusts the tensors to be what the kernel made; the rest is evidence from the kernel's own
process.
"""

from __future__ import annotations

import gc
import math
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import (
    beforehand,
    bindings,
    block_edges,
    budget,
    calling,
    capped,
    cases,
    inputs,
    literals,
    pace,
    probe_lengths,
    probes,
    programs,
    reach,
    seeds,
)
from t2t_harness.cases.prepared import prepared_cases, salt
from t2t_harness.counting import queues
from t2t_harness.cuda import watching
from t2t_harness.faults import failure, lacking, machine
from t2t_harness.judging import autograd, progress, watch
from t2t_harness.measuring import spans
from t2t_harness.op import declaration as declared
from t2t_harness.op import module_state
from t2t_harness.op import results as results_of
from t2t_harness.phases import called, one_case, permitted
from t2t_harness.sources import loading
from t2t_harness.triton import launchers, launching, stage

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CandidateRequest, Failure, Progress, Reach, Reply

MOST_REHEARSED = 1000
"""So many calls of torch a wrapper makes in a rehearsal at most: one that loops over what a dim counts makes millions where that is long."""

TUNED_CASES = 2
"""Declared cases that run with every configuration of an autotuned kernel."""


GARBAGE = 50_000
"""So many objects more than go are made before Python looks for garbage, on the interpreter: cases are small, and a look costs as much as a launch."""


EVERY = ("edge/above-", "edge/multiple-")
"""What the edges' names begin with that run with every configuration where that takes no compiler."""


@spans.told
@queues.in_one
def run(request: CandidateRequest) -> Reply:
    """Returns the reply with the document `ran`; leaves the results of each case in `outputs/` (`kept.of_case`), and its progress beside them.

    What a kernel raises is recorded and not raised; SystemExit ends the process, as any process of the kernel's would
    end. In a process with one queue a kernel that wants another stream is not called on: the reply is `queues.AGAIN`.
    """
    folder = Path(request["scratch"]) / "outputs"
    folder.mkdir(parents=True, exist_ok=True)
    state = progress.blank()
    state["configurations"]["tried"] = 1
    progress.tell(folder, state)
    if (why_not := watching.not_judged(request["lane"], request["variant"])) is not None:
        state["load"] = {"not_judged": why_not}
        return _reply(folder, state)
    if request["lane"] == "interpreter":
        gc.set_threshold(GARBAGE)
    with watching.lane(request) as modules:
        bench = load(request, folder, state, modules)
        if bench is not None:
            run_cases(bench, state)
    return _reply(folder, state)


def load(request: CandidateRequest, folder: Path, state: Progress, modules: launchers.Counted) -> called.Bench | None:
    """Returns the loaded kernel, or None with the failure in `state`. What the harness needs of torch is looked up
    first."""
    import torch

    is_device = request["lane"] == "cuda"
    finish = torch.cuda.current_stream().synchronize if is_device else _nothing
    synchronize = torch.cuda.synchronize if is_device else _nothing
    own = permitted.own_operations(request["op"])
    try:
        with stage.pretending(request["lane"]):
            entry = loading.load_entry(request["root"], request["variant"])
    except SystemExit:
        raise
    except BaseException as error:
        machine.raise_if_it_failed(error, request["root"])
        is_source = isinstance(error, SyntaxError | UnicodeDecodeError) or _lacks_entry(error, request)
        if request["lane"] == "interpreter" and (reason := lacking.reason(error)):
            state["load"] = {"not_judged": reason}
            return None
        class_ = "source" if is_source else watching.class_of(error)
        state["load"] = {"failure": _failure(class_, error, request["root"], None)}
        return None
    limit = None if is_device else request.get("deadline_s")
    limited = budget.Budget(is_limited=not is_device, is_backward=request["op"]["backward"])
    return called.Bench(
        request, entry, own, finish, synchronize, folder, modules, pace=pace.Pace(limit), budget=limited
    )


def _nothing() -> None:
    return None


def _lacks_entry(error: BaseException, request: CandidateRequest) -> bool:
    parts = request["variant"]["entry"].split(".")
    return isinstance(error, AttributeError) and getattr(error, "name", None) in parts


def run_cases(bench: called.Bench, state: Progress) -> None:
    """Runs all cases in order; an exception in one ends the run, unless it is an edge, which torch may refuse as
    well, and the device can be used further."""
    beforehand.keep_for(bench.request["op"])
    drawn = salt(bench.request)
    listed = cases.salted(prepared_cases(bench.request, bench.request["inputs"]), drawn)
    tuned = tuned_cases(listed)
    wanted = bench.request["op"]["dtypes"][0]
    position, edges_added, reach_added, probes_added = 0, False, False, False
    while position < len(listed):
        case, state["listed"] = listed[position], len(listed)
        facts = one_case.run_case(bench, case, position, state, every=case.name in tuned)
        ends = facts["status"] == "exception" and (case.kind != "edge" or not is_sound(bench))
        if facts["status"] == "left-out" and case.has_own_budget and probes.is_at_length(case):
            # A long row, or a grid that has stopped growing.
            at = case.name.split("[")[1].split("]")[0]
            state["reach"]["missed"].append(reach.missed(at, None, "it takes more operations than are interpreted"))
        bench.over.append((position, facts | {"is_last": ends}))
        if ends or position + 1 == len(listed):
            # The next case tells of the one before it, where there is one yet.
            bench.tell(state)
        if ends:
            return
        position += 1
        if not edges_added and bench.constants is not None:
            edges_added = True
            limit = bindings.limit_of(bench.lane)
            edges = block_edges.length_edges(bench.request["op"], bench.constants, limit, bench.least)
            listed = list(cases.unique([*listed, *cases.salted(edges, drawn)]))
            # A length that no block of theirs divides, in the fewest blocks. A device would have to compile each configuration for it.
            odd = edges if bench.lane == "interpreter" else []
            tuned |= {case.name for case in odd if case.name.startswith(EVERY) and case.dtype == wanted}
        if position == len(listed) and edges_added and not reach_added:
            reach_added = True
            state["reach"] = reached(bench)
            state["reach"]["missed"] += probe_lengths.too_long(bench.request)
            limit = bindings.reach_limit(bench.lane)
            more = reach.cases_of(bench.request["op"], state["reach"]["cases"], limit)
            listed = list(cases.unique([*listed, *cases.salted(more, drawn)]))
        if position == len(listed) and reach_added and not probes_added:
            probes_added = True
            listed += cases.salted(probes.cases_of(bench.request, listed), drawn)
            tuned |= beyond_all(listed, bench.largest, wanted) if bench.least else set()
            bench.budget.open(len(bench.request["op"]["dtypes"]))
    state["running"], state["is_over"] = None, True
    bench.tell(state)


def is_sound(bench: called.Bench) -> bool:
    """Tells whether the device, if there is one, can still be used: not after a CUDA error of a kernel, but after an exception of a wrapper."""
    try:
        bench.synchronize()
    except Exception:
        return False
    return True


def reached(bench: called.Bench) -> Reach:
    """Returns what `reach.explored` finds of the measured sizes, on the interpreter; on a device an output of each of them is judged when it is measured."""
    declaration = bench.request["op"]
    if bench.lane != "interpreter":
        return reach.Reach().facts()

    def launches(case: cases.Case) -> list[launching.Launch]:
        given = inputs.rehearsed(declaration, case)
        if declaration["backward"]:
            given = autograd.with_gradients(given, cases.asking(declaration, case), declaration["mutates"])
        with watching.recording(bench.lane, lambda _, configs: configs[:1], runs=False) as recorder:
            wrapper, args, kwargs = calling.arranged(bench.entry, bench.request, case, given)
            watched = watch.watching(
                bench.own,
                0,
                permitted.allowed(declaration),
                draws=seeds.is_random(declaration),
                poisons=False,
                inputs=given.values(),
                counters=module_state.counters(wrapper),
                most=MOST_REHEARSED,
            )
            with stage.pretending(bench.lane), watched as seen:
                returned = wrapper(*args, **kwargs)
            if declaration["backward"]:
                results = results_of.listed(returned, declared.ignored(declaration))
                ends = autograd.ends(results, given)
                upstream = autograd.upstream_gradients(ends, case)
                with stage.pretending(bench.lane):
                    autograd.gradients_for(ends, {**given, **module_state.parameters(wrapper)}, upstream)
        if seen.computed:
            raise reach.ComputedByTorch(sorted(seen.computed))
        return recorder.launches

    def counted(case: cases.Case) -> list[tuple[str, int]]:
        return [(launch.kernel, math.prod(launch.grid or ())) for launch in launches(case)]

    def counted_along(case: cases.Case) -> list[tuple[str, int]]:
        return [one for launch in launches(case) for one in programs.axes(launch.kernel, launch.grid)]

    def programs_of(case: cases.Case) -> dict[reach.Path, int]:
        return {launch.path: math.prod(launch.grid or ()) for launch in launches(case)}

    def explored() -> reach.Reach:
        found = reach.Reach()
        if reach.has_more(declaration):
            limit = bindings.reach_limit(bench.lane)
            found = reach.explored(
                declaration, bench.paths, lambda case: [launch.path for launch in launches(case)], limit
            )
            if "blocks" not in cases.edges_off(declaration):
                integers = literals.of_files(literals.read(bench.request))
                wide = programs.explored(declaration, reach.measured(declaration), bench.programs, integers, counted)
                split = programs.along(declaration, reach.measured(declaration), bench.axes, counted_along)
                found.cases += [{"size": programs.WORD, "binding": one} for one in (*wide.lengths, *split)]
                found.missed += [reach.missed(size, (kernel, "{}"), reason) for size, kernel, reason in wide.missed]
        if may_be_capped:
            found.cases += [
                {"size": capped.WORD, "binding": lengths} for lengths in capped.lengths(declaration, programs_of)
            ]
        return found

    # A rehearsal has a process of its own, which takes as long as ten cases of a small kernel.
    may_be_capped = "blocks" not in cases.edges_off(declaration) and literals.may_stop_growing(
        literals.read(bench.request)
    )
    if not may_be_capped and not reach.has_more(declaration):
        return reach.Reach().facts()
    return reach.rehearsed(explored).facts()


def tuned_cases(listed: list[cases.Case]) -> set[str]:
    """Returns the names of the declared cases that run with every configuration: the first of two dtypes, else the
    first two."""
    judged = [case for case in listed if case.kind == "declared"]
    firsts = list({case.dtype: case for case in reversed(judged)}.values())[::-1]
    return {case.name for case in [*firsts, *judged][:TUNED_CASES]} | {
        case.name for case in judged[: TUNED_CASES - len(firsts)]
    }


def beyond_all(listed: list[cases.Case], largest: int, dtype: str) -> set[str]:
    """Returns, for each dim, the name of the smallest probe in which it is longer than the `largest` block of all configurations: each of them has a second block there. Nothing where there is none."""
    plain = [
        case
        for case in listed
        if case.is_probe
        and (case.dtype, case.kwargs, case.init, case.layout, case.asks) == (dtype, None, None, None, ())
        and case.values in ("declared", "ends")
    ]
    found: dict[str, cases.Case] = {}
    for case in sorted(plain, key=lambda case: math.prod(case.binding.values())):
        for dim in (dim for dim, length in case.binding.items() if length > largest):
            found.setdefault(dim, case)
    return {case.name for case in found.values()}


def _failure(class_: str, error: BaseException, root: str, case: str | None) -> Failure:
    return failure.failure(class_, failure.describe(error), root=root, case=case, error=error)


def _reply(folder: Path, state: Progress) -> Reply:
    progress.tell(folder, state)
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"ran": state}, "files": {}}
