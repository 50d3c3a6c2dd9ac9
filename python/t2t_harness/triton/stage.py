"""The stage on which kernel code is called: what a process must be so that an unmodified wrapper runs in it.

torch and Triton are imported only inside functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from t2t_harness.triton import facade, generator, interpreting, launchers, normalize, warm

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, DeviceRow

H200: DeviceRow = {
    "name": "NVIDIA H200",
    "capability": [9, 0],
    "multiprocessors": 132,
    "memory": 150_754_820_096,
    "shared_memory": 232_448,
    "shared_memory_per_multiprocessor": 233_472,
    "l2": 62_914_560,
}
"""The device whose properties a wrapper sees on a machine without one, if the request names none."""


@contextlib.contextmanager
def lane(request: Common) -> Iterator[launchers.Counted]:
    """Makes the process what a wrapper expects of the lane, and yields the count of Triton's C modules.

    On the interpreter `torch.cuda` and Triton's driver answer for a device of the table; on a GPU, Triton finds the kernels and launchers that were compiled ahead.
    Must be entered before Triton's driver is asked for anything.
    """
    if request["lane"] == "interpreter":
        import numpy as np

        # A device says nothing of a division by zero, nor of an overflow.
        np.seterr(all="ignore")
        rows = request.get("devices") or [H200]
        facade.patch_torch_cuda(rows[0])
        facade.fake_driver(rows[0])
        facade.patch_benchmarks()
        generator.install()
        interpreting.install()
        yield launchers.Counted()
        return
    normalize.install()
    warm.install()
    warm.unpack_as_asked(request)
    with launchers.counted() as count:
        yield count


def pretending(lane_name: str) -> contextlib.AbstractContextManager[Any]:
    """Returns the context in which kernel code is called: on the interpreter, CPU tensors answer as CUDA tensors."""
    return facade.cpu_as_cuda() if lane_name == "interpreter" else contextlib.nullcontext()
