"""Calls the operators of `examples/cuda` at shapes that lead to each of their kernels, and compares with torch in float64: on the host by `loader`, or on a device.

On a device: `PYTHONPATH=python/t2t_harness/cuda:tests/python python3 -m cuda_host.cases examples/cuda`, under compute-sanitizer, too. Ends with 1 where a result is wrong.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

TOLERANCES = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}

SOFTMAX = [
    ((5, 7), 1),
    ((3, 264), -1),
    ((2, 1031), 1),
    ((2, 8192), 1),
    ((2, 5001), 1),
    ((1, 33001), 1),
    ((1, 40000), 1),
    ((9,), 0),
    ((), -1),
]
SOFTMAX += [((2, 3, 5), 1), ((70, 40), 0), ((600, 9), 0), ((1500, 3), 0), ((4100, 2), 0), ((0, 4), 1), ((4, 0, 3), 2)]
LAYERNORM = [
    ((5, 7), 1),
    ((37, 256), 1),
    ((3, 1031), 1),
    ((2, 4096), 1),
    ((2, 8192), 1),
    ((2, 5001), 1),
    ((1, 17000), 1),
    ((4, 3, 5), 2),
    ((0, 4), 1),
]
MATMUL = [(5, 7, 3), (64, 64, 64), (200, 136, 264), (130, 328, 392), (65, 33, 129), (1, 8, 8), (0, 4, 4), (4, 0, 4)]

Compared = tuple[str, torch.Tensor, torch.Tensor]
"""What is compared: its name, the result, and the right one in float64."""


def softmax(module: Any, dtype: torch.dtype, device: str) -> Iterator[Compared]:
    """Yields results of a version of softmax: forward, at rows of which some hold NaN and infinities, and backward."""
    operator = module.get_cuda_softmax()
    for shape, dim in SOFTMAX:
        x = torch.randn(shape, dtype=dtype, device=device) * 2
        yield f"{shape}", operator.forward(x, dim), torch.softmax(x.double(), dim)
        y, dy = torch.softmax(x, dim), torch.randn(shape, dtype=dtype, device=device)
        exact = torch._softmax_backward_data(dy.double(), y.double(), dim, torch.float64)
        yield f"{shape} backward", operator.backward(dy, y, dim), exact
        if x.dim() == 2 and x.shape[dim] > 4 and min(shape) > 1:
            special = x.clone().movedim(dim, -1)
            special[0, 1], special[-1, 2], special[1, 1:] = float("nan"), float("inf"), -float("inf")
            special = special.movedim(-1, dim)
            yield f"{shape} special", operator.forward(special, dim), torch.softmax(special.double(), dim)
    # Dense, and at no multiple of 16 bytes.
    shifted = torch.randn(4097, dtype=dtype, device=device)[1:].view(4, 1024)
    yield "shifted", operator.forward(shifted, 1), torch.softmax(shifted.double(), 1)
    infinite = torch.full((2, 36000), -float("inf"), dtype=dtype, device=device)
    infinite[0, 35999] = 1.0
    yield "infinite", operator.forward(infinite, 1), torch.softmax(infinite.double(), 1)


def layernorm(module: Any, dtype: torch.dtype, device: str) -> Iterator[Compared]:
    """Yields results of layer normalization, and its gradients."""
    for place, (shape, dims) in enumerate(LAYERNORM):
        far = 100.0 if dtype == torch.float32 else 0.0
        tail = shape[len(shape) - dims :]
        values = [torch.randn(size, dtype=dtype, device=device) for size in (shape, tail, tail)]
        values[0] += far
        if place % 3 == 1:
            values = values[:2]
        inputs = [value.requires_grad_() for value in values]
        exact = [value.detach().double().requires_grad_() for value in values]
        y, right = module.cuda_layernorm(inputs[0], tail, *inputs[1:]), F.layer_norm(exact[0], tail, *exact[1:])
        yield f"{shape}", y, right
        dy = torch.randn(shape, dtype=dtype, device=device)
        gradients = zip(torch.autograd.grad(y, inputs, dy), torch.autograd.grad(right, exact, dy.double()), strict=True)
        for name, (gradient, wanted) in zip(("input", "weight", "bias"), gradients, strict=False):
            yield f"{shape} gradient of {name}", gradient, wanted


def gelu(module: Any, dtype: torch.dtype, device: str) -> Iterator[Compared]:
    """Yields results of both forms of gelu."""
    for count in (0, 1, 7, 4096, 5000, 12289):
        x = torch.randn(count, dtype=dtype, device=device) * 3
        x[:1], x[1:2], x[2:3] = float("inf"), -float("inf"), float("nan")
        for form in ("none", "tanh"):
            yield f"{count} {form}", module.cuda_gelu(x, form), F.gelu(x.double(), approximate=form)


def matmul(module: Any, dtype: torch.dtype, device: str) -> Iterator[Compared]:
    """Yields products, of transposed matrices, too."""
    if dtype == torch.float32:
        return
    for m, k, n in MATMUL:
        a, b = (torch.randn(size, dtype=dtype, device=device) for size in ((m, k), (k, n)))
        yield f"{m} {k} {n}", module.cuda_matmul(a, b), a.double() @ b.double()
    a, b = (torch.randn(size, dtype=dtype, device=device).t() for size in ((64, 136), (80, 64)))
    yield "transposed", module.cuda_matmul(a, b), a.double() @ b.double()


OPERATORS: dict[str, Callable[[Any, torch.dtype, str], Iterator[Compared]]] = {
    "softmax/cuda_plain": softmax,
    "softmax/cuda_warps": softmax,
    "softmax/cuda_registers": softmax,
    "layernorm/cuda_registers": layernorm,
    "gelu/cuda_vector": gelu,
    "matmul/cuda_hopper": matmul,
}
"""What is yielded of each operator, by its file below `kernels`."""


def compare(name: str, module: Any, device: str) -> list[str]:
    """Returns what is wrong of an operator's results, a line each."""
    wrong = []
    for dtype, tolerance in TOLERANCES.items():
        torch.manual_seed(0)
        for case, result, right in OPERATORS[name](module, dtype, device):
            allowed = tolerance * max(
                1.0, float(right.detach().nan_to_num(0.0, 0.0, 0.0).abs().max()) if right.numel() else 0.0
            )
            try:
                torch.testing.assert_close(result, right.to(dtype), atol=allowed, rtol=tolerance, equal_nan=True)
            except AssertionError as error:
                wrong.append(f"{name} {dtype} {case}: {' '.join(str(error).split())}")
    return wrong


def main(workspace: Path) -> int:
    """Compares all operators on the device, says what is wrong, and returns 1 where something is."""
    count = 0
    for name in OPERATORS:
        file = workspace / "kernels" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name.replace("/", "_"), file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        wrong = compare(name, module, "cuda")
        torch.cuda.synchronize()
        print("\n".join(wrong) if wrong else f"{name}: right", flush=True)
        count += len(wrong)
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
