"""CUDA C++ that a Python file has torch build (`load_inline`): what it would build.

It compiles nothing, and imports no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

MAIN, KERNELS = "main.cpp", "cuda.cu"
"""The names that torch gives the two files."""

Texts = str | Sequence[str] | None
"""Texts as callers give them: one, several or none."""


class Refused(Exception):
    """A call that t2t does not build, or a module that compile did not."""


class AbiMismatch(Refused):
    """What was built is for another torch, Python or C++ ABI."""


@dataclass(frozen=True)
class Extension:
    """All that a module is built from. Equal ones are the same module."""

    name: str
    cpp: tuple[str, ...]
    """The pieces of `main.cpp`, with what torch adds: a line each, or more."""
    cuda: tuple[str, ...]
    """Those of `cuda.cu`; none where there is none."""
    cflags: tuple[str, ...]
    cuda_cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    include_paths: tuple[str, ...]
    with_cuda: bool
    is_python_module: bool
    files: tuple[str, ...] = ()
    """The files of the workspace that it is built from, in the place of texts (`load`)."""

    @property
    def main_text(self) -> str:
        """Returns `main.cpp`."""
        return "\n".join(self.cpp)

    @property
    def cuda_text(self) -> str:
        """Returns `cuda.cu`."""
        return "\n".join(self.cuda)

    @property
    def names_architectures(self) -> bool:
        """Tells whether flags name what is compiled for, as torch does."""
        return any("arch" in flag for flag in self.cuda_cflags)

    def digest(self) -> str:
        """Returns what tells it from any other: 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def called(
    name: str,
    cpp_sources: Texts,
    cuda_sources: Texts = None,
    sycl_sources: Texts = None,
    functions: Texts | Mapping[str, str] = None,
    extra_cflags: Texts = None,
    extra_cuda_cflags: Texts = None,
    extra_sycl_cflags: Texts = None,
    extra_ldflags: Texts = None,
    extra_include_paths: Texts = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Extension:
    """Returns what `load_inline` builds of these arguments, which are torch's. Where it builds, what it prints and whether it precompiles headers make no difference.

    Raises Refused for SYCL, and ValueError as torch does for functions that are neither names nor a mapping.
    """
    if sycl_sources or with_sycl:
        raise Refused("t2t builds no SYCL")
    kernels = listed(cuda_sources)
    implicit = not no_implicit_headers
    head = ["#include <torch/extension.h>"] if implicit else []
    kernel_head = ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"] if implicit else []
    return Extension(
        name=name,
        cpp=(*head, *listed(cpp_sources), *bindings(functions, with_pytorch_error_handling)),
        cuda=(*kernel_head, *kernels) if kernels else (),
        cflags=tuple(flag.strip() for flag in listed(extra_cflags)),
        cuda_cflags=tuple(flag.strip() for flag in listed(extra_cuda_cflags)),
        ldflags=tuple(flag.strip() for flag in listed(extra_ldflags)),
        include_paths=tuple(path.strip() for path in listed(extra_include_paths)),
        with_cuda=bool(kernels) if with_cuda is None else with_cuda,
        is_python_module=is_python_module,
    )


def listed(texts: Texts) -> list[str]:
    """Returns texts as a list of its own."""
    return [texts] if isinstance(texts, str) else list(texts or ())


def bindings(functions: Texts | Mapping[str, str], handles_errors: bool) -> list[str]:
    """Returns the lines that torch adds to bind functions to Python; none where the source does so itself. Raises ValueError for anything else than names or a mapping."""
    if functions is None:
        return []
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, (list, dict)):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    named = functions if isinstance(functions, dict) else {name: name for name in functions}
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for name, doc in named.items():
        bound = f"torch::wrap_pybind_function({name})" if handles_errors else name
        lines.append(f'm.def("{name}", {bound}, "{doc}");')
    return [*lines, "}"]
