"""The kernels of `examples/cuda` on the host: their arithmetic, their places, and that what waits is waited for. How fast they are, and races, only a device shows."""

from __future__ import annotations

import ctypes
import math
import shutil
import sys
import types
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/python"))

from cuda_host import cases, loader

from t2t_harness.cuda import files, split


def host_map(matrix: torch.Tensor, rows: int) -> ctypes.Array[ctypes.c_uint64]:
    """Returns what `cuda_host/matrix_ptx.cuh` must know of a matrix: address, two lengths, bytes between rows, box."""
    return (ctypes.c_uint64 * 16)(matrix.data_ptr(), *reversed(matrix.shape), matrix.stride(0) * 2, 64, rows)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
@pytest.mark.parametrize("name", cases.OPERATORS)
def test_an_operator_is_right_by_each_of_its_kernels(name: str, tmp_path: Path) -> None:
    workspace = ROOT / "examples/cuda"
    module = loader.operator(workspace / "kernels" / f"{name}.py", workspace, tmp_path)
    if name == "matmul/cuda_hopper":
        module.tensor_map = host_map
        # Fewer blocks than tiles, so that a block goes on to a second one.
        module.multiprocessors = lambda device: 3
    assert cases.compare(name, module, "cpu") == []
    # Those of `cuda_plain` for other dtypes of results are as the others.
    unlaunched = module.kernels.names() - set(module.kernels.launched)
    assert all(name == "softmax/cuda_plain" and kernel.count("float") == 2 for kernel in unlaunched), sorted(unlaunched)


WRAPPED = """
extern "C" __global__ void forward_{name}(const {type}* input, {type}* output, long long count, long long n, long long inner) {{
  softmax_kernel(input, output, Rows{{count, n, inner}});
}}
extern "C" __global__ void backward_{name}(
    const {type}* grad, const {type}* softmax, {type}* result, long long count, long long n, long long inner) {{
  softmax_backward_kernel(grad, softmax, result, Rows{{count, n, inner}});
}}
"""
TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}


class OfExtension:
    """What the C++ of `softmax/extension` does, in Python: that of torch's headers is not on the host."""

    def __init__(self, kernels: loader.Module) -> None:
        self.kernels = kernels

    def run(self, name: str, dim: int, *given: torch.Tensor) -> torch.Tensor:
        """Returns what a pass makes of contiguous tensors."""
        x = given[0]
        shape = x.shape or (1,)
        dim %= len(shape)
        inner = math.prod(shape[dim + 1 :])
        result, count = torch.empty_like(x), x.numel() // max(shape[dim], 1)
        if x.numel() > 0:
            kernel = self.kernels.kernel(f"{name}_{TYPES[x.dtype]}")
            kernel[math.ceil(count / 8), (32, 8)](*given, result, count, shape[dim], inner)
        return result

    def forward(self, input: torch.Tensor, dim: int) -> torch.Tensor:
        """Returns the softmax of a tensor."""
        return self.run("forward", dim, input.contiguous())

    def backward(self, grad: torch.Tensor, output: torch.Tensor, dim: int) -> torch.Tensor:
        """Returns the gradient of its input."""
        return self.run("backward", dim, grad.contiguous(), output.contiguous())


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_the_kernels_of_an_extension_are_right_in_its_device_half(tmp_path: Path) -> None:
    root, file = ROOT / "examples/cuda", "kernels/softmax/extension.cu"
    own = files.called(str(root), "softmax", [file])
    (source,) = files.sources_of(own, root, [file, "kernels/softmax/shuffle.cuh"])
    device = split.halves(source.text, source.file, source.lines).device
    wrapped = "".join(WRAPPED.format(name=name, type=name) for name in TYPES.values())
    headers = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
    (tmp_path / "own/lib").mkdir(parents=True)
    (tmp_path / "own/extension.cu").write_text(headers + device + wrapped)
    kernels = loader.Module(tmp_path / "own/extension.cu", tmp_path / "own", tmp_path)
    module = types.SimpleNamespace(get_cuda_softmax=lambda: OfExtension(kernels))
    assert cases.compare("softmax/cuda_plain", module, "cpu") == []
