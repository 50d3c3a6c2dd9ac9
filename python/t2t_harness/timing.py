"""What bench and baseline share: the protocol, the calls that are timed, and inputs that change from run to run in place.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from t2t_harness import cases, inputs, operation, spans, statistics
from t2t_harness import declaration as declared

if TYPE_CHECKING:
    import torch

    from t2t_harness.clock import Call, Clock


@dataclass(frozen=True)
class Protocol:
    """How often and how long each size is timed."""

    runs: int
    warmup_ms: float
    rep_ms: float


def protocol_of(request: Mapping[str, Any]) -> Protocol:
    """Returns the request's protocol."""
    told = request["protocol"]
    return Protocol(int(told["runs"]), float(told["warmup_ms"]), float(told["rep_ms"]))


def timed_cases(request: Mapping[str, Any]) -> dict[str, cases.Case]:
    """Returns the case that is timed at each size: the first declared dtype. Small sizes come first.

    So a wrapper that fails has cost little. The order in which sizes are declared is not known here.
    """
    found: dict[str, cases.Case] = {}
    for case in cases.bench_cases(request["op"]):
        found.setdefault(case.name.rsplit("/", 1)[0], case)
    return dict(sorted(found.items(), key=lambda one: cases.elements(request["op"], one[1])))


def device_of(lane: str) -> str:
    """Returns torch's name of the device of a lane."""
    return "cuda" if lane == "cuda" else "cpu"


def run_inputs(
    declaration: Mapping[str, Any], case: cases.Case, run: int, device: str = "cpu"
) -> dict[str, torch.Tensor]:
    """Returns the inputs of `case` in run number `run`: the same values, each `run` places further on, the last ones first.

    So every run has other results, any process can make the inputs of any run, and no time goes into drawing numbers.
    """
    made = inputs.make_inputs(declaration, case, device)
    for value in made.values():
        value.copy_(value.roll(run))
    return made


@dataclass(frozen=True)
class Buffers:
    """The inputs of timed calls: the same tensors in every run, with other values."""

    given: dict[str, torch.Tensor]
    originals: dict[str, torch.Tensor]
    """The values of run 0."""
    device: str

    def refill(self, run: int) -> None:
        """Writes the values of `run_inputs`, in place."""
        with spans.work(self.device):
            for name, original in self.originals.items():
                self.given[name].copy_(original.roll(run))


def buffers_of(declaration: Mapping[str, Any], case: cases.Case, device: str) -> Buffers:
    """Returns the buffers of `case` on `device`, with the inputs of run 0."""
    with spans.work(device):
        given = inputs.make_inputs(declaration, case, device)
        return Buffers(given, {name: value.clone() for name, value in given.items()}, device)


def torch_call(declaration: Mapping[str, Any], case: cases.Case, given: Mapping[str, Any], device: str = "cpu") -> Call:
    """Returns a call of the op's torch callable on `given`, with nothing between the clock and torch. Calls it once.

    Raises what torch raises.
    """
    return call_of(function_of(declaration, case, given, device), declaration, case, given, device)


def function_of(
    declaration: Mapping[str, Any], case: cases.Case, given: Mapping[str, Any], device: str = "cpu"
) -> operation.Function:
    """Returns the op as a function, for `case` on the device of its inputs; of an op without inputs on `device`."""
    home = next((value.device.type for value in given.values()), device)
    return operation.ready(declaration, case.binding, case.dtype, home)


def call_of(
    function: Callable[..., Any],
    declaration: Mapping[str, Any],
    case: cases.Case,
    given: Mapping[str, Any],
    device: str = "cpu",
) -> Call:
    """Returns a call of `function`, the op's torch callable in whatever form, on `given`; a torch function without inputs is told `device`. Calls it once and raises
    what it raises."""
    kwargs, arguments = inputs.kwargs_of(declaration, case), declared.arguments(declaration, given)
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


def bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """Returns a call of `function` with the arguments given."""
    keywords = dict(kwargs)
    return lambda: function(*args, **keywords)


@dataclass
class Runs:
    """The runs of one subject at one size."""

    clock: Clock
    protocol: Protocol
    facts: list[dict[str, float]] = field(default_factory=list)
    repeated: int = 0

    def add(self, call: Call) -> None:
        """Times one run of `call`. On a device one that the host interrupted is made again at once, as often for all runs together as there are runs.

        Launches are queued ahead of the device, so a host that is stopped for milliseconds shows in a single sample, a thousand times too long.
        """
        facts = run_once(self.clock, call, self.protocol)
        while self.clock.is_device and statistics.is_interrupted(facts) and self.repeated < self.protocol.runs:
            self.repeated += 1
            facts = run_once(self.clock, call, self.protocol)
        self.facts.append(facts)

    def figure(self) -> dict[str, Any]:
        """Returns the FIGURE of the runs."""
        return statistics.figure(self.facts, self.repeated)


def run_once(clock: Clock, call: Call, protocol: Protocol) -> dict[str, float]:
    """Returns the facts of one run of `call`."""
    return statistics.run_facts(clock.sample(call, protocol.warmup_ms, protocol.rep_ms))


def set_precision(declaration: Mapping[str, Any]) -> None:
    """Makes torch compute float32 products as the op declares: in IEEE arithmetic, or through TF32."""
    import torch

    is_tf32 = declaration["precision"] == "tf32"
    torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = is_tf32


@contextlib.contextmanager
def precision(declaration: Mapping[str, Any]) -> Iterator[None]:
    """Makes torch compute as `set_precision` does, in the context."""
    import torch

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    set_precision(declaration)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
