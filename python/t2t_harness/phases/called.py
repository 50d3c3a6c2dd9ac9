"""One call of a wrapper, observed: its launches, changes of inputs, accesses outside of its tensors, and results."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import beforehand, budget, calling, cases, inputs, pace, reach, seeds
from t2t_harness.cases import programs as grids
from t2t_harness.cases.runs import REVERSED, UPDATED
from t2t_harness.counting import counting, streams
from t2t_harness.cuda import watching
from t2t_harness.faults import bounds, failure, order
from t2t_harness.judging import autograd, caller, guards, kept, oracle, progress, watch
from t2t_harness.measuring import spans
from t2t_harness.op import declaration as declared
from t2t_harness.op import module_state
from t2t_harness.op import results as results_of
from t2t_harness.phases import other_calls, permitted, returned, weights
from t2t_harness.triton import launchers, launching, refusals, stage

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CandidateRequest, Declaration, DroppedConfig, Progress, SourcePlace
    from t2t_harness.judging.told import Conflict, Facts
    from t2t_harness.sources.entry import Entry
    from t2t_harness.triton.tuner import Config, Tuner

UPSTREAM = "upstream"
"""What turns off the question whether a backward pass leaves the gradient that comes in as it was."""


@dataclass
class Bench:
    """The kernel, and what its cases run with."""

    request: CandidateRequest
    entry: Entry
    own: frozenset[str]
    finish: Callable[[], None]
    """Waits until the stream that the wrapper is called on has finished, and no other."""
    synchronize: Callable[[], None]
    """Waits for the whole device."""
    folder: Path
    modules: launchers.Counted
    constants: dict[str, int] | None = None
    tried: int = 1
    least: dict[str, int] = field(default_factory=dict)
    """The smallest value of each integer that an autotuner's configurations set, in the first case that launched; nothing on a device, which would have to compile each configuration for another length."""
    largest: int = 1
    """The largest of those integers."""
    dropped: list[DroppedConfig] = field(default_factory=list)
    hits: int = 0
    misses: list[str] = field(default_factory=list)
    """Kernels that Triton's cache had, and the names of those that had to be compiled."""
    paths: set[reach.Path] = field(default_factory=set)
    """What the cases that ran launched."""
    programs: dict[str, int] = field(default_factory=dict)
    """The most programs that each kernel had in a case that ran."""
    axes: dict[str, int] = field(default_factory=dict)
    """The same along each axis of its grid, by `programs.axes`."""
    pace: pace.Pace = field(default_factory=lambda: pace.Pace(None))
    budget: budget.Budget = field(default_factory=lambda: budget.Budget(is_limited=False))
    waiting: set[str] = field(default_factory=set)
    """Kernels whose programs may wait for each other."""
    has_waited: bool = False
    """Whether programs of the last call's launches might wait for each other."""
    turned: int = 0
    """How many cases ran with such programs in reverse order."""
    is_updated: bool = False
    """Whether a case ran on tensors with other values in place."""
    may_turn: bool = True
    """Whether they end then, as far as is known."""
    has_streams: bool = False
    """Whether the wrapper launched on another stream than the one that it was called on."""
    over: list[tuple[int, Facts]] = field(default_factory=list)
    """Cases that are over and not told of yet, by their positions."""
    held: returned.Held = field(default_factory=returned.Held)
    """Results that are held as a caller may hold them."""

    def tell(self, state: Progress) -> None:
        """Tells of `state`, and of the cases that are over."""
        progress.tell(self.folder, state, self.over)
        self.over.clear()

    @property
    def lane(self) -> str:
        """Returns the lane of the check."""
        return str(self.request["lane"])


