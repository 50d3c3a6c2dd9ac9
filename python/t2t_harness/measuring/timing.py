"""What bench and baseline share: the protocol, the calls that are timed, and inputs that change from run to run in place.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from t2t_harness.cases import called_with, cases, declared_inputs, eights
from t2t_harness.measuring import elements, spans, statistics, stopping
from t2t_harness.measuring.clock import nothing
from t2t_harness.op import declaration as declared
from t2t_harness.op import module_kept, operation

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, Figure, OpRequest, Stopped, TimingRequest
    from t2t_harness.measuring.clock import Call, Clock
    from t2t_harness.sources.entry import Entry


@dataclass(frozen=True)
class Protocol:
    """How often and how long each size is timed."""

    runs: int
    warmup_ms: float
    rep_ms: float
    is_auto: bool = False
    """Whether measuring ends as soon as enough is known (`stopping`). A run is then a tenth of one, and there are at most ten times as many."""

    @property
    def most(self) -> int:
        """Returns how many runs a size has at most."""
        return self.runs * stopping.PARTS if self.is_auto else self.runs

    @property
    def lengths_ms(self) -> tuple[float, float]:
        """Returns how long a run warms up and samples, in ms."""
        parts = stopping.PARTS if self.is_auto else 1
        return self.warmup_ms / parts, self.rep_ms / parts

    def test(self, sizes: int) -> stopping.Test | None:
        """Returns the test that ends a measurement of so many sizes, None where all runs are made."""
        return stopping.Test(stopping.plan(self.runs, sizes)) if self.is_auto and sizes else None


def protocol_of(request: TimingRequest) -> Protocol:
    """Returns the request's protocol. On the interpreter, whose times compare nothing, all runs are made."""
    told = request["protocol"]
    is_auto = request["lane"] == "cuda" and told.get("stop") == stopping.AUTO
    return Protocol(int(told["runs"]), float(told["warmup_ms"]), float(told["rep_ms"]), is_auto)


def timed_cases(request: OpRequest) -> dict[str, cases.Case]:
    """Returns the case that is timed at each size: the first declared dtype. Small sizes come first.

    So a wrapper that fails has cost little. The order in which sizes are declared is not known here.
    """
    found: dict[str, cases.Case] = {}
    for case in cases.bench_cases(request["op"]):
        found.setdefault(case.name.rsplit("/", 1)[0], case)
    return dict(sorted(found.items(), key=lambda one: cases.elements(request["op"], one[1])))


def in_order(request: OpRequest, protocol: Protocol) -> dict[str, cases.Case]:
    """Returns the timed cases in the order in which they are measured: small sizes first, but large ones where measuring ends once the Final is known."""
    found = timed_cases(request)
    return dict(reversed(found.items())) if protocol.is_auto else found


def device_of(lane: str) -> str:
    """Returns torch's name of the device of a lane."""
    return "cuda" if lane == "cuda" else "cpu"


@dataclass(frozen=True)
class State:
    """Which values the inputs of timed calls have: any process can make them again."""

    run: int = 0
    """Every value is so many places further on, the last ones first."""
    seed: int = 0
    """What decides which single elements change within the run, and to what."""
    changes: int = 0
    """How many changed before the call."""


def changed_input(declaration: Declaration, dtype: str) -> str | None:
    """Returns the input whose elements change from call to call: the first with random floating values, none of float8, that the op does not mutate. None where there is none."""
    for given in declared.tensors(declaration):
        name = str(given["name"])
        is_left_alone = name not in declared.changed(declaration)
        is_plain = (given["dtype"] or dtype) in cases.FLOATING
        if is_plain and cases.random_floats(given, dtype) and is_left_alone:
            return name
    return None


ROLLED = ("constant", "distinct", "normal", "ones", "permutation", "randint", "uniform", "unique_between")
"""Kinds of `init` that hold of the same values at other places."""


def rolled(declaration: Declaration) -> set[str]:
    """Returns the names of the inputs whose values are at other places in each run; others, as sorted ones and triangles, would not be what ops.yaml declares."""
    return {str(given["name"]) for given in declared.tensors(declaration) if given["init"]["kind"] in ROLLED}


def run_inputs(
    declaration: Declaration, case: cases.Case, state: State, device: str = "cpu"
) -> dict[str, torch.Tensor]:
    """Returns the inputs of `case` in `state`: the same values, each `run` places further on, but for the single elements that have changed within the run.

    So every run, and every call of it, has other results, any process can make the inputs of any call, and no time goes into drawing numbers.
    """
    made = declared_inputs.make_inputs(declaration, case, device)
    originals = {name: value.clone() for name, value in made.items()}
    for each in rolled(declaration):
        if each in made:
            made[each].copy_(eights.moved(made[each], state.run))
    name = changed_input(declaration, case.dtype)
    if name is not None and made[name].numel() > 0:
        targets, sources, draws = elements.drawn_places(state.seed, made[name].numel())
        # Two of the places may be one element: what was written to it last counts.
        draw = draws.getrandbits
        last = {targets[draw(elements.BITS)]: sources[draw(elements.BITS)] for _ in range(state.changes)}
        for target, source in last.items():
            elements.element(made[name], target).copy_(elements.element(originals[name], source))
    return made


