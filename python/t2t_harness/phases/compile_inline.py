"""Compiles what a variant's Python file has torch build of CUDA C++ (`load_inline`, `load`), on a machine that needs no GPU.

The file is imported as on a device, with functions in torch's place that note what they are given and build nothing; where it is called later, the wrapper is called once,
on tensors without values. Then each module is built in the action's own folder.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import calling, cases, declared_inputs
from t2t_harness.cuda import extension, files, images, inline, modules, noting, nvcc, t2t_cuda
from t2t_harness.faults import failure, machine
from t2t_harness.phases import compile_cuda
from t2t_harness.phases.compile_cuda import ARCHIVE, Compiled, Refused
from t2t_harness.sources import loading
from t2t_harness.triton import facade, warm

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CompileCudaRequest, Documents, Reply, SourcePlace
    from t2t_harness.sources.entry import Entry

HINT = "t2t finds what a file builds when it is imported, or when its wrapper is first called"

OF_FILES = "a `.cu` with torch's headers is built by `torch.utils.cpp_extension.load`; one for `t2t_cuda` has CUDA's headers alone"


def compile_inline(request: CompileCudaRequest) -> Reply:
    """Returns the reply with the documents `launches` and `resources` and the archive of the modules and of the parts that they are made of, or with `failure`.

    Request key `warm` may list the archive of an earlier compile: parts of it that are made from the same are not made again. No document depends on it.
    """
    try:
        compiler = compile_cuda.compiler_of(request)
        wanted = found(request)
        own = extension.tools(compiler, request["architectures"])
        require_headers(request, own)
        parts = extension.Parts(earlier(request))
        built = [(one, built_of(request, one, own, parts)) for one in wanted]
    except Refused as refused:
        return compile_cuda.rejected(refused.record)
    version = f"nvcc {nvcc.identity(compiler)}"
    told = [one for _, module in built for one in compiled(module, request["architectures"])]
    print(f"{len(parts.made)} parts compiled, {len(parts.used)} files kept")
    index: images.Index = {
        "file": compile_cuda.source_of(request),
        "compiler": version,
        "architectures": list(request["architectures"]),
        "abi": modules.abi(),
        "modules": {
            one.digest(): {
                "name": one.name,
                "kernels": sorted({usage.kernel for usage in nvcc.usages(module.told)}),
                "names_architectures": one.names_architectures,
            }
            for one, module in built
        },
    }
    members = {images.library(one.digest()): module.library for one, module in built}
    members |= {f"{images.PARTS}/{name}": content for name, content in sorted(parts.used.items())}
    compile_cuda.pack(index, told, Path(request["scratch"]) / ARCHIVE, members)
    documents: Documents = {
        "launches": {
            "targets": list(request["architectures"]),
            "coverage": "full",
            "reasons": [],
            "configurations": "all",
            "autotuned": False,
            "launches": [],
            "dropped": [],
        },
        "resources": {
            "kernels": [compile_cuda.kernel_facts(one, usage) for one in told for usage in one.usages],
            "compiler": version,
        },
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": documents, "files": {ARCHIVE: ARCHIVE}}


def found(request: CompileCudaRequest) -> list[inline.Extension]:
    """Returns what the variant's file has torch build, in the order of the calls. Raises Refused where that is nothing, or cannot be found out."""
    root = request["root"]
    require_extensions(root)
    # A wrapper of another kind is told what it lacks.
    sys.modules["t2t_cuda"] = t2t_cuda
    if request["devices"]:
        facade.patch_torch_cuda(request["devices"][0])
        facade.fake_driver(request["devices"][0])
    with noting.recording(root) as seen, facade.fake_cuda():
        try:
            entry = loading.load_entry(root, request["variant"])
        except SystemExit:
            raise
        except BaseException as error:
            machine.raise_if_it_failed(error, root)
            if not (is_found(request, seen) and noting.wants_operators(error)):
                class_ = "source" if isinstance(error, inline.Refused) else failure.class_of(error)
                raise refused_by(request, class_, error) from error
            print(f"the file is read up to where it wants what the library registers: {failure.describe(error)}")
        else:
            if not is_found(request, seen):
                call(request, entry)
    require_found(request, seen)
    return seen


def is_found(request: CompileCudaRequest, seen: Sequence[inline.Extension]) -> bool:
    """Tells whether the variant's CUDA C++ is among what was seen: its `.cu`, or any where it stands in the Python file."""
    file = compile_cuda.source_of(request)
    return any(file in one.files for one in seen) if file.endswith(".cu") else len(seen) > 0


def require_found(request: CompileCudaRequest, seen: Sequence[inline.Extension]) -> None:
    """Raises Refused where the variant's CUDA C++ is not among what was seen, or something that no key holds is."""
    root, file = request["root"], compile_cuda.source_of(request)
    if not is_found(request, seen):
        if file.endswith(".cu"):
            message = f"nothing loads `{Path(file).name}`, which includes torch's headers"
            raise Refused("source", f"{request['variant']['file']}: {message}", root, hint=f"{OF_FILES}; {HINT}")
        raise Refused("source", f"{file}: nothing calls `load_inline`", root, hint=HINT)
    below = os.path.realpath(root)
    for one in seen:
        for source in one.files:
            if not Path(root, source).is_file():
                raise Refused("source", f"`{one.name}` is built of `{source}`, which is not there", root)
            if source not in request["files"]:
                message = f"`{one.name}` is built of `{source}`, and no key holds it"
                hint = 'let the Python file of the wrapper have its name as one text, as in `os.path.join(here, "own.cpp")`'
                raise Refused("source", message, root, hint=hint)
        for path in one.include_paths:
            if not one.files and os.path.realpath(path).startswith(below):
                message = f"`{one.name}` includes files of the workspace, `{os.path.relpath(path, root)}`: no key would hold them"
                raise Refused("source", message, root, hint="put what is included into the source, or use a `.cu`")


