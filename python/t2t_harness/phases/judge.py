"""The last child of a check: makes the inputs again, computes what is right, and judges what the candidate left. It
never imports kernel code.

Its two documents are `verdict`, which later actions depend on, and `evidence`, which is everything else. It runs
however the candidate ended.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import arguments_special, called_with, cases, listing, naming, probes, seeds
from t2t_harness.faults import failure, memory
from t2t_harness.judging import (
    comparing,
    conversions,
    evidence,
    exponents,
    findings,
    following,
    lint,
    oracle,
    progress,
    references,
    rules,
    tolerance,
    undefined,
)
from t2t_harness.judging.finding import Finding
from t2t_harness.judging.trial import Trial, blank_row, fill, unfit
from t2t_harness.measuring import spans
from t2t_harness.op import module_state

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CaseRow, Declaration, FollowRequest, JudgeRequest, Reply


ENDS = {
    "exit": ("exit", "the process left by itself"),
    "signal": ("crash", "the process died by a signal"),
    "timeout": ("timeout", "the deadline passed"),
    "cpu-limit": ("timeout", "the CPU seconds were used up"),
    "memory": ("memory", "the memory limit was passed"),
    "output-limit": ("output-flood", "more was printed than is allowed"),
    "no-reply": ("no-reply", "the process ended and said nothing"),
    "bad-reply": ("no-reply", "what the process said is no reply"),
    "raised": ("exception", "the process raised"),
}
"""How a candidate may have ended without a reply → class and words."""


@spans.told
@memory.let_go
def judge(request: JudgeRequest) -> Reply:
    """Returns the reply with the documents `verdict` and `evidence`.

    `prepared` (null where nothing was to prepare) and `candidate` are the scratch folders of the other two children, `end` tells how the candidate's ended.
    """
    return judged(request)


def judged(request: JudgeRequest) -> Reply:
    """Returns what `judge` does. Cases that this process has judged while the candidate ran are not judged again."""
    begun = following.begun(request)
    try:
        trial = Trial(request, progress.read(Path(request["candidate"]) / "outputs"))
    except progress.Malformed as error:
        trial = Trial(request, progress.Progress())
        trial.first = (None, Finding("no-reply", f"what the kernel's process told of itself cannot be read: {error}"))
        return evidence.reply(trial)
    listed = (
        listed_cases(trial)
        if begun is None
        else begun.gone_on(request, trial.told).listed_by(trial.told.state, listed_cases)
    )
    done = 0
    if begun is not None and begun.is_of(trial.told, listed):
        trial, done = begun.trial, len(begun.cases)
    for position, case in enumerate(listed[done:], done):
        judge_case(trial, case, position)
    judge_end(trial)
    return evidence.reply(trial)


@spans.told
@memory.let_go
def follow(request: FollowRequest) -> Reply:
    """Judges cases while the candidate runs, which goes on with others meanwhile, and returns what `judge` does once it has ended.

    Where the candidate is to run again the reply has no documents. Where it told of something else in the end than of what was judged, all is judged again.
    """
    reader = progress.Reader(Path(request["candidate"]) / "outputs")
    begun = following.begin(request, Trial({**request, "end": following.RUNS}, reader.found))
    over = Path(request["scratch"]) / following.OVER
    known: list[cases.Case] = []
    with contextlib.suppress(progress.Malformed):
        while not over.exists():
            has_more = reader.more()
            state, begun.trial.told = reader.found.state, reader.found
            if len(known) < state["listed"]:
                known = begun.listed_by(state, listed_cases)[: state["listed"]]
            while not over.exists() and len(begun.cases) < len(known) and len(begun.cases) in reader.found.facts:
                position = len(begun.cases)
                begun.add(known[position], reader.found.facts[position])
                judge_case(begun.trial, known[position], position)
            if not has_more:
                time.sleep(following.LOOK_S)
    end = following.waited_for(over)
    if end is None:
        return {"outcome": "passed", "class": None, "cites": False, "documents": {}, "files": {}}
    return judged({**request, "end": end})


def listed_cases(trial: Trial) -> list[cases.Case]:
    """Returns all cases of a trial, by what its candidate told of the kernel."""
    state = trial.told.state
    constants = {str(name): int(value) for name, value in state["constants"].items()}
    least = state["configurations"].get("least", {})
    return listing.listed(trial.request, trial.request["prepared"], constants, least, state["reach"]["cases"])


def judge_case(trial: Trial, case: cases.Case, position: int) -> None:
    """Adds one row to the evidence, and the case's mutants to the lint."""
    facts = trial.told.facts.get(position)
    if trial.request["lane"] == "interpreter" and facts is not None and "binding" in facts:
        case = cases.as_told(trial.declaration, case, facts["binding"])
        trial.smaller.append(case.name)
    has_weights = bool(case.weights)
    if has_weights:
        names = facts.get("drawn") if facts is not None else None
        case = replace(case, weights=tuple(map(str, names or ())))
    is_running = trial.told.state["running"] == case.name
    if case.is_probe and (facts["status"] == "left-out" if facts is not None else not is_running):
        trial.left_out.append(case.name)
        return
    row = blank_row(case)
    trial.rows.append(row)
    if facts is not None and facts["status"] == "too-large":
        row |= {"verdict": "dropped", "reason": facts["reason"]}
        return
    try:
        with spans.work(trial.device):
            given, right = references.of(trial.request, case, trial.device)
    except oracle.Refused as refusal:
        row |= {"verdict": "dropped", "reason": str(refusal)}
        return
    if (
        misfit := comparing.fault(comparing.of_case(trial.declaration, case), case.dtype, given, right.plain)
    ) is not None:
        if probes.has_other_kwargs(case):
            # A flag may say how many results there are.
            row |= {"verdict": "dropped", "reason": f"not as `outputs` has it: {misfit}"}
        else:
            settle(trial, case, row, unfit(trial, str(misfit), misfit.hint))
        return
    if case.values in ILL_CONDITIONED and right.oracle is None:
        row |= {
            "verdict": "dropped",
            "reason": "torch has no float64 for it, which tells what the last bits of these inputs are worth",
        }
        return
    is_open = case.values == "extreme" or arguments_special.has_zero(trial.declaration, case.kwargs or {})
    if (is_open or probes.is_without(case)) and not is_finite(right):
        row |= {"verdict": "dropped", "reason": "torch's own result is not finite"}
        return
    if has_undefined(trial, case, given, right):
        row |= {"verdict": "dropped", "reason": "the reference turns into an integer what none holds"}
        return
    ill = ill_conditioned(trial.declaration, right) if case.kind == "edge" else {}
    if ill and not all(name.startswith(undefined.GRADIENTS) for name in ill):
        row |= {"verdict": "dropped", "reason": next(iter(ill.values()))}
        return
    right = replace(right, ill=frozenset(ill))
    # As a class is constructed its weights may be ones and zeros, with which the right result is what is wrong elsewhere.
    if not seeds.is_random(trial.declaration) and (not case.is_probe or case.weights):
        with spans.work(trial.device):
            lint_case(trial, case, given, right)
    if facts is None:
        absent(trial, case, row)
    elif facts["status"] == "not-judged":
        is_open = case.is_changed or case.init is not None or case.evaluates or has_weights
        row |= {"verdict": "dropped" if is_open else "not-judged", "reason": facts["reason"]}
    else:
        finding = findings.find(trial, case, position, row, facts, given, right)
        is_open = probes.is_undeclared(case) or probes.is_without(case)
        if finding is not None and finding.class_ == "dtype" and case.dtypes is not None:
            # Who takes two types for one says so by the type of the result.
            row |= {"verdict": "dropped", "reason": f"the wrapper refuses it: {finding.message}"}
        elif (
            finding is not None
            and finding.class_ in LOST
            and exponents.are_lost(trial.declaration, case, given, trial.device)
        ):
            row |= {"verdict": "dropped", "reason": "the last bits of its exponents are worth more than its results"}
        elif finding is not None and is_open and finding.class_ in findings.ELSEWHERE:
            # What ops.yaml does not declare may be left to torch.
            row |= {"verdict": "dropped", "reason": f"not by the kernel: {finding.message}"}
        else:
            settle(trial, case, row, finding)
    tell_of(trial, case, given)


