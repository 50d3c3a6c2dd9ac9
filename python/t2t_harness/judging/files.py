"""Small files that a candidate leaves for its judge, written whole in as few calls of the system as there can be: some of them for each case."""

from __future__ import annotations

import os


def put(path: str | os.PathLike[str], content: bytes | bytearray, *, appends: bool = False) -> int:
    """Writes `content` to the file at `path`, in place of what it held, or behind it if it `appends`, and returns where it begins there, in bytes. The file is made where there is none. Raises OSError.

    The file is opened for each call: a kernel may close what it finds open.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if appends else os.O_TRUNC)
    descriptor = os.open(path, flags, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        return os.lseek(descriptor, 0, os.SEEK_CUR) - len(content)
    finally:
        os.close(descriptor)
