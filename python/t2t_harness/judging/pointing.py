"""Indices into what a reference computes on the way and does not return, as the experts that `topk` names of a softmax.

Where values there are equal, or closer than torch's own error, any of their places is right, as for `compare: indices` of ops.yaml. torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import seeds
from t2t_harness.judging import comparing, oracle, tolerance

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

MAKERS: Mapping[str, tuple[int, int]] = {
    "aten::topk": (1, 2),
    "aten::sort": (1, 1),
    "aten::sort.stable": (1, 3),
    "aten::argmax": (0, 1),
    "aten::argmin": (0, 1),
    "aten::max.dim": (1, 1),
    "aten::min.dim": (1, 1),
    "aten::median.dim": (1, 1),
    "aten::nanmedian.dim": (1, 1),
    "aten::kthvalue": (1, 2),
    "aten::mode": (1, 1),
}
"""torch's operations that make indices into their first argument: the position of these among what they return, and that of `dim` among their arguments."""

LAST = frozenset("aten::topk aten::sort aten::sort.stable aten::kthvalue aten::mode".split())
"""Those of them that go along the last dim where none is told; the others count through all elements."""

FIRST = frozenset("aten::argmax aten::argmin aten::max.dim aten::min.dim".split())
"""Those of them that name the first of equal values, by torch's documentation; so does a stable sort."""

KEEPING = frozenset(
    "aten::_to_copy aten::clone aten::detach aten::alias aten::slice.Tensor aten::squeeze.dim aten::view aten::_unsafe_view".split()
)
"""Operations after which indices point into the same."""

INTEGERS = frozenset("torch.uint8 torch.int8 torch.int16 torch.int32 torch.int64".split())

ROUNDED = 4
"""So many times torch's own error two values may lie apart that count as equal: of each of both values a kernel may have a half of it, as torch has."""


@dataclass(frozen=True)
class Pointed:
    """What indices point into."""

    source: torch.Tensor
    dim: int | None
    """None where they count through all elements."""
    is_first: bool
    """Whether of equal values the first one is named, and not any."""

    def fits(self, indices: torch.Tensor) -> bool:
        """Tells whether `indices` have the shape of the source but for the dim along which they count, which they may lack."""
        if self.dim is None or self.source.dim() == 0:
            return True
        others = list(self.source.shape)
        del others[self.dim]
        shape = list(indices.shape)
        if len(shape) == self.source.dim():
            del shape[self.dim]
        return shape == others

    def error(self, wide: Pointed) -> torch.Tensor | None:
        """Returns by how much two values of `wide`, the same in float64, may lie apart and count as equal, one number for all along the dim: zero where the source is exact, as an input is. None where the two differ in shape."""
        import torch

        if self.source.shape != wide.source.shape or not self.source.dtype.is_floating_point:
            return None
        exact = wide.source.double()
        size = exact.abs().nan_to_num(0.0, 0.0, 0.0)
        error = (self.source.double() - exact).abs().nan_to_num(0.0, 0.0, 0.0)
        least = torch.finfo(torch.float32).eps * size * bool((error > 0).any())
        found = ROUNDED * error.maximum(least)
        return found.max() if self.dim is None or found.dim() == 0 else found.amax(self.dim, keepdim=True)


@dataclass
class Seen:
    """Which tensors were made of indices, while the context lasts."""

    by: dict[int, tuple[torch.Tensor, Pointed]] = field(default_factory=dict)
    """Identity of a tensor → the tensor, which is held so that no other gets that, and what it points into."""

    has_sorted: bool = False
    """Whether an operation was among them that leaves the order of equal values open."""

    def note(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], made: Any) -> None:
        """Notes what the operation `name` made."""
        self.has_sorted = self.has_sorted or (name in SORTED and not kwargs.get("stable"))
        if name in MAKERS:
            position, place = MAKERS[name]
            indices = made[position] if isinstance(made, tuple | list) else made
            told = kwargs.get("dim", args[place] if len(args) > place else None)
            dim = -1 if told is None and name in LAST else told
            is_first = name in FIRST or bool(kwargs.get("stable"))
            self.by[id(indices)] = indices, Pointed(args[0].detach().clone(), dim, is_first)
        elif name in KEEPING and id(args[0]) in self.by:
            self.by[id(made)] = made, self.by[id(args[0])][1]

    def forget(self, arguments: list[object]) -> None:
        """Forgets those of an operation's arguments that it may change: what was an index may be a number of another kind."""
        for one in arguments:
            self.by.pop(id(one), None)

    def of(self, tensor: torch.Tensor) -> Pointed | None:
        """Returns what a tensor points into, None where it was not made of indices."""
        found = self.by.get(id(tensor))
        return None if found is None else found[1]


