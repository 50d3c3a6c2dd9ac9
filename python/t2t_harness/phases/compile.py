"""Compiles everything that a GPU will launch, on a machine without one: the real wrapper runs on tensors without values.

First come the sizes that are checked, tuned and measured, with every configuration of an autotuned kernel; then the edge cases that the check will
add, with the first configuration, those of extreme lengths last. Where nobody asked for what a device needs, the first configuration is compiled alone, and no
probe, which rejects nothing here. The archive holds what a GPU then asks Triton for. A launch that cannot be traced here leaves the coverage partial,
and the check decides. What Triton itself refuses is a rejection.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, block_edges, budget, calling, cases, declared_inputs, probes
from t2t_harness.faults import failure, machine
from t2t_harness.phases import compiled
from t2t_harness.sources import finder, loading
from t2t_harness.triton import ahead, facade, largest, launchers, launching, normalize, refusals, returning, warm

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import (
        CompiledKernel,
        CompileRequest,
        Declaration,
        DeviceTarget,
        Documents,
        DroppedConfig,
        Failure,
        Launches,
        Reply,
    )
    from t2t_harness.boundary.documents import Launch as LaunchFacts
    from t2t_harness.sources.entry import Entry
    from t2t_harness.triton.tuner import Config, Tuner

ARCHIVE = "triton.tar.gz"

FIRST = 100
"""So many launches are told of a call that does not return."""

FAR = 8
"""A probe with a dim so many times as long as any that is measured is compiled before its check only with blocks that other cases have."""


@dataclass
class Survey:
    """What was launched, on all targets."""

    forge: launchers.Forge
    launches: list[LaunchFacts] = field(default_factory=list)
    kernels: list[CompiledKernel] = field(default_factory=list)
    dropped: list[DroppedConfig] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Why the coverage is partial."""
    folders: set[str] = field(default_factory=set)
    """Folders of Triton's cache that hold what was launched, and what was compiled and then dropped."""
    hits: int = 0
    misses: list[str] = field(default_factory=list)
    compiled: set[str] = field(default_factory=set)
    """Triton's hashes of what this process compiled."""
    compiled_ahead: set[str] = field(default_factory=set)
    """Those of what was compiled for it: by forks, or before it began anew. What it asks for is taken out."""


class Refused(Exception):
    """The variant is rejected; holds why."""

    def __init__(self, record: Failure) -> None:
        super().__init__(record["message"])
        self.record = record


