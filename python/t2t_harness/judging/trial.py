"""A check in progress: judges its cases and collects what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.cases import cases
from t2t_harness.faults import failure
from t2t_harness.judging import lint, progress, random_trial
from t2t_harness.judging.finding import Finding

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CaseRow, Declaration, JudgeRequest
    from t2t_harness.judging import tolerance


@dataclass
class Trial:
    """A check in progress."""

    request: JudgeRequest
    told: progress.Progress
    lint: lint.Lint = field(default_factory=lint.Lint)
    rows: list[CaseRow] = field(default_factory=list)
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
    """Whether launches changed the results, as far as that is known."""
    read_outside: dict[str, None] = field(default_factory=dict)
    """What launches read outside of their tensors, in words, in order."""
    strides: dict[str, None] = field(default_factory=dict)
    """Results that are not contiguous where torch's are, in words, in order."""
    conflicts: dict[str, None] = field(default_factory=dict)
    """What programs of a launch did to each other, in words, in order."""
    lacking: dict[str, None] = field(default_factory=dict)
    """Results of the reference's module that the kernel's has none of, by name."""
    computed: set[str] = field(default_factory=set)
    """What torch computed for the wrapper, as the op's `allow` lets it."""
    silent: set[tuple[str, str]] = field(default_factory=set)
    """Rules that had nothing to say of a wrong case, by name, with its keyword arguments in words."""
    random: random_trial.Collected = field(default_factory=random_trial.Collected)
    """What the results of a random op show."""

    @property
    def declaration(self) -> Declaration:
        """Returns the op's declaration."""
        op: Declaration = self.request["op"]
        return op

    @property
    def device(self) -> str:
        """Returns the device that the references are computed on: the candidate's."""
        return "cuda" if self.request["lane"] == "cuda" else "cpu"


def unfit(trial: Trial, message: str, hint: str) -> Finding:
    """Returns the finding that nothing can be judged by the op's declaration."""
    record = failure.failure("unfit-cases", message, root=trial.request["root"], hint=hint)
    return Finding("unfit-cases", message, record=record)


def blank_row(case: cases.Case) -> CaseRow:
    """Returns a row of evidence that says nothing yet."""
    return {
        "name": case.name,
        "kind": case.kind,
        "dtype": case.dtype,
        "binding": case.binding,
        "verdict": "passed",
        "reason": None,
        "class": None,
        "rule": None,
        "max_abs": None,
        "max_rel": None,
        "bad": 0,
        "total": 0,
        "index": None,
        "got": None,
        "expected": None,
        "torch_max_abs": None,
        "launches": 0,
        "configs": 0,
    }


def fill(row: CaseRow, found: tolerance.Comparison) -> None:
    """Writes the figures of a comparison into the row of its case."""
    row |= {
        "max_abs": failure.json_number(found.max_abs),
        "max_rel": failure.json_number(found.max_rel),
        "torch_max_abs": failure.json_number(found.torch_max_abs),
        "bad": found.bad,
        "total": found.total,
        "index": found.index,
        "got": failure.json_number(found.got),
        "expected": failure.json_number(found.expected),
    }


def figures(found: tolerance.Comparison | None) -> failure.Figures:
    """Returns what a failure tells of a comparison; nothing of none."""
    if found is None:
        return {}
    return {
        "max_abs": found.max_abs,
        "max_rel": found.max_rel,
        "bad": found.bad,
        "total": found.total,
        "index": found.index,
        "got": found.got,
        "expected": found.expected,
    }


def run_to_run(trial: Trial) -> bool:
    """Tells whether the op or the variant declares that runs may differ."""
    return not (trial.declaration["deterministic"] and trial.request["variant"].get("deterministic", True))
