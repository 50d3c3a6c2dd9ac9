"""Bytecode of the harness itself, kept beside that of installed packages (`bytecode.py`): to compile its sources takes half a second of each process that imports them.

What is kept is named by the digest of the source that it was made of, and the source is read each time: so it is of exactly that source, wherever it lies and whenever it was written.
The process that first imports a module keeps it, if it may write there; children, which may run kernel code, may not.
"""

from __future__ import annotations

import _imp
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import marshal
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from t2t_harness.server.kept_code import put, whole

FOLDER = "harness"
"""What is kept lies here, below the folder of all that is kept."""

KEPT_S = 30 * 24 * 3600.0
"""How long something is kept. What is still in use then is made again."""


class Loader(importlib.machinery.SourceFileLoader):
    """Loads modules like Python's own loader, from bytecode that is kept where there is some."""

    folder = Path()

    def get_code(self, fullname: str) -> CodeType:
        """Returns what a module does. Raises OSError for a source that cannot be read, and what Python raises where it does not compile."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        file = self.folder / name_of(source)
        code = read(file)
        if code is not None:
            # It was made where the same source lay then.
            _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
            return code
        made = self.source_to_code(source, path)
        if not isinstance(made, CodeType):
            raise ImportError(f"`{path}` is no source", name=fullname)
        with contextlib.suppress(OSError):
            put(file, marshal.dumps(made))
        return made


def use(base: Path, home: Path) -> None:
    """Has this process find what is kept below the folder `base`, and keep there what it compiles, of all that it imports from the folder `home` from now on."""

    def finder(path: str) -> importlib.machinery.FileFinder:
        if not Path(path).is_relative_to(home):
            raise ImportError("not of the harness", path=path)
        return importlib.machinery.FileFinder(path, (Loader, importlib.machinery.SOURCE_SUFFIXES))

    Loader.folder = base / FOLDER
    with contextlib.suppress(OSError):
        Loader.folder.mkdir(parents=True, exist_ok=True)
        remove_old(Loader.folder)
    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()


def name_of(source: bytes) -> str:
    """Returns the name of the file for the bytecode of a source, as this Python compiles now."""
    of_python = f"{importlib.util.MAGIC_NUMBER.hex()}-{sys.flags.optimize}"
    return f"{hashlib.blake2b(source, digest_size=16).hexdigest()}-{of_python}.pyc"


def read(file: Path) -> CodeType | None:
    """Returns the bytecode in a file; None where there is none, or it is not as it was written."""
    try:
        code = marshal.loads(whole(file.read_bytes()))
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return code if isinstance(code, CodeType) else None


def remove_old(folder: Path) -> None:
    """Removes what was kept for long, and what was not written to its end. Raises OSError where the folder cannot be read."""
    for file in outdated(folder, time.time() - KEPT_S):
        with contextlib.suppress(OSError):
            file.unlink()


def outdated(folder: Path, before: float) -> Iterator[Path]:
    """Yields the files of a folder that were written before a time, in seconds since the epoch."""
    with os.scandir(folder) as entries:
        yield from (Path(entry) for entry in entries if entry.stat(follow_symlinks=False).st_mtime < before)
