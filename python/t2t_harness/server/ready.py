"""What warm children do before their request: work that takes time and does not depend on the request.

No kernel code of a workspace runs here, and nothing is drawn from a random state that an action would see. torch and Triton are imported only
inside functions.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import (
        BaselineRequest,
        CandidateRequest,
        Declaration,
        JudgeRequest,
        RehearsalRequest,
    )
    from t2t_harness.judging.told import Facts
    from t2t_harness.sources.entry import Entry

DECLARATION: Declaration = {
    "name": "rehearsal",
    "torch": "torch.softmax",
    "reference": None,
    "inputs": [
        {
            "name": "input",
            "shape": ["M", "N"],
            "dtype": None,
            "init": {"kind": "normal", "mean": 0.0, "std": 1.0},
            "requires_grad": False,
            "layout": "contiguous",
            "optional": False,
            "list": None,
        }
    ],
    "kwargs": {"dim": -1},
    "dtypes": ["float32"],
    "sizes": {},
    "measured": {},
    "check_sizes": {"small": {"M": 2, "N": 16}},
    "seeds": 1,
    "edges": {},
    "fixed": [],
    "tolerances": {"float32": [1e-5, 1e-5]},
    "precision": "ieee",
    "mutates": [],
    "overwrites": [],
    "allow": [],
    "backward": False,
    "broadcast": False,
    "deterministic": True,
    "cases": None,
    "outputs": None,
    "random": None,
}
"""An op for rehearsals, which no workspace declares."""

SEGMENTS = (1 << 16, 1 << 27)
"""Bytes of tensors for which torch's allocator takes a segment each, of those for small ones and of those for larger ones, and keeps it: to ask the driver for memory waits for
every process that starts or ends on the device. All that a check holds at once fits the second, but for few."""

LOOK_S = 0.005
"""How often it is looked whether the device is to be had."""

PROBES = 4
"""One probe of so many is rehearsed: the others run through the same code, and whoever saves twice in a second waits for the one that runs."""

SMALL = 1 << 12
"""The most elements of an input that is made to load what makes inputs."""


def start_device() -> None:
    """Starts CUDA on the one device that this process sees, and loads what every action launches of torch's own, as it makes inputs. Raises what torch
    raises."""
    import torch

    from t2t_harness.cases import cases, inputs
    from t2t_harness.judging import kept

    kept.staging()
    for size in SEGMENTS:
        torch.empty(size, dtype=torch.uint8, device="cuda")
    generator = torch.Generator(device="cuda")
    values = torch.empty(1024, device="cuda").normal_(generator=generator)
    values.copy_(values.cpu().to("cuda", torch.float64))
    for case in cases.fixed_edges(DECLARATION, SMALL):
        for made in inputs.make_inputs(DECLARATION, case, "cuda").values():
            made.cpu()
    torch.cuda.synchronize()
    ask_device()


def ask_device() -> None:
    """Asks the device what Triton asks before the first launch, and starts NVML: the answers are remembered, and each takes tens of milliseconds while other processes start
    there. What fails is left to whoever asks next."""
    from t2t_harness.measuring import nvml, telemetry
    from t2t_harness.server import preload

    with contextlib.suppress(Exception):
        uuid = telemetry.device_uuid()
        if uuid is not None:
            nvml.device(uuid)
    # Where Triton would compile something for it, that is for a place of its own.
    if not preload.has_utilities():
        return
    with contextlib.suppress(Exception):
        from triton.compiler import compiler
        from triton.runtime import driver

        compiler.max_shared_mem(driver.active.get_current_device())
        compiler.make_backend(driver.active.get_current_target()).hash()


def compile_ahead(request: BaselineRequest) -> None:
    """Has torch compile the op of a baseline's `request`, which is still to come, on the device once that is to be had. Ends early where the request is there.

    Raises what torch raises as it starts the device.
    """
    import torch

    from t2t_harness.measuring import quiet
    from t2t_harness.phases import baseline
    from t2t_harness.server import preload

    for _ in preload.compiler():
        if is_awaited():
            return
    torch.set_num_threads(max(int(os.environ.get("OMP_NUM_THREADS", "1")), 1))
    while not Path(request["scratch"], quiet.GO).exists():
        if is_awaited():
            return
        time.sleep(LOOK_S)
    start_device()
    baseline.compile_ahead(request, is_awaited)
    # What torch's compiler made is looked at now, and not before the first measurement.
    gc.collect()
    gc.freeze()


def rehearse(request: RehearsalRequest | None = None) -> None:
    """Does what the children of a check on the interpreter do, with an op and a kernel of its own: what is made, looked up or copied the first time is so
    before a request waits for it. For the check of the `request`, which may come, it draws inputs. Ends early where one does.

    Nothing else stays: no file is written, no thread begun, nothing said, and neither `triton.language` nor `torch.cuda` is other than before. Raises
    RuntimeError where there is a thread.
    """
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings(), contextlib.closing(rehearsed(request)) as parts:
        # A warning that is given here would not be given again.
        warnings.simplefilter("ignore")
        while not is_awaited() and next(parts, None) is not None:
            pass
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("a thread was begun")
    gc.collect()
    gc.freeze()


def is_awaited() -> bool:
    """Tells whether this process's request has come already."""
    try:
        import t2t_worker
    except ImportError:
        return False
    return bool(t2t_worker.is_awaited())


