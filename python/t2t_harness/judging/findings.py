"""What is wrong with a case that a candidate ran, as it left it: the questions in their order, and the values of its results. Nothing here imports kernel code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, elementwise, probe_corners, probes, seeds
from t2t_harness.cases.runs import REVERSED, UPDATED, whose
from t2t_harness.faults import failure
from t2t_harness.judging import (
    comparing,
    corners,
    form,
    kept,
    module_results,
    narrowed,
    oracle,
    origin,
    otherwise,
    pointing,
    random_ops,
    random_trial,
    references,
    refusal,
    rules,
    tolerance,
    undefined,
)
from t2t_harness.judging.finding import Finding, first_of
from t2t_harness.judging.trial import Trial, blank_row, figures, fill, run_to_run
from t2t_harness.measuring import spans
from t2t_harness.op import declaration as declared
from t2t_harness.op import module_state

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CaseRow
    from t2t_harness.judging.told import Facts, Run


ELSEWHERE = ("torch-fallback", "no-kernel-launched")
"""What is no fault where a call is one that ops.yaml does not speak of, or there is nothing along a dim."""


def find(
    trial: Trial,
    case: cases.Case,
    position: int,
    row: CaseRow,
    facts: Facts,
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns what is wrong with a case that the candidate ran, or None; figures go into `row`.

    The order of questions is the order in which one cause hides another: an exception, the form of the result, changed inputs, who computed it, its values, and whether they repeat.
    """
    if facts["status"] == "exception":
        record = facts["failure"]
        if refusal.is_refusal(trial.declaration, case, facts) and not (case.kind == "edge" and facts.get("is_last")):
            row |= {"verdict": "dropped", "reason": f"the wrapper refuses it: {record['message']}"}
            return None
        return Finding(record["class"], record["message"], record=record)
    try:
        tensors = kept.of_case(Path(trial.request["candidate"]) / "outputs", position, facts.get("at"))
        found = find_in(trial, case, row, facts["runs"], tensors, given, right)
        return aliased(facts, right) if found is None else found
    except (KeyError, IndexError, AttributeError, OSError, ValueError, TypeError, RuntimeError) as error:
        return Finding("no-reply", f"the case left no readable result: {failure.describe(error)}")


def aliased(facts: Facts, right: oracle.Reference) -> Finding | None:
    """Returns that a result lies in memory of an earlier one that was still held, or in a buffer of the wrapper's where none of torch's lies in one, or None."""
    if facts.get("aliased"):
        words = (
            "a later call returned memory of an earlier call's result, or changed it, while its caller still held it"
        )
        return Finding("aliased", words)
    if facts.get("returns_own") and not right.own:
        return Finding(
            "aliased", "a result is a parameter or a buffer of the kernel's class, and torch's is none of its"
        )
    return None


