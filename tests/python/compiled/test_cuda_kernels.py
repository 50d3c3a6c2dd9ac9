"""The kernels of `examples/cuda` on the host: their arithmetic, their places, and that what waits is waited for. How fast they are, and races, only a device shows."""

from __future__ import annotations

import ctypes
import shutil
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/python"))

from cuda_host import cases, loader


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