def drawn_beforehand(request: RehearsalRequest) -> Generator[str]:
    """Lists the cases of the check that is likely to come, as a candidate does, and draws their inputs; yields what it does next."""
    from t2t_harness.cases import beforehand, listing
    from t2t_harness.phases import permitted

    declaration = request["op"]
    yield "the likely op"
    permitted.own_operations(declaration)
    yield "its cases"
    # What the last candidate told of its launches may be anything; and of inputs that cannot be made the check itself tells.
    with contextlib.suppress(Exception):
        listed = listing.listed(request, None, request["constants"], request["least"], request["reached"])
        yield from beforehand.draw(declaration, listed)


def rehearsed(request: RehearsalRequest | None = None) -> Generator[str]:
    """Runs the cases of a check as a candidate does, then judges what one returned, part by part; yields what it does next. After the first case it draws inputs for the `request`, if
    there is one.
    """
    from t2t_harness.cases import block_edges, budget, cases, inputs, pace, probes
    from t2t_harness.judging import files, findings, kept, oracle, progress
    from t2t_harness.judging.trial import Trial, blank_row
    from t2t_harness.phases import called, judge, permitted
    from t2t_harness.server import rehearsal
    from t2t_harness.sources import finder
    from t2t_harness.triton import effort, interpreting, launchers

    yield "the op"
    # A candidate's child finds it imported, and goes through all names of modules.
    importlib.import_module("t2t_harness.phases.candidate")
    one_case = importlib.import_module("t2t_harness.phases.one_case")
    importlib.invalidate_caches()
    finder.given()
    own = permitted.own_operations(DECLARATION)
    variant = {"name": "rehearsal", "deterministic": True, "entry": "softmax", "file": Path(rehearsal.__file__).name}
    root = str(Path(rehearsal.__file__).parent)
    told = {"op": DECLARATION, "variant": variant, "lane": "interpreter", "inputs": None, "root": root}
    case = cases.declared_cases(DECLARATION)[0]
    bench = called.Bench(
        request=cast("CandidateRequest", told),
        entry=cast("Entry", rehearsal.softmax),
        own=own,
        finish=_nothing,
        synchronize=_nothing,
        folder=Path("/nonexistent"),
        modules=launchers.Counted(),
        pace=pace.Pace(None),
        budget=budget.Budget(is_limited=True),
    )
    facts: Facts = {"runs": {}}
    tensors: dict[str, torch.Tensor] = {}

    def keep(name: str, value: torch.Tensor) -> None:
        tensors[name] = kept.dense(value)

    interpreting.install()
    put, done = files.put, effort.METER.done
    with interpreting.undone():
        for label in "ab":
            yield f"run {label}"
            called.run_once(bench, case, label, 0, facts, keep)
        if request is not None:
            yield from drawn_beforehand(request)
        yield "the cases"
        state = progress.blank()
        listed = [case, *cases.fixed_edges(DECLARATION), *block_edges.length_edges(DECLARATION, bench.constants or {})]
        listed += probes.cases_of(bench.request, listed)[::PROBES]
        bench.budget.open()
        for position, one in enumerate(listed):
            yield one.name
            # Nothing is written: a case of this op is small, and what would be left of it goes through here.
            files.put = _nowhere
            try:
                ran = one_case.run_case(bench, one, position, state, every=False)
                bench.over.append((position, ran))
            finally:
                files.put = put
    effort.METER.done = done
    yield "what is right"
    given = inputs.inputs_of(DECLARATION, case, "cpu", None)
    right = oracle.reference(DECLARATION, case, given)
    trial = Trial(cast("JudgeRequest", told), progress.Progress())
    yield "the verdict"
    judge.lint_case(trial, case, given, right)
    findings.find_in(trial, case, blank_row(case), facts["runs"], tensors, given, right)


def _nothing(*_: object, **__: object) -> None:
    return None


def _nowhere(*_: object, **__: object) -> int:
    return 0
