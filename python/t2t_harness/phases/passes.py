"""What of a call is timed: its forward pass, its backward pass, or both, one after the other. Torch is timed as a variant is.

A gradient is asked of autograd as `torch.autograd.grad` asks it: for all inputs that have one, of all outputs that have one. Of a backward pass alone the graph is made
before a run, untimed, and kept for all its calls; the gradient that flows in changes before each of them. torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from t2t_harness.cases import cases, declared_inputs
from t2t_harness.judging import autograd
from t2t_harness.measuring import elements, spans, timing
from t2t_harness.measuring.clock import nothing
from t2t_harness.op import results
from t2t_harness.triton import stage

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TimingRequest
    from t2t_harness.judging.oracle import Flows
    from t2t_harness.measuring.clock import Call

FORWARD: Final = "forward"
BACKWARD: Final = "backward"
BOTH: Final = "both"

APART = 1
"""What the seed of the changes of a gradient that flows in is away from that of the inputs' changes."""


class NoGradient(Exception):
    """Nothing has a gradient that could be timed."""


def of(request: TimingRequest) -> str:
    """Returns which passes are timed."""
    return request["protocol"].get("passes", FORWARD)


def hint(request: TimingRequest, error: BaseException) -> str | None:
    """Returns what to do about an exception of passes that are timed, where autograd does not let the op change an input that all calls have in common, else None."""
    if of(request) == FORWARD or not request["op"]["mutates"] or not isinstance(error, RuntimeError):
        return None
    return "of an op that changes an input which has a gradient, the forward pass alone can be timed: `bench: {pass: forward}`"


def buffers_of(which: str, declaration: Declaration, case: cases.Case, device: str) -> timing.Buffers:
    """Returns the buffers of `case` on `device`, as `timing.buffers_of` does; with gradients that flow in where a backward pass is timed."""
    if which == FORWARD:
        return timing.buffers_of(declaration, case, device)
    with spans.work(device):
        return Flowing(which, declaration, case, declared_inputs.make_inputs(declaration, case, device), device)


def arguments(buffers: timing.Buffers) -> dict[str, torch.Tensor]:
    """Returns the inputs that calls are made with: where a backward pass is timed, as leaves that have gradients."""
    return buffers.leaves if isinstance(buffers, Flowing) else buffers.given


class Flowing(timing.Buffers):
    """The inputs of timed calls, and the gradients that flow into their outputs: the same tensors always, with other values in every run, and another element of one of them before each call.

    Where a backward pass alone is timed, its inputs are what the forward pass kept and what flows in, so the op's inputs change from run to run alone.
    """

    def __init__(
        self,
        which: str,
        declaration: Declaration,
        case: cases.Case,
        given: dict[str, torch.Tensor],
        device: str,
    ) -> None:
        super().__init__(declaration, case, given, device)
        self.which, self.case = which, case
        self.leaves = autograd.with_gradients(given, cases.asking(declaration, case))
        self.asking = [name for name, leaf in self.leaves.items() if leaf.requires_grad]
        if which == BACKWARD:
            # A call changes none of them.
            self.mutated, self.restored = [], []
        self.upstream: dict[int, torch.Tensor] = {}
        self.drawn: dict[int, torch.Tensor] = {}
        self.flow = elements.Changing([], [])

    def flows_into(self, outputs: Sequence[object]) -> dict[int, torch.Tensor]:
        """Returns the gradient that flows into each output that has one, by position. They are drawn when they are first asked for. Raises NoGradient where nothing has one."""
        if not self.asking:
            raise NoGradient("no input has a gradient: its backward pass cannot be timed")
        if not self.upstream:
            self.upstream = autograd.upstream_gradients(outputs, self.case)
            self.drawn = {position: value.clone() for position, value in self.upstream.items()}
        if not self.upstream:
            raise NoGradient("no output has a gradient: its backward pass cannot be timed")
        return self.upstream

    def refill(self, run: int) -> None:
        """Writes the values of a new run in place, those that flow in, too."""
        super().refill(run)
        with spans.work(self.device):
            self.flow = changing(self.upstream, self.drawn, self.state())

    def freshen(self) -> None:
        """Changes one element of what flows in and, where both passes are timed, one of the inputs, and undoes what a call changed."""
        before = self.changes
        if self.which == BOTH:
            super().freshen()
        if self.flow.change():
            self.changes = before + 1

    def memory(self) -> list[torch.Tensor]:
        """Returns the tensors whose values the next call may find changed: the inputs, and what flows in."""
        return [*super().memory(), *self.upstream.values()]


def changing(
    upstream: Mapping[int, torch.Tensor], drawn: Mapping[int, torch.Tensor], state: timing.State
) -> elements.Changing:
    """Writes the values `drawn` of the gradients that flow in into `upstream`, as they are at the beginning of the run of `state`, and returns what changes an element of the first of them."""
    for position, value in upstream.items():
        value.copy_(drawn[position].roll(state.run))
    first = next(iter(upstream), None)
    if first is None or upstream[first].numel() == 0 or state.seed == 0:
        return elements.Changing([], [])
    return elements.changing(upstream[first], drawn[first], state.seed + APART)


