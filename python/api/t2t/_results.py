"""What a build comes to, and what stands: the documents of t2t as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from t2t._program import REJECTED, Place, document, events

FINAL = "final"
"""The size of a figure that is the mean of all sizes' times."""


@dataclass(frozen=True)
class Action:
    """One action of a build."""

    target: str
    """`softmax/v2_tiling:check`."""
    how: str
    """`ran`, `fresh`, `restored`, `skipped`, `missing`, `lost` or `cancelled`."""
    outcome: str | None
    """`passed`, `rejected` or `not-judged`; also of a result that stands."""
    class_: str | None
    """That of a rejection."""
    key: str | None
    """What the result stands under."""
    lane: str | None
    """Where it ran."""
    wall_ms: float | None
    why: tuple[str, ...]
    """Why it was skipped, is missing or was lost."""


@dataclass(frozen=True)
class Failure:
    """What is wrong with a kernel."""

    target: str
    class_: str
    case: str | None
    """The case that showed it, `small/float32/0`."""
    message: str
    file: str | None
    line: int | None
    """From 1."""
    hint: str | None
    text: str
    """The whole message, as a terminal shows it."""


@dataclass(frozen=True)
class Build:
    """What a build came to."""

    exit_code: int
    """0, or 1 where a kernel is rejected, or a required result is missing."""
    wall_ms: float
    actions: tuple[Action, ...]
    """All that were wanted, the last state of each."""
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    """Notes and warnings."""

    @property
    def is_whole(self) -> bool:
        """Tells whether all that was asked for is there, and no kernel is rejected."""
        return self.exit_code != REJECTED

    @property
    def ran(self) -> tuple[Action, ...]:
        """Returns the actions that were run, and had no result that stood."""
        return tuple(action for action in self.actions if action.how == "ran")


@dataclass(frozen=True)
class State:
    """How an action stands."""

    target: str
    state: str
    """`fresh`, `stale`, or `skipped` after one that did not pass."""
    outcome: str | None
    class_: str | None
    key: str | None
    why: tuple[str, ...]
    """Why it is stale."""


@dataclass(frozen=True)
class Figure:
    """What a kernel takes at a size, beside torch."""

    size: str
    """A size of ops.yaml, or `final`, the mean over all of them."""
    ms: float
    torch_ms: float
    speedup: float
    low: float | None
    high: float | None
    """The 95 % interval of the speedup; None where there is one run."""
    is_unstable: bool


@dataclass(frozen=True)
class Kernel:
    """One variant of an op, as it stands."""

    name: str
    status: str
    """`passed`, `rejected`, `not-judged`, `skipped` or `lost`."""
    class_: str | None
    reason: str | None
    is_chosen: bool
    figures: tuple[Figure, ...]
    """None of a kernel that is not right, nor where Triton's interpreter ran it: its times say nothing of a device."""
    geomean_speedup: float | None
    """The geometric mean of the speedups over the sizes."""


@dataclass(frozen=True)
class Result:
    """What an op comes to: its selection."""

    op: str
    device: str | None
    """The model, `nvidia-h200`; None on Triton's interpreter."""
    chosen: str | None
    why: str
    ties: tuple[str, ...]
    against_torch: str | None
    """`faster`, `ties` or `slower`."""
    kernels: tuple[Kernel, ...]

    def kernel(self, name: str | None = None) -> Kernel:
        """Returns the kernel of that name, or without one the chosen one. Raises KeyError where there is none."""
        wanted = self.chosen if name is None else name
        found = next((kernel for kernel in self.kernels if kernel.name == wanted), None)
        if found is None:
            raise KeyError(wanted)
        return found


