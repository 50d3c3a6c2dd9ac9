"""What a compiled kernel needs of a multiprocessor: registers, spills and shared memory, read from its cubin without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

USAGE = re.compile(r"REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+) LOCAL:(?P<local>\d+)")


def usage(cubin: Path) -> dict[str, int | None]:
    """Returns `registers` a thread and `spills`, as Triton's `n_regs` and `n_spills`: registers, and 32-bit words kept in local memory.

    Both are None where Triton's `cuobjdump` is missing or says nothing. It costs one process of 4 ms.
    """
    from triton import knobs

    try:
        told = subprocess.run(
            [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(cubin)],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
    except (OSError, RuntimeError, subprocess.SubprocessError):
        return {"registers": None, "spills": None}
    found = USAGE.search(told)
    if found is None:
        return {"registers": None, "spills": None}
    return {"registers": int(found["registers"]), "spills": (int(found["stack"]) + int(found["local"])) // 4}
