"""Numbers of single precision: as a float32 has them."""

from __future__ import annotations

import struct


def rounded(value: float) -> float:
    """Returns the float32 that is nearest to `value`."""
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found