def has_undefined(trial: Trial, case: cases.Case, given: Mapping[str, torch.Tensor], right: oracle.Reference) -> bool:
    """Tells whether integers that a reference in Python makes in an edge case are of numbers that no integer holds."""
    if case.kind != "edge" or not trial.declaration.get("reference") or seeds.is_random(trial.declaration):
        return False
    made = [value for value in right.plain.values() if not (value.dtype.is_floating_point or value.dtype.is_complex)]
    return any(str(value.dtype) != "torch.bool" for value in made) and conversions.is_undefined(
        trial.declaration, case, given, trial.device
    )


def is_finite(right: oracle.Reference) -> bool:
    """Tells whether all that torch makes is."""
    # torch answers that of no type of eight bits that lacks infinities.
    made = (value.float() if value.dtype.itemsize == 1 else value for value in right.plain.values())
    return all(bool(value.isfinite().all()) for value in made)


LOST = ("mismatch", "nan")
"""Classes of what last bits may be the cause of."""

ILL_CONDITIONED = ("offset", "level", "cancelling")
"""Values at which results depend on the last bits of the inputs."""


def tell_of(trial: Trial, case: cases.Case, given: Mapping[str, torch.Tensor]) -> None:
    """Keeps what the case is, in one line, where it is the first that failed."""
    if trial.given is None and trial.first is not None and trial.first[0] == case.name:
        trial.given = naming.given(case, given, called_with.kwargs_of(trial.declaration, case))


