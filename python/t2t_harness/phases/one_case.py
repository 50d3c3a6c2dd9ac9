"""One case of a candidate: its runs, within the time and the budget that there are, and what is told of them.

Each run is one call of the wrapper (`called.py`). Which runs a case has depends on the lane, the case, and what was seen of the kernel so far.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_away, cases, probe_segments, probes, seeds
from t2t_harness.cases.runs import REVERSED, TRIED, UPDATED, of_configuration
from t2t_harness.cuda import watching
from t2t_harness.faults import declining, failure, lacking, machine, order
from t2t_harness.judging import kept
from t2t_harness.phases import called, weights
from t2t_harness.triton import effort

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Progress
    from t2t_harness.judging.told import Facts, Run

SHORTER = 4
"""How often a probe with a budget of its own is tried at half its length."""


TURNED_EDGES = 2
"""So many edges run in reverse order where programs may wait for each other, beside all declared cases."""


def run_case(bench: called.Bench, case: cases.Case, position: int, state: Progress, *, every: bool) -> Facts:
    """Returns the facts of one case, its outputs written; `every` runs the other configurations of an autotuned kernel
    as well."""
    facts = run_in_budget(bench, case, position, state, every=every)
    is_long = case.has_own_budget and not probes.is_at_length(case) and not is_whole(bench, case)
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
    allowed_effort, before = bench.budget.allowance(case, size, is_whole(bench, case)), effort.METER.done
    if allowed_effort == 0:
        return {"name": case.name, "status": "left-out"}
    began = time.process_time()
    state["running"] = case.name
    bench.tell(state)
    facts: Facts = {"name": case.name, "status": "ran", "reason": None, "runs": {}}
    if case is not asked:
        facts["binding"] = case.binding
    most = kept.MOST_OF_PROBE if case.is_probe else None
    results = kept.Writer(bench.folder / f"{position}.safetensors", bench.folder / kept.PACK, most)
    try:
        # The first configuration twice, on fresh memory with other contents; then one run per further configuration.
        labels = "a" if runs_once(bench, case) else "ab"
        with contextlib.nullcontext() if allowed_effort is None else effort.METER.at_most(allowed_effort):
            for label in labels:
                with ending(bench, label, allowed_effort, before):
                    outputs = called.run_once(bench, case, label, 0, facts, results.add)
                facts["aliased"] |= bench.held.took(case, outputs)
        if is_updated(bench, case) and not any(map(shows_a_fault, facts["runs"].values())):
            bench.is_updated = True
            outputs = called.run_once(bench, case, UPDATED, 0, facts, results.add)
            facts["aliased"] |= bench.held.took(case, outputs)
        bench.held.let_go(case)
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
    except kept.TooLarge as large:
        facts = {"name": case.name, "status": "too-large", "reason": str(large)}
    except weights.Unlike as unlike:
        facts = {"name": case.name, "status": "not-judged", "reason": str(unlike)}
    except called.Refused as refusal:
        words = f"refused, where the output was changed in place: {refusal}"
        facts = {"name": case.name, "status": "not-judged", "reason": words[:300]}
    except BaseException as error:
        machine.raise_if_it_failed(error, bench.request["root"])
        record = failure.failure(
            watching.class_of(error), failure.describe(error), root=bench.request["root"], case=case.name, error=error
        )
        facts |= {
            "status": "exception",
            "failure": record,
            "is_deliberate": declining.is_deliberate(error),
            "is_of_kind": declining.is_of_kind(error),
        }
        # Where an argument is of a kind that ops.yaml does not have, the interpreter may raise what the wrapper does not.
        is_loose = arguments_away.is_of_another_kind(bench.request["op"], case.kwargs or {})
        if bench.lane == "interpreter" and not is_loose and (reason := lacking.reason(error)):
            facts = {"name": case.name, "status": "not-judged", "reason": reason}
    bench.budget.note(case, size, len(facts.get("runs", ())), before)
    if facts["status"] == "ran":
        results.close()
        if results.at is not None:
            facts["at"] = results.at
        bench.pace.note(size, (time.process_time() - began) / len(facts["runs"]))
    state["constants"] = bench.constants or {}
    state["configurations"] = {"tried": bench.tried, "dropped": bench.dropped, "least": bench.least}
    state["triton_cache"] = {
        "hits": bench.hits,
        "misses": sorted(bench.misses),
        "launchers": bench.modules.facts(),
    }
    return facts


def is_whole(bench: called.Bench, case: cases.Case) -> bool:
    """Tells whether a probe is run as long as it is, or not at all."""
    return probe_segments.is_of_segments(bench.request["op"], case)


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


def runs_once(bench: called.Bench, case: cases.Case) -> bool:
    """Tells whether a case has no second run of its first configuration: an interpreted edge, which computes in one order and is slow, and any probe. What differs from run to run
    does so in declared cases, too; on a device probes would take as much of its time again."""
    return case.is_probe or (bench.lane == "interpreter" and case.kind == "edge")


def is_updated(bench: called.Bench, case: cases.Case) -> bool:
    """Tells whether a case that has run is to run on tensors that the wrapper was called on before, with other values: the first declared one does, unless the op draws."""
    declaration = bench.request["op"]
    is_plain = case.kind == "declared" and case.file is None and case.dtype == declaration["dtypes"][0]
    return is_plain and not bench.is_updated and not seeds.is_random(declaration)


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
