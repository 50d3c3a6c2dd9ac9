"""Triton's launchers: the small C modules through which a compiled kernel is called, made ahead like the kernels themselves.

Triton writes one for each signature and compiles it at the first launch, on the device's time. Here the C compiler runs with the kernels'
compile, on a machine that may have no driver: a library of the driver's name and no content is linked in its place, so that the real one is found
where the launcher is loaded. A launcher serves the Python that it was made for, whose name its file bears; another finds nothing. A machine without a
C compiler or without Python's headers makes none, and the device's process then makes them as Triton does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_harness.faults import failure
from t2t_harness.triton import launching

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Misses

LAUNCHER = "__triton_launcher"
"""What Triton calls the module of every launcher."""

DRIVER = "libcuda.so.1"

FLAGS = ("-O3", "-shared", "-fPIC", "-Wno-psabi", "-s")


class NoCompiler(Exception):
    """C cannot be compiled here; the text says why."""


@dataclass
class Counted:
    """The C modules of Triton that a process asked for."""

    hits: int = 0
    """Launchers that were there. What Triton's driver itself loads may have been loaded before anybody counted."""
    misses: list[str] = field(default_factory=list)
    """Names of those that were compiled, of whatever kind."""

    def facts(self) -> Misses:
        """Returns what the documents hold."""
        return {"hits": self.hits, "misses": sorted(self.misses)}


@contextlib.contextmanager
def counted() -> Iterator[Counted]:
    """Counts, for the length of the context, what Triton's CUDA driver loads and what it has to compile."""
    from triton.backends.nvidia import driver
    from triton.runtime import build

    found = Counted()
    load, compile_ = driver.compile_module_from_src, build._build

    def loading(src: str, name: str, *args: Any, **kwargs: Any) -> Any:
        before = len(found.misses)
        module = load(src, name, *args, **kwargs)
        found.hits += name == LAUNCHER and len(found.misses) == before
        return module

    def compiling(name: str, *args: Any, **kwargs: Any) -> Any:
        found.misses.append(name)
        return compile_(name, *args, **kwargs)

    driver.compile_module_from_src, build._build = loading, compiling
    try:
        yield found
    finally:
        driver.compile_module_from_src, build._build = load, compile_


def source_of(source: Any, metadata: Any) -> str:
    """Returns the C text of the launcher that Triton would make for a CompiledKernel with this `src` and this `metadata`."""
    from triton.backends.nvidia import driver

    class Written(Exception):
        """Holds the text."""

    def write(src: str, **_: Any) -> Any:
        raise Written(src)

    replaced = driver.compile_module_from_src, driver.library_dirs
    # Where the driver lies is not asked for: this machine may have none.
    driver.compile_module_from_src, driver.library_dirs = write, list
    try:
        driver.CudaLauncher(source, metadata)
    except Written as told:
        return str(told)
    finally:
        driver.compile_module_from_src, driver.library_dirs = replaced
    raise RuntimeError("Triton wrote no launcher")


def place_of(text: str) -> tuple[str, Any]:
    """Returns the folder's name and the cache manager under which Triton looks for the module of the C text."""
    from triton.runtime import build
    from triton.runtime.cache import _base32, get_cache_manager

    key = hashlib.sha256((text + build.platform_key()).encode("utf-8")).hexdigest()
    return str(_base32(key)), get_cache_manager(key)


def file_name(name: str) -> str:
    """Returns the file of the C module `name` for this Python."""
    return f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"


