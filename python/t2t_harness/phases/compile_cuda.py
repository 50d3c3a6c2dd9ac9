"""Compiles a variant in CUDA C++ by nvcc, once for each architecture, on a machine that needs no GPU.

Only the files that the key holds are there: they are copied into a folder of the action's own, with the paths that they have in the workspace, which messages
then name. torch's way to compile, its folders and its lock are not used.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cuda import images, nvcc, t2t_cuda
from t2t_harness.faults import failure, machine

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import (
        CompileCudaRequest,
        CompiledKernel,
        Documents,
        Failure,
        Reply,
        SourcePlace,
    )

ARCHIVE = "triton.tar.gz"
"""The archive of compiled kernels, of whatever language."""

INCLUDED = (
    "files of the workspace are included between quotes, by a path from the file's own folder, and no macro makes it"
)
"""What helps where an included file is not found."""

SAID = 200
"""How many characters of what a tool said are passed on."""


class Refused(Exception):
    """The variant is rejected; holds why."""

    def __init__(
        self, class_: str, message: str, root: str, place: SourcePlace | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.record: Failure = failure.failure(class_, message, root=root, place=place, hint=hint)


@dataclass(frozen=True)
class Compiled:
    """What nvcc made for one architecture."""

    target: str
    stages: dict[str, bytes]
    """By the ending of their files: `cubin`, `ptx`, `sass`."""
    usages: list[nvcc.Usage]


def compile_cuda(request: CompileCudaRequest) -> Reply:
    """Returns the reply with the documents `launches` and `resources` and the archive of what was compiled, or with `failure`."""
    try:
        compiler = compiler_of(request)
        found = all_compiled(request, compiler)
    except Refused as refused:
        return rejected(refused.record)
    version = nvcc.identity(compiler)
    file = source_of(request)
    index: images.Index = {
        "file": file,
        "compiler": f"nvcc {version}",
        "architectures": [one.target for one in found],
    }
    pack(index, found, Path(request["scratch"]) / ARCHIVE)
    documents: Documents = {
        "launches": {
            "targets": [one.target for one in found],
            "coverage": "full",
            "reasons": [],
            "configurations": "all",
            "autotuned": False,
            "launches": [],
            "dropped": [],
        },
        "resources": {
            "kernels": [kernel_facts(one, usage) for one in found for usage in one.usages],
            "compiler": f"nvcc {version}",
        },
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": documents, "files": {ARCHIVE: ARCHIVE}}


def source_of(request: CompileCudaRequest) -> str:
    """Returns the variant's `.cu`, relative to the workspace."""
    return str(request["variant"].get("cuda"))


def rejected(record: Failure) -> Reply:
    """Returns the reply of a compile that was refused."""
    return {
        "outcome": "rejected",
        "class": record["class"],
        "cites": failure.cites(record),
        "documents": {"failure": record},
        "files": {},
    }


def compiler_of(request: CompileCudaRequest) -> Path:
    """Returns the nvcc of this machine. Raises Refused where there is none, or none for the architectures."""
    root = request["root"]
    compiler = t2t_cuda.find_nvcc()
    if compiler is None:
        raise Refused("no-compiler", "there is no nvcc to compile CUDA C++", root, hint=t2t_cuda.HINT)
    if shutil.which("g++") is None:
        message = "nvcc has a C++ compiler of the machine read the file first, and there is no `g++`"
        raise Refused("no-compiler", message, root, hint="install it, as in `apt install g++`")
    known = nvcc.supported(compiler)
    for target in request["architectures"]:
        parts = nvcc.TARGET.fullmatch(target)
        if parts is None or int(parts["number"]) not in known:
            message = f"nvcc {nvcc.identity(compiler)} does not compile for `{target}`"
            hint = f"it has {', '.join(f'sm_{number}' for number in known)}; `TORCH_CUDA_ARCH_LIST`, or `targets` in ops.yaml, names what is compiled for"
            raise Refused("architecture", message, root, hint=hint)
    return compiler


