"""The last child of a check: makes the inputs again, computes what is right, and judges what the candidate left. It
never imports kernel code.

Its two documents are `verdict`, which later actions depend on, and `evidence`, which is everything else. It runs
however the candidate ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness import (
    cases,
    comparing,
    failure,
    inputs,
    lint,
    memory,
    naming,
    oracle,
    probes,
    progress,
    random_ops,
    random_trial,
    reach,
    references,
    spans,
    tolerance,
    verdicts,
)
from t2t_harness.prepare import prepared_cases, salt

if TYPE_CHECKING:
    import torch

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


@dataclass
class Finding:
    """What is wrong with one case."""

    class_: str
    message: str
    comparison: tolerance.Comparison | None = None
    record: dict[str, Any] | None = None
    """A FAILURE document that the candidate made, where its traceback is the news."""


@dataclass
class Trial:
    """A check in progress."""

    request: Mapping[str, Any]
    told: progress.Progress
    lint: lint.Lint = field(default_factory=lint.Lint)
    rows: list[dict[str, Any]] = field(default_factory=list)
    previous: dict[tuple[str, str, tuple[int, ...]], torch.Tensor] = field(default_factory=dict)
    first: tuple[str | None, Finding] | None = None
    """The first failing case, by name, and what is wrong with it."""
    given: str | None = None
    """What that case is, in one line: its kind, shapes, strides, dtypes, keyword arguments."""
    smaller: list[str] = field(default_factory=list)
    """The cases that the interpreter had no time for as they are."""
    left_out: list[str] = field(default_factory=list)
    """The probes for which the interpreter's budget was too small."""
    differs: bool = False
    made: set[bool] = field(default_factory=set)
    """Whether launches changed what was returned, of all results of which that is known."""
    computed: set[str] = field(default_factory=set)
    """What torch computed for the wrapper, as the op's `allow` lets it."""
    random: random_trial.Collected = field(default_factory=random_trial.Collected)
    """What the results of a random op show."""

    @property
    def declaration(self) -> Mapping[str, Any]:
        """Returns the op's declaration."""
        op: Mapping[str, Any] = self.request["op"]
        return op

    @property
    def device(self) -> str:
        """Returns the device that the references are computed on: the candidate's."""
        return "cuda" if self.request["lane"] == "cuda" else "cpu"


