"""What the timed calls of each size returned, a few of them, and how long they took: kept by the bench, and judged and made into figures afterwards by a child
that never imports kernel code.

Every timed call goes through the same object. Which results are kept is decided after they were returned, so that a kernel that is right when checked and cheaper
when timed is found. A kept result is not copied until all calls of its size are over: one that a later call overwrites is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from t2t_harness.cases import cases, seeds
from t2t_harness.counting import counting
from t2t_harness.faults import failure, memory
from t2t_harness.judging import comparing, form, kept, oracle, origin, random_result
from t2t_harness.judging.finding import Finding
from t2t_harness.measuring import spans, timing
from t2t_harness.measuring.chances import Chances
from t2t_harness.op import results
from t2t_harness.phases import compared, measured, passes

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import (
        Bench,
        Documents,
        Failure,
        JudgedSize,
        Reply,
        SampleRequest,
    )
    from t2t_harness.judging.told import Run
    from t2t_harness.measuring.clock import Call

FACTS = "bench_samples.json"

NOT_JUDGED: Final = "not-judged"

FIRST_CALLS = 12
"""Among so many untimed calls of a run is the one whose kernels are counted, if it has as many."""

KEPT = 2
"""Results of timed calls that are kept of each size."""


class Sample(TypedDict):
    """What is kept of one timed call beside its results."""

    state: dict[str, int]
    """The inputs that it was called with, as `timing.State` has them."""
    strange: list[str]
    """The types of what it returned that is no tensor."""


class Sampled(TypedDict):
    """What is kept of a size. Nothing in it is to be relied on: kernel code may write there."""

    case: dict[str, object]
    """As `Case.facts` has it."""
    size: str
    untimed: list[Run]
    """What was seen of the untimed calls."""
    samples: list[Sample]
    beside: list[str]
    """Kernels that calls like the timed ones launched and the untimed ones did not."""


@dataclass
class KeptResult:
    """The result of one timed call."""

    result: object
    state: timing.State
    """The inputs that it was called with."""
    after: dict[str, torch.Tensor]
    """What it left of the inputs that the op changes."""


class Timed:
    """A call that is timed, the same object in all runs of a size; keeps `KEPT` of the results, each with equal chance."""

    def __init__(self, call: Call, buffers: timing.Buffers, lane: str = "interpreter") -> None:
        self.call, self.buffers, self.lane = call, buffers, lane
        self.last: object = None
        self.is_timed = False
        self.calls = 0
        self.kept: list[KeptResult] = []
        self.chances = Chances()
        self.symbols: set[str] = set()
        self.until_counted = -1

    def __call__(self) -> object:
        """Returns what the call returns. In one of the untimed calls of a run the kernels that it launches are counted, with nothing around it that it could know that by."""
        if self.until_counted >= 0 and not self.is_timed:
            self.until_counted -= 1
            if self.until_counted < 0:
                return self.counted()
        self.last = result = self.call()
        return result

    def counted(self) -> object:
        """Returns what the call returns, and keeps the names of the kernels that it launched."""
        with counting.counting(self.lane) as found:
            self.last = result = self.call()
        self.symbols |= found.symbols
        return result

    def begin(self, run: int) -> None:
        """To be called before a run: in the first one the first call is counted, in others any of the first few."""
        self.chances.draw()
        self.until_counted = self.chances.below(FIRST_CALLS) if run else 0

    def before(self) -> None:
        """Decides about the result of the timed call before, and makes the inputs of the next one."""
        self.settle()
        self.buffers.freshen()
        self.is_timed = True

    def settle(self) -> None:
        """Keeps the result of the last timed call, if there was one and chance has it, and lets go of it otherwise."""
        result, self.last = self.last, None
        if not self.is_timed:
            return
        self.is_timed = False
        self.calls += 1
        place = len(self.kept) if len(self.kept) < KEPT else self.chances.below(self.calls)
        if place < KEPT:
            after = {name: self.buffers.given[name].clone() for name in self.buffers.mutated}
            self.kept[place : place + 1] = [KeptResult(self.own(result), self.buffers.state(), after)]

    def own(self, result: object) -> object:
        """Returns the result, with what lies in memory that the next call changes, of an input or of the kernel's class where torch's result lies in its own, copied."""
        import torch

        memory = (*self.buffers.memory(), *self.buffers.own)
        homes = {value.untyped_storage().data_ptr() for value in memory}

        def held(value: object) -> object:
            if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() in homes:
                return value.clone()
            return value

        whole = results.apart(result, self.buffers.ignored)
        return tuple(map(held, whole.values)) if whole.several else held(result)

    def forget(self) -> None:
        """Lets go of the last result."""
        self.last, self.is_timed = None, False


def keep(
    folder: Path,
    case: cases.Case,
    size: str,
    seen: Sequence[Run],
    found: list[KeptResult],
    beside: set[str],
    named: Callable[[object], dict[str, object]] = passes.by_position,
    ignored: Container[int] = (),
) -> None:
    """Writes the results that were kept of a size, by the names that `named` has for them, with the case and the inputs they belong to, below `folder`, in the place of what was kept of it before. `seen` tells of the
    untimed calls at that size, `beside` names kernels that calls like the timed ones launched and these did not. Of what is no tensor its type is kept, unless it is in the place of an `ignored` output."""
    import torch

    told: list[Sample] = []
    for number, one in enumerate(found):
        outputs = named(one.result)
        asked = [value for name, value in outputs.items() if not (name.isdecimal() and int(name) in ignored)]
        strange = [type(value).__qualname__ for value in asked if not isinstance(value, torch.Tensor)]
        if not strange:
            results = kept.Writer(folder / file_of(size, number))
            for name, value in outputs.items():
                if isinstance(value, torch.Tensor):
                    results.add(name, value)
            for name, value in one.after.items():
                results.add(f"after.{name}", value)
            results.close()
        told.append({"state": asdict(one.state), "strange": strange})
    facts: Sampled = {
        "case": case.facts(),
        "size": size,
        "untimed": list(seen),
        "samples": told,
        "beside": sorted(beside),
    }
    others = [known for known in kept_facts(folder) if known["size"] != size]
    (folder / FACTS).write_text(json.dumps([*others, facts]), encoding="utf-8")


def file_of(size: str, number: int) -> str:
    """Returns the name of the file with a sample of a size."""
    return f"bench_sample_{size}_{number}.safetensors"


def kept_facts(folder: Path) -> list[Sampled]:
    """Returns what is known of the samples below `folder`, in the order in which they were kept."""
    path = folder / FACTS
    if not path.is_file():
        return []
    found: list[Sampled] = json.loads(path.read_text(encoding="utf-8"))
    return found


def keep_times(folder: Path, times: Mapping[str, Mapping[str, timing.Raw]]) -> None:
    """Writes the raw times, size → subject → as `timing.Runs.facts` has them, below `folder`."""
    (folder / measured.TIMES).write_text(json.dumps(times), encoding="utf-8")


@spans.told
@memory.let_go
def judge_sample(request: SampleRequest) -> Reply:
    """Returns the reply with the document `bench`, its figures and `judged` filled in; rejected, with a `failure` too, where an output is wrong, or a size has none.

    `sample` is the scratch folder of the bench, `bench` its document. Figures are made of the raw times that lie there.
    """
    folder = Path(request["sample"])
    document = request["bench"].copy()
    judged: dict[str, JudgedSize] = {size: {"run": None, "verdict": NOT_JUDGED} for size in timing.timed_cases(request)}
    document["judged"] = judged
    first = None
    try:
        measured.figures(request, folder, document)
        for facts in kept_facts(folder):
            size, case = str(facts["size"]), cases.from_facts(facts["case"])
            if not facts["samples"] or not facts["untimed"]:
                raise measured.Unusable(f"what was kept of size `{size}` holds no result")
            found = wrong(request, case, facts)
            run = next((one["state"]["run"] for one in facts["samples"]), None)
            judged[size] = {"run": run, "verdict": "rejected" if found else "passed"}
            if found is not None and first is None:
                first = failure.failure(found.class_, found.message, root=request["root"], case=case.name)
        missing = [size for size, told in judged.items() if told["verdict"] == NOT_JUDGED]
        if missing and first is None:
            raise measured.Unusable(f"no timed call left a result at size `{missing[0]}`")
    except oracle.Refused as refused:
        words = f"torch refuses the inputs of a timed call, which an `init` draws: {failure.describe(refused)}"
        first = failure.failure("exception", words, root=request["root"])
    except (
        measured.Unusable,
        KeyError,
        ValueError,
        TypeError,
        OSError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as error:
        words = f"what the timed process left cannot be judged: {failure.describe(error)}"
        first = failure.failure("no-reply", words, root=request["root"])
    return reply(document, first)


def reply(document: Bench, record: Failure | None) -> Reply:
    """Returns the reply with `document`, rejected by `record` if there is one."""
    document.pop("disturbed", None)
    documents: Documents = {"bench": document} if record is None else {"bench": document, "failure": record}
    return {
        "outcome": "passed" if record is None else "rejected",
        "class": None if record is None else record["class"],
        "cites": failure.cites(record),
        "documents": documents,
        "files": {},
    }


def wrong(request: SampleRequest, case: cases.Case, facts: Sampled) -> Finding | None:
    """Returns what is wrong with a size: with the untimed call by a check's rules, or with one of the sampled results; or None. The inputs of each call are made again here."""
    declaration, device, size = request["op"], timing.device_of(request["lane"]), facts["size"]
    which = passes.of(request)
    asked = form.Alone(declaration, device)
    if beside := facts["beside"]:
        names = ", ".join(str(name)[:80] for name in beside[:3])
        words = f"calls like the timed ones launch kernels that no watched call did: {names}"
        return told(Finding("torch-fallback", words), size)
    for number, one in enumerate(facts["samples"]):
        if one["strange"]:
            names = ", ".join(map(str, one["strange"]))
            return told(Finding("type", f"returns {names}, no tensor"), size)
        state = timing.State(**one["state"])
        flows = None if which == passes.FORWARD else passes.flowing(state)
        with timing.precision(declaration), spans.work(device):
            given = timing.run_inputs(declaration, case, passes.inputs_state(which, state), device)
            right = oracle.reference(declaration, case, given, device, flows)
        for seen in facts["untimed"] if number == 0 else ():
            found = form.form(seen, right, asked) or origin.origin(declaration, seen)
            if found is not None:
                return told(found, size, "an untimed call")
        with spans.work(device):
            message = wrong_sample(request, case, Path(request["sample"]) / file_of(size, number), given, right, flows)
        if message is not None:
            return told(Finding("mismatch", f"returned something else than torch: {message}"), size)
    return None