def ill_conditioned(declaration: Declaration, right: oracle.Reference) -> dict[str, str]:
    """Returns the results of torch's that are no measure, by name, with the reason."""
    if right.oracle is None:
        return {}
    asked = {name: value for name, value in right.plain.items() if not comparing.is_ignored(declaration, name)}
    reasons = {name: tolerance.torch_is_ill_conditioned(value, right.oracle[name]) for name, value in asked.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def absent(trial: Trial, case: cases.Case, row: CaseRow) -> None:
    """Fills the row of a case that the candidate left nothing of: it ended in it, or before it."""
    end = trial.request["end"]
    if trial.first is None and trial.told.state["running"] == case.name:
        kind = str(end["kind"]).replace("_", "-")
        settle(trial, case, row, ended(trial) if kind in ENDS else Finding("no-reply", "the case left no result"))
        return
    why = "the candidate ended before it" if trial.told.state["load"] is None else "the kernel was not run"
    row |= {"verdict": "not-judged", "reason": f"not run: {why}"}


def ended(trial: Trial) -> Finding:
    """Returns the finding for a candidate that ended without a reply."""
    end = trial.request["end"]
    class_, words = ENDS[str(end["kind"]).replace("_", "-")]
    if end.get("code") is not None:
        words = f"{words}: exit code {end['code']}"
    if (signal := end.get("signal")) is not None:
        words = f"{words}: {signal_name(signal)}"
    error = end.get("error")
    if error:
        words = f"{error.get('type')}: {error.get('message')}"
    printed = (error and error.get("traceback")) or end.get("stderr") or ""
    hint = None
    if class_ == "timeout":
        words = f"{words}: {trial.request.get('deadline_s', 0):.0f} s, after {len(trial.told.facts)} cases"
        hint = late_hint(trial)
    record = failure.failure(class_, words, root=trial.request["root"], printed=printed, hint=hint)
    return Finding(class_, words, record=record)


UNDECLARED = {"shape": "shapes", "literal": "literals"}
"""The words of cases with lengths that ops.yaml does not declare, with the edges that turn them off."""


def late_hint(trial: Trial) -> str:
    """Returns what to do about a deadline: where it passed in a case of a length that ops.yaml does not declare, a kernel may be compiled there for as long as it likes."""
    kind, _, name = str(trial.told.state["running"]).partition("/")
    word, _, dims = name.partition("]")[0].partition("[")
    if kind == "edge" and dims and word in UNDECLARED:
        return (
            f"no declared size has {dims.replace(',', ' and ')}: have the wrapper refuse what it is not made for (`assert {dims.partition('=')[0]} <= …`), "
            f"turn such lengths off (`check: {{edges: {{{UNDECLARED[word]}: {{off: WHY}}}}}}`), or set `check: {{timeout: …}}`"
        )
    return "set `check: {timeout: …}`, or smaller sizes in `check: {sizes: …}` or `profiles: {cpu: …}`"


def signal_name(signal: int | str) -> str:
    """Returns `SIGSEGV` for 11; a name is returned as it is."""
    import signal as signals

    try:
        return signal if isinstance(signal, str) else signals.Signals(signal).name
    except ValueError:
        return f"signal {signal}"


def settle(trial: Trial, case: cases.Case, row: CaseRow, finding: Finding | None) -> None:
    """Writes `finding`, or that the case passed, into its row, and keeps the first finding of all."""
    if finding is None:
        return
    row |= {"verdict": "rejected", "class": finding.class_, "reason": finding.message}
    if finding.comparison is not None:
        fill(row, finding.comparison)
    if trial.first is None:
        trial.first = (case.name, finding)


def lint_case(trial: Trial, case: cases.Case, given: Mapping[str, torch.Tensor], right: oracle.Reference) -> None:
    """Shows the case the mutants of its right results."""
    for name, expected in right.plain.items():
        if comparing.is_ignored(trial.declaration, name) or module_state.is_of_module(name) or name in right.ill:
            # What a module counts may be one, or zero, in any case.
            continue
        is_beyond = beyond_tf32(trial, case, name)
        left_out = (() if is_beyond else ("tf32",)) + (("zeros",) if name in right.unused else ())
        names = tuple(mutant for mutant in lint.MUTANTS if mutant not in left_out)

        def judged(wrong: torch.Tensor, name: str = name) -> comparing.Judged:
            return comparing.Judged(given, right.plain, {**right.plain, name: wrong})

        def rejects(mutant: str, wrong: torch.Tensor, name: str = name) -> bool:
            known = right.rejected.get((name, mutant))
            if known is None:
                known = not rules.compared(trial, case, name, judged(wrong, name), right).passed
                if mutant != lint.OF_OTHERS:
                    right.rejected[name, mutant] = known
            return known

        def is_right(wrong: torch.Tensor, name: str = name) -> bool:
            return comparing.is_equal(trial.declaration, case.dtype, name, judged(wrong, name))

        key = (case.dtype, name, tuple(expected.shape))
        first_input = next(iter(given.values()), None)
        of = "" if name == "0" else f" of {comparing.shown(trial.declaration, name)}"
        previous = trial.previous.get(key)
        trial.lint.judge(case.name, case.dtype, expected, first_input, previous, rejects, names, of, is_right)
        trial.previous[key] = expected


def beyond_tf32(trial: Trial, case: cases.Case, name: str) -> bool:
    """Tells whether a result rounded to TF32 must be rejected in this case."""
    asked = case.dtype == "float32" and trial.declaration["precision"] == "ieee"
    return asked and tolerance.asks_beyond_tf32(comparing.tolerance_of(trial.declaration, case.dtype, name))


def judge_end(trial: Trial) -> None:
    """Takes the way the candidate ended for the finding where no case shows one."""
    load, kind = trial.told.state["load"] or {}, str(trial.request["end"]["kind"]).replace("_", "-")
    if trial.first is None and "failure" in load:
        record = load["failure"]
        trial.first = (None, Finding(record["class"], record["message"], record=record))
    if trial.first is None and kind in ENDS:
        trial.first = (None, ended(trial))
    if trial.first is None and trial.told.state["reach"]["fallbacks"]:
        told = trial.told.state["reach"]["fallbacks"][0]
        words = f"at the measured size `{told['size']}` torch computes for the wrapper: {told['computed']}"
        trial.first = (None, Finding("torch-fallback", words))
    if trial.first is None and trial.made == {False}:
        words = "the launches changed nothing of any result, in no case: it was there before them"
        trial.first = (None, Finding("torch-fallback", words))
    if trial.first is None and seeds.is_random(trial.declaration):
        wrong, accepted = trial.random.conclude()
        hint = "check larger sizes or more seeds: the tests need more samples"
        if wrong is not None:
            trial.first = (None, Finding("mismatch", wrong))
        elif accepted:
            said = f"the op's cases accept wrong results: {', '.join(accepted)}"
            trial.first = (None, unfit(trial, said, hint))