def watched(seen: Seen) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which `seen` notes torch's operations."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            overload = func._schema.overload_name
            if func._schema.is_mutable:
                seen.forget([*args, *(kwargs or {}).values()])
            seen.note(func._schema.name + (f".{overload}" if overload else ""), args, kwargs or {}, made)
            return made

    return Watch()  # type: ignore[no-untyped-call]


SORTED: Mapping[str, bool] = {"aten::topk": True, "aten::sort": False, "aten::sort.stable": False}
"""Operations that leave the order of equal values open → whether so many of them are taken as an argument says."""


def in_order(ends: str) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which of equal values the `first` come before the others, or the `last`, where torch leaves that open."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class InOrder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            overload = func._schema.overload_name
            name = func._schema.name + (f".{overload}" if overload else "")
            if name not in SORTED or kwargs.get("stable"):
                return func(*args, **kwargs)
            is_part = SORTED[name]
            told = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
            dim, source = told.get("dim", -1), told["self"]
            is_falling = bool(told.get("largest" if is_part else "descending", is_part))
            given = source if ends == "first" else source.flip(dim)
            values, places = torch.sort(given, dim=dim, descending=is_falling, stable=True)
            places = places if ends == "first" else source.shape[dim] - 1 - places
            if not is_part or source.dim() == 0:
                return values, places
            return values.narrow(dim, 0, told["k"]).contiguous(), places.narrow(dim, 0, told["k"]).contiguous()

    return InOrder()  # type: ignore[no-untyped-call]


def references(
    declaration: Declaration,
    case: Case,
    given: Mapping[str, torch.Tensor],
    device: str,
    flows: oracle.Flows | None = None,
) -> Iterator[oracle.Reference]:
    """Yields the reference's results with equal values in another order, where it sorts some that torch leaves open: what it picks first may decide what it computes of that."""
    if declaration.get("reference") is None or seeds.is_random(declaration):
        return
    seen = Seen()
    with contextlib.suppress(oracle.Refused, RuntimeError, TypeError, ValueError, KeyError):
        with watched(seen):
            oracle.reference(declaration, case, given, device, flows)
        for ends in ("first", "last") if seen.has_sorted else ():
            with in_order(ends):
                right = oracle.reference(declaration, case, given, device, flows)
            yield right


def compared(
    declaration: Declaration,
    case: Case,
    name: str,
    judged: comparing.Judged,
    device: str,
    flows: oracle.Flows | None = None,
) -> tolerance.Comparison | None:
    """Returns the comparison of the result `name` by the values that it points to; None where `into` has nothing of it."""
    found = into(declaration, case, name, judged.given, judged.right[name], device, flows)
    return None if found is None else comparing.pointed(judged.made[name], judged.right[name], found)


def into(
    declaration: Declaration,
    case: Case,
    name: str,
    given: Mapping[str, torch.Tensor],
    right: torch.Tensor,
    device: str,
    flows: oracle.Flows | None = None,
) -> comparing.Into | None:
    """Returns what torch's result `name` points into, where nothing is declared of it and it is made of indices into a tensor of its shape but for one dim; None of any other result.

    Two values count as equal where they lie no further apart than a few times torch's error in their row, with the oracle as the truth; without an oracle they must be equal.
    """
    is_declared = comparing.output(declaration, name)["compare"] != "close"
    if is_declared or not name.isdecimal() or str(right.dtype) not in INTEGERS or seeds.is_random(declaration):
        return None
    seen = Seen()
    try:
        with watched(seen):
            again = oracle.reference(declaration, case, given, device, flows)
    except (oracle.Refused, RuntimeError, TypeError, ValueError, KeyError):
        # What is not dispatched as tensors are says nothing.
        return None
    plain, wide = (seen.of(one[name]) if one else None for one in (again.plain, again.oracle))
    if plain is None or not plain.fits(right) or not again.plain[name].equal(right):
        return None
    error = None if wide is None else plain.error(wide)
    if wide is None or error is None or not wide.fits(right):
        return comparing.Into(plain.source, plain.source, plain.dim, plain.source.new_zeros(()), plain.is_first)
    return comparing.Into(plain.source, wide.source.double(), plain.dim, error, plain.is_first)
