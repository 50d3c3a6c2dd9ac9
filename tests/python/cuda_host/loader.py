"""A `t2t_cuda` whose kernels run on the host: g++ compiles the `.cu` beside `runtime.hpp`, and launches are calls.

What only a device has, the instructions of `lib/*_ptx.cuh`, is replaced by the file of the same name in this folder.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
MOST_WORDS, MOST_FLOATS = 16, 4


class Module:
    """The kernels of a `.cu`, compiled at the first launch."""

    def __init__(self, source: Path, workspace: Path, made: Path) -> None:
        self.source, self.workspace, self.made = source, workspace, made
        self._library: ctypes.CDLL | None = None
        self.launched: list[str] = []
        """The names of kernels that were launched."""

    def __getattr__(self, name: str) -> Kernel:
        """Returns the kernel of this name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.kernel(name)

    def kernel(self, name: str) -> Kernel:
        """Returns the kernel of this name."""
        return Kernel(self, name)

    def names(self) -> set[str]:
        """Returns the names of all kernels, as the shared library has them."""
        told = subprocess.run(
            ["nm", "-D", "--defined-only", self.library()._name], capture_output=True, text=True, check=True
        )
        symbols = (line.split()[-2:] for line in told.stdout.splitlines())
        own = {name for kind, name in symbols if kind == "T" and not name.startswith("_")}
        return own - {"run_on_host"}

    def library(self) -> ctypes.CDLL:
        """Returns the shared library, compiled where it is not yet. Raises RuntimeError with what g++ says of a file that it refuses."""
        if self._library is None:
            # A copy, so that the replaced files are the ones that are included.
            copy = self.made / self.source.stem
            shutil.copytree(self.workspace, copy, dirs_exist_ok=True)
            for own in FOLDER.glob("*_ptx.cuh"):
                shutil.copy(own, copy / "lib" / own.name)
            source = copy / self.source.relative_to(self.workspace)
            text = source.read_text().replace("extern __shared__", "extern")
            # As an address, which is passed like any other.
            source.write_text(text.replace("const __grid_constant__ TensorMap ", "const TensorMap& "))
            library = self.made / f"{self.source.stem}.so"
            flags = [
                "-std=c++17",
                "-O1",
                "-shared",
                "-fPIC",
                "-w",
                f"-I{FOLDER}",
                "-include",
                str(FOLDER / "runtime.hpp"),
            ]
            command = ["g++", *flags, "-x", "c++", str(source), "-o", str(library)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                raise RuntimeError(ran.stderr)
            self._library = ctypes.CDLL(str(library))
        return self._library


class Kernel:
    """A kernel, launched as `t2t_cuda` launches it."""

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.name = module, name

    def __getitem__(self, how: tuple[Any, ...]) -> Callable[..., None]:
        """Returns the function that runs the kernel so."""
        sides: list[int] = []
        for given in how[:2]:
            own = [int(side) for side in given] if isinstance(given, (tuple, list)) else [int(given)]
            sides += [*own, *[1] * (3 - len(own))]

        def launch(*args: Any) -> None:
            library = self.module.library()
            self.module.launched.append(self.name)
            floats = [arg for arg in args if isinstance(arg, float)]
            words = [word_of(arg) for arg in args if not isinstance(arg, float)]
            library.run_on_host(
                ctypes.cast(getattr(library, self.name), ctypes.c_void_p),
                (ctypes.c_int64 * MOST_WORDS)(*words),
                (ctypes.c_float * MOST_FLOATS)(*floats),
                (ctypes.c_uint * 6)(*sides),
            )

        return launch


def word_of(value: Any) -> int:
    """Returns an argument as 64 bits."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    if isinstance(value, ctypes.Array):
        return ctypes.addressof(value)
    return 0 if value is None else int(value)


def operator(file: Path, workspace: Path, made: Path) -> types.ModuleType:
    """Returns the Python file of a variant, imported with kernels that run on the host; `made` is a folder for what is compiled."""
    fake = types.ModuleType("t2t_cuda")
    fake.load = lambda own, source=None: Module(  # type: ignore[attr-defined]
        Path(own).with_suffix(".cu") if source is None else Path(own).parent / source, workspace, made
    )
    before = sys.modules.get("t2t_cuda")
    sys.modules["t2t_cuda"] = fake
    try:
        spec = importlib.util.spec_from_file_location(f"on_host_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        if before is None:
            del sys.modules["t2t_cuda"]
        else:
            sys.modules["t2t_cuda"] = before
    return module
