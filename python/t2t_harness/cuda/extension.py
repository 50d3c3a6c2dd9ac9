"""Builds a module of torch's from its texts: which compilers are called, and which parts of earlier builds are taken as they are.

A part is an object file by the digest of all that it is made from. Texts of kernels are split (split.py) where they can be, so that a part with torch's
headers stays as it is when a kernel changes. torch's own way to build, its folders and its lock are not used.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from t2t_harness.cuda import modules, nvcc, split
from t2t_harness.cuda.inline import KERNELS, MAIN, Extension

NVCC_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)
"""What torch tells nvcc of every extension."""

NAMED = "-static-global-template-stub=false"
"""Has nvcc give kernels that are templates a name that another file can link to."""

LIBRARIES = ("-lc10", "-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda", "-ltorch", "-ltorch_python")

ATTEMPTED = 2
"""Parts that are compiled at once: the binding, and the kernels or their host half."""


class Failed(Exception):
    """A compiler refused a file; holds what it said."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


@dataclass
class Parts:
    """Parts by the digest of what they are made from, with the ending of their files: object files, and what compilers said of them."""

    known: dict[str, bytes]
    """Those of earlier builds, and of this one."""
    used: dict[str, bytes] = field(default_factory=dict)
    """Those of them that this build is made of."""
    made: list[str] = field(default_factory=list)
    """Those that had to be compiled."""


@dataclass(frozen=True)
class Built:
    """A module, and what compilers say of its kernels."""

    library: bytes
    told: str
    """What ptxas said."""
    stages: dict[str, dict[str, bytes]]
    """Architecture → `cubin` and `ptx`."""
    is_whole: str | None
    """Why its kernels were compiled with torch's headers; None where they were not."""


@dataclass(frozen=True)
class Tools:
    """The compilers, and what they are told of every extension."""

    nvcc: Path
    version: str
    """Of both compilers and torch: parts of others are not taken."""
    architectures: Sequence[str]
    includes: Sequence[str]
    torch: Path


def tools(compiler: Path, architectures: Sequence[str]) -> Tools:
    """Returns the compilers of this machine and the headers of its torch."""
    import torch

    home = Path(torch.__file__).parent
    wheels = [folder for path in sys.path for folder in sorted(Path(path).glob("nvidia/cu*/include"))]
    found = [home / "include", home / "include/torch/csrc/api/include", compiler.parent.parent / "include", *wheels]
    own = sysconfig.get_path("include", scheme="posix_prefix")
    version = json.dumps([nvcc.identity(compiler), nvcc.cxx(), modules.abi()], sort_keys=True)
    return Tools(compiler, version, architectures, [*dict.fromkeys(map(str, found)), own], home)


def build(extension: Extension, own: Tools, parts: Parts, folder: Path) -> Built:
    """Returns the module, built in `folder`, which is made. Raises Failed where a compiler or the linker refuses it."""
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(ATTEMPTED) as pool:
        main = pool.submit(host, extension, own, parts, folder, MAIN, extension.main_text)
        kernels = pool.submit(of_kernels, extension, own, parts, folder) if extension.cuda else None
        objects = [main.result()]
        if kernels is None:
            return Built(linked(extension, own, folder, objects), "", {}, None)
        more, told, stages, reason = kernels.result()
    return Built(linked(extension, own, folder, [*objects, *more]), told, stages, reason)


Kernels = tuple[list[Path], str, dict[str, dict[str, bytes]], str | None]
"""Object files, what ptxas said, stages, and why they were not split."""


def of_kernels(extension: Extension, own: Tools, parts: Parts, folder: Path) -> Kernels:
    """Returns what is made of `cuda.cu`: in halves where that works, else whole. Raises Failed where nvcc refuses it whole."""
    text = extension.cuda_text
    try:
        halves = split.halves(text, KERNELS)
        first = host(extension, own, parts, folder, "host.cpp", split.with_launches(halves.host))
        second = on_device(
            extension, own, parts, folder, "device.cu", split.instantiated(halves, undefined(first)), [NAMED]
        )
        return [first, second[0]], *second[1:], None
    except (split.Whole, Failed) as error:
        reason = str(error) if isinstance(error, split.Whole) else nvcc.refusal(error.told).message
    whole = on_device(extension, own, parts, folder, KERNELS, text, [])
    return [whole[0]], *whole[1:], reason


def host(extension: Extension, own: Tools, parts: Parts, folder: Path, file: str, text: str) -> Path:
    """Returns the object file that the C++ compiler makes of a text, taken from the parts where it is known. Raises Failed where it is refused."""
    command = ["g++", *common(extension, own), "-fPIC", "-std=c++17", *extension.cflags]
    # A line that moves makes the same code; what its messages name is the place that it had.
    key = keyed(own, command, file, re.sub(r"^#line .*$", "", text, flags=re.MULTILINE))
    made = folder / f"{file}.o"
    if f"{key}.o" not in parts.known:
        (folder / file).write_text(text)
        ran(command, ["-c", file, "-o", made.name], folder)
        parts.made.append(f"{key}.o")
    return kept(parts, key, made)


