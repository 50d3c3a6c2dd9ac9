"""What is known of the values that a wrapper returned: their types, shapes and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from t2t_harness.judging import watch
    from t2t_harness.judging.told import Output
    from t2t_harness.triton import launching


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
    return {
        "type": name,
        "plain": type(value) is torch.Tensor,
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": value.device.type,
        "launched": any(address in own for address in launched),
        "by_hand": recorder.elsewhere == 0 and seen.memory.is_by_hand(value),
        "changed": recorder.elsewhere > 0 or seen.memory.is_changed(value),
    }
