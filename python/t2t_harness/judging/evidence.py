"""The reply of a finished trial, with the documents `verdict` and `evidence`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, cast

from t2t_harness.cases import arguments_untried, cases, eights, probing, reach, reference_code
from t2t_harness.cases.prepared import salt
from t2t_harness.faults import failure
from t2t_harness.judging import verdicts
from t2t_harness.judging.trial import Trial, figures, run_to_run
from t2t_harness.op import result_names

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import (
        CandidateEnd,
        CaseRow,
        CheckVerdict,
        Documents,
        Evidence,
        Failure,
        Missed,
        RandomTests,
        Reply,
    )

MOST_ALIKE = 3
"""So many remarks of one kind are told; of others their number."""


def reply(trial: Trial) -> Reply:
    """Returns the reply of a finished trial."""
    record = failure_of(trial)
    why = None if record is not None else verdicts.not_judged(lasting(trial), trial.declaration, unloaded(trial))
    outcome: CheckVerdict = "rejected" if record is not None else "passed" if why is None else "not-judged"
    class_ = None if record is None else record["class"]
    documents: Documents = {
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


def lasting(trial: Trial) -> list[CaseRow]:
    """Returns the rows without those of drawn shapes that were not rejected: those may be left out in one build and not in another, and later actions depend on the verdict."""
    return [row for row in trial.rows if row["verdict"] == "rejected" or not row["name"].startswith("edge/drawn-")]


def missed(trial: Trial) -> list[Missed]:
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


def failure_of(trial: Trial) -> Failure | None:
    """Returns the `Failure` of the trial, or None."""
    root = trial.request["root"]
    if trial.first is None:
        unaccepted = trial.lint.unfit()
        if not unaccepted:
            return None
        message = f"the op's cases accept wrong results: {', '.join(unaccepted)}"
        hint = "declare other or more `check: {sizes: …}`, more `check: {seeds: …}`, a tighter tolerance (of one output under `outputs`) or another `init`, or add a `cases.py`"
        return failure.failure("unfit-cases", message, root=root, hint=hint)
    name, finding = trial.first
    if finding.record is not None:
        told = finding.record.copy()
        told["case"], told["given"] = name or told["case"], trial.given
        return told
    shown = figures(finding.comparison)
    is_short = finding.class_ == "mismatch" and trial.device != "cpu" and eights.has_some(trial.declaration)
    is_changed = finding.message.startswith("gradient of") and bool(trial.declaration["mutates"]) and is_unmarked(trial)
    helps = f"where it multiplies float8: {SHORT_SUMS}" if is_short else MARKED if is_changed else None
    given = trial.given
    return failure.failure(finding.class_, finding.message, root=root, case=name, given=given, hint=helps, **shown)


def is_unmarked(trial: Trial) -> bool:
    """Tells whether the kernel's file and that of the reference differ in whether they tell autograd of a change: the kernel does not by `mark_dirty`, or the reference changes what it changes where nothing is recorded."""
    code = Path(trial.request["root"], trial.request["variant"]["file"])
    try:
        says = "mark_dirty" in code.read_text(encoding="utf-8")
    except (OSError, ValueError):
        says = False
    return not says or not UNRECORDED.isdisjoint(reference_code.names_called(trial.declaration))


UNRECORDED = frozenset(("no_grad", "inference_mode", "detach"))
"""What changes past autograd, by name."""

MARKED = "a gradient flows into what `mutates` names, too, as it is after the call: an autograd function says with `ctx.mark_dirty` that it changed an input, where torch records the reference's change of it, and not where that is in `torch.no_grad()`"
"""What a wrong gradient of an op that changes its inputs may come of."""

SHORT_SUMS = "tensor cores of sm_90 keep some 14 bits of a sum of such products; add each block's product to a float32 (`total += tl.dot(a, b)`, and not `tl.dot(a, b, total)`), or ask for `max_num_imprecise_acc=32`"
"""What makes a product of float8 on a Hopper device imprecise, and what helps (DeepSeek-V3, 3.3.2)."""


