"""When this process kept its device at work, by the machine's monotonic clock. The lane's figures are made from these spans.

A child serves one action at a time, so spans are collected here and sent once, with the reply. On lanes without a device there are none. torch is
imported only inside functions.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, Reply, ToldDoing, ToldSpan

Asked = TypeVar("Asked", bound="Common")
"""The request of a phase."""

TIMING: Final = "timing"
"""Inside the clock of a bench, a baseline or a tune."""

WORK: Final = "work"
"""All else that the device does."""

NEAR_NS = 1_000_000
"""Spans of one kind that are closer than this are merged."""

MOST = 200
"""The most spans in a reply."""

Span: TypeAlias = "tuple[int, int, ToldDoing]"
"""Begin and end in nanoseconds, and for what."""

_marked: list[Span] = []


@contextlib.contextmanager
def timing() -> Iterator[None]:
    """Marks the context as time in which the device is timed. What is timed has finished when the context ends."""
    begun = monotonic_ns()
    try:
        yield
    finally:
        _marked.append((begun, monotonic_ns(), TIMING))


def work(device: str, *, waits: bool = True) -> contextlib.AbstractContextManager[None]:
    """Returns a context that is marked as work of `device` (`cuda`, or another, for which nothing is marked), and that waits for the device at its end, unless the
    context itself waits for what it started.

    A device that has failed is not waited for: what the context raised says so.
    """
    return _work(waits=waits) if device == "cuda" else contextlib.nullcontext()


@contextlib.contextmanager
def _work(*, waits: bool) -> Iterator[None]:
    import torch

    begun = monotonic_ns()
    try:
        yield
        if waits:
            torch.cuda.synchronize()
    finally:
        _marked.append((begun, monotonic_ns(), WORK))


def told(function: Callable[[Asked], Reply]) -> Callable[[Asked], Reply]:
    """Returns the phase function with `device_spans` in its reply: `[begin, end, kind]`, in nanoseconds, sorted and apart."""

    @functools.wraps(function)
    def telling(request: Asked) -> Reply:
        _marked.clear()
        return {**function(request), "device_spans": merged(_marked)}

    return telling


def merged(spans: list[Span]) -> list[ToldSpan]:
    """Returns `spans` sorted and apart, near neighbours of one kind joined, at most `MOST` of them. What is timed and work counts as timed."""
    timed = joined([span for span in spans if span[2] == TIMING], 0)
    apart = [*(piece for span in spans if span[2] != TIMING for piece in without(span, timed)), *timed]
    near = NEAR_NS
    while len(found := joined(apart, near)) > MOST:
        if near > found[-1][1] - found[0][0]:
            # The two kinds alternate, and none has a neighbour of its kind.
            found = gathered(joined(apart, NEAR_NS))
            break
        near *= 2
    return [[*span] for span in found]


def gathered(spans: list[Span]) -> list[Span]:
    """Returns at most `MOST` spans for more of them, sorted and apart: of as many in a row as that takes, their work as one and then what was timed as another, from where the
    first begins. So both kinds take as long in all as they did."""
    size = math.ceil(len(spans) / (MOST // 2))
    found: list[Span] = []
    for first in range(0, len(spans), size):
        row = spans[first : first + size]
        begin = row[0][0]
        for kind in (WORK, TIMING):
            end = begin + sum(end - begin for begin, end, own in row if own == kind)
            if end > begin:
                found.append((begin, end, kind))
            begin = end
    return found


def joined(spans: list[Span], near: int) -> list[Span]:
    """Returns `spans` sorted by their begin, neighbours of one kind that are at most `near` nanoseconds apart as one."""
    found: list[Span] = []
    for begin, end, kind in sorted(spans):
        if found and found[-1][2] == kind and begin - found[-1][1] <= near:
            found[-1] = (found[-1][0], max(found[-1][1], end), kind)
        else:
            found.append((begin, end, kind))
    return found


def without(span: Span, others: list[Span]) -> list[Span]:
    """Returns the pieces of `span` that lie in none of `others`, which are sorted and apart."""
    begin, end, kind = span
    pieces = []
    for from_, to, _ in others:
        if to <= begin or from_ >= end:
            continue
        if from_ > begin:
            pieces.append((begin, from_, kind))
        begin = max(begin, to)
    return [*pieces, (begin, end, kind)] if begin < end else pieces
