"""What a candidate tells its judge of the cases that ran, as types: the lines of its progress file. Nothing in them is to be relied on: kernel code may write there. It is imported by type checkers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Failure, SourcePlace


class Output(TypedDict, total=False):
    """What is known of one returned value."""

    type: str
    """Its type."""
    plain: bool
    """Whether it is a tensor of torch's own type. What follows is told of those alone."""
    shape: list[int]
    strides: list[int]
    dtype: str
    device: str
    launched: bool
    """Whether a launch was given its memory."""
    copied_by: str | None
    """The operation of torch that copied it from memory that a launch was given, where none was given its own."""
    by_hand: bool
    """Whether something else than a launch wrote to it after its last one."""
    changed: bool
    """Whether launches changed it, as far as that is known."""


class Conflict(TypedDict):
    """What programs of a launch did to each other."""

    words: str
    """What."""
    place: SourcePlace | None
    """The line of the kernel."""


class Run(TypedDict, total=False):
    """One run of a case."""

    form: str
    """What the wrapper returned, as `results.apart` has it."""
    numbers: list[float]
    """The fractions in it."""
    outputs: dict[str, Output]
    """What it returned, by position."""
    computed: dict[str, int]
    """What torch computed for it, and how often."""
    declared: dict[str, int]
    """The same of what the op's `allow` lets torch compute."""
    changed: list[str]
    """Inputs whose form it changed, and settings of torch's, in words."""
    unaccounted: list[str]
    """Kernels that ran beside those that it was seen to launch."""
    launches: int
    """How many kernels it launched."""
    configs: list[str]
    """Their configurations, as JSON."""
    outside: list[str]
    """What it wrote outside of its memory, in words."""
    read_outside: list[str]
    """What it read there."""
    conflicts: list[Conflict]
    reversed: bool
    """Whether programs went in reverse order."""


class Facts(TypedDict, total=False):
    """One case."""

    name: str
    status: str
    """`ran`, `exception`, `not-judged`, `left-out`, `too-large`."""
    reason: str | None
    """Why it did not run."""
    binding: dict[str, int]
    """The lengths that it ran with, where they are not its own."""
    runs: dict[str, Run]
    """By label (cases/runs.py)."""
    at: list[int]
    """Where its results lie in the file for those of few bytes."""
    aliased: bool
    """Whether a result lies in memory of an earlier call's, which was still held, or an earlier one changed."""
    drawn: list[str]
    """The parameters and buffers that had other values than their constructor gave them."""
    returns_own: bool
    """Whether a result lies in memory of a parameter or a buffer of the wrapper's, which the next call may change."""
    failure: Failure
    """What it raised."""
    is_deliberate: bool
    """Whether a statement of the wrapper's raised that, or its signature."""
    is_of_kind: bool
    """Whether a value of another kind than the wrapper takes may lead to that."""
    is_taken: bool
    """Whether the wrapper returned, in any run of the case."""
    is_last: bool
    """Whether the candidate ended with it."""