class Forge:
    """Launchers being made: one C compiler each, beside the process that goes on."""

    def __init__(self) -> None:
        self.folders: set[str] = set()
        """Folders of Triton's cache that hold launchers."""
        self.reason: str | None = None
        """Why some are missing."""
        self.count = Counted()
        self._places: dict[str, str] = {}
        """C text → its folder."""
        self._wanted: set[str] = set()
        """The folders of those that a compiled kernel needs."""
        self._found: list[str] = []
        """The folders of those that Triton's cache had."""
        self._running: list[tuple[str, Any, Path, subprocess.Popen[bytes]]] = []
        self._scratch = tempfile.TemporaryDirectory()
        self._driver: subprocess.Popen[bytes] | None = None
        try:
            self._driver = begin_driver(Path(self._scratch.name))
        except (NoCompiler, OSError) as error:
            self.reason = failure.describe(error)

    def expect(self, compilation: launching.Compilation) -> bool:
        """Begins to make the launcher of a kernel that is about to be compiled, as `want` does once it is. Returns False: nothing is to be skipped."""
        # What Triton makes of a tensor's description is known once the kernel is compiled.
        if self.reason is None and not any("tensordesc" in str(type_) for type_ in compilation.signature.values()):
            with contextlib.suppress(Exception):
                source = compilation.function.ASTSource(
                    compilation.function, compilation.signature, compilation.constants, None
                )
                self._begin(source_of(source, None))
        return False

    def want(self, compiled: Any) -> None:
        """Begins to make the launcher of a CompiledKernel, unless Triton's cache has it. Never raises: a launcher may be missing."""
        if self.reason is not None:
            return
        try:
            self._wanted.add(self._begin(source_of(compiled.src, compiled.metadata)))
        except Exception as error:
            self.reason = failure.describe(error)

    def _begin(self, text: str) -> str:
        """Begins to make the launcher of this C text, unless that was begun or Triton's cache has it, and returns its folder. Raises NoCompiler."""
        if text in self._places:
            return self._places[text]
        folder, manager = place_of(text)
        if manager.get_file(file_name(LAUNCHER)) is not None:
            self._found.append(folder)
        else:
            self._await_driver()
            work = Path(self._scratch.name) / folder
            work.mkdir()
            self._running.append((folder, manager, work, begin(text, LAUNCHER, work, work.parent)))
        self._places[text] = folder
        return folder

    def _await_driver(self) -> None:
        """Waits for the driver's stand-in, unless that was done. Raises NoCompiler, and keeps why."""
        process, self._driver = self._driver, None
        try:
            if process is not None:
                await_driver(process)
        except NoCompiler as error:
            self.reason = failure.describe(error)
            raise

    def finish(self) -> None:
        """Waits for the compilers and puts what they made for compiled kernels where Triton looks for it."""
        found = [folder for folder in self._found if folder in self._wanted]
        self.count.hits += len(found)
        self.folders.update(found)
        for folder, manager, work, process in self._running:
            try:
                made = finished(process, LAUNCHER, work)
            except (NoCompiler, OSError) as error:
                self.reason = failure.describe(error)
                continue
            if folder in self._wanted:
                manager.put(made.read_bytes(), file_name(LAUNCHER), binary=True)
                self.count.misses.append(LAUNCHER)
                self.folders.add(folder)
        self._running.clear()
        with contextlib.suppress(NoCompiler):
            self._await_driver()
        self._scratch.cleanup()


def compiler() -> str:
    """Returns the C compiler that Triton would use. Raises NoCompiler where there is none."""
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if found is None:
        raise NoCompiler("no C compiler was found")
    return found


def begin_driver(folder: Path) -> subprocess.Popen[bytes]:
    """Begins to make a library with the driver's name and no content in `folder`, to link with. Raises NoCompiler."""
    command = [compiler(), "-shared", "-nostdlib", f"-Wl,-soname,{DRIVER}", "-x", "c", "/dev/null", "-o", DRIVER]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def await_driver(process: subprocess.Popen[bytes]) -> None:
    """Waits for what `begin_driver` began. Raises NoCompiler."""
    _, errors = process.communicate()
    if process.returncode != 0:
        raise NoCompiler(last_line(errors.decode(errors="replace")))


def begin(text: str, name: str, folder: Path, driver: Path) -> subprocess.Popen[bytes]:
    """Starts the compiler on the C text of the module `name` in `folder`; the driver's stand-in lies in `driver`. Raises NoCompiler.

    File names are relative, so that the same text gives the same bytes in any folder.
    """
    from triton.backends.nvidia import driver as nvidia

    (folder / f"{name}.c").write_text(text)
    scheme = sysconfig.get_default_scheme()
    python = sysconfig.get_paths(scheme="posix_prefix" if scheme == "posix_local" else scheme)["include"]
    includes = [f"-I{one}" for one in (*nvidia.include_dirs, python)]
    # The linker would leave out a library that defines nothing.
    linked = ["-Wl,--no-as-needed", str(driver / DRIVER)]
    command = [compiler(), *FLAGS, f"{name}.c", "-o", file_name(name), *linked, *includes]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finished(process: subprocess.Popen[bytes], name: str, folder: Path) -> Path:
    """Waits for the compiler and returns the module's file. Raises NoCompiler with what the compiler said."""
    _, errors = process.communicate()
    if process.returncode != 0:
        raise NoCompiler(last_line(errors.decode(errors="replace")))
    return folder / file_name(name)


def last_line(text: str) -> str:
    """Returns the line of a compiler's output that names an error, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "the C compiler failed")
