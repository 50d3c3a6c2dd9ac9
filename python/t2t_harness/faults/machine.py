"""What kernel code raised though the machine failed, and not the kernel: others hold the device's memory, or there is no room on the disk.

Whoever asks lets the exception go on: a function of the harness that raises has failed as the machine's fault.
"""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from t2t_harness.faults import failure, memory

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""What the system calls answer where a disk is full, or all that its user may have of it is used."""


def raise_if_it_failed(error: BaseException, root: str | Path) -> None:
    """Raises an exception again if the machine is behind it: others hold the memory of the device, or there was no room for what torch, Triton, a compiler or t2t writes. What code of the workspace `root` writes or raises itself is its own fault."""
    memory.raise_if_others_hold_it(error)
    first = failure.chain(error)[-1]
    if getattr(first, "errno", None) in NO_ROOM or said(str(first)):
        frames = traceback.extract_tb(first.__traceback__)
        if not frames or failure.workspace_file(frames[-1].filename, root) is None:
            raise first


def raise_if_it_says_so(told: str) -> None:
    """Raises OSError if a compiler that is another process says in what it printed that there was no room for what it wrote."""
    if number := said(told):
        raise OSError(number, os.strerror(number))


def said(told: str) -> int:
    """Returns the number of the error in `NO_ROOM` whose words are in `told`, or 0."""
    return next((number for number in NO_ROOM if os.strerror(number) in told), 0)
