"""Traces of the declared call at some lengths, for the analyze phase.

A reference that asks for values which tensors without values do not have is called with zeros in their place: nothing is known of it then but that torch takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.op import aten, declaration, expression, operation, results, valueless

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration

MOST_CALLS = 1000
"""Most calls of torch that are traced to find out how work grows: a reference that loops over a dim makes millions far out."""

MOST_DECLARED = 10_000
"""Most calls of torch that are traced at a declared size: a reference that loops over elements makes millions there, each of which takes 100 µs."""

LONGER = 4
"""Calls with values are made at lengths up to so many times those of the smallest size, and a few more."""

LONG = 34
"""They are made at lengths up to this one in any case."""

NO_TRACE = "the reference"
"""What stands in the way of a trace where no operation of torch does."""


class Unfit(Exception):
    """torch refuses the declared call, or nothing can be judged by what it does.

    Holds the size at which it did, None before any size, what to do about it, and the exception as the cause.
    """

    def __init__(self, size: str | None, hint: str | None = None) -> None:
        super().__init__(size)
        self.size = size
        self.hint = hint


@dataclass
class Tracer:
    """Traces the calls of one op in its first dtype."""

    op: Declaration
    values: str | None = None
    """Why calls are made with values, once they are."""
    known: dict[tuple[bool, tuple[tuple[str, int], ...]], aten.Trace | None] = field(default_factory=dict)
    """What `tried` returned, by whether that was without values, and the binding: the same lengths are asked for more than once."""
    smallest: Mapping[str, int] = field(init=False)
    """The declared size whose longest dims are the shortest."""

    def __post_init__(self) -> None:
        """Looks for the smallest size."""
        self.smallest = min(self.op["sizes"].values(), key=lambda one: sorted(one.values(), reverse=True))

    def at(self, binding: Mapping[str, int], size: str) -> aten.Trace:
        """Returns what the call dispatches at `binding`, the declared `size`. Raises `Unfit` naming it where torch refuses the call."""
        if self.values is not None:
            return self._untraced()
        try:
            return self._trace(binding, size, None)
        except Unfit as unfit:
            if isinstance(unfit.__cause__, aten.TooLong):
                return aten.Trace((), None, None, NO_TRACE, f"it makes more than {MOST_DECLARED:,} calls of torch")
            self._call_smallest(unfit)
            return self._untraced()

    def tried(self, binding: Mapping[str, int]) -> aten.Trace | None:
        """Returns what the call dispatches at a `binding` that nobody declared; None where torch refuses it, or where that is more than `MOST_CALLS`."""
        asked = self.values is None, tuple(sorted(binding.items()))
        if asked not in self.known:
            self.known[asked] = self._tried(binding)
        return self.known[asked]

    def _tried(self, binding: Mapping[str, int]) -> aten.Trace | None:
        try:
            if self.values is None:
                return self._trace(binding, None, MOST_CALLS)
            if self._is_long(binding):
                return None
            valueless.call(self.op, binding, self.dtype, MOST_CALLS)
        except Exception:
            return None
        return self._untraced()

    def require_tensors(self) -> None:
        """Raises `Unfit` where the call with values returns something else than tensors, which is not seen where it is not followed to its end. What else it raises is no matter of its result."""
        try:
            valueless.call(self.op, self.smallest, self.dtype, MOST_CALLS)
        except results.NoTensor as refusal:
            raise Unfit(None) from refusal
        except valueless.MutatedInput as mutated:
            raise Unfit(None, mutated.hint) from mutated
        except Exception:
            return

    def require_taken(self) -> None:
        """Raises `Unfit` where a function of torch refuses the call with values for its arguments, which it does not always look at without values: a dim that there is none of. What a reference asks of values is its own."""
        if self.op.get("reference") is not None:
            return
        try:
            valueless.call(self.op, self.smallest, self.dtype, MOST_CALLS)
        except (IndexError, TypeError) as refusal:
            size = next(name for name, binding in self.op["sizes"].items() if binding == self.smallest)
            raise Unfit(size) from refusal
        except Exception:
            return

    @property
    def dtype(self) -> str:
        """Returns the dtype of the calls."""
        return self.op["dtypes"][0]

    def _untraced(self) -> aten.Trace:
        return aten.Trace((), None, None, NO_TRACE, self.values)

    def _is_long(self, binding: Mapping[str, int]) -> bool:
        """Tells whether a call with values takes too long at `binding`."""
        most = max(LONG, LONGER * max(self.smallest.values(), default=1) + 2)
        return any(length > most for length in binding.values())

    def _call_smallest(self, unfit: Unfit) -> None:
        """Makes the call with values at the smallest size, where `unfit` says that a size could not be traced and the smallest cannot be either. Raises `Unfit` where that is no question of values."""
        if self._is_traced(self.smallest) or isinstance(unfit.__cause__, expression.Impossible):
            raise unfit
        try:
            valueless.call(self.op, self.smallest, self.dtype)
        except valueless.MutatedInput as mutated:
            raise Unfit(unfit.size, mutated.hint) from mutated
        except Exception as refusal:
            raise Unfit(unfit.size) from refusal
        self.values = f"torch cannot follow it on tensors without values: {str(unfit.__cause__).splitlines()[0][:200]}"

    def _is_traced(self, binding: Mapping[str, int]) -> bool:
        try:
            self._trace(binding, None, None)
        except Unfit:
            return False
        return True

    def _trace(self, binding: Mapping[str, int], size: str | None, most: int | None) -> aten.Trace:
        """Returns what the call dispatches at `binding`. Raises `Unfit` where torch refuses it, or where that is more than `most` calls."""
        op, within = self.op, valueless.mode()
        limit = most if most is not None and not self._is_long(binding) else 0 if most is not None else None
        with within:
            inputs = valueless.inputs(op, binding, self.dtype)
        try:
            kwargs = declaration.bind_kwargs(op["kwargs"], binding)
            function = valueless.ready(op, binding, self.dtype, within, limit)
        except Exception as refusal:
            raise Unfit(size) from refusal
        with within:
            read = [*inputs.values(), *operation.weights(function)]
            try:
                called, before = MOST_DECLARED if most is None else most, valueless.versions(inputs)
                found = aten.trace(lambda: operation.call(function, op, inputs, kwargs), read, called)
                valueless.require_unwritten(op, inputs, before)
                return found
            except aten.Refused as refused:
                raise Unfit(size) from refused.__cause__
            except valueless.MutatedInput as mutated:
                raise Unfit(size, mutated.hint) from mutated