def on_device(
    extension: Extension, own: Tools, parts: Parts, folder: Path, file: str, text: str, more: Sequence[str]
) -> tuple[Path, str, dict[str, dict[str, bytes]]]:
    """Returns the object file that nvcc makes of a text, what ptxas said, and its stages by architecture. Raises Failed where it is refused."""
    flags = ["--compiler-options", "-fPIC", "-Xptxas=-v", *more, *extension.cuda_cflags]
    if not any(flag.startswith("-std=") for flag in flags):
        flags.append("-std=c++17")
    command = [str(own.nvcc), *common(extension, own), *NVCC_FLAGS, *codes(extension, own), *flags]
    key = keyed(own, command, file, text)
    made = folder / f"{file}.o"
    beside = folder / f"{file}.kept"
    if not {f"{key}.o", f"{key}.json"} <= parts.known.keys():
        parts.known.pop(f"{key}.o", None)
        (folder / file).write_text(text)
        beside.mkdir()
        told = ran(command, ["--keep", "--keep-dir", str(beside), "-c", file, "-o", made.name], folder)
        stages = stages_in(beside, own.architectures)
        facts = {name: {ending: content.hex() for ending, content in one.items()} for name, one in stages.items()}
        parts.known[f"{key}.json"] = json.dumps([told, facts]).encode()
        parts.made.append(f"{key}.o")
    parts.used[f"{key}.json"] = parts.known[f"{key}.json"]
    told, facts = json.loads(parts.known[f"{key}.json"])
    stages = {name: {ending: bytes.fromhex(text) for ending, text in one.items()} for name, one in facts.items()}
    return kept(parts, key, made), told, stages


def common(extension: Extension, own: Tools) -> list[str]:
    """Returns what both compilers are told."""
    user = [f"-I{path}" for path in extension.include_paths]
    system = [word for path in own.includes for word in ("-isystem", path)]
    return [f"-DTORCH_EXTENSION_NAME={extension.name}", "-DTORCH_API_INCLUDE_EXTENSION_H", *user, *system]


def codes(extension: Extension, own: Tools) -> list[str]:
    """Returns what nvcc is told of architectures: nothing where the flags of the extension name them, as with torch."""
    if any("arch" in flag for flag in extension.cuda_cflags):
        return []
    made = []
    for target in own.architectures:
        number = target.partition("_")[2]
        made.append(f"-gencode=arch=compute_{number},code={target}")
    return made


def stages_in(folder: Path, architectures: Sequence[str]) -> dict[str, dict[str, bytes]]:
    """Returns the stages that nvcc left in a folder, by architecture: one alone is not named in their files."""
    found: dict[str, dict[str, bytes]] = {}
    for target in architectures:
        number = target.partition("_")[2]
        for ending in ("cubin", "ptx"):
            named = [*folder.glob(f"*.compute_{number}.{ending}"), *folder.glob(f"*.{target}.{ending}")]
            alone = list(folder.glob(f"*.{ending}")) if len(architectures) == 1 else []
            if (target.startswith("sm") or ending == "ptx") and (files := named or alone):
                found.setdefault(target, {})[ending] = files[0].read_bytes()
    return found


def keyed(own: Tools, command: Sequence[str], file: str, text: str) -> str:
    """Returns the digest of what a part is made from."""
    return hashlib.sha256(json.dumps([own.version, list(command), file, text]).encode()).hexdigest()


def kept(parts: Parts, key: str, made: Path) -> Path:
    """Returns the file of a part, written where it came from an earlier build, and has it kept for the next one."""
    name = f"{key}.o"
    if name in parts.known:
        made.write_bytes(parts.known[name])
    parts.known[name] = parts.used[name] = made.read_bytes()
    return made


def undefined(made: Path) -> list[str]:
    """Returns the undefined symbols of an object file, demangled."""
    told = subprocess.run(["nm", "-uC", str(made)], capture_output=True, text=True, check=False).stdout
    return [line.partition("U ")[2] for line in told.splitlines() if "U " in line]


def linked(extension: Extension, own: Tools, folder: Path, objects: Sequence[Path]) -> bytes:
    """Returns the library of object files. Raises Failed where something is undefined that nobody else has."""
    cuda = [*extension_libraries(own)] if extension.with_cuda else []
    libraries = [name for name in LIBRARIES if extension.with_cuda or "cuda" not in name]
    made = f"{extension.name}.so"
    names = [one.name for one in objects]
    ran(
        ["g++"],
        ["-shared", *names, f"-L{own.torch / 'lib'}", *libraries, *cuda, *extension.ldflags, "-o", made],
        folder,
    )
    return (folder / made).read_bytes()


def extension_libraries(own: Tools) -> list[str]:
    """Returns the runtime library of CUDA that torch loads, by its path: packages have no link without its version."""
    places = [own.nvcc.parent.parent / name for name in ("lib64", "lib")]
    places += [folder for path in sys.path for folder in sorted(Path(path).glob("nvidia/cu*/lib"))]
    found = (library for place in places for library in sorted(place.glob("libcudart.so*")))
    return [str(library) for library in found][:1]


def ran(command: Sequence[str], rest: Sequence[str], folder: Path) -> str:
    """Returns what a compiler said. Raises Failed where it refuses."""
    try:
        done = subprocess.run(
            [*command, *rest], cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise Failed(f"{command[0]}: {error}") from error
    told = f"{done.stderr}\n{done.stdout}"
    if done.returncode != 0:
        raise Failed(told)
    return told
