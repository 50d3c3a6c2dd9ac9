"""What children would do first, done once by the process that forks them, a part at a time: `launching` for all that launch or compile kernels, `device`
for those on a CUDA device, `compiler` for those that have torch compile something.

Nothing here starts CUDA, runs a tensor operation or leaves a thread behind. What fails is left to the children, which do it as torch and Triton
would.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from t2t_harness.triton import launchers

UTILITIES = "cuda_utils"
"""What Triton calls the C module that loads kernels."""

LAUNCHING = (
    "numpy.ctypeslib",
    "torch._subclasses.schema_check_mode",
    "triton.compiler.code_generator",
    "triton.runtime.interpreter",
    "triton.tools.tensor_descriptor",
)
"""What the first launch of a kernel and the first outputs that are kept import."""

COMPILING = tuple(
    """
    networkx
    sympy.combinatorics
    sympy.tensor.tensor
    torch._dynamo.backends.inductor
    torch._dynamo.backends.registry
    torch._dynamo.repro.after_dynamo
    torch._functorch._activation_checkpointing.graph_info_provider
    torch._inductor.async_compile
    torch._inductor.bounds
    torch._inductor.choices
    torch._inductor.codegen.cpp_wrapper_cpu_array_ref
    torch._inductor.codegen.cpp_wrapper_gpu
    torch._inductor.codegen.cpp_wrapper_mps
    torch._inductor.codegen.cuda.device_op_overrides
    torch._inductor.codegen.cuda_combined_scheduling
    torch._inductor.codegen.halide
    torch._inductor.codegen.memory_planning
    torch._inductor.codegen.mps
    torch._inductor.codegen.pallas
    torch._inductor.codegen.python_wrapper_mtia
    torch._inductor.codegen.triton
    torch._inductor.codegen.wrapper
    torch._inductor.codegen.wrapper_fxir
    torch._inductor.compile_fx
    torch._inductor.cudagraph_trees
    torch._inductor.fx_passes.efficient_conv_bn_eval
    torch._inductor.fx_passes.freezing_patterns
    torch._inductor.fx_passes.fuse_attention
    torch._inductor.fx_passes.joint_graph
    torch._inductor.fx_passes.mkldnn_fusion
    torch._inductor.fx_passes.pad_mm
    torch._inductor.fx_passes.post_grad
    torch._inductor.fx_passes.quantization
    torch._inductor.kernel_template_choice
    torch._inductor.runtime.caching
    torch._inductor.runtime.static_cuda_launcher
    torch._inductor.runtime.triton_heuristics
    torch.distributed.tensor.experimental
    torch.export._trace
    torch.export._unlift
    """.split()
)
"""What `torch.compile` imports in its first call."""


_loaded: dict[str, object] = {}
"""The C modules of Triton that this process, or the one that it was forked from, loaded ahead."""


def launching() -> Iterator[None]:
    """Imports what a launch needs, and asks for the key of Triton's C modules, which starts a process. Yields after each part."""
    for name in LAUNCHING:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
        yield
    from triton.runtime import build

    with contextlib.suppress(Exception):
        build.platform_key()


def find_driver() -> None:
    """Asks the linker's cache for the driver's folder; Triton remembers the answer."""
    from triton.backends.nvidia import driver

    driver.library_dirs()


def load_utilities() -> None:
    """Compiles and loads Triton's `cuda_utils`; children that ask Triton for it are given this one. Raises OSError without a driver."""
    from triton.backends.nvidia import driver

    ctypes.CDLL(launchers.DRIVER)
    text = (Path(driver.dirname) / "driver.c").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        launchers.await_driver(launchers.begin_driver(folder))
        file = launchers.finished(launchers.begin(text, UTILITIES, folder, folder), UTILITIES, folder)
        from triton.runtime.build import _load_module_from_path

        module = _load_module_from_path(UTILITIES, str(file))
    _loaded[UTILITIES] = module
    load = driver.compile_module_from_src

    def loading(src: str, name: str, *args: object, **kwargs: object) -> object:
        return module if (src, name) == (text, UTILITIES) else load(src, name, *args, **kwargs)

    driver.compile_module_from_src = loading


def has_utilities() -> bool:
    """Tells whether Triton's `cuda_utils` was loaded ahead: then nothing is compiled where Triton's driver begins."""
    return UTILITIES in _loaded


def begin_compiler() -> None:
    """Imports the settings of what `torch.compile` calls, and switches its pool of worker processes off: those would be the server's children."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1


def import_for_compiler(name: str) -> None:
    """Imports one module for `torch.compile`, where there is such a module."""
    import torch

    asked = torch.cuda.is_available
    # One of the modules asks when it is imported, and to find out would start CUDA. This is done where there is a device.
    torch.cuda.is_available = lambda: True
    try:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    finally:
        torch.cuda.is_available = asked


def import_telemetry() -> None:
    """Imports what asks a device for its clocks, a file of 8,000 lines. Raises ImportError where it is not installed."""
    importlib.import_module("pynvml")


def device() -> Iterator[None]:
    """Does what takes time of Triton's start on a CUDA device, and of the first look at its clocks. Yields after each part."""
    for step in (find_driver, load_utilities, import_telemetry):
        with contextlib.suppress(Exception):
            step()
        yield


def compiler() -> Iterator[None]:
    """Imports what `torch.compile` needs, and yields after each module: none takes long, and between two of them nothing is half done.

    Without the compiler's settings nothing is imported for it.
    """
    try:
        begin_compiler()
    except Exception:
        return
    yield
    for name in COMPILING:
        with contextlib.suppress(Exception):
            import_for_compiler(name)
        yield