def require_extensions(root: str) -> None:
    """Raises Refused where torch's module of extensions cannot be imported: it needs setuptools, which not every environment has."""
    try:
        importlib.import_module("torch.utils.cpp_extension")
    except ImportError as error:
        message = f"`torch.utils.cpp_extension` cannot be imported: {error}"
        raise Refused("no-compiler", message, root, hint="install setuptools into the environment") from error


def refused_by(request: CompileCudaRequest, class_: str, error: BaseException) -> Refused:
    """Returns the rejection of a file that raises when it is imported, at its line."""
    refused = Refused(class_, failure.describe(error), request["root"])
    refused.record = failure.failure(class_, failure.describe(error), root=request["root"], error=error)
    return refused


def call(request: CompileCudaRequest, entry: Entry) -> None:
    """Calls the wrapper on tensors without values. What it raises is of no interest: nothing is there that it could run. Without a declared case nothing is called."""
    case = next(iter(cases.declared_cases(request["op"])), None)
    if case is None:
        return
    try:
        wrapper, args, kwargs = calling.arranged(entry, request, case, declared_inputs.unfilled(request["op"], case))
        wrapper(*args, **kwargs)
    except SystemExit:
        raise
    except BaseException as error:
        print(f"the wrapper was called to see what it builds, and raised {failure.describe(error)}")


def require_headers(request: CompileCudaRequest, own: extension.Tools) -> None:
    """Raises Refused where headers are missing that every module needs, or the C++ tools."""
    for header in ("torch/extension.h", "cuda_runtime.h", "Python.h"):
        if not any(Path(folder, header).is_file() for folder in own.includes):
            hint = "torch's come with it, CUDA's with `t2t[cuda]`, Python's as in `apt install python3-dev`"
            raise Refused("no-compiler", f"there is no `{header}` to compile against", request["root"], hint=hint)
    if shutil.which("nm") is None:
        raise Refused(
            "no-compiler", "there is no `nm`", request["root"], hint="install it, as in `apt install binutils`"
        )


def earlier(request: CompileCudaRequest) -> dict[str, bytes]:
    """Returns the parts of earlier compiles that the request lists."""
    held: dict[str, bytes] = {}
    for archive in request.get("warm") or []:
        held |= warm.read(Path(archive)).get(images.PARTS) or {}
    return held


def built_of(
    request: CompileCudaRequest, one: inline.Extension, own: extension.Tools, parts: extension.Parts
) -> extension.Built:
    """Returns a module. Raises Refused where a compiler refuses it, at the line of the Python file that it stands in."""
    root, folder = Path(request["root"]), Path(request["scratch"]) / one.digest()[:16]
    if files.includes_below(one):
        compile_cuda.copy(request, folder)
    try:
        module = extension.build(one, files.sources_of(one, root, request["files"]), own, parts, folder)
    except extension.Failed as error:
        raise refused(request, one, error.told) from error
    if module.is_whole is not None:
        print(f"`{one.name}`: the kernels are compiled with torch's headers, which takes long: {module.is_whole}")
    return module


def refused(request: CompileCudaRequest, one: inline.Extension, told: str) -> Refused:
    """Returns the rejection of what a compiler or the linker refuses."""
    error = nvcc.refusal(told)
    if error.file in request["files"] and error.line is not None:
        known: SourcePlace = {"file": error.file, "line": error.line, "column": error.column}
        hint = compile_cuda.INCLUDED if "No such file or directory" in error.message else None
        return Refused("compile-error", f"`{one.name}`: {error.message}", request["root"], known, hint)
    name = None if error.file is None else Path(error.file).name
    pieces = {inline.MAIN: one.cpp, inline.KERNELS: one.cuda}.get(name or "", ())
    place = None if error.line is None else place_in(request, pieces, error.line)
    where = "" if name is None or place is not None else f"{name}: "
    return Refused("compile-error", f"`{one.name}`: {where}{error.message}", request["root"], place)


def place_in(request: CompileCudaRequest, pieces: Sequence[str], line: int) -> SourcePlace | None:
    """Returns where in the workspace a line of a file that was put together of `pieces` stands; None where no Python file has that piece as it is."""
    first = 1
    for piece in pieces:
        count = piece.count("\n") + 1
        if first <= line < first + count:
            for file in request["files"]:
                text = (Path(request["root"]) / file).read_text(errors="replace")
                if "\n" in piece and (at := text.find(piece)) >= 0:
                    return {"file": file, "line": text.count("\n", 0, at) + 1 + line - first, "column": None}
        first += count
    return None


def compiled(module: extension.Built, architectures: Sequence[str]) -> list[Compiled]:
    """Returns what nvcc made of the module for each architecture."""
    pieces = [f"Compiling{piece}" for piece in module.told.split("Compiling")[1:]]
    made = []
    for target in architectures:
        own = "".join(piece for piece in pieces if f"' for '{target}'" in piece)
        made.append(Compiled(target, dict(module.stages.get(target, {})), nvcc.usages(own)))
    return made