def told(found: Finding, size: str, who: str = "a timed call") -> Finding:
    """Returns the finding with the call that it is about."""
    return Finding(found.class_, f"{who} at size `{size}`: {found.message}")


def wrong_sample(
    request: SampleRequest,
    case: cases.Case,
    path: Path,
    given: dict[str, torch.Tensor],
    right: oracle.Reference,
    flows: oracle.Flows | None = None,
) -> str | None:
    """Returns what is wrong with the results in the file `path`, or None: of the passes that were timed, for the gradients that `flows` draws."""
    import torch
    from safetensors.torch import load_file

    declaration = request["op"]
    stored = load_file(str(path), device=timing.device_of(request["lane"]))
    which = passes.of(request)
    expected = [name for name in right.plain if compared.is_timed(which, declaration, name, given)]
    for name in expected:
        if comparing.is_ignored(declaration, name):
            # It may be anything, as None.
            stored.setdefault(name, right.plain[name])
    for name in right.unused & set(expected):
        # It may have none, as torch has none.
        stored.setdefault(name, torch.zeros_like(right.plain[name]))
    if sorted(stored) != sorted(expected):
        return f"{len(stored)} results, {len(expected)} expected"
    if seeds.is_random(declaration):
        return random_result.wrong(request, case, stored["0"], given)
    for name in expected:
        message = compared.wrong(declaration, case, name, stored, given, right, flows)
        if message is not None:
            gradient = name.removeprefix("grad.")
            return message if gradient == name else f"gradient of `{gradient}`: {message}"
    return None