class Buffers:
    """The inputs of timed calls: the same tensors always, with other values in every run, and a few other ones before each call.

    A result that was kept from an earlier call is wrong for a later one, whatever it was kept by.
    """

    def __init__(
        self,
        declaration: Declaration,
        case: cases.Case,
        given: dict[str, torch.Tensor],
        device: str,
    ) -> None:
        self.given, self.device = given, device
        self.originals = {name: value.clone() for name, value in given.items()}
        self.run, self.seed, self.changes = 0, 0, 0
        self.mutated = [name for name in given if name in declaration["mutates"]]
        """The inputs that are results, too."""
        self.restored = [name for name in given if name in declared.changed(declaration)]
        """Those that have their values again before each call."""
        self.rolled = rolled(declaration)
        self.ignored = declared.ignored(declaration)
        """The positions of outputs that may be anything."""
        self.current: dict[str, torch.Tensor] = {}
        """The values that inputs which the op changes have before each call of the run."""
        changed = changed_input(declaration, case.dtype)
        self.changed = changed if changed is not None and given[changed].numel() > 0 else None
        self.changing = elements.Changing([], [])
        self.undone: list[tuple[object, module_kept.Kept]] = []
        """Instances, and what each gets back before each timed call."""
        self.own: list[torch.Tensor] = []
        """Tensors of the kernel's class, in which results may lie as torch's do, so that the next call changes them."""
        self.counters: list[torch.Tensor] = []
        """The integers that a wrapper which is a module counts its calls by."""

    def undoes(self, function: object, kept: module_kept.Kept) -> None:
        """Has `function` get back what it `kept` before each timed call, so that a result depends on the inputs of its call alone."""
        if kept != module_kept.Kept():
            self.undone.append((function, kept))

    def refill(self, run: int) -> None:
        """Writes the values of a new run in place, as `run_inputs` has them with `self.state()`."""
        with spans.work(self.device):
            for name, original in self.originals.items():
                self.given[name].copy_(eights.moved(original, run) if name in self.rolled else original)
            self.current = {name: self.given[name].clone() for name in self.restored}
            self.run, self.seed, self.changes = run, random.SystemRandom().getrandbits(63), 0
            if self.changed is not None:
                self.changing = elements.changing(self.given[self.changed], self.originals[self.changed], self.seed)

    def state(self) -> State:
        """Returns what values they have now."""
        return State(self.run, self.seed, self.changes)

    def memory(self) -> list[torch.Tensor]:
        """Returns the tensors whose values the next call may find changed."""
        return list(self.given.values())

    def freshen(self) -> None:
        """Changes one element in place, and undoes what a call changed: what is to be done before each timed call."""
        for function, kept in self.undone:
            kept.restore(function)
        for name, value in self.current.items():
            self.given[name].copy_(value)
        if self.changing.change():
            self.changes += 1


def buffers_of(declaration: Declaration, case: cases.Case, device: str) -> Buffers:
    """Returns the buffers of `case` on `device`, with the inputs of run 0 before the first change."""
    with spans.work(device):
        return Buffers(declaration, case, declared_inputs.make_inputs(declaration, case, device), device)


def torch_call(
    declaration: Declaration, case: cases.Case, given: Mapping[str, torch.Tensor], device: str = "cpu"
) -> Call:
    """Returns a call of the op's torch callable on `given`, with nothing between the clock and torch. Calls it once.

    Raises what torch raises.
    """
    return call_of(function_of(declaration, case, given, device), declaration, case, given, device)


def function_of(
    declaration: Declaration, case: cases.Case, given: Mapping[str, torch.Tensor], device: str = "cpu"
) -> operation.Function:
    """Returns the op as a function, for `case` on the device of its inputs; of an op without inputs on `device`."""
    home = next((value.device.type for value in given.values()), device)
    return operation.ready(declaration, case.binding, case.dtype, home)


