"""The judgments of a check whose candidate still runs, kept until it has ended, in a process that stays for the next request.

They count only if, at the end, the cases and their facts are those that the finished candidate has reported.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from t2t_harness.cases.cases import Case
from t2t_harness.judging.progress import Progress
from t2t_harness.judging.trial import Trial

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CandidateEnd, FollowRequest, JudgeRequest
    from t2t_harness.boundary.documents import Progress as State
    from t2t_harness.judging.told import Facts

OVER = "over"
"""The file in the scratch folder of a request to follow that says how the candidate has ended, as JSON; null where it runs again."""

LOOK_S = 0.001
"""The pause between two looks at the candidate's progress."""

RUNS = cast("CandidateEnd", {"kind": "runs"})
"""The end of a candidate that still runs: a value that t2t never sends."""


@dataclass
class Begun:
    """A trial that was begun."""

    attempt: int
    """The candidate's identity."""
    trial: Trial
    cases: list[Case] = field(default_factory=list)
    """Those that were judged, in order."""
    facts: list[Facts] = field(default_factory=list)
    """The candidate's progress for each."""
    listed: list[Case] = field(default_factory=list)
    """All cases, as they were listed last."""
    by: dict[str, object] | None = None
    """What they were listed by."""

    def add(self, case: Case, facts: Facts) -> None:
        """Notes a case that is judged next."""
        self.cases.append(case)
        self.facts.append(facts)

    def listed_by(self, state: State, list_: Callable[[Trial], list[Case]]) -> list[Case]:
        """Returns the cases of a candidate of this state, which `list_` lists where it is another than before in what decides them."""
        by: dict[str, object] = {
            "constants": state["constants"],
            "least": state["configurations"].get("least"),
            "reach": state["reach"]["cases"],
        }
        if by != self.by:
            self.listed, self.by = list_(self.trial), by
        return self.listed

    def is_of(self, told: Progress, listed: Sequence[Case]) -> bool:
        """Tells whether the judged cases are the first ones of those to be judged."""
        count = len(self.cases)
        same = [told.facts.get(position) for position in range(count)] == self.facts
        return same and list(listed[:count]) == self.cases

    def gone_on(self, request: JudgeRequest, told: Progress) -> Begun:
        """Returns this, its trial now of the request to judge it, and of all that was told."""
        self.trial.request, self.trial.told = request, told
        return self


_begun: list[Begun] = []
"""At most one."""


def begin(request: FollowRequest, trial: Trial) -> Begun:
    """Returns a trial that begins; one that was begun before is forgotten."""
    _begun[:] = [Begun(request["attempt"], trial)]
    return _begun[0]


def begun(request: JudgeRequest) -> Begun | None:
    """Returns the trial that this process has begun of the request's candidate, or None, and forgets it."""
    found = next((one for one in _begun if one.attempt == request.get("attempt")), None)
    _begun.clear()
    return found


def waited_for(over: Path) -> CandidateEnd | None:
    """Returns how the candidate has ended, as `over` says once it is there; None where it runs again."""
    while not over.exists():
        time.sleep(LOOK_S)
    return cast("CandidateEnd | None", json.loads(over.read_text(encoding="utf-8")))
