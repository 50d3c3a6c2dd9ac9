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
from t2t_harness.cuda.files import Source
from t2t_harness.cuda.inline import Extension
from t2t_harness.faults import machine

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
"""Sources that are compiled at once."""


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


def build(extension: Extension, sources: Sequence[Source], own: Tools, parts: Parts, folder: Path) -> Built:
    """Returns the module, built of its sources in `folder`, which is made if need be. Raises Failed where a compiler or the linker refuses it."""
    folder.mkdir(parents=True, exist_ok=True)

    def compiled(source: Source) -> Kernels:
        if source.is_cuda:
            return of_kernels(extension, own, parts, folder, source)
        return Kernels([host(extension, own, parts, folder, source.file, source.marked, source.rest)])

    with ThreadPoolExecutor(ATTEMPTED) as pool:
        made = list(pool.map(compiled, sources))
    stages: dict[str, dict[str, bytes]] = {}
    for one in made:
        for target, own_stages in one.stages.items():
            of_target = stages.setdefault(target, {})
            for ending, content in own_stages.items():
                # A text may be several; of machine code there is that of the first source.
                of_target[ending] = (
                    of_target.get(ending, b"") + content if ending == "ptx" else of_target.get(ending, content)
                )
    objects = [place for one in made for place in one.objects]
    told = "".join(one.told for one in made)
    reason = next((one.is_whole for one in made if one.is_whole is not None), None)
    return Built(linked(extension, own, folder, objects), told, stages, reason)


@dataclass(frozen=True)
class Kernels:
    """What is made of a source."""

    objects: list[Path]
    told: str = ""
    """What ptxas said."""
    stages: dict[str, dict[str, bytes]] = field(default_factory=dict)
    is_whole: str | None = None
    """Why its kernels were compiled with torch's headers; None where they were not."""


def of_kernels(extension: Extension, own: Tools, parts: Parts, folder: Path, source: Source) -> Kernels:
    """Returns what is made of a source with kernels: in halves where that works, else whole. Raises Failed where nvcc refuses it whole."""
    file, rest = source.file, source.rest
    try:
        halves = split.halves(source.text, file, source.lines)
        first = host(extension, own, parts, folder, f"{file}.host.cpp", split.with_launches(halves.host), rest)
        device = split.instantiated(halves, undefined(first))
        second = on_device(extension, own, parts, folder, f"{file}.device.cu", device, [NAMED], rest)
        return Kernels([first, *second.objects], second.told, second.stages)
    except (split.Whole, Failed) as error:
        reason = str(error) if isinstance(error, split.Whole) else nvcc.refusal(error.told).message
    whole = on_device(extension, own, parts, folder, file, source.marked, [], rest)
    return Kernels(whole.objects, whole.told, whole.stages, reason)


def host(extension: Extension, own: Tools, parts: Parts, folder: Path, file: str, text: str, rest: str = "") -> Path:
    """Returns the object file that the C++ compiler makes of a text, taken from the parts where it is known. Raises Failed where it is refused."""
    command = ["g++", *common(extension, own), "-fPIC", "-std=c++17", *extension.cflags]
    # A line that moves makes the same code; what its messages name is the place that it had.
    key = keyed(own, command, file, re.sub(r"^#line .*\n", "", text, flags=re.MULTILINE), rest)
    made = folder / f"{file}.o"
    if f"{key}.o" not in parts.known:
        write(folder / file, text)
        ran(command, ["-c", file, "-o", made.name], folder)
        parts.made.append(f"{key}.o")
    return kept(parts, key, made)


def on_device(
    extension: Extension,
    own: Tools,
    parts: Parts,
    folder: Path,
    file: str,
    text: str,
    more: Sequence[str],
    rest: str = "",
) -> Kernels:
    """Returns what nvcc makes of a text. Raises Failed where it is refused."""
    flags = ["--compiler-options", "-fPIC", "-Xptxas=-v", *more, *extension.cuda_cflags]
    if not any(flag.startswith("-std=") for flag in flags):
        flags.append("-std=c++17")
    command = [str(own.nvcc), *common(extension, own), *NVCC_FLAGS, *codes(extension, own), *flags]
    key = keyed(own, command, file, text, rest)
    made = folder / f"{file}.o"
    beside = folder / f"{file}.kept"
    if not {f"{key}.o", f"{key}.json"} <= parts.known.keys():
        parts.known.pop(f"{key}.o", None)
        write(folder / file, text)
        beside.mkdir()
        told = ran(command, ["--keep", "--keep-dir", str(beside), "-c", file, "-o", made.name], folder)
        stages = stages_in(beside, own.architectures)
        facts = {name: {ending: content.hex() for ending, content in one.items()} for name, one in stages.items()}
        parts.known[f"{key}.json"] = json.dumps([told, facts]).encode()
        parts.made.append(f"{key}.o")
    parts.used[f"{key}.json"] = parts.known[f"{key}.json"]
    told, facts = json.loads(parts.known[f"{key}.json"])
    stages = {name: {ending: bytes.fromhex(text) for ending, text in one.items()} for name, one in facts.items()}
    return Kernels([kept(parts, key, made)], told, stages)


def write(place: Path, text: str) -> None:
    """Writes a text that was read from a file, whatever its bytes were."""
    place.write_text(text, encoding="utf-8", errors="surrogateescape")


def common(extension: Extension, own: Tools) -> list[str]:
    """Returns what both compilers are told."""
    user = [f"-I{path}" for path in extension.include_paths]
    system = [word for path in own.includes for word in ("-isystem", path)]
    return [f"-DTORCH_EXTENSION_NAME={extension.name}", "-DTORCH_API_INCLUDE_EXTENSION_H", *user, *system]


def codes(extension: Extension, own: Tools) -> list[str]:
    """Returns what nvcc is told of architectures: nothing where the flags of the extension name them, as with torch."""
    if extension.names_architectures:
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


def keyed(own: Tools, command: Sequence[str], file: str, text: str, rest: str) -> str:
    """Returns the digest of what a part is made from."""
    return hashlib.sha256(json.dumps([own.version, list(command), file, text, rest]).encode()).hexdigest()


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
    machine.raise_if_it_says_so(told)
    if done.returncode != 0:
        raise Failed(told)
    return told