def evidence(trial: Trial, record: Failure | None) -> Evidence:
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
    untried = arguments_untried.untried(trial.request, trial.rows, trial.left_out) if trial.first is None else {}
    return {
        "cases": trial.rows,
        "tolerances": {
            dtype: list(trial.declaration["tolerances"].get(dtype, [])) for dtype in trial.declaration["dtypes"]
        },
        "lint": trial.lint.document(),
        "unfit": trial.lint.unfit(),
        "repeat": repeat,
        "random": cast("RandomTests | None", trial.random.document),
        "salt": salt(trial.request),
        "left_out": trial.left_out,
        "untried": [name for name, reason in untried.items() if reason == arguments_untried.UNKNOWN],
        "constants": {**trial.told.state["constants"]},
        "triton_cache": trial.told.state["triton_cache"],
        "configurations": trial.told.state["configurations"],
        "worst": None
        if worst is None
        else {"case": worst["name"], "max_abs": worst["max_abs"], "max_rel": worst["max_rel"]},
        "notes": [*declared_notes(trial, arguments_untried.told(untried)), *notes(end)],
        "failure": record,
        "output": {
            "stdout": end.get("stdout") or "",
            "stderr": end.get("stderr") or "",
            "truncated": bool(end.get("truncated")),
        },
    }


def declared_notes(trial: Trial, untried: str | None) -> list[str]:
    """Returns remarks on what ops.yaml does not ask of the kernel."""
    off = [f"{name} ({reason})" if reason else name for name, reason in cases.edges_off(trial.declaration).items()]
    said = [f"edges not asked for: {', '.join(off)}"] if off else []
    if trial.smaller:
        said.append(f"made smaller, since there was no time for more: {', '.join(trial.smaller)}")
    refused = [row["name"] for row in trial.rows if str(row["reason"]).startswith("the wrapper refuses it")]
    if refused:
        said.append(f"the wrapper refuses other arguments, or longer dims, than are declared: {', '.join(refused)}")
    left = [row["name"] for row in trial.rows if str(row["reason"]).startswith("not by the kernel")]
    if left:
        said.append(f"torch computes for other arguments than are declared: {', '.join(left)}")
    if trial.left_out:
        count = len(trial.left_out)
        said.append(f"left out by the interpreter's budget: {count} probe{'' if count == 1 else 's'}")
    if trial.read_outside and trial.first is None:
        said.append(f"no result depends on it, but {few(trial.read_outside)}")
    if trial.strides and trial.first is None:
        said.append(f"torch's results are contiguous, these are not: {few(trial.strides)}")
    if trial.conflicts and trial.first is None:
        said.append(f"no result depends on it, but {few(trial.conflicts)}")
    if trial.lacking and trial.first is None:
        listed = ", ".join(result_names.result(name, several=True, names={}) for name in trial.lacking)
        said.append(f"not compared, since the kernel's class has none of that name, shape and first values: {listed}")
    allow = trial.declaration.get("allow") or []
    if allow:
        used = ", ".join(sorted(trial.computed)) or "none of it"
        said.append(f"torch may compute {', '.join(allow)} for it; it computed {used}")
    fixed = probing.held(trial.declaration)
    if fixed and trial.first is None:
        listed = ", ".join(f"{dim} = {length}" for dim, length in fixed.items())
        said.append(f"dims tried at one length alone, which all sizes have: {listed}")
    return said if untried is None else [*said, untried]


def few(words: Collection[str]) -> str:
    """Returns the first remarks of one kind, and how many more there are."""
    more = len(words) - MOST_ALIKE
    return "; ".join([*list(words)[:MOST_ALIKE], *([f"and {more} more of the kind"] if more > 0 else [])])


def notes(end: CandidateEnd) -> list[str]:
    """Returns remarks on how the candidate ended that do not change the verdict."""
    left = end.get("left_behind") or 0
    count = left if isinstance(left, int) else len(left)
    return [f"left behind: {count} process{'es' if count > 1 else ''}, killed"] if count else []