def run_once(
    bench: Bench,
    case: cases.Case,
    label: str,
    index: int,
    facts: Facts,
    keep: Callable[[str, torch.Tensor], None],
    *,
    tries: bool = False,
) -> list[torch.Tensor]:
    """Calls the wrapper once with configuration `index`, which the autotuner `tries` before or not, has its outputs kept as `LABEL.NAME`, and adds what was seen to `facts`. Returns what the wrapper returned, without
    what lies in memory of the inputs.

    Raises what the wrapper raises. A configuration that the device cannot hold leaves nothing.
    """
    import torch
    from triton.runtime.errors import OutOfResources

    declaration, backward = bench.request["op"], bool(bench.request["op"]["backward"])
    device = "cuda" if bench.lane == "cuda" else "cpu"
    with spans.work(device):
        given = beforehand.taken(declaration, case, device)
        if given is None:
            given = inputs.inputs_of(declaration, case, device, bench.request["inputs"])
    guarded = None
    if bench.lane == "cuda":
        guarded = guards.Guards(partial(watch.poison, run=int(label == "b")))
        given = guarded.inputs(given)
    if backward:
        given = autograd.with_gradients(given, cases.asking(declaration, case), declaration["mutates"])
    wrapper, args, kwargs = calling.arranged(bench.entry, bench.request, case, given, label)
    draws, forms = seeds.is_random(declaration), list(given.values())
    weights.require_class(case, bench.entry)
    facts["drawn"] = weights.shared(declaration, case, wrapper, device)
    if not case.is_again:
        module_state.draw(wrapper, facts["drawn"], case.name)
    is_recorded = oracle.is_recorded(declaration, case)
    own = module_state.parameters(wrapper) if is_recorded else {}
    began, counters = module_state.began(wrapper) if label == "a" else {}, module_state.counters(wrapper)
    if label == "b" and bench.has_streams:
        streams.come_late(given)
    chooser, earlier = Chooser(index, tries), returned.Earlier()
    bounded = contextlib.nullcontext() if guarded else bounds.of_call(int(label == "b"), given)
    ordered = order.of_call(order_of(bench, case, label))
    with bounded as within, ordered as programs, watching.recording(bench.lane, chooser.choose) as recorder:
        chooser.recorder = recorder
        watched = partial(
            watch.watching,
            bench.own,
            int(label == "b"),
            permitted.allowed(declaration),
            draws=draws,
            guarded=guarded,
            inputs=forms,
            counters=counters,
        )
        # Watched as any call is: what torch hands out in it is memory that launches may write to.
        if case.is_again:
            with stage.pretending(bench.lane), watched(), recorded(case):
                other_calls.call_first(bench, case, device, label, wrapper)
                bench.finish()
            module_state.draw(wrapper, facts["drawn"], case.name)
        if label == UPDATED:
            with stage.pretending(bench.lane), watched():
                again = other_calls.as_given(lambda: wrapper(*args, **kwargs), given, declared.changed(declaration))
                earlier = returned.Earlier.of(again, wrapper, bench.finish, given)
            if earlier.differ:
                # It counts on what it was called on before, as torch's may: nothing says what is right.
                return []
            other_calls.update(bench, case, given)
        with stage.pretending(bench.lane), watched() as seen:
            recorder.memory = seen.memory
            try:
                with (
                    spans.work(device, waits=False),
                    recorded(case),
                    caller.left_alone(kept_forms(declaration, given), draws=draws) as changed,
                    counting.counting(bench.lane) as counted,
                ):
                    got = wrapper(*args, **kwargs)
                    bench.finish()
                    facts["is_taken"] = True
            except OutOfResources:
                if index > 0:
                    return []
                raise
            finally:
                note_launches(bench, recorder, chooser)
            whole = results_of.apart(got, declared.ignored(declaration))
            results = whole.values
        recorder.memory = None
        unaccounted = [*counted.unaccounted]
        made = {str(position): value for position, value in enumerate(results)}
        described = {name: returned.describe(value, recorder, seen) for name, value in made.items()}
        if case.is_changed:
            made = dict(zip(made, oracle.kept_outputs(results), strict=True))
            with guarding():
                oracle.change(results)
        if backward:
            if label == "b" and case.file is None:
                other_calls.call_between(bench, case, device, label, wrapper)
            ends = autograd.ends(results, given)
            upstream = autograd.upstream_gradients(ends, cases.updated(case) if label == UPDATED else case)
            before = caller.held(upstream)
            with (
                guarding() if case.is_changed else contextlib.nullcontext(),
                spans.work(device, waits=False),
                stage.pretending(bench.lane),
                watch.watching(
                    bench.own,
                    int(label == "b"),
                    permitted.allowed(declaration),
                    # Where an output changed that is a view, autograd takes the gradient's memory to begin where its storage does.
                    guarded=None if case.is_changed else guarded,
                    inputs=[*forms, *upstream.values()],
                ) as seen_back,
                counting.counting(bench.lane) as counted_back,
            ):
                made |= autograd.gradients_for(ends, {**given, **own}, upstream, is_twice=case.is_twice)
                made |= module_state.frozen(wrapper) if is_recorded else {}
                bench.finish()
            unaccounted += counted_back.unaccounted
            if UPSTREAM not in cases.edges_off(declaration):
                changed += caller.written(before, upstream)
            seen.computed |= permitted.but_accumulation(seen_back.computed)
            seen.declared |= seen_back.declared
    if label != "a":
        # What it changes is a result. Of the first run all inputs are kept: the others are to be what they were.
        made |= {f"after.{name}": given[name] for name in declaration["mutates"] if name in given}
    else:
        made |= {f"after.{name}": value for name, value in given.items()}
        ended = module_state.ended(wrapper)
        made |= {**module_state.buffers(wrapper), **began, **ended} if declaration.get("reference") else {}
    facts["returns_own"] = bool(facts.get("returns_own")) or bool(module_state.in_own_memory(wrapper, results))
    facts["runs"][label] = {
        "form": whole.form,
        "numbers": whole.numbers,
        "outputs": described,
        "computed": seen.computed,
        "declared": seen.declared,
        "changed": changed,
        "unaccounted": unaccounted,
        "launches": len(recorder.launches),
        "configs": sorted({json.dumps(launch.config, sort_keys=True) for launch in recorder.launches if launch.config}),
    }
    for name, value in made.items():
        # What cannot be kept is of another dtype than torch's, which its description says.
        if isinstance(value, torch.Tensor) and kept.is_kept(value):
            keep(f"{label}.{name}", value)
    # What other streams still do is waited for only now: their faults are this run's.
    bench.synchronize()
    facts["runs"][label] |= {
        "outside": outside(guarded, within),
        # Guards show no reads.
        "read_outside": [] if within is None else within.reads,
        "conflicts": conflicts(programs, bench.request["root"]),
        "reversed": programs.has_reversed,
    }
    bench.has_waited = programs.has_waited
    facts["aliased"] = bool(facts.get("aliased")) or earlier.has_changed()
    return returned.apart(results, given, wrapper)