def call_of(
    function: Entry,
    declaration: Declaration,
    case: cases.Case,
    given: Mapping[str, torch.Tensor],
    device: str = "cpu",
) -> Call:
    """Returns a call of `function`, the op's torch callable in whatever form, on `given`; a torch function without inputs is told `device`. Calls it once and raises
    what it raises."""
    kwargs, arguments = called_with.kwargs_of(declaration, case), declared.arguments(declaration, given)
    if not given and device != "cpu" and declaration.get("reference") is None:
        kwargs["device"] = device
    if operation.is_method(declaration):
        by_self = bound(function, tuple(arguments.values()), kwargs)
        by_self()
        return by_self
    by_name = bound(function, (), {**arguments, **kwargs})
    by_place = bound(function, tuple(arguments.values()), kwargs)
    try:
        by_name()
    except TypeError as refusal:
        try:
            by_place()
        except TypeError:
            raise refusal from None
        return by_place
    return by_name


def bound(function: Entry, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Call:
    """Returns a call of `function` with the arguments given."""
    keywords = dict(kwargs)
    return lambda: function(*args, **keywords)


class Raw(TypedDict):
    """Raw times of one subject at one size."""

    samples: list[list[float]]
    """In ms, by run."""
    repeated: int
    """How many runs were made in the place of interrupted ones."""


@dataclass
class Runs:
    """The runs of one subject at one size."""

    clock: Clock
    protocol: Protocol
    samples: list[list[float]] = field(default_factory=list)
    """The times in ms of the calls of each run."""
    repeated: int = 0
    estimate_ms: float | None = None
    """How long a call takes with the clearing of the cache before it, where runs are too short for an estimate in each."""

    def add(self, call: Call, before: Call = nothing, fresh: Call = nothing) -> None:
        """Times one run of `call`, with `before` done before each timed call, and `fresh`, the part of it that takes time, before each call of the estimate. On a device one that the host interrupted is made again at once, as often for all runs together as the protocol has runs.

        Launches are queued ahead of the device, so a host that is stopped for milliseconds shows in a single sample, a thousand times too long.
        """
        samples = self.once(call, before, fresh)
        while self.clock.is_device and is_interrupted(samples) and self.repeated < self.protocol.runs:
            self.repeated += 1
            samples = self.once(call, before, fresh)
        self.samples.append(samples)

    def once(self, call: Call, before: Call, fresh: Call) -> list[float]:
        """Returns the times in ms of the calls of one run."""
        warmup_ms, rep_ms = self.protocol.lengths_ms
        samples = self.clock.sample(call, warmup_ms, rep_ms, before, self.estimate_ms, fresh)
        if self.protocol.is_auto and self.estimate_ms is None:
            self.estimate_ms = statistics.mean(samples) + self.clock.hidden_us() / 1e3
        return samples

    def means(self) -> list[float]:
        """Returns the mean in ms of each run."""
        return [statistics.mean(samples) for samples in self.samples]

    def figure(self) -> Figure:
        """Returns the figure of the runs."""
        return figure_of(self.facts())

    def facts(self) -> Raw:
        """Returns the raw times as JSON: `samples`, in ms, by run, and `repeated`."""
        return {"samples": self.samples, "repeated": self.repeated}


def turns(protocol: Protocol, test: stopping.Test | None, runs: Mapping[str, Runs]) -> Iterator[Sequence[int]]:
    """Yields the numbers of the runs that each subject makes in its next turn, all of `runs` one after the other, until there are enough: each run is a turn, but
    where there is a `test` of when to end, which is told of each of its looks."""
    if test is None:
        yield from ([run] for run in range(protocol.runs))
        return
    made = 0
    while True:
        turn = range(made, made + test.next_turn(made))
        yield turn
        made = turn.stop
        if test.end({who: one.means() for who, one in runs.items()}) is not None:
            return


def told(stop: stopping.Stop, figures: Mapping[str, Figure]) -> Stopped:
    """Returns the end of a size as documents have it, and puts how closely the figure of each subject is known into it."""
    for who, figure in figures.items():
        figure["within"] = stop.within[who]
    return {"runs": stop.runs, "most": stop.most, "why": stop.why}


def figure_of(raw: Raw) -> Figure:
    """Returns the figure of raw times as `Runs.facts` has them. Raises KeyError, TypeError or ValueError where they are none."""
    return statistics.figure([statistics.run_facts(samples) for samples in raw["samples"]], int(raw["repeated"]))


def is_interrupted(samples: list[float]) -> bool:
    """Tells whether the host was stopped in a run of these times."""
    return statistics.is_interrupted(statistics.run_facts(samples))


def set_precision(declaration: Declaration) -> None:
    """Makes torch compute float32 products as the op declares: in IEEE arithmetic, or through TF32."""
    import torch

    is_tf32 = declaration["precision"] == "tf32"
    torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = is_tf32


@contextlib.contextmanager
def precision(declaration: Declaration) -> Iterator[None]:
    """Makes torch compute as `set_precision` does, in the context."""
    import torch

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    set_precision(declaration)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