def inputs_state(which: str, state: timing.State) -> timing.State:
    """Returns the state of the inputs of the call that had `state`: those of a backward pass alone do not change within a run."""
    return replace(state, changes=0) if which == BACKWARD else state


def flowing(state: timing.State) -> Flows:
    """Returns what draws the gradients that flow into the outputs of the call that had the inputs of `state`."""

    def drawn(outputs: Sequence[object], case: cases.Case) -> dict[int, torch.Tensor]:
        upstream = autograd.upstream_gradients(outputs, case)
        originals = {position: value.clone() for position, value in upstream.items()}
        change = changing(upstream, originals, state)
        for _ in range(state.changes):
            change.change()
        return upstream

    return drawn


@dataclass(frozen=True)
class Subject:
    """What is timed."""

    call: Call
    """Makes the passes that are timed; returns what `named` knows the names of."""
    prepare: Call
    """To be called before each run, once the inputs have their values: makes what a timed call needs, and returns what the forward pass returned."""
    named: Callable[[object], dict[str, object]]
    """Returns the results of a call by name: `0`, `1` for outputs, `grad.NAME` for gradients."""
    passes: Passes | None = None
    """Its passes one by one, where not the forward pass alone is timed."""


def subject(which: str, forward: Call, buffers: timing.Buffers | None) -> Subject:
    """Returns the passes of `forward`, a call on the `arguments` of the buffers, which a forward pass does without, as what is timed. A forward pass is timed as it is, with nothing around it."""
    if not isinstance(buffers, Flowing):
        ignored = frozenset[int]() if buffers is None else buffers.ignored
        return Subject(forward, nothing, partial(by_position, ignored=ignored))
    passes = Passes(forward, buffers)
    return Subject(passes.back if which == BACKWARD else passes.both, passes.prepare, passes.named, passes)


def call_subject(subject: Subject, lane: str) -> None:
    """Makes the passes of a subject once, as kernel code is called on the lane; what flows in is drawn where no tensor pretends to be on a device."""
    if subject.passes is not None:
        with stage.pretending(lane):
            returned = subject.passes.forward()
        subject.passes.keep(returned)
    with stage.pretending(lane):
        subject.call()


def by_position(returned: object, ignored: Container[int] = ()) -> dict[str, object]:
    """Returns the outputs that a call returned by their positions; those that are `ignored` may be anything."""
    return {str(position): value for position, value in enumerate(results.listed(returned, ignored))}


class Passes:
    """The passes of a call that autograd records."""

    def __init__(self, forward: Call, buffers: Flowing) -> None:
        import torch

        self.forward, self.buffers = forward, buffers
        self.leaves = tuple(buffers.leaves[name] for name in buffers.asking)
        self.engine = torch.autograd.Variable._execution_engine.run_backward
        self.ends: tuple[torch.Tensor, ...] = ()
        self.given: tuple[torch.Tensor, ...] = ()

    def prepare(self) -> object:
        """Makes the forward pass that `back` goes back over, and returns what it returned."""
        returned = self.forward()
        self.keep(returned)
        return returned

    def keep(self, returned: object) -> None:
        """Keeps what the forward pass returned, for `back`. Draws what flows in if that was not done before."""
        self.ends, self.given = self.meeting(results.listed(returned, self.buffers.ignored))

    def meeting(self, outputs: list[object]) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        """Returns the outputs that have gradients, and what flows into them."""
        flows = self.buffers.flows_into(outputs)
        # What has no gradient here, and has one elsewhere, is refused by autograd.
        ends: list[torch.Tensor] = [outputs[position] for position in flows]  # type: ignore[misc]
        return tuple(ends), tuple(flows.values())

    def back(self) -> object:
        """Returns the gradients; the graph stays."""
        return self.engine(
            self.ends, self.given, True, False, self.leaves, allow_unreachable=True, accumulate_grad=False
        )

    def both(self) -> object:
        """Returns the outputs and the gradients of both passes, in one tuple."""
        outputs = results.listed(self.forward(), self.buffers.ignored)
        ends, given = self.meeting(outputs)
        found = self.engine(ends, given, False, False, self.leaves, allow_unreachable=True, accumulate_grad=False)
        return (*outputs, *found)

    def named(self, returned: object) -> dict[str, object]:
        """Returns the outputs, where there are some, and the gradients by name; what depends on no output has none."""
        found = list(cast("tuple[object, ...]", returned))
        outputs = found[: len(found) - len(self.leaves)]
        gradients = zip(self.buffers.asking, found[len(outputs) :], strict=True)
        return by_position(outputs, self.buffers.ignored) | {
            f"grad.{name}": value for name, value in gradients if value is not None
        }


def call_once(which: str, forward: Call, given: Mapping[str, torch.Tensor], case: cases.Case) -> None:
    """Makes the passes of a call on `given` once, as a tune does."""
    returned = forward()
    if which != FORWARD:
        autograd.gradients(results.listed(returned), given, case)