class Refused(Exception):
    """Autograd, or the wrapper, raised where an output was changed in place before the backward pass; the message says what."""


@contextlib.contextmanager
def guarding() -> Iterator[None]:
    """Raises Refused in the place of any exception."""
    try:
        yield
    except Exception as error:
        raise Refused(failure.describe(error)) from error


def recorded(case: cases.Case) -> contextlib.AbstractContextManager[None]:
    """Returns the context of a call: autograd records nothing where nobody asks for a gradient."""
    import torch

    return torch.no_grad() if case.asks == cases.NOBODY else contextlib.nullcontext()


def kept_forms(declaration: Declaration, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the inputs whose form a call must leave as it is: all that it may not write to."""
    return {name: value for name, value in given.items() if name not in declared.changed(declaration)}


def order_of(bench: Bench, case: cases.Case, label: str) -> order.Order:
    """Returns how programs run in the run `label` of a case: in the second run in reverse order, in a further one all of them. In a first run that a second one follows they find what is there."""
    is_followed = label == "a" and case.kind != "edge"
    may_differ = not (bench.request["op"]["deterministic"] and bench.request["variant"].get("deterministic", True))
    is_turned = label == REVERSED
    return order.Order(
        bench.waiting,
        is_reversed=is_turned or label == "b",
        turns=is_turned,
        poisons=not is_followed,
        may_differ=may_differ,
    )


def conflicts(programs: order.Order, root: str) -> list[Conflict]:
    """Returns what programs of a launch did to each other as JSON facts: `words`, and `place`, the line of the kernel or None."""
    found: list[Conflict] = []
    for one in programs.told:
        files = ((failure.workspace_file(file, root), line) for file, line in one["frames"])
        places: list[SourcePlace] = [
            {"file": file, "line": line, "column": None} for file, line in files if file is not None
        ]
        found.append({"words": one["words"], "place": next(iter(places), None)})
    return found


def outside(guarded: guards.Guards | None, within: bounds.Bounds | None) -> list[str]:
    """Returns what a call wrote outside of its memory, in words: what its guards show, or what its interpreted launches were seen to do."""
    if guarded is not None:
        return guarded.broken()
    return [] if within is None else within.writes


@dataclass
class Chooser:
    """Chooses one configuration of each autotuner: number `index`, or the first one from there on that the device can
    hold if it is 0. Where it `tries`, the autotuner tries that one before it calls with it, as in the first call of a process."""

    index: int
    tries: bool = False
    most: int = 1
    least: dict[str, int] = field(default_factory=dict)
    largest: int = 1
    recorder: launching.Recorder | None = None

    def choose(self, tuner: Tuner, configs: list[Config]) -> Iterator[Config]:
        """Yields configurations until one has run."""
        self.most = max(self.most, len(configs))
        for config in configs:
            for name, value in launching.constants_of(config.kwargs).items():
                self.least[name], self.largest = min(value, self.least.get(name, value)), max(value, self.largest)
        start = min(self.index, len(configs) - 1)
        for config in configs[start:] if self.index == 0 else configs[start : start + 1]:
            before = self._dropped()
            if (
                self.tries
                and len(tuner.configs) > 1
                and self.recorder is not None
                and self.recorder.attempt is not None
            ):
                # One that the device cannot hold is dropped by the call itself.
                with contextlib.suppress(*refusals.misfits()):
                    self.recorder.attempt(config)
            yield config
            if self._dropped() == before:
                return

    def _dropped(self) -> int:
        return 0 if self.recorder is None else len(self.recorder.dropped)


def note_launches(bench: Bench, recorder: launching.Recorder, chooser: Chooser) -> None:
    """Keeps the constants of the kernel's first launches, the number of configurations, and those that were dropped."""
    bench.tried = max(bench.tried, chooser.most)
    bench.paths |= {launch.path for launch in recorder.launches}
    for launch in recorder.launches:
        bench.programs[launch.kernel] = max(bench.programs.get(launch.kernel, 0), math.prod(launch.grid or ()))
        for name, count in grids.axes(launch.kernel, launch.grid):
            bench.axes[name] = max(bench.axes.get(name, 0), count)
    bench.has_streams |= recorder.elsewhere > 0
    bench.hits, bench.misses = bench.hits + recorder.hits, bench.misses + recorder.misses
    bench.dropped += [one for one in recorder.dropped if one not in bench.dropped]
    if bench.constants is None and recorder.launches:
        bench.constants = {}
        if bench.lane == "interpreter" and chooser.most > 1:
            bench.least, bench.largest = chooser.least, chooser.largest
        for launch in recorder.launches:
            bench.constants = {**launch.constants, **bench.constants}
