"""Baselines beside eager torch and torch.compile: torch.compile in its other modes, and functions of installed modules or of the workspace.

A function gets the arguments that torch gets, and is trusted as a reference is. Before any of them is timed at a size, one result of it there is held against torch's by
the rules of a check: what computes something else is no baseline. torch is imported only inside functions.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from t2t_harness.cases import cases, seeds
from t2t_harness.faults import failure
from t2t_harness.judging import oracle
from t2t_harness.measuring import spans, timing
from t2t_harness.phases import compared, passes
from t2t_harness.sources import loading
from t2t_harness.sources.finder import install_finder

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import BaselineFunction, BaselineRequest, Declaration
    from t2t_harness.sources.entry import Entry

COMPILED = "torch.compile"

LONGEST = 400
"""How many characters a reason has at most."""


class NotTorchs(Exception):
    """What a baseline returned is not torch's result."""


def mode_of(name: str) -> str | None:
    """Returns the mode in which torch.compile makes the baseline `name`, as in `torch.compile:max-autotune`; None for its default."""
    return name.partition(":")[2] or None


def is_compiled(name: str) -> bool:
    """Tells whether torch compiles the baseline `name`."""
    return name.partition(":")[0] == COMPILED


def names(request: BaselineRequest) -> list[str]:
    """Returns the names of all baselines of a request: those of torch, then the functions."""
    return [*request["baselines"], *(one["name"] for one in request.get("functions", []))]


def described(error: BaseException) -> str:
    """Returns why a baseline has no figure, in words."""
    return str(error) if isinstance(error, NotTorchs) else failure.describe(error)[:LONGEST]


def marked(function: Entry) -> Entry:
    """Returns `function`, which torch compiled with CUDA graphs, with a word to torch before each call that results of earlier ones are no longer needed: a graph writes its
    results into the same memory each time."""
    import torch

    begin: Callable[[], object] = torch.compiler.cudagraph_mark_step_begin

    def call(*args: object, **kwargs: object) -> object:
        begin()
        return function(*args, **kwargs)

    return call


def load(request: BaselineRequest, reasons: dict[str, str]) -> dict[str, Entry]:
    """Returns the functions of a request that can be loaded, by name. Adds why others cannot to `reasons`."""
    found: dict[str, Entry] = {}
    for one in request.get("functions", []):
        try:
            if "ended" in one:
                reasons[one["name"]] = one["ended"]
            else:
                found[one["name"]] = loaded(request["root"], one)
        except Exception as error:
            reasons[one["name"]] = described(error)
    return found


def loaded(root: str, one: BaselineFunction) -> Entry:
    """Returns a function. Raises what its module raises, ImportError or AttributeError where there is none of its name, and TypeError where it cannot be called."""
    install_finder(root)
    if "file" in one:
        value: object = loading.load_file(root, one["file"])
        for part in one["function"].split("."):
            value = getattr(value, part)
    else:
        value = pkgutil.resolve_name(one["function"])
    if not callable(value):
        raise TypeError(f"`{one['function']}` cannot be called")
    return cast("Entry", value)


@dataclass
class Size:
    """A size at which baselines are judged before they are timed."""

    which: str
    """The passes that are timed."""
    declaration: Declaration
    case: cases.Case
    buffers: timing.Buffers
    device: str
    right: oracle.Reference | None = None
    """What torch returns there, once it was asked."""

    def subject(self, function: Entry) -> passes.Subject:
        """Returns the passes of `function` that are timed. Raises what it raises, and NotTorchs where its result is not torch's."""
        forward = timing.call_of(function, self.declaration, self.case, passes.arguments(self.buffers), self.device)
        made = passes.subject(self.which, forward, self.buffers)
        self.judge(made)
        return made

    def judge(self, subject: passes.Subject) -> None:
        """Raises NotTorchs where a result of the subject is not torch's at this size. Of what is drawn at random shapes and dtypes alone are compared."""
        self.buffers.refill(0)
        before = {name: value.clone() for name, value in self.buffers.given.items()}
        with spans.work(self.device):
            subject.prepare()
            results = subject.named(subject.call())
            results |= {f"after.{name}": self.buffers.given[name].clone() for name in self.buffers.mutated}
            if self.right is None:
                self.right = oracle.reference(self.declaration, self.case, before, self.device)
            message = self.wrong(results, before, self.right) or self.touched(before)
        self.buffers.refill(0)
        if message is not None:
            raise NotTorchs(f"its result is not torch's at size `{self.case.name.rsplit('/', 1)[0]}`: {message}")

    def wrong(self, results: dict[str, object], before: dict[str, torch.Tensor], right: oracle.Reference) -> str | None:
        """Returns what is wrong with the results, or None."""
        import torch

        expected = [name for name in right.plain if compared.is_timed(self.which, self.declaration, name, before)]
        stored = {name: value.detach() for name, value in results.items() if isinstance(value, torch.Tensor)}
        if strange := sorted({type(value).__qualname__ for name, value in results.items() if name not in stored}):
            return f"{', '.join(strange)}, no tensor"
        for name in right.unused & set(expected):
            stored.setdefault(name, torch.zeros_like(right.plain[name]))
        if sorted(stored) != sorted(expected):
            return f"{len(stored)} results, {len(expected)} expected"
        for name in expected:
            if seeds.is_random(self.declaration):
                own, torchs = stored[name], right.plain[name]
                is_like = (own.shape, own.dtype) == (torchs.shape, torchs.dtype)
                message = (
                    None
                    if is_like
                    else f"{list(own.shape)} of {own.dtype}, {list(torchs.shape)} of {torchs.dtype} expected"
                )
            else:
                message = compared.wrong(self.declaration, self.case, name, stored, before, right)
            if message is not None:
                return message
        return None

    def touched(self, before: dict[str, torch.Tensor]) -> str | None:
        """Returns which input was changed that the op leaves alone, or None."""
        for name, value in before.items():
            now = self.buffers.given[name]
            if name not in self.buffers.restored and not bool(
                ((now == value) | ((now != now) & (value != value))).all()
            ):
                return f"it changes its input `{name}`"
        return None