def find_in(
    trial: Trial,
    case: cases.Case,
    row: CaseRow,
    runs: Mapping[str, Run],
    tensors: dict[str, torch.Tensor],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns what is wrong with the `runs` of a case, whose results are `tensors`, or None; figures go into `row`."""
    runs, right = dict(runs), module_results.known(trial, right, tensors)
    later = runs.pop(UPDATED, None)
    row |= {
        "launches": runs["a"]["launches"],
        "configs": len({one for run in runs.values() for one in run["configs"]}),
    }
    asked = [one for run in runs.values() for one in run["outputs"].values() if 0 not in (one.get("shape") or [0])]
    trial.made |= {bool(one.get("changed", True)) for one in asked if run_launches(runs)}
    trial.read_outside |= {str(words): None for run in runs.values() for words in run.get("read_outside") or ()}
    trial.conflicts |= {str(one["words"]): None for run in runs.values() for one in run.get("conflicts") or ()}
    trial.computed |= {name for run in runs.values() for name in run.get("declared") or ()}
    launchless = origin.needs_no_launch(case, given, right)
    questions: list[Callable[[], Finding | None]] = [
        lambda: first_of(form.form(run, right, trial) for run in runs.values()),
        lambda: first_of(form.stored_form(tensors, label, right, trial) for label in runs),
        lambda: first_of(left_changed(run) for run in runs.values()),
        lambda: mutated(trial, tensors, given),
        lambda: module_results.overwritten(case, right, tensors),
        lambda: first_of(outside(run, label) for label, run in runs.items()),
        lambda: first_of(origin.origin(trial.declaration, run, launchless) for run in runs.values()),
        lambda: all_values(trial, case, row, tensors, list(runs), given, right),
        lambda: narrowed.to_single(trial, tensors, right),
        lambda: narrowed.to_half(trial, case, tensors, right),
        lambda: repeated(trial, tensors, right),
    ]
    with spans.work(trial.device):
        found = first_of(question() for question in questions)
        if found is not None and found.class_ in ELSEWHERE and probes.is_undeclared(case):
            # Who leaves a call to torch has to get from it what is right.
            found = all_values(trial, case, row, tensors, list(runs), given, right) or found
        found = in_conflict(trial, case, runs, found)
        return updated(trial, case, later, tensors) if found is None and later is not None else found


def updated(trial: Trial, case: cases.Case, run: Run, tensors: dict[str, torch.Tensor]) -> Finding | None:
    """Returns what is wrong with the run on tensors that the wrapper was called on before, with other values, or None."""
    other = cases.updated(case)
    try:
        given, right = references.made(trial.request, other, trial.device)
    except oracle.Refused:
        return None
    row, right = blank_row(other), module_results.known(trial, right, tensors)
    questions: list[Callable[[], Finding | None]] = [
        lambda: form.form(run, right, trial),
        lambda: form.stored_form(tensors, UPDATED, right, trial),
        lambda: values(trial, other, row, tensors, UPDATED, given, right),
    ]
    return first_of(question() for question in questions)


OF_CONFLICTS = ("out-of-bounds", "nan", "mismatch", "nondeterministic")
"""What a conflict between programs of a launch leads to."""


def in_conflict(trial: Trial, case: cases.Case, runs: Mapping[str, Run], found: Finding | None) -> Finding | None:
    """Returns `found`, or in its place the conflict between programs of a launch that led to it. A first run that a second one follows is not disturbed by conflicts: what is wrong there has other causes."""
    told = [one for run in runs.values() for one in run.get("conflicts") or ()]
    if found is None or found.class_ not in OF_CONFLICTS:
        return found
    if found.label == "a" and case.kind != "edge":
        return found
    if not told:
        if found.label == REVERSED:
            words = f"the result depends on the order in which programs run that use atomic operations: last ones first, {found.message}"
            return replace(found, class_="nondeterministic", message=words)
        if found.label == "b" and runs["b"].get("reversed"):
            message = f"{found.message} (in the second run, in which the programs of a launch run in reverse order)"
            return replace(found, message=message)
        return found
    root = trial.request["root"]
    words = f"{told[0]['words']}, and results depend on it: {found.message}"
    place = failure.place_in(told[0].get("place"), root)
    shown = figures(found.comparison)
    record = failure.failure("nondeterministic", words, root=root, place=place, **shown)
    return replace(found, class_="nondeterministic", message=words, record=record)


def run_launches(runs: Mapping[str, Run]) -> bool:
    """Tells whether a run launched a kernel."""
    return any(run["launches"] > 0 for run in runs.values())


def left_changed(run: Run) -> Finding | None:
    """Returns that a run left its inputs in another form, or torch with other settings, or None."""
    told = run.get("changed") or []
    return Finding("mutated-input", str(told[0])) if told else None


def mutated(trial: Trial, tensors: dict[str, torch.Tensor], given: Mapping[str, torch.Tensor]) -> Finding | None:
    """Returns that an input which the op does not declare as changed has other bits than before, or None."""
    for name, before in given.items():
        if name in declared.changed(trial.declaration):
            continue
        after, own = (
            raw_bytes(tensors[f"a.after.{name}"].to(trial.device)),
            raw_bytes(before),
        )
        if after.shape != own.shape:
            return Finding("mutated-input", f"input `{name}` has another shape or dtype after the call")
        if not after.equal(own):
            wrong = (after != own).any(dim=-1)
            first = int(wrong.int().argmax())
            index = tolerance.unravel(first, list(before.shape))
            return Finding("mutated-input", f"input `{name}` is changed in {int(wrong.sum())} elements, first {index}")
    return None


def outside(run: Run, label: str) -> Finding | None:
    """Returns that the run `label` wrote outside of its tensors, or None."""
    told = run.get("outside") or []
    return Finding("out-of-bounds", str(told[0]), label=label) if told else None


def raw_bytes(value: torch.Tensor) -> torch.Tensor:
    """Returns the elements of `value` in row-major order as rows of bytes, on its device."""
    import torch

    if value.dtype.is_complex:
        value = torch.view_as_real(value.resolve_conj())
    # A tensor of one element counts as contiguous whatever its strides are, and keeps them.
    dense = value.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    return (
        dense.view(torch.uint8).reshape(dense.numel(), dense.element_size())
        if dense.numel() > 0
        else torch.zeros((0, 1), device=dense.device)
    )


def all_values(
    trial: Trial,
    case: cases.Case,
    row: CaseRow,
    tensors: dict[str, torch.Tensor],
    labels: list[str],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns which result of any run is wrong, or None."""
    if not seeds.is_random(trial.declaration) or random_trial.is_certain(trial.declaration, case, given, right):
        return first_of(values(trial, case, row, tensors, label, given, right) for label in labels)
    try:
        message = random_trial.wrong(trial.random, trial.request, case, tensors, labels, given, trial.device)
    except random_ops.Misjudged as reason:
        return misjudged(trial, reason)
    row |= {"rule": "random", "total": right.plain["0"].numel()}
    return None if message is None else Finding("mismatch", message)


def misjudged(trial: Trial, reason: random_ops.Misjudged) -> Finding:
    """Returns that the function of the op's `cases.py` which says what must hold fails: it is no fault of the kernel's."""
    error, told = reason.__cause__ or reason, trial.declaration["random"]
    by = f"{trial.declaration['cases']}::{'' if told is None else told.get('by')}"
    hint = "it takes `(inputs, kwargs, out)`, tensors by name, and returns a mapping with `right`, `draws` or `hits`"
    words = f"`{by}` fails: {failure.describe(error)}"
    record = failure.failure("unfit-cases", words, root=trial.request["root"], error=error, hint=hint)
    return Finding("unfit-cases", words, record=record)


def values(
    trial: Trial,
    case: cases.Case,
    row: CaseRow,
    tensors: dict[str, torch.Tensor],
    label: str,
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns which result of the run `label` is wrong, or None. The largest errors of all runs stay in `row`."""
    made = {name: tensors[f"{label}.{name}"] for name in right.plain if f"{label}.{name}" in tensors}
    judged = comparing.Judged(given, right.plain, made)
    slack: Mapping[str, torch.Tensor] | None = None
    if probe_corners.is_corner(case):
        return corners.not_numbers(trial, row, judged, right)
    for name in right.plain:
        is_elsewhere = form.is_after(name) and name not in made
        if comparing.is_ignored(trial.declaration, name) or (label != "a" and is_elsewhere) or name in right.ill:
            continue
        # Indices into another result may be the same where that is not.
        is_index = comparing.output(trial.declaration, name)["compare"] == "indices"
        if label not in ("a", UPDATED) and not is_index and is_first_again(tensors, label, name):
            continue
        judged = undefined.but_unsaid(trial.declaration, case, judged, name)
        judged = corners.but_at_nan(judged, name) if case.kind == "edge" else judged
        found = rules.compared(trial, case, name, judged, right)
        is_loose = (
            case.kind == "edge"
            and case.values not in rules.DECIDING
            and not elementwise.leaves_a_rest(trial.declaration)
        )
        if not found.passed and is_loose and found.class_ == "mismatch":
            # Inputs that nobody chose may be ill-conditioned: what the last bits of them are worth is allowed.
            if slack is None:
                slack = oracle.slack(trial.declaration, case, given, right, trial.device) or {}
            found = rules.compared(trial, case, name, judged, right, slack)
        if not found.passed and otherwise.is_asked(trial.declaration, case, found.class_, trial.device):
            found = rules.right_elsewhere(trial, case, name, judged) or found
        if not found.passed:
            found = pointing.compared(trial.declaration, case, name, judged, trial.device) or found
        if not found.passed:
            found = rules.in_another_order(trial, case, name, judged) or found
        if not found.passed and found.class_ == "nan":
            found = rules.beside_nan(trial, case, name, judged, right) or found
        if not found.passed:
            found = rules.where_it_counts(trial, case, name, judged, right) or found
        if not found.passed and found.class_ == "mismatch":
            found = rules.either_way(trial, case, name, judged, right) or found
        if not found.passed and found.class_ == "mismatch" and is_loose:
            found = rules.weighed(trial, case, name, judged, right, slack or {}) or found
        if not found.passed and found.class_ == "mismatch" and is_loose:
            found = rules.in_sequence(trial, case, name, judged, right) or found
        largest = row["max_abs"]
        if row["rule"] is None or not isinstance(largest, float) or found.max_abs > largest:
            fill(row, found)
        if row["rule"] != "oracle":
            row["rule"] = found.rule
        if not found.passed:
            row["rule"] = None
            where = whose(label)
            called = oracle.result_name(trial.declaration, right, name)
            what = f"{called}: " if called else ""
            told = f"{what}{found.message}{unrecorded(name, made[name])}{where}"
            return Finding(str(found.class_), told, comparison=found, label=label)
    return None


def unrecorded(name: str, value: torch.Tensor) -> str:
    """Returns what is said of a wrong gradient that is zero everywhere, with a space before it, else nothing."""
    if not name.startswith(("grad.", module_state.GRADIENT)) or bool(value.count_nonzero()):
        return ""
    return " (all of it is 0, as where autograd records nothing of the call)"


def is_first_again(tensors: Mapping[str, torch.Tensor], label: str, name: str) -> bool:
    """Tells whether a result of the run `label` has the very bits of the first run's, which were compared before."""
    return raw_bytes(tensors[f"{label}.{name}"]).equal(raw_bytes(tensors[f"a.{name}"]))


def asked(trial: Trial, right: oracle.Reference, name: str, value: torch.Tensor) -> torch.Tensor:
    """Returns the result `name` in order where any order is right, and with torch's value in each place where any is."""
    made = comparing.but_unset(trial.declaration, comparing.Judged({}, right.plain, {name: value}), name).made[name]
    return comparing.in_order(trial.declaration, name, made)


def repeated(trial: Trial, tensors: dict[str, torch.Tensor], right: oracle.Reference) -> Finding | None:
    """Returns that two runs on the same inputs gave other bits, where that is not declared, or None."""
    for name in right.plain:
        if f"b.{name}" not in tensors or comparing.is_ignored(trial.declaration, name):
            continue
        pair = [asked(trial, right, name, tensors[f"{label}.{name}"]) for label in "ab"]
        one, other = map(raw_bytes, pair)
        if one.equal(other):
            continue
        trial.differs = True
        if not run_to_run(trial):
            count = int((one != other).any(dim=-1).sum())
            return Finding(
                "nondeterministic", f"two runs on the same inputs differ in {count} of {one.shape[0]} elements"
            )
    return None
