"""The second child of a check: runs the kernel on every case and leaves what it returned; it holds no expected value.

The functions that handle the results are captured before kernel code is imported. Every case is written before the next one begins, so a crash leaves
the earlier ones, and shows which one was running. The judge trusts the tensors to be what the kernel made; the rest is evidence from the kernel's own
process.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import (
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
from t2t_harness.cases.runs import REVERSED, TRIED, UPDATED, of_configuration
from t2t_harness.counting import queues
from t2t_harness.faults import declining, failure, lacking, memory, order
from t2t_harness.judging import kept, oracle, progress, watch
from t2t_harness.measuring import spans
from t2t_harness.phases import called
from t2t_harness.sources import loading
from t2t_harness.triton import effort, launchers, launching, stage

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CandidateRequest, Failure, Progress, Reach, Reply
    from t2t_harness.judging.told import Facts, Run

SHORTER = 2
"""How often a probe with a budget of its own is tried at half its length."""


TUNED_CASES = 2
"""Declared cases that run with every configuration of an autotuned kernel."""


EVERY = ("edge/above-", "edge/multiple-")
"""What the edges' names begin with that run with every configuration where that takes no compiler."""


TURNED_EDGES = 2
"""So many edges run in reverse order where programs may wait for each other, beside all declared cases."""


@spans.told
@queues.in_one
def run(request: CandidateRequest) -> Reply:
    """Returns the reply with the document `ran`; leaves `outputs/N.safetensors` for each case, and its progress beside them.

    What a kernel raises is recorded and not raised; SystemExit ends the process, as any process of the kernel's would
    end. In a process with one queue a kernel that wants another stream is not called on: the reply is `queues.AGAIN`.
    """
    folder = Path(request["scratch"]) / "outputs"
    folder.mkdir(parents=True, exist_ok=True)
    state = progress.blank()
    state["configurations"]["tried"] = 1
    progress.tell_state(folder, state)
    if request["lane"] not in request["variant"]["lanes"]:
        state["load"] = {"not_judged": f"the variant is not for the {request['lane']} lane"}
        return _reply(folder, state)
    with stage.lane(request) as modules:
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
    own = called.own_operations(request["op"])
    try:
        with stage.pretending(request["lane"]):
            entry = loading.load_entry(request["root"], request["variant"])
    except SystemExit:
        raise
    except BaseException as error:
        is_source = isinstance(error, SyntaxError | UnicodeDecodeError) or _lacks_entry(error, request)
        if request["lane"] == "interpreter" and (reason := lacking.reason(error)):
            state["load"] = {"not_judged": reason}
            return None
        class_ = "source" if is_source else failure.class_of(error)
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
    drawn = salt(bench.request)
    listed = cases.salted(prepared_cases(bench.request, bench.request["inputs"]), drawn)
    tuned = tuned_cases(listed)
    wanted = bench.request["op"]["dtypes"][0]
    position, edges_added, reach_added, probes_added = 0, False, False, False
    while position < len(listed):
        case, state["listed"] = listed[position], len(listed)
        facts = run_case(bench, case, position, state, every=case.name in tuned)
        ends = facts["status"] == "exception" and (case.kind != "edge" or not is_sound(bench))
        if facts["status"] == "left-out" and case.has_own_budget and probes.is_at_length(case):
            # A long row, or a grid that has stopped growing.
            at = case.name.split("[")[1].split("]")[0]
            state["reach"]["missed"].append(reach.missed(at, None, "it takes more operations than are interpreted"))
        progress.tell_case(bench.folder, position, facts | {"is_last": ends})
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
            bench.budget.open(len(bench.request["op"]["dtypes"]))
    state["running"], state["is_over"] = None, True
    progress.tell_state(bench.folder, state)


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
            given = oracle.with_gradients(given, case.asks)
        watched = watch.watching(
            bench.own,
            0,
            called.allowed(declaration),
            draws=seeds.is_random(declaration),
            poisons=False,
            inputs=given.values(),
        )
        with launching.recording(bench.lane, lambda _, configs: configs[:1], runs=False) as recorder:
            wrapper, args, kwargs = calling.arranged(bench.entry, bench.request, case, given)
            with stage.pretending(bench.lane), watched as seen:
                returned = wrapper(*args, **kwargs)
            if declaration["backward"]:
                results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
                upstream = oracle.upstream_gradients(results, case)
                with stage.pretending(bench.lane):
                    oracle.gradients_for(results, given, upstream)
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


