"""Bytecode of installed packages, for an installation that has none: many installers write none, images often forbid to, and then each process compiles all that it imports, seconds of
it for torch. `harness_bytecode.py` keeps that of the harness.

It is kept in a folder of the user's, one below it for each folder of packages, and only asked for where there is none beside a source. It counts as Python's own does (PEP 552): while the
source's time and size are those that it was made of. What is not whole is not there. Nothing outside of the named packages is kept, so no source of a workspace is.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import marshal
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import NoReturn

from t2t_harness.server import harness_bytecode
from t2t_harness.server.kept_code import put, whole

FOLDER = "T2T_BYTECODE"
"""The variable that names the folder; without it nothing is kept or asked for."""

LATE = ("ao", "_dynamo", "_export", "_functorch", "_inductor", "_numpy", "distributed", "onnx", "testing")
"""Folders of torch that are imported after the rest of it."""

PACKAGES = ("torch", "triton", "numpy", "mpmath", "sympy", "networkx", "jinja2", "torchgen", "functorch")
"""What is compiled, in the order in which it is wanted; torch's late folders come when all else has been."""

SKIPPED = frozenset({"tests", "_internal", "physics", "distutils", "f2py", "__pycache__"})
"""Folders from which little is ever imported."""

NICE = 19
"""How much those who compile give way to others."""

SERVERS = 2
"""Cores that are left to the processes that import meanwhile."""

LOOK_S = 0.01
"""How often it is looked whether those who compile are done, and whether anybody wants it still."""

PR_SET_PDEATHSIG = 1
"""The number of the call that has a process end with its parent."""

ORIGIN, LOCK = "origin", "lock"
"""Files beside what is kept: the folder of packages that it is of, and what whoever compiles holds."""


def place(packages: Path) -> Path | None:
    """Returns the folder for the bytecode of what is installed in the folder `packages`; None where none is named."""
    base = os.environ.get(FOLDER)
    return Path(base, hashlib.blake2b(str(packages).encode(), digest_size=8).hexdigest()) if base else None


def packages() -> Path | None:
    """Returns the folder that torch is installed in, where it lies there without bytecode; torch is not imported."""
    try:
        spec = importlib.util.find_spec("torch")
        source = None if spec is None else spec.origin
        if source is None or Path(importlib.util.cache_from_source(source)).exists():
            return None
    except (ImportError, ValueError, NotImplementedError):
        return None
    return Path(source).parent.parent


class Loader(importlib.machinery.SourceFileLoader):
    """Loads modules like Python's own loader, and finds bytecode where it is kept as well."""

    home = ""
    """The folder of packages, with a slash at its end."""
    kept = ""
    """The folder of their bytecode, likewise."""

    def get_data(self, path: str) -> bytes:
        """Returns the content of a source, or of its bytecode. Raises OSError where there is none."""
        try:
            return super().get_data(path)
        except OSError:
            if not path.endswith(".pyc") or not path.startswith(self.home):
                raise
        return whole(super().get_data(self.kept + path[len(self.home) :]))


def use() -> tuple[()]:
    """Has this process find the bytecode that is kept, in all that it imports from now on. Returns nothing to go on with."""
    base = os.environ.get(FOLDER)
    if base:
        harness_bytecode.use(Path(base), Path(__file__).parent.parent)
    home = packages()
    kept = None if home is None else place(home)
    if kept is not None:
        Loader.home, Loader.kept = f"{home}/", f"{kept}/"
        kinds = (
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (Loader, importlib.machinery.SOURCE_SUFFIXES),
            (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
        )
        sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook(*kinds))
        sys.path_importer_cache.clear()
    return ()


def fill(parent: int | None = None) -> None:
    """Compiles what is missing, on all cores but those of the processes that import meanwhile, and returns when all is there, or if another process does it.

    Ends early at SIGTERM, or with the process `parent` that started it, which may be gone before this is called; without a number, with the one that is there now. Raises
    OSError where the folder cannot be written.
    """
    above = os.getppid() if parent is None else parent
    home = packages()
    kept = None if home is None else place(home)
    if home is None or kept is None:
        return
    remove_orphans(kept.parent)
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        (kept / ORIGIN).write_text(str(home), encoding="utf-8")
        sources = list(wanted(home))
        share(sources, home, kept, above, max(len(os.sched_getaffinity(0)) - SERVERS, 1))


def remove_orphans(base: Path) -> None:
    """Removes from the folder `base` what is of installations that are gone."""
    import shutil

    for origin in base.glob(f"*/{ORIGIN}"):
        with contextlib.suppress(OSError, ValueError):
            if not Path(origin.read_text(encoding="utf-8")).exists():
                shutil.rmtree(origin.parent)


def wanted(home: Path) -> Iterator[Path]:
    """Yields the sources in the folder `home` that are worth it, those that are imported first before the others."""
    for name in PACKAGES:
        yield from sources_below(home / name, LATE if name == "torch" else ())
    for name in LATE:
        yield from sources_below(home / "torch" / name)


def sources_below(top: Path, left_out: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields the sources below the folder `top`, but for those in the folders `left_out` of it."""
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED and not (Path(folder) == top and name in left_out)
        )
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def share(sources: list[Path], home: Path, kept: Path, above: int, count: int) -> None:
    """Has `count` processes compile the sources in turns, and waits for them; ends them where this one is ended, or its parent, the process `above`."""

    def leave(*_: object) -> NoReturn:
        raise SystemExit(1)

    own = os.getpid()
    running: list[int] = []
    # Told between a fork and the next line, it would leave that process behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGTERM, leave)
    try:
        for first in range(count if os.getppid() == above else 0):
            process = os.fork()
            if process == 0:
                compile_all(sources[first::count], home, kept, own)
            running.append(process)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        while running:
            done, _ = os.waitpid(-1, os.WNOHANG)
            if done:
                running.remove(done)
            elif os.getppid() != above:
                leave()
            else:
                time.sleep(LOOK_S)
    finally:
        for process in running:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def compile_all(sources: list[Path], home: Path, kept: Path, parent: int) -> NoReturn:
    """Compiles the sources, one after the other, and ends the process; it ends with the process `parent`, which forked it."""
    with contextlib.suppress(OSError, AttributeError):
        # Where the call is lacking, the look before each source has to do.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        os.nice(NICE)
        warnings.simplefilter("ignore")
        for source in sources:
            if os.getppid() != parent:
                break
            with contextlib.suppress(OSError, SyntaxError, ValueError, MemoryError, RecursionError):
                compile_one(source, home, kept)
    finally:
        os._exit(0)


def compile_one(source: Path, home: Path, kept: Path) -> bool:
    """Keeps the bytecode of one source, and tells whether it had to be made. Raises what Python raises where it does not compile, OSError where it cannot be kept."""
    beside = Path(importlib.util.cache_from_source(str(source)))
    file = kept / beside.relative_to(home)
    stat = source.stat()
    stamp = [(number & 0xFFFFFFFF).to_bytes(4, "little") for number in (int(stat.st_mtime), stat.st_size)]
    head = b"".join([importlib.util.MAGIC_NUMBER, bytes(4), *stamp])
    with contextlib.suppress(OSError):
        if beside.exists() or whole(file.read_bytes())[: len(head)] == head:
            return False
    loader = importlib.machinery.SourceFileLoader(source.stem, str(source))
    code = loader.source_to_code(source.read_bytes(), str(source))
    if not isinstance(code, CodeType):
        raise TypeError(f"`{source}` is no source")
    data = head + marshal.dumps(code)
    file.parent.mkdir(parents=True, exist_ok=True)
    put(file, data)
    return True