def all_compiled(request: CompileCudaRequest, compiler: Path) -> list[Compiled]:
    """Returns what nvcc makes for each architecture, in their order. Raises Refused for the first that it refuses, and where the file has no kernel."""
    tree = Path(request["scratch"]) / "sources"
    copy(request, tree)
    with ThreadPoolExecutor(max(1, request["processes"])) as pool:
        made = list(pool.map(lambda target: compiled_for(request, compiler, target, tree), request["architectures"]))
    if not any(one.usages for one in made if one.target.startswith("sm")) and any(
        "cubin" in one.stages for one in made
    ):
        file = source_of(request)
        hint = 'a kernel is a function that is `extern "C" __global__`; one that is a template is made where it is used'
        raise Refused("source", f"{file}: the file has no kernel", request["root"], hint=hint)
    return made


def copy(request: CompileCudaRequest, tree: Path) -> None:
    """Copies the files that the key holds into the folder `tree`, by their paths in the workspace."""
    for file in request["files"]:
        place = tree / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(request["root"]) / file, place)


def compiled_for(request: CompileCudaRequest, compiler: Path, target: str, tree: Path) -> Compiled:
    """Returns what nvcc makes of the variant's file, below the folder `tree`, for one architecture. Raises Refused where it makes nothing."""
    file = source_of(request)
    folder = Path(request["scratch"]) / target
    folder.mkdir()
    command = nvcc.command(compiler, file, target, folder)
    ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, errors="replace", check=False)
    told = f"{ran.stderr}\n{ran.stdout}"
    machine.raise_if_it_says_so(told)
    if ran.returncode != 0:
        raise refused(request, told, target)
    if warnings := nvcc.warnings(told):
        print(f"{target}:\n{warnings}")
    stages = {ending: folder / f"{Path(file).stem}.{ending}" for ending in ("cubin", "ptx")}
    made = {ending: place.read_bytes() for ending, place in stages.items() if place.is_file()}
    if "cubin" in made and (text := disassembled(compiler, stages["cubin"])) is not None:
        made["sass"] = text
    return Compiled(target, made, nvcc.usages(told))


def refused(request: CompileCudaRequest, told: str, target: str) -> Refused:
    """Returns the rejection of a file that nvcc refuses, at the place that it names, if that is one of the workspace."""
    found = nvcc.refusal(told)
    if "Unsupported gpu architecture" in found.message:
        return Refused("architecture", f"nvcc does not compile for `{target}`", request["root"])
    file = None if found.file is None else found.file.removeprefix("./")
    known = next((own for own in request["files"] if file is not None and Path(own) == resolved(file)), None)
    place: SourcePlace | None = None
    if known is not None and found.line is not None:
        place = {"file": known, "line": found.line, "column": found.column}
    where = "" if known is not None or found.file is None else f"{Path(found.file).name}: "
    hint = None
    if "No such file or directory" in found.message:
        hint = INCLUDED
    return Refused("compile-error", f"nvcc: {where}{found.message}", request["root"], place, hint)


def resolved(file: str) -> Path:
    """Returns a relative path without the `..` in it."""
    parts: list[str] = []
    for part in Path(file).parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)


def disassembled(compiler: Path, cubin: Path) -> bytes | None:
    """Returns the machine code of a cubin as text; None where nothing here can read it."""
    tool = nvcc.disassembler(compiler)
    if tool is None:
        print("no nvdisasm beside nvcc or in Triton: there is no sass")
        return None
    ran = subprocess.run([str(tool), "-c", str(cubin)], capture_output=True, check=False)
    if ran.returncode != 0:
        print(f"nvdisasm cannot read the cubin: there is no sass ({ran.stderr.decode(errors='replace')[:SAID]})")
        return None
    return ran.stdout


def kernel_facts(compiled: Compiled, usage: nvcc.Usage) -> CompiledKernel:
    """Returns one kernel for one architecture as the document `resources` holds it. Warps are up to each launch."""
    return {
        "compiled": compiled.target,
        "target": compiled.target,
        "kernel": usage.kernel,
        "config": None,
        "constants": {},
        "num_warps": 0,
        "num_stages": 0,
        "registers": usage.registers,
        "spills": usage.spills,
        "shared": usage.shared,
        "stages": {ending: images.member(compiled.target, ending) for ending in compiled.stages},
    }


def pack(index: images.Index, found: list[Compiled], archive: Path, others: Mapping[str, bytes] | None = None) -> None:
    """Writes what was compiled to `archive`, and `others` by their names in it: the same bytes for the same content."""
    members = {images.member("index", "json"): json.dumps(index, sort_keys=True).encode()}
    for one in found:
        members |= {images.member(one.target, ending): content for ending, content in sorted(one.stages.items())}
    members |= others or {}
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
