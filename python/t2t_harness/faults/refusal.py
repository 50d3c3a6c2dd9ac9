"""What the sandbox refused: the file that kernel code may not read or write, and how to get access.

It explains an exception that Python words as if the user had no rights to the file. It knows nothing of the walls but where they stand.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the system calls answer that meet the walls."""


def hint(errors: Iterable[BaseException], root: str | Path) -> str | None:
    """Returns what to do about the first of `errors` that the sandbox of the workspace `root` is behind, or None."""
    for error in errors:
        said = _of_file(error, Path(root)) or _of_module(error)
        if said is not None:
            return said
    return None


def _of_file(error: BaseException, root: Path) -> str | None:
    if not isinstance(error, OSError) or error.errno not in REFUSED or not isinstance(error.filename, str | bytes):
        return None
    path = Path(os.fsdecode(error.filename))
    where = Path(os.path.abspath(path))
    # The walls let anybody ask what modes allow, and then refuse all the same.
    if os.access(where, os.R_OK) and not _is_open(where):
        return f"the sandbox does not let kernels read `{_shown(where, root)}`: {_remedy(where, root)}"
    if not where.exists() or _is_open(where):
        return f"the sandbox does not let kernels write `{_shown(where, root)}`: they write in the folder that `TMPDIR` names"
    return None


def _of_module(error: BaseException) -> str | None:
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    return (
        f"kernels import `{error.name}` from the workspace's root, from `src`, from a folder that `sources:` in ops.yaml names, or from "
        "what is installed for the interpreter"
    )


def _is_open(path: Path) -> bool:
    """Tells whether this process can read the file or folder."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _shown(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return str(path)


def _remedy(path: Path, root: Path) -> str:
    shown = _shown(path, root)
    folder, _, _ = shown.partition("/")
    if path.is_relative_to(root) and "/" in shown and not any(part.startswith(".") for part in Path(shown).parts):
        return f"name its folder in ops.yaml, as in `sources: [{folder}]`"
    if path.is_relative_to(root):
        return "they read the workspace's Python, and the folders that `sources:` in ops.yaml names"
    return "they read the workspace's Python, what is installed for the interpreter, and system libraries"
