"""What is known of the values that a wrapper returned: their types, shapes and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from t2t_harness.op import module_kept, module_state
from t2t_harness.op import results as results_of

if TYPE_CHECKING:
    import torch

    from t2t_harness.cases.cases import Case
    from t2t_harness.judging import watch
    from t2t_harness.judging.told import Output
    from t2t_harness.triton import launching


EARLIER = 2
"""So many calls are made before the tensors that they were made on get other values: two buffers may have the results in turns."""

MOST_HELD = 1 << 28
"""Results of more bytes are let go of after their case."""


@dataclass
class Held:
    """Results that are held from call to call, as a caller may: of one case, and of declared ones of the same lengths and dtype one after the other."""

    results: list[torch.Tensor] = field(default_factory=list)
    form: tuple[object, ...] | None = None
    """What the cases have in common."""

    def took(self, case: Case, results: list[torch.Tensor]) -> bool:
        """Takes the results of a call in `case`, and tells whether one of them lies in memory of one that is held."""
        form = (case.kind, case.dtype, tuple(sorted(case.binding.items())), case.absent)
        if form != self.form:
            self.results, self.form = [], form
        found = overlap(self.results, results)
        self.results += results
        return found

    def let_go(self, case: Case) -> None:
        """Lets go of what is held after `case`, unless the next one may be called while it is held."""
        size = sum(one.untyped_storage().nbytes() for one in self.results)
        if case.kind != "declared" or case.file is not None or size > MOST_HELD:
            self.results, self.form = [], None


@dataclass
class Earlier:
    """Results of calls before the one that is observed, and what was in them."""

    results: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)
    differ: bool = False
    """Whether the calls, on the same inputs and with the same buffers, returned other values."""

    @classmethod
    def of(
        cls,
        call: Callable[[], object],
        wrapper: object,
        finish: Callable[[], None],
        given: Mapping[str, torch.Tensor],
    ) -> Earlier:
        """Makes `call` of `wrapper` `EARLIER` times on the inputs `given`, and leaves the buffers of a module as they were. `finish` waits for a call."""
        before = module_kept.Kept.of_buffers(wrapper)
        results: list[torch.Tensor] = []
        values: list[list[torch.Tensor]] = []
        for _ in range(EARLIER):
            got = call()
            finish()
            found = apart(results_of.listed(got), given, wrapper)
            results += found
            values.append([values_of(one) for one in found])
            before.restore(wrapper)
        first, *others = values
        differ = any(not is_alike(first, one) for one in others)
        return cls(results, [one for several in values for one in several], differ)

    def has_changed(self) -> bool:
        """Tells whether a result has other values than it had."""
        return any(not values_of(one).equal(before) for one, before in zip(self.results, self.values, strict=True))


def is_alike(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Tells whether the values of two calls are the same, in bits."""
    return len(one) == len(other) and all(first.equal(second) for first, second in zip(one, other, strict=True))


def values_of(value: torch.Tensor) -> torch.Tensor:
    """Returns the elements of a tensor as bytes of their own."""
    import torch

    plain = value.detach()
    if plain.dtype.is_complex:
        plain = torch.view_as_real(plain.resolve_conj())
    dense = plain.clone(memory_format=torch.contiguous_format).reshape(-1)
    return dense.view(torch.uint8) if dense.numel() else dense


def apart(results: Sequence[object], given: Mapping[str, torch.Tensor], wrapper: object) -> list[torch.Tensor]:
    """Returns the tensors among `results` that lie in no memory of the inputs `given`, and of no parameter or buffer of a `wrapper` that is a module."""
    import torch

    own = {value.untyped_storage().data_ptr() for value in given.values()}
    return [
        one
        for one in results
        if isinstance(one, torch.Tensor)
        and one.untyped_storage().data_ptr() not in own
        and not module_state.in_own_memory(wrapper, [one])
    ]


def overlap(held: list[torch.Tensor], later: list[torch.Tensor]) -> bool:
    """Tells whether a later result lies in memory of one that is still held."""
    spans_of = [memory_of(value) for value in held if value.untyped_storage().nbytes() > 0]
    later_spans = [memory_of(value) for value in later if value.untyped_storage().nbytes() > 0]
    return any(one.start < other.stop and other.start < one.stop for one in spans_of for other in later_spans)


def memory_of(value: torch.Tensor) -> range:
    """Returns the addresses of the storage of `value`."""
    storage = value.untyped_storage()
    return range(storage.data_ptr(), storage.data_ptr() + max(1, storage.nbytes()))


def describe(value: object, recorder: launching.Recorder, seen: watch.Watch) -> Output:
    """Returns what is known of one returned value: its type, shape, dtype, device, and whether a launch was given its
    memory, or that of which an operation of the op's `allow` made it."""
    import torch

    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if not isinstance(value, torch.Tensor):
        return {"type": name.removeprefix("builtins."), "plain": False}
    launched = seen.derived({address for launch in recorder.launches for address in launch.storages})
    own = memory_of(value)
    is_launched = any(address in own for address in launched)
    return {
        "type": name,
        "plain": type(value) is torch.Tensor,
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": value.device.type,
        "launched": is_launched,
        "copied_by": None if is_launched else seen.copied_by(launched, own),
        "by_hand": recorder.elsewhere == 0 and seen.memory.is_by_hand(value),
        "changed": recorder.elsewhere > 0 or seen.memory.is_changed(value),
    }
