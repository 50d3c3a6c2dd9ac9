"""One result of a timed call of each size, kept by the bench and judged afterwards by a child that never imports kernel code.

The timed process picks the call at random, so that a kernel that is right when checked and cheaper when timed is found.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness import cases, comparing, failure, kept, memory, oracle, random_ops, random_trial, spans, timing

if TYPE_CHECKING:
    import torch

    from t2t_harness.clock import Call

FACTS = "bench_samples.json"

NOT_JUDGED = "not-judged"


class Sampled:
    """A call that keeps the result of one of its calls, each with equal chance."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.calls = 0
        self.kept: Any = None
        self.random = random.SystemRandom().random

    def __call__(self) -> Any:
        """Returns what the call returns."""
        result = self.call()
        self.calls += 1
        if self.random() * self.calls < 1:
            self.kept = result
        return result


def keep(folder: Path, case: cases.Case, size: str, run: int, result: Any) -> None:
    """Writes the outputs in `result`, and the case, size and run they belong to, below `folder`. Of what is no tensor its type is kept."""
    import torch

    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    strange = [type(value).__qualname__ for value in outputs if not isinstance(value, torch.Tensor)]
    if not strange:
        results = kept.Writer(folder / file_of(size))
        for position, value in enumerate(outputs):
            results.add(str(position), value)
        results.close()
    facts = {"case": case.facts(), "size": size, "run": run, "strange": strange}
    (folder / FACTS).write_text(json.dumps([*kept_facts(folder), facts]), encoding="utf-8")


def file_of(size: str) -> str:
    """Returns the name of the file with the sample of a size."""
    return f"bench_sample_{size}.safetensors"


def kept_facts(folder: Path) -> list[dict[str, Any]]:
    """Returns what is known of the samples below `folder`, in the order in which they were kept."""
    path = folder / FACTS
    if not path.is_file():
        return []
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


@spans.told
@memory.let_go
def judge_sample(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reply with the document `bench`, its `judged` filled in; rejected, with a `failure` too, where an output is wrong.

    `sample` is the scratch folder of the bench, `bench` its document. The verdict of a size without a sample is `not-judged`.
    """
    document = dict(request["bench"])
    document["judged"] = {size: dict(facts) for size, facts in (document.get("judged") or {}).items()}
    first = None
    for facts in kept_facts(Path(request["sample"])):
        case = cases.from_facts(facts["case"])
        message = wrong(request, case, facts)
        document["judged"][facts["size"]] = {"run": facts["run"], "verdict": "rejected" if message else "passed"}
        if message is not None and first is None:
            words = f"a timed call at size `{facts['size']}` returned something else than torch: {message}"
            first = failure.failure("mismatch", words, root=request["root"], case=case.name)
    return reply(document, first)


def reply(document: dict[str, Any], record: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the reply with `document`, rejected by `record` if there is one."""
    documents = {"bench": document} if record is None else {"bench": document, "failure": record}
    return {
        "outcome": "passed" if record is None else "rejected",
        "class": None if record is None else record["class"],
        "cites": failure.cites(record),
        "documents": documents,
        "files": {},
    }


def wrong(request: Mapping[str, Any], case: cases.Case, facts: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with the sampled outputs, or None. The inputs of the run are made again here."""
    from safetensors.torch import load_file

    if facts["strange"]:
        return f"returns {', '.join(facts['strange'])}, no tensor"

    declaration, device = request["op"], timing.device_of(request["lane"])
    with timing.precision(declaration), spans.work(device):
        given = timing.run_inputs(declaration, case, facts["run"], device)
        right = oracle.reference(declaration, case, given, device)
    stored = load_file(str(Path(request["sample"]) / file_of(facts["size"])), device=device)
    expected = [name for name in right.plain if not name.startswith(("after.", "grad."))]
    if sorted(stored) != sorted(expected):
        return f"{len(stored)} outputs, {len(expected)} expected"
    with spans.work(device):
        if random_ops.is_random(declaration):
            return random_trial.wrong_once(request, case, stored["0"], given)
        found = (compared(declaration, case, name, stored, given, right) for name in expected)
        return next((message for message in found if message is not None), None)


def compared(
    declaration: Mapping[str, Any],
    case: cases.Case,
    name: str,
    stored: dict[str, torch.Tensor],
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
) -> str | None:
    """Returns what is wrong with output `name`, by the rules of a check, or None."""
    import torch

    plain = right.plain[name]
    if comparing.is_ignored(declaration, name):
        return None
    if plain.dtype.is_complex and not stored[name].dtype.is_complex:
        stored[name] = torch.view_as_complex(stored[name])
    out = stored[name]
    if (out.shape, out.dtype) != (plain.shape, plain.dtype):
        return f"{list(out.shape)} of {out.dtype}, {list(plain.shape)} of {plain.dtype} expected"
    is_exact = declaration["precision"] == "ieee" or case.dtype != "float32"
    wide = None if right.oracle is None else right.oracle[name]
    judged = comparing.Judged(given, right.plain, stored)
    return comparing.compare(declaration, case.dtype, name, judged, wide, whole=is_exact).message