def run_case(bench: called.Bench, case: cases.Case, position: int, state: Progress, *, every: bool) -> Facts:
    """Returns the facts of one case, its outputs written; `every` runs the other configurations of an autotuned kernel
    as well."""
    facts = run_in_budget(bench, case, position, state, every=every)
    is_long = case.has_own_budget and not probes.is_at_length(case)
    if facts["status"] == "left-out" and is_long and bench.lane == "interpreter":
        for shorter in islice(cases.smaller(bench.request["op"], case), SHORTER):
            again = run_in_budget(bench, shorter, position, state, every=every)
            if again["status"] != "left-out":
                return again | {"binding": shorter.binding}
    return facts


def run_in_budget(bench: called.Bench, case: cases.Case, position: int, state: Progress, *, every: bool) -> Facts:
    """Returns the facts of one case as it is, or of a smaller one where there is no time for it; that it was left out, where it is a probe that would do more than it may."""
    asked = case
    case, late = in_time(bench, fair(bench, asked))
    if late is not None:
        return {"name": case.name, "status": "left-out" if case.is_probe else "not-judged", "reason": late}
    size = cases.elements(bench.request["op"], case) if case.file is None else 0
    allowed_effort, before = bench.budget.allowance(case, size), effort.METER.done
    if allowed_effort == 0:
        return {"name": case.name, "status": "left-out"}
    began = time.process_time()
    state["running"] = case.name
    progress.tell_state(bench.folder, state)
    facts: Facts = {"name": case.name, "status": "ran", "reason": None, "runs": {}}
    if case is not asked:
        facts["binding"] = case.binding
    results = kept.Writer(bench.folder / f"{position}.safetensors")
    try:
        # The first configuration twice, on fresh memory with other contents; then one run per further configuration. An
        # interpreted edge case runs once: it computes in one order, and is slow.
        held: list[torch.Tensor] = []
        labels = "a" if bench.lane == "interpreter" and case.kind == "edge" else "ab"
        with contextlib.nullcontext() if allowed_effort is None else effort.METER.at_most(allowed_effort):
            for label in labels:
                with ending(bench, label, allowed_effort, before):
                    returned = called.run_once(bench, case, label, 0, facts, results.add)
                facts["aliased"] = called.overlap(held, returned)
                held += returned
        held.clear()
        if is_updated(bench, case) and not any(map(shows_a_fault, facts["runs"].values())):
            bench.is_updated = True
            called.run_once(bench, case, UPDATED, 0, facts, results.add)
        if is_turned(bench, case):
            turn(bench, case, facts, results.add, (effort.METER.done - before) / len(labels))
        elements = 0 if case.file is not None else cases.elements(bench.request["op"], case)
        for label in seeds.labels(bench.request["op"], case, elements):
            called.run_once(bench, case, label, 0, facts, results.add)
        if every and bench.tried > 1:
            called.run_once(bench, case, TRIED, 0, facts, results.add, tries=True)
        for index in range(1, bench.tried if every else 1):
            called.run_once(bench, case, of_configuration(index), index, facts, results.add)
    except SystemExit:
        raise
    except effort.Spent:
        facts = {"name": case.name, "status": "left-out"}
    except called.Refused as refusal:
        words = f"refused, where the output was changed in place: {refusal}"
        facts = {"name": case.name, "status": "not-judged", "reason": words[:300]}
    except BaseException as error:
        memory.raise_if_others_hold_it(error)
        record = _failure(failure.class_of(error), error, bench.request["root"], case.name)
        facts |= {
            "status": "exception",
            "failure": record,
            "is_deliberate": declining.is_deliberate(error),
            "is_of_kind": declining.is_of_kind(error),
        }
        if bench.lane == "interpreter" and (reason := lacking.reason(error)):
            facts = {"name": case.name, "status": "not-judged", "reason": reason}
    bench.budget.note(case, size, len(facts.get("runs", ())), before)
    if facts["status"] == "ran":
        results.close()
        bench.pace.note(size, (time.process_time() - began) / len(facts["runs"]))
    state["constants"] = bench.constants or {}
    state["configurations"] = {"tried": bench.tried, "dropped": bench.dropped, "least": bench.least}
    state["triton_cache"] = {
        "hits": bench.hits,
        "misses": sorted(bench.misses),
        "launchers": bench.modules.facts(),
    }
    return facts


