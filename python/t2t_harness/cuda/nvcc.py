"""nvcc: which one there is, what it is told, and what it says. It knows nothing of variants."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from t2t_harness.cuda import t2t_cuda

HEADERS = ("cuda-cccl", "cuda-crt", "cuda-runtime", "nvvm")
"""What nvcc's headers and compiler come in, by the names of NVIDIA's packages without `nvidia-`."""

ERROR = re.compile(
    r"^(?P<file>[^\s:()][^:()\n]*)(?:\((?P<line>\d+)\)|:(?P<at>\d+)(?::(?P<column>\d+))?): (?:fatal |catastrophic )?error\b:?\s*(?P<message>.*)$",
    re.MULTILINE,
)
"""A message of nvcc, `a.cu(3): error: …`, or of the preprocessor, `a.cu:3:10: fatal error: …`."""

ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<architecture>[^']+)'")
SPILLS = re.compile(r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores")
PTXAS = re.compile(r"ptxas info|\s+\d+ bytes stack frame")
USED = re.compile(r"Used (?P<registers>\d+) registers")
SHARED = re.compile(r"(?P<shared>\d+) bytes smem")

TARGET = re.compile(r"(?P<kind>sm|compute)_(?P<number>\d+)(?P<suffix>[af]?)")
"""An architecture as nvcc has it: of a device, or of PTX."""


@dataclass(frozen=True)
class Refused:
    """An error of nvcc."""

    file: str | None
    """As nvcc was told of it; None where it names no place."""
    line: int | None
    column: int | None
    message: str


@dataclass(frozen=True)
class Usage:
    """What a kernel uses, as ptxas says."""

    kernel: str
    registers: int | None
    """Of a thread."""
    spills: int | None
    """Words of 32 bits that a thread keeps in memory for want of registers."""
    shared: int
    """Bytes that its declarations take of shared memory."""


def identity(nvcc: Path) -> str | None:
    """Returns what tells one nvcc from another, with its headers: versions and build, no path. None where it cannot be asked."""
    try:
        told = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version, build = re.search(r"\bV(\d+(?:\.\d+)+)", told), re.search(r"\bcompiler\.(\S+)", told)
    if version is None:
        return None
    parts = [f"build {build.group(1)}"] if build else []
    return f"{version.group(1)} ({', '.join([*parts, *headers(nvcc)])})"


def cxx() -> str | None:
    """Returns the version of the C++ compiler that reads files for nvcc, `g++`; None where there is none."""
    try:
        told = subprocess.run(
            ["g++", "-dumpfullversion"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.strip() or None


def headers(nvcc: Path) -> list[str]:
    """Returns the versions of what lies beside nvcc: those of packages, or those that the toolkit's `version.json` names."""
    root = nvcc.parent.parent
    if root.parent.name == "nvidia":
        versions = ((name, package_version(f"nvidia-{name}")) for name in HEADERS)
        return [f"{name} {version}" for name, version in versions if version is not None]
    try:
        told = json.loads((root / "version.json").read_bytes())
    except (OSError, ValueError):
        return []
    return [f"{name} {part['version']}" for name, part in sorted(told.items()) if name in ("cuda_cccl", "cuda_cudart")]


def package_version(name: str) -> str | None:
    """Returns the version of an installed package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def supported(nvcc: Path) -> list[int]:
    """Returns the numbers of the architectures that nvcc compiles for, as 90 of `sm_90`."""
    told = subprocess.run([str(nvcc), "--list-gpu-code"], capture_output=True, text=True, timeout=10, check=False)
    return sorted({int(number) for number in re.findall(r"\bsm_(\d+)", told.stdout)})


def command(nvcc: Path, source: str, target: str, folder: Path) -> list[str]:
    """Returns the command that compiles `source` for an architecture into `folder`: `STEM.cubin` and `STEM.ptx`, of `compute_…` the second alone."""
    stem = Path(source).stem
    if target.startswith("compute"):
        return [str(nvcc), "-ptx", f"-arch={target}", *t2t_cuda.FLAGS, "-o", str(folder / f"{stem}.ptx"), source]
    made = ["-Xptxas=-v", "--keep", "--keep-dir", str(folder), "-o", str(folder / f"{stem}.cubin"), source]
    return [str(nvcc), "-cubin", f"-arch={target}", *t2t_cuda.FLAGS, *made]


def refusal(told: str) -> Refused:
    """Returns the first error in what nvcc said, or its last line where it names none."""
    found = ERROR.search(told)
    if found is None:
        lines = [line.strip() for line in told.splitlines() if line.strip()]
        fatal = next((line for line in lines if "error" in line or "fatal" in line), None)
        return Refused(None, None, None, fatal or (lines[-1] if lines else "nvcc failed and said nothing"))
    column = found["column"]
    line = int(found["line"] or found["at"])
    return Refused(found["file"], line, int(column) if column else None, found["message"].strip())


def warnings(told: str) -> str:
    """Returns what nvcc said, without what ptxas says of each kernel."""
    own = (line for line in told.splitlines() if line.strip() and not PTXAS.match(line))
    return "\n".join(own)


def usages(told: str) -> list[Usage]:
    """Returns what ptxas said of each kernel, in the order of their names."""
    found = []
    pieces = list(ENTRY.finditer(told))
    for piece, after in zip_longest(pieces, pieces[1:]):
        text = told[piece.end() : len(told) if after is None else after.start()]
        spills, used, shared = SPILLS.search(text), USED.search(text), SHARED.search(text)
        found.append(
            Usage(
                kernel=piece["name"],
                registers=int(used["registers"]) if used else None,
                spills=int(spills["stores"]) // 4 if spills else None,
                shared=int(shared["shared"]) if shared else 0,
            )
        )
    return sorted(found, key=lambda one: one.kernel)


def disassembler(nvcc: Path) -> Path | None:
    """Returns the `nvdisasm` beside nvcc, else Triton's; None where there is none."""
    beside = nvcc.with_name("nvdisasm")
    if beside.is_file():
        return beside
    try:
        from triton import knobs

        return Path(knobs.nvidia.nvdisasm.path)
    except Exception:
        return None
