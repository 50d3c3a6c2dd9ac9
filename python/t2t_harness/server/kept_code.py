"""Files of bytecode that is kept: each with a checksum, so that what is not whole is not there."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

SUM = 4
"""Bytes of the checksum (CRC-32, big-endian) before what is kept."""


def whole(data: bytes) -> bytes:
    """Returns what is kept in the file that holds `data`. Raises OSError where it is not as it was written."""
    if len(data) <= SUM or zlib.crc32(data[SUM:]) != int.from_bytes(data[:SUM], "big"):
        raise OSError("the file is not whole")
    return data[SUM:]


def put(file: Path, data: bytes) -> None:
    """Keeps `data` in a file, whole or not at all. Raises OSError where it cannot be written."""
    fresh = file.with_name(f"{os.getpid()}.new")
    try:
        fresh.write_bytes(zlib.crc32(data).to_bytes(SUM, "big") + data)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