@contextlib.contextmanager
def ending(bench: called.Bench, label: str, allowed_effort: float | None, before: float) -> Iterator[None]:
    """Raises order.Endless where the second interpreted run of a case goes on long after the first, which began at `before`, would have ended."""
    if bench.lane != "interpreter" or label != "b" or allowed_effort is not None:
        yield
        return
    try:
        with effort.METER.at_most(order.limit(effort.METER.done - before)):
            yield
    except effort.Spent:
        raise order.Endless("the call does not end where programs run in another order, last ones first") from None


def is_updated(bench: called.Bench, case: cases.Case) -> bool:
    """Tells whether a case that has run is to run on tensors that the wrapper was called on before, with other values: the first declared one does, unless the op writes to its inputs or draws."""
    declaration = bench.request["op"]
    is_plain = case.kind == "declared" and case.file is None and case.dtype == declaration["dtypes"][0]
    return is_plain and not bench.is_updated and not declaration["mutates"] and not seeds.is_random(declaration)


def shows_a_fault(run: Run) -> bool:
    """Tells whether a run shows by itself what is wrong, which calls after it would hide: inputs that the wrapper changed, or programs in conflict."""
    return bool(run["changed"] or run["conflicts"] or run["outside"])


def is_turned(bench: called.Bench, case: cases.Case) -> bool:
    """Tells whether a case that has run is to run in reverse order, too, since programs of its launches might wait for each other and do not keep their order in any other run."""
    if bench.lane != "interpreter" or not bench.has_waited or not bench.may_turn or case.is_probe:
        return False
    return not seeds.is_random(bench.request["op"]) and (case.kind != "edge" or bench.turned < TURNED_EDGES)


def turn(
    bench: called.Bench, case: cases.Case, facts: Facts, keep: Callable[[str, torch.Tensor], None], done: float
) -> None:
    """Runs a case with all programs in reverse order. Where that does not end with not much more than was `done` in the usual order, or raises, programs wait for others or rely on them: their order is theirs, and no case is run so again."""
    try:
        with effort.METER.at_most(order.turned_limit(done)):
            called.run_once(bench, case, REVERSED, 0, facts, keep)
        bench.turned += 1
    except (effort.Spent, Exception):
        facts["runs"].pop(REVERSED, None)
        bench.may_turn = False


def fair(bench: called.Bench, case: cases.Case) -> cases.Case:
    """Returns `case`, or where it is a probe that would take more than its part of the interpreter's budget, and whose lengths say nothing, the largest of its smaller ones that would not."""
    if not case.is_probe or case.has_own_budget or probes.is_of_length(case):
        return case
    declaration = bench.request["op"]
    found = case
    for one in chain([case], cases.fewer(declaration, case)):
        if cases.elements(declaration, one) == 0:
            break
        found = one
        if bench.budget.is_fair(cases.elements(declaration, one)):
            break
    return found


def in_time(bench: called.Bench, case: cases.Case) -> tuple[cases.Case, str | None]:
    """Returns `case`, or the largest smaller one for which the interpreter has time; and why there is none, or None."""
    declaration = bench.request["op"]
    if bench.lane == "cuda" or cases.is_needed(declaration, case):
        return case, None
    runs = 1 if case.kind == "edge" else 2
    late = bench.pace.refusal(cases.elements(declaration, case), runs)
    if late is None:
        return case, None
    for one in () if case.is_probe else cases.smaller(declaration, case):
        if bench.pace.refusal(cases.elements(declaration, one), runs) is None:
            return one, None
    return case, late


def _failure(class_: str, error: BaseException, root: str, case: str | None) -> Failure:
    return failure.failure(class_, failure.describe(error), root=root, case=case, error=error)


def _reply(folder: Path, state: Progress) -> Reply:
    progress.tell_state(folder, state)
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"ran": state}, "files": {}}
