"""Waits until nothing disturbs a measurement: the server then puts a file into its scratch folder, once no child gets ready or ends.

What a measurement makes ready for itself is done before, beside those children.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common

QUIET, GO = "quiet", "go"
"""The files that tell what measures that nothing disturbs it, and a child that gets ready with a folder of its own that it may use the device
(crates/protocol/src/request.rs)."""

PATIENCE_S = 60.0
"""How long the word is waited for. A server gives it after 30 s whatever still goes on; one that cannot write the file never does."""

LOOK_S = 0.001


def awaited(request: Common) -> int:
    """Returns how many other children of this build have started the device and do nothing there, once nothing disturbs the action of `request`.

    0 at once where nobody will say so, as outside of a build.
    """
    return beside(str(request["scratch"])) if request.get("is_told_of_quiet") else 0


@functools.cache
def beside(scratch: str) -> int:
    """Returns the number in the file in the folder `scratch`, once it is there; 0 where it never comes."""
    file, end = Path(scratch, QUIET), time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if file.exists():
            return int(file.read_text(encoding="ascii"))
        time.sleep(LOOK_S)
    return 0
