"""What the interpreter has: versions of the toolchain, the names that `torch:` in ops.yaml may be, and their arguments.

Touches no device and loads no Triton: versions come from package metadata, ptxas says its own.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cuda import nvcc, t2t_cuda
from t2t_harness.op import arguments

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import ProbeRequest, Reply, ToldModules

NAMESPACES = ("torch", "torch.Tensor", "torch.fft", "torch.linalg", "torch.nn.functional", "torch.special")


def probe(request: ProbeRequest) -> Reply:
    """Return the documents `toolchain` (name to version, null where absent), `names` (sorted dotted callables), `signatures` (by name, where all parameters are
    known) and `modules` (how they are found beside `sys.path`)."""
    names = sorted(set(_names()))
    return {
        "outcome": "passed",
        "class": None,
        "cites": False,
        "documents": {
            "toolchain": toolchain(),
            "names": names,
            "signatures": arguments.signatures(names),
            "modules": modules(),
        },
        "files": {},
    }


def modules() -> ToldModules:
    """Return `suffixes`, the endings of compiled modules in order, and `mapped`: module to file or folder, of editable installs that no folder of `sys.path` leads to.

    Those are found by modules that setuptools writes, as `__editable___mykernels_0_1_finder`, with a mapping in each.
    """
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None)
        if name.startswith("__editable__") and isinstance(mapping, dict):
            found |= {str(own): str(place) for own, place in mapping.items()}
    return {"suffixes": importlib.machinery.EXTENSION_SUFFIXES, "mapped": found}


def toolchain() -> dict[str, str | None]:
    """Return the versions of python, torch, triton, numpy, Triton's bundled ptxas, nvcc, g++, and the CUDA torch was built for; and where nvcc is."""
    import torch

    compiler = t2t_cuda.find_nvcc()
    version = None if compiler is None else nvcc.identity(compiler)

    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "triton": _version("triton"),
        "numpy": _version("numpy"),
        "ptxas": _ptxas_version(),
        "cuda": torch.version.cuda,
        "nvcc": version,
        "cxx": nvcc.cxx(),
        "nvcc.at": None if compiler is None or version is None else str(compiler),
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _ptxas_version() -> str | None:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    ptxas = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    try:
        told = subprocess.run([str(ptxas), "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bV(\d+(?:\.\d+)+)", told)
    return found.group(1) if found else None


def _names() -> Iterator[str]:
    import torch

    for namespace in NAMESPACES:
        owner: object = torch
        for part in namespace.split(".")[1:]:
            owner = getattr(owner, part)
        yield from (f"{namespace}.{name}" for name in dir(owner) if _is_operation(owner, name))
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten":
            yield f"torch.ops.aten.{name}"


def _is_operation(owner: object, name: str) -> bool:
    """Tell whether the attribute is a public function of torch: no class, module, constant or import from elsewhere."""
    if name.startswith("_"):
        return False
    value = getattr(owner, name, None)
    if not callable(value) or isinstance(value, type):
        return False
    home = getattr(value, "__module__", None)
    return home is None or str(home).partition(".")[0] == "torch"