def compile_variant(request: CompileRequest) -> Reply:
    """Returns the reply with the documents `launches` and `resources` and the file `triton.tar.gz`, or with `failure`.

    Request key `warm` may list archives of earlier compiles: what they hold is not compiled again. The document `triton_cache` counts that, and
    is the only one that depends on it. `processes` is how many processes may compile at once, 1 where it is absent; no document depends on it.
    """
    forge = launchers.Forge()
    others = frozenset(sys.modules)
    normalize.install()
    warm.install()
    warm.unpack_all(request)
    reasons: list[str] = []
    hooks = hook_cases(request, reasons)

    def walk(target: Callable[[str], Target]) -> None:
        for index, device in enumerate(request["targets"]):
            survey_target(request, device, index, hooks, others, target(device["id"]))

    def surveyed(compiled_ahead: set[str], limit: contextlib.AbstractContextManager[None]) -> Survey:
        found = Survey(forge, reasons=list(reasons), compiled_ahead=compiled_ahead)
        try:
            with limit, launching.before_compiling(forge.expect):
                walk(lambda id_: Target(request, id_, found))
        except ahead.Slow:
            scouts = ahead.fill(lambda hashes: walk(lambda id_: Scout(request, id_, Survey(forge), hashes)), processes)
            return surveyed(found.compiled | scouts, contextlib.nullcontext())
        except returning.Endless:
            # Nor would it in another case.
            return found
        return found

    processes = int(request.get("processes") or 1)
    try:
        survey = surveyed(set(), ahead.limited(ahead.PATIENCE_S) if processes > 1 else contextlib.nullcontext())
    except Refused as refusal:
        forge.finish()
        record = refusal.record
        return {
            "outcome": "rejected",
            "class": record["class"],
            "cites": failure.cites(record),
            "documents": {"failure": record},
            "files": {},
        }
    forge.finish()
    cache, archive = Path(os.environ["TRITON_CACHE_DIR"]), Path(request["scratch"]) / ARCHIVE
    warm.pack(cache, survey.folders, forge.folders, archive)
    documents: Documents = {
        "launches": launches_document(request, survey),
        "resources": {"kernels": survey.kernels},
        "triton_cache": {
            "hits": survey.hits,
            "misses": sorted(survey.misses),
            "launchers": forge.count.facts(),
            "launchers_missing": forge.reason,
        },
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": documents, "files": {ARCHIVE: ARCHIVE}}


def launches_document(request: CompileRequest, survey: Survey) -> Launches:
    """Returns the document `launches`: what a GPU's launches will be, and what was left out."""
    return {
        "targets": [device["id"] for device in request["targets"]],
        "coverage": "partial" if survey.reasons else "full",
        "reasons": survey.reasons,
        "configurations": "all" if request.get("is_every", True) else "first",
        "autotuned": any(launch["config"] is not None for launch in survey.launches),
        "launches": survey.launches,
        "dropped": survey.dropped,
    }


def hook_cases(request: CompileRequest, reasons: list[str]) -> list[cases.Case]:
    """Returns the cases of the op's own `cases.py`, their inputs stored in scratch; none, and a reason more, where the file fails, as its check will."""
    if request["op"]["cases"] is None:
        return []
    from t2t_harness.phases import prepare

    scratch = Path(request["scratch"])
    (scratch / "inputs").mkdir(exist_ok=True)
    finders = list(sys.meta_path)
    try:
        return prepare.hook_cases(request["op"], request["root"], scratch)
    except Exception as error:
        reasons.append(f"{request['op']['cases']}: {failure.describe(error)}")
        return []
    finally:
        # Reading cases.py forbids the import of variants.
        sys.meta_path[:] = finders


def survey_target(
    request: CompileRequest,
    device: DeviceTarget,
    index: int,
    hooks: list[cases.Case],
    others: Set[str],
    target: Target,
) -> None:
    """Runs the wrapper on every case for `device`, a row of the device table, and gives what it launches to `target`.

    Raises Refused where the module cannot be imported or a kernel cannot be compiled. The workspace's modules are loaded anew: they may have
    asked the device for its properties when they were imported. None of them is among `others`, the names of modules.
    """
    forget_modules(request["root"], others)
    facade.patch_torch_cuda(device)
    facade.fake_driver(device, index)
    with facade.fake_cuda(), largest.noted() as known:
        entry = target.load()
        constants: dict[str, int] = {}
        for case in declared(request["op"]):
            found = target.run(entry, case, is_every=bool(request.get("is_every", True)))
            constants = constants or found
        limit = bindings.limit_of("cuda")
        edges = [*cases.fixed_edges(request["op"], limit), *block_edges.length_edges(request["op"], constants, limit)]
        probed = ahead_of_check(request, edges)
        far = [one for one in probed if probes.is_beyond(request["op"], one, FAR)]
        for case in cases.unique([*edges, *(one for one in probed if one not in far), *hooks]):
            target.run(entry, case, is_every=False)
        known.is_known = True
        for case in far:
            target.run(entry, case, is_every=False)


def ahead_of_check(request: CompileRequest, known: list[cases.Case]) -> list[cases.Case]:
    """Returns the probes that are compiled before a check, whose other cases are `known`: all but drawn shapes, which have the same kernels as others, but for few. None where only the first configurations are asked for: no device waits for them."""
    if not request.get("is_every", True):
        return []
    on_device: CompileRequest = {**request, "lane": "cuda"}
    return [one for one in probes.cases_of(on_device, known) if not budget.is_drawn(one)]


def forget_modules(root: str, others: Set[str]) -> None:
    """Removes the modules of the workspace, none of which is among `others`, from Python's table."""
    real = os.path.realpath(root)
    for name in sys.modules.keys() - others:
        module = sys.modules[name]
        file = getattr(module, "__file__", None) or "/"
        # Finding out where a file really lies takes long.
        is_below = file.startswith((root, real)) and failure.workspace_file(file, root) is not None
        if name.split(".")[0] in finder.PACKAGES or is_below:
            del sys.modules[name]


def declared(declaration: Declaration) -> Iterator[cases.Case]:
    """Yields the cases of checks and of measurements, those of a check first, without those that differ in their seed alone."""
    seen: list[tuple[str, dict[str, int]]] = []
    for case in [*cases.declared_cases(declaration), *cases.bench_cases(declaration)]:
        if (case.dtype, case.binding) not in seen:
            seen.append((case.dtype, case.binding))
            yield case


@dataclass
class Target:
    """One device that a variant is compiled for."""

    request: CompileRequest
    id: str
    survey: Survey

    def load(self) -> Entry:
        """Returns the wrapper. Raises Refused where its module cannot be imported or lacks it."""
        try:
            with returning.awaited():
                return loading.load_entry(self.request["root"], self.request["variant"])
        except (SystemExit, ahead.Slow):
            raise
        except returning.Endless as error:
            self.note_reason(f"import: {error}")
            raise
        except BaseException as error:
            machine.raise_if_it_failed(error, self.request["root"])
            class_, message = failure.class_of(error), failure.describe(error)
            raise Refused(failure.failure(class_, message, root=self.request["root"], error=error)) from error

    def run(self, entry: Entry, case: cases.Case, *, is_every: bool) -> dict[str, int]:
        """Runs one case, with every configuration or with the first that fits, and returns the constants of its launches.

        Raises Refused where Triton refuses a kernel. What else the wrapper raises is a reason for partial coverage.
        """

        def choose(tuner: Tuner, configs: list[Config]) -> list[Config]:
            return configs if is_every else launching.first_that_fits(recorder, tuner, configs)

        with launching.recording("compile", choose) as recorder:
            recorder.compiled_ahead = self.survey.compiled_ahead
            try:
                with returning.awaited():
                    call(self.request, entry, case)
            except SystemExit:
                raise
            except ahead.Slow:
                self.survey.compiled.update(recorder.compiled)
                raise
            except returning.Endless as error:
                self.note_reason(f"{case.name}: {error}")
                del recorder.launches[FIRST:]
                self.keep(recorder, case)
                raise
            except BaseException as error:
                machine.raise_if_it_failed(error, self.request["root"])
                # What nobody declared may be more than a kernel can hold: the check tells.
                if error in recorder.faults and not case.is_probe:
                    raise Refused(refusals.compile_failure(error, self.request["root"], case.name)) from error
                if not (probes.is_undeclared(case) or probes.is_beyond(self.request["op"], case)):
                    self.note_reason(f"{case.name}: {failure.describe(error)}")
            else:
                for fault in recorder.faults:
                    self.note_reason(f"{case.name}: the wrapper went on after {failure.describe(fault)}")
        self.keep(recorder, case)
        constants: dict[str, int] = {}
        for launch in recorder.launches:
            constants = {**launch.constants, **constants}
        return constants

    def note_reason(self, reason: str) -> None:
        """Adds why the coverage is partial, on one line, once."""
        if reason not in self.survey.reasons:
            self.survey.reasons.append(reason)

    def keep(self, recorder: launching.Recorder, case: cases.Case) -> None:
        """Adds what the case launched, compiled and dropped to the survey."""
        survey = self.survey
        survey.hits += recorder.hits
        survey.misses += recorder.misses
        survey.compiled.update(recorder.compiled)
        survey.folders |= {compiled.folder_name(one) for one in recorder.hashes}
        launched: list[LaunchFacts] = []
        for launch in recorder.launches:
            if launch.compiled is None:
                # It was held back.
                continue
            survey.forge.want(launch.compiled)
            facts = compiled.launch_facts(launch, self.id, case)
            if facts not in launched:
                launched.append(facts)
            if not any(one["compiled"] == facts["compiled"] and one["target"] == self.id for one in survey.kernels):
                survey.kernels.append(compiled.kernel_facts(launch, self.id))
        survey.launches += launched
        for dropped in recorder.dropped:
            named: DroppedConfig = {"target": self.id, **dropped}
            if named not in survey.dropped:
                survey.dropped.append(named)


@dataclass
class Scout(Target):
    """A target whose kernels are compiled for another process: only their hashes are reported."""

    hashes: list[str]

    def keep(self, recorder: launching.Recorder, case: cases.Case) -> None:
        """Adds the hashes of what the case compiled."""
        self.hashes += recorder.compiled


def call(request: CompileRequest, entry: Entry, case: cases.Case) -> None:
    """Calls the wrapper, and its backward where the op declares one, on tensors without values."""
    from t2t_harness.judging import autograd
    from t2t_harness.op import declaration as declared
    from t2t_harness.op import module_state, results

    declaration = request["op"]
    given = fake_inputs(request, case)
    if declaration["backward"]:
        given = autograd.with_gradients(given, cases.asking(declaration, case), declaration["mutates"])
    wrapper, args, kwargs = calling.arranged(entry, request, case, given)
    returned = wrapper(*args, **kwargs)
    if declaration["backward"]:
        outputs = results.listed(returned, declared.ignored(declaration))
        autograd.gradients(outputs, {**given, **module_state.parameters(wrapper)}, case)


def fake_inputs(request: CompileRequest, case: cases.Case) -> dict[str, torch.Tensor]:
    """Returns the inputs of any case without their values; of a hook case from what is stored in scratch."""
    if case.file is None:
        return declared_inputs.unfilled(request["op"], case)
    import torch
    from safetensors import safe_open

    made = {}
    with safe_open(str(Path(request["scratch"]) / case.file), "np") as stored:
        for name, strides in (case.strides or {}).items():
            slice_ = stored.get_slice(name)
            made[name] = torch.empty_strided(slice_.get_shape(), strides, dtype=stored_dtype(slice_.get_dtype()))
    return made


def stored_dtype(name: str) -> torch.dtype:
    """Returns the torch dtype that safetensors calls `name`, as in `F32`."""
    from safetensors.torch import _TYPES

    found = _TYPES[name]
    assert found is not None
    return found