@spans.told
@memory.let_go
def judge(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reply with the documents `verdict` and `evidence`.

    `prepared` (null where nothing was to prepare) and `candidate` are the scratch folders of the other two children, `end` tells how the candidate's ended.
    """
    try:
        trial = Trial(request, progress.read(Path(request["candidate"]) / "outputs"))
    except progress.Malformed as error:
        trial = Trial(request, progress.Progress())
        trial.first = (None, Finding("no-reply", f"what the kernel's process told of itself cannot be read: {error}"))
        return reply(trial)
    for position, case in enumerate(listed_cases(trial)):
        judge_case(trial, case, position)
    judge_end(trial)
    return reply(trial)


def listed_cases(trial: Trial) -> list[cases.Case]:
    """Returns the prepared cases, and the edges around the constants that the candidate's first launch had."""
    listed = prepared_cases(trial.request, trial.request["prepared"])
    constants = {str(name): int(value) for name, value in trial.told.state["constants"].items()}
    limit = cases.limit_of(trial.request["lane"])
    edges = cases.length_edges(trial.declaration, constants, limit)
    reaching = reach.cases_of(
        trial.declaration, trial.told.state["reach"]["cases"], cases.reach_limit(trial.request["lane"])
    )
    known = list(cases.unique([*listed, *edges, *reaching]))
    return cases.salted([*known, *probes.cases_of(trial.request, known)], salt(trial.request))


def judge_case(trial: Trial, case: cases.Case, position: int) -> None:
    """Adds one row to the evidence, and the case's mutants to the lint."""
    facts = trial.told.facts.get(position)
    if trial.request["lane"] == "interpreter" and facts is not None and "binding" in facts:
        case = cases.as_told(trial.declaration, case, facts["binding"])
        trial.smaller.append(case.name)
    is_running = trial.told.state["running"] == case.name
    if case.is_probe and (facts["status"] == "left-out" if facts is not None else not is_running):
        trial.left_out.append(case.name)
        return
    row = blank_row(case)
    trial.rows.append(row)
    try:
        with spans.work(trial.device):
            given, right = references.of(trial.request, case, trial.device)
    except oracle.Refused as refusal:
        row |= {"verdict": "dropped", "reason": str(refusal)}
        return
    if (misfit := comparing.fault(trial.declaration, case.dtype, given, right.plain)) is not None:
        settle(trial, case, row, unfit(trial, str(misfit), misfit.hint))
        return
    if case.kind == "edge" and (ill := ill_conditioned(trial.declaration, right)) is not None:
        row |= {"verdict": "dropped", "reason": ill}
        return
    if not random_ops.is_random(trial.declaration) and not case.is_probe:
        with spans.work(trial.device):
            lint_case(trial, case, given, right)
    if facts is None:
        absent(trial, case, row)
    elif facts["status"] == "not-judged":
        row |= {"verdict": "not-judged", "reason": facts["reason"]}
    else:
        settle(trial, case, row, find(trial, case, position, row, facts, given, right))
    tell_of(trial, case, given)


def tell_of(trial: Trial, case: cases.Case, given: Mapping[str, torch.Tensor]) -> None:
    """Keeps what the case is, in one line, where it is the first that failed."""
    if trial.given is None and trial.first is not None and trial.first[0] == case.name:
        trial.given = naming.given(case, given, inputs.kwargs_of(trial.declaration, case))


def blank_row(case: cases.Case) -> dict[str, Any]:
    """Returns a row of evidence that says nothing yet."""
    return {
        "name": case.name,
        "kind": case.kind,
        "dtype": case.dtype,
        "binding": case.binding,
        "verdict": "passed",
        **dict.fromkeys(("reason", "class", "rule", "max_abs", "max_rel")),
        "bad": 0,
        "total": 0,
        **dict.fromkeys(("index", "got", "expected", "torch_max_abs")),
        "launches": 0,
        "configs": 0,
    }


def unfit(trial: Trial, message: str, hint: str) -> Finding:
    """Returns the finding that nothing can be judged by the op's declaration."""
    record = failure.failure("unfit-cases", message, root=trial.request["root"], hint=hint)
    return Finding("unfit-cases", message, record=record)


def ill_conditioned(declaration: Mapping[str, Any], right: oracle.Reference) -> str | None:
    """Returns why torch's results are no measure, or None."""
    if right.oracle is None:
        return None
    asked = {name: value for name, value in right.plain.items() if not comparing.is_ignored(declaration, name)}
    reasons = (tolerance.torch_is_ill_conditioned(value, right.oracle[name]) for name, value in asked.items())
    return next((reason for reason in reasons if reason is not None), None)


def absent(trial: Trial, case: cases.Case, row: dict[str, Any]) -> None:
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
    if end.get("signal") is not None:
        words = f"{words}: {signal_name(end['signal'])}"
    error = end.get("error") or {}
    if error:
        words = f"{error.get('type')}: {error.get('message')}"
    printed = error.get("traceback") or end.get("stderr") or ""
    hint = None
    if class_ == "timeout":
        words = f"{words}: {trial.request.get('deadline_s', 0):.0f} s, after {len(trial.told.facts)} cases"
        hint = "set `check: {timeout: …}`, or smaller sizes in `check: {sizes: …}` or `profiles: {cpu: …}`"
    record = failure.failure(class_, words, root=trial.request["root"], printed=printed, hint=hint)
    return Finding(class_, words, record=record)


def signal_name(signal: int | str) -> str:
    """Returns `SIGSEGV` for 11; a name is returned as it is."""
    import signal as signals

    try:
        return signal if isinstance(signal, str) else signals.Signals(signal).name
    except ValueError:
        return f"signal {signal}"


def settle(trial: Trial, case: cases.Case, row: dict[str, Any], finding: Finding | None) -> None:
    """Writes `finding`, or that the case passed, into its row, and keeps the first finding of all."""
    if finding is None:
        return
    row |= {"verdict": "rejected", "class": finding.class_, "reason": finding.message}
    if finding.comparison is not None:
        row |= figures(finding.comparison)
    if trial.first is None:
        trial.first = (case.name, finding)


def figures(found: tolerance.Comparison) -> dict[str, Any]:
    """Returns the figures of a comparison as JSON holds them."""
    named = {
        name: getattr(found, name)
        for name in ("max_abs", "max_rel", "torch_max_abs", "bad", "total", "index", "got", "expected")
    }
    return {name: failure.json_number(value) for name, value in named.items()}


def find(
    trial: Trial,
    case: cases.Case,
    position: int,
    row: dict[str, Any],
    facts: dict[str, Any],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns what is wrong with a case that the candidate ran, or None; figures go into `row`.

    The order of questions is the order in which one cause hides another: an exception, the form of the result, changed
    inputs, who computed it, its values, and whether they repeat.
    """
    if facts["status"] == "exception":
        record = facts["failure"]
        if is_refusal(case, record):
            row |= {"verdict": "dropped", "reason": f"the wrapper refuses it: {record['message']}"}
            return None
        return Finding(record["class"], record["message"], record=record)
    try:
        tensors = load_outputs(Path(trial.request["candidate"]) / "outputs" / f"{position}.safetensors")
        found = find_in(trial, case, row, facts["runs"], tensors, given, right)
        return aliased(facts) if found is None else found
    except (KeyError, IndexError, AttributeError, OSError, ValueError, TypeError, RuntimeError) as error:
        return Finding("no-reply", f"the case left no readable result: {failure.describe(error)}")


def is_refusal(case: cases.Case, record: Mapping[str, Any]) -> bool:
    """Tells whether a wrapper that was given an argument at another value than the declared one says that it does not take it: it may, if it says so."""
    kind = str(record["message"]).partition(":")[0]
    return case.kwargs is not None and case.is_probe and kind in REFUSALS


REFUSALS = ("NotImplementedError", "ValueError", "TypeError", "AssertionError")
"""What a wrapper raises where it does not take an argument."""


def aliased(facts: Mapping[str, Any]) -> Finding | None:
    """Returns that the second run's result lies in memory of the first run's, which was still held, or None."""
    if not facts.get("aliased"):
        return None
    words = "a second call returned memory of the first call's result, which its caller still held"
    return Finding("aliased", words)


def find_in(
    trial: Trial,
    case: cases.Case,
    row: dict[str, Any],
    runs: Mapping[str, dict[str, Any]],
    tensors: dict[str, torch.Tensor],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns what is wrong with the `runs` of a case, whose results are `tensors`, or None; figures go into `row`."""
    row |= {
        "launches": runs["a"]["launches"],
        "configs": len({one for run in runs.values() for one in run["configs"]}),
    }
    asked = [one for run in runs.values() for one in run["outputs"].values() if 0 not in (one.get("shape") or [0])]
    trial.made |= {bool(one.get("changed", True)) for one in asked if run_launches(runs)}
    trial.computed |= {name for run in runs.values() for name in run.get("declared") or ()}
    launchless = needs_no_launch(given, right)
    questions: list[Callable[[], Finding | None]] = [
        lambda: first_of(form(run, right, trial) for run in runs.values()),
        lambda: first_of(stored_form(tensors, label, right, trial) for label in runs),
        lambda: mutated(trial, tensors, given),
        lambda: first_of(origin(trial.declaration, run, launchless) for run in runs.values()),
        lambda: all_values(trial, case, row, tensors, list(runs), given, right),
        lambda: repeated(trial, tensors, right),
    ]
    with spans.work(trial.device):
        return first_of(question() for question in questions)


def run_launches(runs: Mapping[str, dict[str, Any]]) -> bool:
    """Tells whether a run launched a kernel."""
    return any(run["launches"] > 0 for run in runs.values())


def first_of(found: Any) -> Finding | None:
    """Returns the first of `found` that is not None."""
    return next((one for one in found if one is not None), None)


def load_outputs(path: Path) -> dict[str, torch.Tensor]:
    """Returns the tensors that the candidate stored. Raises OSError or ValueError where it stored none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(str(path))
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def form(run: dict[str, Any], right: oracle.Reference, trial: Trial) -> Finding | None:
    """Returns what is wrong with the type, number, shape, dtype or device of the outputs of one run, or None."""
    expected = {name: value for name, value in right.plain.items() if name.isdecimal()}
    outputs = run["outputs"]
    if run["several"] != right.several or len(outputs) != len(expected):
        got = f"a tuple of {len(outputs)}" if run["several"] else "one value"
        wanted = f"a tuple of {len(expected)}" if right.several else "one tensor"
        return Finding("type", f"returns {got}, torch returns {wanted}")
    for name, value in expected.items():
        if comparing.is_ignored(trial.declaration, name):
            continue
        made = outputs[name]
        called = result_name(trial, right, name)
        what = f"{called}: " if called else ""
        if not made["plain"]:
            return Finding("type", f"{what}returns `{made['type']}`, torch returns `torch.Tensor`")
        if made["shape"] != list(value.shape):
            return Finding("shape", f"{what}returns shape {made['shape']}, torch returns {list(value.shape)}")
        dtype = str(value.dtype).removeprefix("torch.")
        if made["dtype"] != dtype:
            return Finding("dtype", f"{what}returns {made['dtype']}, torch returns {dtype}")
        if made["device"] != trial.device:
            on = f"a tensor on `{made['device']}`, torch returns one on `{trial.device}`"
            return Finding("type", f"{what}returns {on}")
    return None


def stored_form(tensors: dict[str, torch.Tensor], label: str, right: oracle.Reference, trial: Trial) -> Finding | None:
    """Returns what is wrong with the shapes and dtypes of what was really stored in the run `label`, or None.

    Complex results are stored as pairs, and made complex here. What the candidate says of itself is not relied on.
    """
    import torch

    for name, value in right.plain.items():
        if (name.startswith("after.") and label != "a") or comparing.is_ignored(trial.declaration, name):
            continue
        stored = tensors[f"{label}.{name}"].to(trial.device)
        if value.dtype.is_complex:
            stored = torch.view_as_complex(stored)
        tensors[f"{label}.{name}"] = stored
        called = result_name(trial, right, name)
        what = f" for {called}" if called else ""
        if stored.shape != value.shape:
            return Finding("shape", f"returns shape {list(stored.shape)}, torch returns {list(value.shape)}{what}")
        if stored.dtype != value.dtype:
            return Finding("dtype", f"returns {stored.dtype}, torch returns {value.dtype}{what}")
    return None


def mutated(trial: Trial, tensors: dict[str, torch.Tensor], given: Mapping[str, torch.Tensor]) -> Finding | None:
    """Returns that an input which the op does not declare as changed has other bits than before, or None."""
    for name, before in given.items():
        if name in trial.declaration["mutates"]:
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


def needs_no_launch(given: Mapping[str, torch.Tensor], right: oracle.Reference) -> bool:
    """Tells whether the right results are the same everywhere and an input is empty: the mean of nothing is NaN, and its sum is 0, whatever a kernel does."""
    outputs = [value for name, value in right.plain.items() if name.isdecimal() and value.numel() > 0]
    return any(value.numel() == 0 for value in given.values()) and all(is_uniform(value) for value in outputs)


def is_uniform(value: torch.Tensor) -> bool:
    """Tells whether all elements of `value`, of which there are some, are equal; NaN is equal to NaN here."""
    first = value.reshape(-1)[0]
    return bool(((value == first) | ((value != value) & (first != first))).all())


def origin(declaration: Mapping[str, Any], run: dict[str, Any], launchless: bool = False) -> Finding | None:
    """Returns that something other than a launched kernel made a result of one run, or None. An empty result needs no
    launch, and none does where the case is `launchless`."""
    computed = run["computed"]
    if computed:
        named = ", ".join(f"aten.{name}" for name in sorted(computed))
        return Finding("torch-fallback", f"torch computes for the wrapper: {named}")
    asked = [output for name, output in run["outputs"].items() if not comparing.is_ignored(declaration, name)]
    made = [output for output in asked if 0 not in output["shape"] and not launchless]
    if made and run["launches"] == 0:
        return Finding("no-kernel-launched", "no kernel was launched")
    if any(not output["launched"] for output in made):
        return Finding("torch-fallback", "a result lies in memory that no launched kernel was given")
    if any(output.get("by_hand") for output in made):
        return Finding("torch-fallback", "a result was written after its last launch, by something else than a launch")
    return None


def all_values(
    trial: Trial,
    case: cases.Case,
    row: dict[str, Any],
    tensors: dict[str, torch.Tensor],
    labels: list[str],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns which result of any run is wrong, or None."""
    if not random_ops.is_random(trial.declaration):
        return first_of(values(trial, case, row, tensors, label, given, right) for label in labels)
    message = random_trial.wrong(trial.random, trial.request, case, tensors, labels, given, trial.device)
    row |= {"rule": "random", "total": right.plain["0"].numel()}
    return None if message is None else Finding("mismatch", message)


def values(
    trial: Trial,
    case: cases.Case,
    row: dict[str, Any],
    tensors: dict[str, torch.Tensor],
    label: str,
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> Finding | None:
    """Returns which result of the run `label` is wrong, or None. The largest errors of all runs stay in `row`."""
    made = {name: tensors[f"{label}.{name}"] for name in right.plain if f"{label}.{name}" in tensors}
    judged = comparing.Judged(given, right.plain, made)
    slack = oracle.slack(trial.declaration, case, given, right, trial.device) if case.values in SLACK else None
    for name in right.plain:
        is_after = name.startswith("after.")
        if comparing.is_ignored(trial.declaration, name) or (label != "a" and is_after):
            continue
        if label != "a" and is_first_again(tensors, label, name) and not is_of_output(trial, name):
            continue
        found = compared(trial, case, name, judged, right, slack)
        if row["rule"] is None or found.max_abs > (row["max_abs"] or 0.0):
            row |= figures(found)
        if row["rule"] != "oracle":
            row["rule"] = found.rule
        if not found.passed:
            row["rule"] = None
            where = "" if label in ("a", "b") else f" (configuration {label.removeprefix('c')})"
            called = result_name(trial, right, name)
            what = f"{called}: " if called else ""
            return Finding(str(found.class_), f"{what}{found.message}{where}", comparison=found)
    return None


SLACK = ("offset", "cancelling")
"""Values at which results depend on the last bits of the inputs: what that is worth is allowed."""


def result_name(trial: Trial, right: oracle.Reference, name: str) -> str:
    """Returns what a result is called: as ops.yaml or torch names it; nothing for the only output."""
    names = {str(position): own for position, own in enumerate(right.names)}
    return naming.result(name, right.several, names | naming.declared_outputs(trial.declaration))


def is_of_output(trial: Trial, name: str) -> bool:
    """Tells whether a result is indices of another one, whose bits may differ where its own do not."""
    how = comparing.output(trial.declaration, name)
    return bool(how["compare"] == "indices")


def is_first_again(tensors: Mapping[str, torch.Tensor], label: str, name: str) -> bool:
    """Tells whether a result of the run `label` has the very bits of the first run's, which were compared before."""
    return raw_bytes(tensors[f"{label}.{name}"]).equal(raw_bytes(tensors[f"a.{name}"]))


def compared(
    trial: Trial,
    case: cases.Case,
    name: str,
    judged: comparing.Judged,
    right: oracle.Reference,
    slack: Mapping[str, torch.Tensor] | None = None,
) -> tolerance.Comparison:
    """Returns the comparison of one result, as declared, under the tolerance of the case's dtype; `slack` is what the last bits of the inputs are worth."""
    exact = trial.declaration["precision"] == "ieee" or case.dtype != "float32"
    wide = None if right.oracle is None else right.oracle[name]
    whole = exact and case.values == "declared"
    loose = None if slack is None else slack.get(name)
    return comparing.compare(trial.declaration, case.dtype, name, judged, wide, whole=whole, slack=loose)


def repeated(trial: Trial, tensors: dict[str, torch.Tensor], right: oracle.Reference) -> Finding | None:
    """Returns that two runs on the same inputs gave other bits, where that is not declared, or None."""
    for name in right.plain:
        if name.startswith("after.") or f"b.{name}" not in tensors or comparing.is_ignored(trial.declaration, name):
            continue
        pair = [comparing.in_order(trial.declaration, name, tensors[f"{label}.{name}"]) for label in "ab"]
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


def run_to_run(trial: Trial) -> bool:
    """Tells whether the op or the variant declares that runs may differ."""
    return not (trial.declaration["deterministic"] and trial.request["variant"].get("deterministic", True))


def lint_case(trial: Trial, case: cases.Case, given: Mapping[str, torch.Tensor], right: oracle.Reference) -> None:
    """Shows the case the mutants of its right results."""
    for name, expected in right.plain.items():
        if comparing.is_ignored(trial.declaration, name):
            continue
        is_beyond = beyond_tf32(trial, case, name)
        left_out = (() if is_beyond else ("tf32",)) + (("zeros",) if name in right.unused else ())
        names = tuple(mutant for mutant in lint.MUTANTS if mutant not in left_out)

        def judged(wrong: torch.Tensor, name: str = name) -> comparing.Judged:
            return comparing.Judged(given, right.plain, {**right.plain, name: wrong})

        def rejects(mutant: str, wrong: torch.Tensor, name: str = name) -> bool:
            known = right.rejected.get((name, mutant))
            if known is None:
                known = not compared(trial, case, name, judged(wrong, name), right).passed
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
    if trial.first is None and random_ops.is_random(trial.declaration):
        wrong, accepted = trial.random.conclude()
        hint = "check larger sizes or more seeds: the tests need more samples"
        if wrong is not None:
            trial.first = (None, Finding("mismatch", wrong))
        elif accepted:
            said = f"the op's cases accept wrong results: {', '.join(accepted)}"
            trial.first = (None, unfit(trial, said, hint))


def reply(trial: Trial) -> dict[str, Any]:
    """Returns the reply of a finished trial."""
    record = failure_of(trial)
    why = None if record is not None else verdicts.not_judged(lasting(trial), trial.declaration, unloaded(trial))
    outcome = "rejected" if record is not None else "passed" if why is None else "not-judged"
    class_ = None if record is None else record["class"]
    documents = {
        "verdict": {
            "verdict": outcome,
            "class": class_,
            "reason": why,
            "cases": {row["name"]: row["verdict"] for row in lasting(trial)},
            "not_judged": verdicts.unjudged_dtypes(lasting(trial)),
            "missed": missed(trial),
            "allowed": sorted(trial.computed),
        },
        "evidence": evidence(trial, record),
    }
    cited = failure.cites(record)
    return {"outcome": outcome, "class": class_, "reason": why, "cites": cited, "documents": documents, "files": {}}


def lasting(trial: Trial) -> list[dict[str, Any]]:
    """Returns the rows without those of drawn shapes that were not rejected: those may be left out in one build and not in another, and later actions depend on the verdict."""
    return [row for row in trial.rows if row["verdict"] == "rejected" or not row["name"].startswith("edge/drawn-")]


def missed(trial: Trial) -> list[dict[str, Any]]:
    """Returns what is launched at measured sizes and in no case that was judged: `size`, `kernel`, `constants`, `reason`."""
    unjudged = [
        reach.missed(row["name"].split("/")[1].split("[")[0], None, str(row["reason"]))
        for row in trial.rows
        if row["name"].startswith("reach/") and row["verdict"] in ("dropped", "not-judged")
    ]
    return [*trial.told.state["reach"]["missed"], *unjudged]


def unloaded(trial: Trial) -> str | None:
    """Returns why the candidate did not even load the kernel, where that is not the kernel's fault, else None."""
    said = (trial.told.state["load"] or {}).get("not_judged")
    return None if said is None else str(said)


def failure_of(trial: Trial) -> dict[str, Any] | None:
    """Returns the FAILURE document of the trial, or None."""
    root = trial.request["root"]
    if trial.first is None:
        unfit = trial.lint.unfit()
        if not unfit:
            return None
        message = f"the op's cases accept wrong results: {', '.join(unfit)}"
        hint = "declare other sizes, a tighter tolerance or another `init`, or add a `cases.py`"
        return failure.failure("unfit-cases", message, root=root, hint=hint)
    name, finding = trial.first
    if finding.record is not None:
        return {**finding.record, "case": name or finding.record["case"], "given": trial.given}
    shown = {} if finding.comparison is None else figures(finding.comparison)
    shown.pop("torch_max_abs", None)
    return failure.failure(finding.class_, finding.message, root=root, case=name, given=trial.given, **shown)


def evidence(trial: Trial, record: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the document `evidence`."""
    end = trial.request["end"]
    judged = [row for row in trial.rows if isinstance(row["max_abs"], float)]
    worst = max(
        judged, key=lambda row: row["max_rel"] if isinstance(row["max_rel"], float) else float("inf"), default=None
    )
    repeat = (
        "differs"
        if trial.differs and not run_to_run(trial)
        else "declared run-to-run"
        if run_to_run(trial)
        else "identical"
    )
    return {
        "cases": trial.rows,
        "tolerances": {
            dtype: list(trial.declaration["tolerances"].get(dtype, [])) for dtype in trial.declaration["dtypes"]
        },
        "lint": trial.lint.document(),
        "unfit": trial.lint.unfit(),
        "repeat": repeat,
        "random": trial.random.document,
        "salt": salt(trial.request),
        "left_out": trial.left_out,
        "constants": trial.told.state["constants"],
        "triton_cache": trial.told.state["triton_cache"],
        "configurations": trial.told.state["configurations"],
        "worst": None
        if worst is None
        else {"case": worst["name"], "max_abs": worst["max_abs"], "max_rel": worst["max_rel"]},
        "notes": [*declared_notes(trial), *notes(end)],
        "failure": record,
        "output": {name: end.get(name) or "" for name in ("stdout", "stderr")}
        | {"truncated": bool(end.get("truncated"))},
    }


def declared_notes(trial: Trial) -> list[str]:
    """Returns remarks on what ops.yaml does not ask of the kernel."""
    off = [f"{name} ({reason})" if reason else name for name, reason in cases.edges_off(trial.declaration).items()]
    said = [f"edges not asked for: {', '.join(off)}"] if off else []
    if trial.smaller:
        said.append(f"made smaller, since the deadline left no time for more: {', '.join(trial.smaller)}")
    refused = [row["name"] for row in trial.rows if str(row["reason"]).startswith("the wrapper refuses it")]
    if refused:
        said.append(f"the wrapper refuses other arguments than the declared ones: {', '.join(refused)}")
    if trial.left_out:
        count = len(trial.left_out)
        said.append(f"left out by the interpreter's budget: {count} probe{'' if count == 1 else 's'}")
    allow = trial.declaration.get("allow") or []
    if allow:
        used = ", ".join(sorted(trial.computed)) or "none of it"
        said.append(f"torch may compute {', '.join(allow)} for it; it computed {used}")
    return said


def notes(end: Mapping[str, Any]) -> list[str]:
    """Returns remarks on how the candidate ended that do not change the verdict."""
    left = end.get("left_behind") or 0
    count = left if isinstance(left, int) else len(left)
    return [f"left behind: {count} process{'es' if count > 1 else ''}, killed"] if count else []