def build(
    *targets: str,
    workspace: Place | None = None,
    device: str | None = None,
    as_device: str | None = None,
    require_cached: bool = False,
    options: tuple[str, ...] = (),
    shows: bool = False,
    heard: Callable[[dict[str, Any]], None] | None = None,
) -> Build:
    """Brings the named targets, or everything, up to date, and returns what that came to.

    Targets are those of the command: ops, `softmax/v2_tiling`, `softmax:check`, patterns, kernel files. `workspace` is a folder in it, by default the
    current one. `options` are further options of `t2t build`. Each event is passed to `heard` as it happens; an exception there ends the build.
    Raises MisuseError for what is not there and for a wrong `ops.yaml`, MachineError where the machine failed, and KeyboardInterrupt.
    """
    actions: dict[str, Action] = {}
    failures: list[Failure] = []
    notes: list[str] = []
    finished: dict[str, Any] = {}

    def take(event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "action-finished":
            actions[event["target"]] = Action(
                event["target"], event["how"], event["outcome"], event["class"], event["key"], event["lane"],
                event["wall_ms"], tuple(event["why"] or ()),
            )  # fmt: skip
        elif kind == "failure":
            names = ("target", "class", "case", "message", "file", "line", "hint", "text")
            failures.append(Failure(*(event[name] for name in names)))
        elif kind in ("note", "warning"):
            notes.append(event["text"])
        elif kind == "finished":
            finished.update(event)
        if heard is not None:
            heard(event)

    cached = ["--require-cached"] if require_cached else []
    code = events([*common(device, as_device), *cached, *options, *targets], workspace, shows=shows, heard=take)
    return Build(code, finished.get("wall_ms", 0.0), tuple(actions.values()), tuple(failures), tuple(notes))


def status(
    *targets: str, workspace: Place | None = None, device: str | None = None, as_device: str | None = None
) -> list[State]:
    """Returns how the actions of the named targets, or all, stand. Nothing runs. Raises T2tError."""
    listed = document(["status", "--format", "json", *common(device, as_device), *targets], workspace)
    return [
        State(one["target"], one["state"], one["outcome"], one["class"], one["key"], tuple(one["why"] or ()))
        for one in listed
    ]


def artifact(
    target: str,
    name: str,
    *,
    workspace: Place | None = None,
    device: str | None = None,
    as_device: str | None = None,
) -> Any:
    """Returns a document of an action's result, as `t2t artifact` prints it: `analysis`, `evidence`, `bench`, `selection` and others. Raises T2tError where it has none."""
    return document(["artifact", *common(device, as_device), target, name], workspace)


def results(
    *ops: str, workspace: Place | None = None, device: str | None = None, as_device: str | None = None
) -> list[Result]:
    """Returns what the named ops, or all that were built, come to; an op without a selection that stands is not among them. Nothing runs. Raises T2tError."""
    known = status(*ops, workspace=workspace, device=device, as_device=as_device)
    built = [one.target.partition(":")[0] for one in known if one.target.endswith(":select") and one.state == "fresh"]
    return [
        result_of(op, artifact(f"{op}:select", "selection", workspace=workspace, device=device, as_device=as_device))
        for op in built
    ]


def common(device: str | None, as_device: str | None) -> list[str]:
    """Returns the options that say which device is meant."""
    named = (("--device", device), ("--as-device", as_device))
    return [part for option, value in named if value is not None for part in (option, value)]


def result_of(op: str, selection: Mapping[str, Any]) -> Result:
    """Returns a selection as a value."""
    chosen, device = selection["chosen"], selection["device"]
    return Result(
        op=op,
        device=None if selection["interpreter"] else device["model"],
        chosen=chosen,
        why=selection["why"],
        ties=tuple(selection["ties"]),
        against_torch=selection["against_torch"],
        kernels=tuple(kernel_of(row, row["name"] == chosen) for row in selection["variants"]),
    )


def kernel_of(row: Mapping[str, Any], is_chosen: bool) -> Kernel:
    """Returns a selection's row as a value."""
    told = row["figures"]
    figures = () if told is None else tuple(figures_of(told))
    mean = None if told is None else told["geomean_speedup"]
    return Kernel(row["name"], row["status"], row["class"], row["reason"], is_chosen, figures, mean)


def figures_of(told: Mapping[str, Any]) -> list[Figure]:
    """Returns a kernel's figures, size by size, and the mean last."""
    final = {
        "ms": told["final_ms"],
        "torch_ms": told["torch_final_ms"],
        **{name: told[name] for name in ("speedup", "interval", "unstable")},
    }
    return [figure_of(size, one) for size, one in (*told["sizes"].items(), (FINAL, final))]


def figure_of(size: str, told: Mapping[str, Any]) -> Figure:
    """Returns one size's figure."""
    low, high = told["interval"] or (None, None)
    return Figure(size, told["ms"], told["torch_ms"], told["speedup"], low, high, told["unstable"])
