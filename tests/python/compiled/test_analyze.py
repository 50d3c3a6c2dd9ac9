"""The analyze phase against counts made by hand, for the six declared operations and for many others.

Every count is a formula of the dims, as docs/reference/analyze.md states it; none was copied from a run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from math import log2
from pathlib import Path
from typing import Any

import pytest

from t2t_harness.op import declaration
from t2t_harness.op.rule import Operand
from t2t_harness.phases.analyze import analyze
from t2t_harness.phases.probe import probe

CATALOGUE = Path(__file__).resolve().parents[3] / "assets" / "ops_catalogue.json"
F = "torch.nn.functional."

M, N, K = 48, 80, 32
MN = ["M", "N"]
DIMS = {"M": M, "N": N}
# A batch of images, and one of sequences of heads.
B, C, H, W = 2, 6, 12, 16
BCHW = ["B", "C", "H", "W"]
IMAGE = {"B": B, "C": C, "H": H, "W": W}
PIXELS = B * C * H * W
S, D, HEADS = 64, 16, 4
BHSD = ["B", "H", "S", "D"]
HEADED = {"B": B, "H": HEADS, "S": S, "D": D}
ROWS = B * HEADS * S


def request(
    torch_name: str, inputs: dict[str, Any], kwargs: dict[str, Any], binding: dict[str, int], **more: Any
) -> dict[str, Any]:
    """A request of one size; an input is a shape, or a mapping with `shape` and what else a declaration says of it."""
    declared = [{"shape": told} if isinstance(told, list) else told for told in inputs.values()]
    neutral = {
        "dtype": None,
        "init": {"kind": "normal", "mean": 0.0, "std": 1.0},
        "requires_grad": False,
        "layout": "contiguous",
    }
    op = {
        "name": "op",
        "random": {"kind": "dropout", "p": 0.1, "seed": None} if torch_name.endswith(".dropout") else None,
        "torch": torch_name,
        "inputs": [{**neutral, "name": name, **told} for name, told in zip(inputs, declared, strict=True)],
        "kwargs": kwargs,
        "dtypes": ["float32"],
        "sizes": {"small": binding},
        "precision": "ieee",
        "mutates": list(inputs)[: int(torch_name.endswith("_"))],
    }
    return {"op": {**op, **more}, "catalogue": str(CATALOGUE)}


def analysis(
    torch_name: str, inputs: dict[str, Any], kwargs: dict[str, Any], binding: dict[str, int], **more: Any
) -> dict[str, Any]:
    reply = analyze(request(torch_name, inputs, kwargs, binding, **more))
    assert reply["outcome"] == "passed", reply
    found: dict[str, Any] = reply["documents"]["analysis"]
    return found


@dataclass(frozen=True)
class Op:
    """One operation and what a person counted for it.

    `moved` is in elements of four bytes unless `moved_bytes` is given.
    """

    torch: str
    inputs: dict[str, Any]
    dims: dict[str, int]
    work: int
    moved: int
    access: str
    out: list[list[int]]
    kwargs: dict[str, Any] = field(default_factory=dict)
    moved_bytes: int | None = None
    bound: str = "memory"


def ints(*shape: int | str) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": "int64"}


def unary(name: str, weight: int, **kwargs: Any) -> Op:
    return Op(name, {"input": MN}, DIMS, weight * M * N, 2 * M * N, "elementwise", [[M, N]], kwargs)


def binary(name: str, weight: int, **kwargs: Any) -> Op:
    return Op(name, {"input": MN, "other": MN}, DIMS, weight * M * N, 3 * M * N, "elementwise", [[M, N]], kwargs)


def loss(name: str, work: int, **kwargs: Any) -> Op:
    return Op(name, {"input": MN, "target": MN}, DIMS, work, 2 * M * N + 1, "full reduction", [[]], kwargs)


THE_SIX = [
    binary("torch.add", 2, alpha=0.5),
    Op(F + "softmax", {"input": MN}, DIMS, M * (5 * N - 2), 2 * M * N, "row reduction", [[M, N]], {"dim": -1}),
    Op(
        F + "scaled_dot_product_attention",
        {"query": BHSD, "key": BHSD, "value": BHSD},
        HEADED,
        4 * ROWS * S * D + 6 * ROWS * S - 2 * ROWS,
        4 * ROWS * D,
        "contraction",
        [[B, HEADS, S, D]],
        bound="compute",
    ),
    unary(F + "gelu", 9, approximate="tanh"),
    Op(
        F + "layer_norm",
        {"input": MN, "weight": ["N"], "bias": ["N"]},
        DIMS,
        M * (7 * N + 2),
        2 * M * N + 2 * N,
        "row reduction",
        [[M, N]],
        {"normalized_shape": ["N"]},
    ),
    Op(
        "torch.matmul",
        {"input": ["M", "K"], "other": ["K", "N"]},
        {"M": 512, "N": 256, "K": 128},
        2 * 512 * 256 * 128,
        512 * 128 + 128 * 256 + 512 * 256,
        "contraction",
        [[512, 256]],
        bound="compute",
    ),
]

POINTWISE = [
    binary("torch.add", 1),
    binary("torch.sub", 2, alpha=3),
    binary("torch.mul", 1),
    binary("torch.div", 2, rounding_mode="floor"),
    binary("torch.maximum", 1),
    binary("torch.atan2", 1),
    binary("torch.logaddexp", 7),
    unary("torch.exp", 1),
    unary("torch.Tensor.sqrt", 1),
    unary("torch.special.erf", 1),
    unary("torch.clamp", 2, min=-1.0, max=1.0),
    unary("torch.clamp", 1, min=0.0),
    unary("torch.pow", 1, exponent=3),
    unary("torch.nan_to_num", 6),
    unary(F + "gelu", 5),
    unary(F + "relu", 1),
    unary(F + "silu", 2),
    unary(F + "mish", 4),
    unary(F + "softplus", 4),
    unary(F + "softplus", 6, beta=2),
    unary(F + "elu", 3),
    unary(F + "selu", 5),
    unary(F + "leaky_relu", 3),
    unary(F + "hardswish", 5),
    unary(F + "hardtanh", 2),
    unary(F + "logsigmoid", 6),
    unary(F + "softsign", 3),
    unary(F + "tanhshrink", 2),
    # draw, scale the mask, multiply.
    unary(F + "dropout", 3, p=0.1),
    unary("torch.relu_", 1),
    Op(
        "torch.where",
        {"condition": {"shape": MN, "dtype": "bool"}, "input": MN, "other": MN},
        DIMS,
        M * N,
        0,
        "elementwise",
        [[M, N]],
        moved_bytes=13 * M * N,
    ),
    Op("torch.lerp", {"input": MN, "end": MN}, DIMS, 3 * M * N, 3 * M * N, "elementwise", [[M, N]], {"weight": 0.25}),
    Op(
        "torch.addcmul",
        {"input": MN, "tensor1": MN, "tensor2": MN},
        DIMS,
        3 * M * N,
        4 * M * N,
        "elementwise",
        [[M, N]],
        {"value": 0.5},
    ),
    Op("torch.add", {"input": MN, "other": ["N"]}, DIMS, M * N, 2 * M * N + N, "broadcast", [[M, N]]),
    Op("torch.outer", {"input": ["M"], "vec2": ["N"]}, DIMS, M * N, M + N + M * N, "broadcast", [[M, N]]),
    # Each half of the input is read once.
    Op(F + "glu", {"input": MN}, DIMS, M * N, M * N + M * N // 2, "elementwise", [[M, N // 2]]),
    Op("torch.bitwise_and", {"input": ints(*MN), "other": ints(*MN)}, DIMS, M * N, 6 * M * N, "elementwise", [[M, N]]),
    # Two overlapping slices read the whole input; as regions they count for more, and are held to its size.
    Op("torch.diff", {"input": MN}, DIMS, (M - 1) * N, 2 * M * N - N, "elementwise", [[M - 1, N]], {"dim": 0}),
]

REDUCTIONS = [
    Op("torch.sum", {"input": MN}, DIMS, M * N - 1, M * N + 1, "full reduction", [[]]),
    Op("torch.sum", {"input": MN}, DIMS, M * (N - 1), M * N + M, "row reduction", [[M]], {"dim": 1}),
    Op("torch.sum", {"input": MN}, DIMS, N * (M - 1), M * N + N, "column reduction", [[N]], {"dim": 0}),
    Op(
        "torch.sum",
        {"input": {"shape": MN, "layout": "transposed"}},
        DIMS,
        N * (M - 1),
        M * N + N,
        "row reduction",
        [[N]],
        {"dim": 0},
    ),
    Op("torch.mean", {"input": MN}, DIMS, M * N, M * N + M, "row reduction", [[M]], {"dim": -1}),
    Op("torch.amax", {"input": MN}, DIMS, M * (N - 1), M * N + M, "row reduction", [[M]], {"dim": [1]}),
    Op("torch.max", {"input": MN}, DIMS, M * (N - 1), 0, "row reduction", [[M], [M]], {"dim": 1}, 4 * M * N + 12 * M),
    Op("torch.argmax", {"input": MN}, DIMS, M * (N - 1), M * N + 2 * M, "row reduction", [[M]], {"dim": 1}),
    Op("torch.var", {"input": MN}, DIMS, 4 * M * N, M * N + M, "row reduction", [[M]], {"dim": 1}),
    Op("torch.std", {"input": MN}, DIMS, 4 * M * N + M, M * N + M, "row reduction", [[M]], {"dim": 1}),
    Op("torch.logsumexp", {"input": MN}, DIMS, 4 * M * N, M * N + M, "row reduction", [[M]], {"dim": 1}),
    Op("torch.linalg.vector_norm", {"x": MN}, DIMS, 2 * M * N, M * N + M, "row reduction", [[M]], {"dim": 1}),
    Op("torch.linalg.vector_norm", {"x": MN}, DIMS, 3 * M * N, M * N + M, "row reduction", [[M]], {"dim": 1, "ord": 3}),
    Op(F + "log_softmax", {"input": MN}, DIMS, M * (5 * N - 1), 2 * M * N, "row reduction", [[M, N]], {"dim": 1}),
    Op(F + "softmax", {"input": MN}, DIMS, N * (5 * M - 2), 2 * M * N, "column reduction", [[M, N]], {"dim": 0}),
    Op("torch.cumsum", {"input": MN}, DIMS, M * (N - 1), 2 * M * N, "scan", [[M, N]], {"dim": 1}),
]

NORMS_AND_LOSSES = [
    # square, mean, eps, rsqrt, multiply, weight.
    Op(
        F + "rms_norm",
        {"input": MN, "weight": ["N"]},
        DIMS,
        4 * M * N + 2 * M,
        2 * M * N + N,
        "row reduction",
        [[M, N]],
        {"normalized_shape": ["N"], "eps": 1e-6},
    ),
    Op(
        F + "group_norm",
        {"input": BCHW, "weight": ["C"], "bias": ["C"]},
        IMAGE,
        7 * PIXELS + 2 * B * 3,
        2 * PIXELS + 2 * C,
        "row reduction",
        [[B, C, H, W]],
        {"num_groups": 3},
    ),
    Op(
        F + "batch_norm",
        {"input": BCHW, "running_mean": ["C"], "running_var": ["C"]},
        IMAGE,
        2 * PIXELS + 2 * C,
        2 * PIXELS + 2 * C,
        "column reduction",
        [[B, C, H, W]],
    ),
    Op(
        F + "batch_norm",
        {"input": BCHW, "running_mean": ["C"], "running_var": ["C"]},
        IMAGE,
        5 * PIXELS + 9 * C,
        2 * PIXELS + 4 * C,
        "column reduction",
        [[B, C, H, W]],
        {"training": True},
    ),
    # norm, clamp it from below, divide.
    Op(F + "normalize", {"input": MN}, DIMS, 3 * M * N + M, 2 * M * N, "row reduction", [[M, N]], {"dim": 1}),
    loss(F + "mse_loss", 3 * M * N),
    loss(F + "mse_loss", 3 * M * N - 1, reduction="sum"),
    loss(F + "l1_loss", 3 * M * N),
    # difference, absolute, compare, square, half, over beta, less half of beta, select; then the mean.
    loss(F + "smooth_l1_loss", 9 * M * N),
    Op(
        F + "cross_entropy",
        {"input": MN, "target": ints("M")},
        DIMS,
        M * (5 * N - 1) + 2 * M,
        0,
        "row reduction",
        [[]],
        moved_bytes=4 * M * N + 8 * M + 4,
    ),
]

CONTRACTIONS = [
    Op(
        "torch.addmm",
        {"input": ["N"], "mat1": ["M", "K"], "mat2": ["K", "N"]},
        {**DIMS, "K": K},
        2 * M * N * K + 2 * M * N,
        N + M * K + K * N + M * N,
        "contraction",
        [[M, N]],
        {"beta": 0.5},
    ),
    Op(
        F + "linear",
        {"input": ["B", "M", "K"], "weight": ["N", "K"], "bias": ["N"]},
        {**DIMS, "B": 4, "K": K},
        4 * (2 * M * N * K + M * N),
        4 * M * K + N * K + N + 4 * M * N,
        "contraction",
        [[4, M, N]],
    ),
    Op(
        "torch.bmm",
        {"input": ["B", "M", "K"], "mat2": ["B", "K", "N"]},
        {"B": 4, "M": 256, "N": 256, "K": 256},
        4 * 2 * 256**3,
        12 * 256**2,
        "contraction",
        [[4, 256, 256]],
        bound="compute",
    ),
    Op(
        "torch.baddbmm",
        {"input": ["B", "M", "N"], "batch1": ["B", "M", "K"], "batch2": ["B", "K", "N"]},
        {**DIMS, "B": 4, "K": K},
        4 * (2 * M * N * K + M * N),
        4 * (2 * M * N + M * K + K * N),
        "contraction",
        [[4, M, N]],
    ),
    Op("torch.mv", {"input": MN, "vec": ["N"]}, DIMS, 2 * M * N, M * N + N + M, "contraction", [[M]]),
    Op("torch.dot", {"input": ["N"], "tensor": ["N"]}, {"N": N}, 2 * N, 2 * N + 1, "contraction", [[]]),
    Op(
        F + "conv2d",
        {"input": BCHW, "weight": [8, "C", 3, 3], "bias": [8]},
        IMAGE,
        B * 8 * H * W * (2 * C * 9 + 1),
        PIXELS + 8 * C * 9 + 8 + B * 8 * H * W,
        "contraction",
        [[B, 8, H, W]],
        {"padding": 1},
        bound="compute",
    ),
    Op(
        F + "conv2d",
        {"input": BCHW, "weight": ["C", 1, 3, 3]},
        IMAGE,
        B * C * (H - 2) * (W - 2) * 2 * 9,
        PIXELS + C * 9 + B * C * (H - 2) * (W - 2),
        "contraction",
        [[B, C, H - 2, W - 2]],
        {"groups": "C"},
    ),
    Op(
        F + "conv1d",
        {"input": ["B", "C", "W"], "weight": [4, "C", 5]},
        {"B": B, "C": C, "W": W},
        B * 4 * (W - 4) * 2 * C * 5,
        B * C * W + 4 * C * 5 + B * 4 * (W - 4),
        "contraction",
        [[B, 4, W - 4]],
    ),
    # Every input element meets every weight of its channel once.
    Op(
        F + "conv_transpose2d",
        {"input": BCHW, "weight": ["C", 4, 2, 2]},
        IMAGE,
        2 * PIXELS * 4 * 4,
        PIXELS + C * 16 + B * 4 * 4 * H * W,
        "contraction",
        [[B, 4, 2 * H, 2 * W]],
        {"stride": 2},
    ),
    # 1 + 2 + … + S pairs for each head.
    Op(
        F + "scaled_dot_product_attention",
        {"query": BHSD, "key": BHSD, "value": BHSD},
        HEADED,
        B * HEADS * (S * (S + 1) // 2) * (4 * D + 6) - 2 * ROWS,
        4 * ROWS * D,
        "contraction",
        [[B, HEADS, S, D]],
        {"is_causal": True},
    ),
    Op(
        "torch.cdist",
        {"x1": ["M", "K"], "x2": ["N", "K"]},
        {**DIMS, "K": K},
        3 * M * N * K,
        M * K + N * K + M * N,
        "contraction",
        [[M, N]],
        {"compute_mode": "donot_use_mm_for_euclid_dist"},
    ),
    # More than 25 vectors: torch multiplies [-2·x1, |x1|², 1] by [x2, 1, |x2|²], clamps at 0 and takes the root.
    Op(
        "torch.cdist",
        {"x1": ["M", "K"], "x2": ["N", "K"]},
        {**DIMS, "K": K},
        M * (2 * K - 1) + N * (2 * K - 1) + M * K + 2 * M * N * (K + 2) + 2 * M * N,
        M * K + N * K + M * N,
        "contraction",
        [[M, N]],
    ),
    Op("torch.linalg.cross", {"input": ["M", 3], "other": ["M", 3]}, {"M": M}, 9 * M, 9 * M, "elementwise", [[M, 3]]),
]

WINDOWS_AND_INDICES = [
    Op(
        F + "max_pool2d",
        {"input": BCHW},
        IMAGE,
        PIXELS // 4 * 3,
        PIXELS + PIXELS // 4,
        "sliding window",
        [[B, C, H // 2, W // 2]],
        {"kernel_size": 2},
    ),
    Op(
        F + "avg_pool2d",
        {"input": BCHW},
        IMAGE,
        B * C * (H - 2) * (W - 2) * 9,
        PIXELS + B * C * (H - 2) * (W - 2),
        "sliding window",
        [[B, C, H - 2, W - 2]],
        {"kernel_size": 3, "stride": 1},
    ),
    # 12 rows in 5 windows of 3, 3, 4, 3, 3; 16 columns in 3 windows of 6.
    Op(
        F + "adaptive_avg_pool2d",
        {"input": BCHW},
        IMAGE,
        B * C * 16 * 18,
        PIXELS + B * C * 15,
        "sliding window",
        [[B, C, 5, 3]],
        {"output_size": [5, 3]},
    ),
    Op(
        F + "embedding",
        {"input": ints("M"), "weight": ["V", "D"]},
        {"M": M, "V": 1000, "D": D},
        0,
        0,
        "gather-scatter",
        [[M, D]],
        moved_bytes=8 * M + 4 * M * D + 4 * M * D,
    ),
    Op(
        F + "nll_loss",
        {"input": MN, "target": ints("M")},
        DIMS,
        2 * M,
        0,
        "gather-scatter",
        [[]],
        moved_bytes=4 * M + 8 * M + 4,
    ),
    Op(
        F + "embedding_bag",
        {"input": ints("M", 4), "weight": ["V", "D"]},
        {"M": M, "V": 1000, "D": D},
        4 * M * D,
        0,
        "gather-scatter",
        [[M, D]],
        moved_bytes=8 * 4 * M + 4 * 4 * M * D + 4 * M * D,
    ),
    Op("torch.zeros_like", {"input": MN}, DIMS, 0, M * N, "data movement", [[M, N]]),
    Op(
        "torch.gather",
        {"input": MN, "index": ints("M", 3)},
        DIMS,
        0,
        0,
        "gather-scatter",
        [[M, 3]],
        {"dim": 1},
        moved_bytes=3 * M * (4 + 8 + 4),
    ),
    Op(
        "torch.scatter_add",
        {"input": MN, "index": ints(*MN), "src": MN},
        DIMS,
        M * N,
        0,
        "gather-scatter",
        [[M, N]],
        {"dim": 0},
        moved_bytes=M * N * (4 + 8 + 4 + 4),
    ),
    Op(
        "torch.sort",
        {"input": ["M", 64]},
        {"M": M},
        M * 64 * 6,
        0,
        "sort",
        [[M, 64], [M, 64]],
        moved_bytes=M * 64 * (4 + 4 + 8),
    ),
    Op("torch.topk", {"input": MN}, DIMS, M * N * 2, 0, "sort", [[M, 3], [M, 3]], {"k": 3}, M * N * 4 + 3 * M * 12),
    Op("torch.flip", {"input": MN}, DIMS, 0, 2 * M * N, "data movement", [[M, N]], {"dims": [0]}),
    Op(F + "pad", {"input": MN}, DIMS, 0, M * N + M * (N + 2), "data movement", [[M, N + 2]], {"pad": [1, 1]}),
    Op("torch.transpose", {"input": MN}, DIMS, 0, 0, "none", [[N, M]], {"dim0": 0, "dim1": 1}, bound="none"),
    Op(
        "torch.fft.fft",
        {"input": {"shape": ["M", 64], "dtype": "complex64"}},
        {"M": M},
        round(5 * M * 64 * log2(64)),
        0,
        "transform",
        [[M, 64]],
        moved_bytes=2 * 8 * M * 64,
    ),
    Op(
        "torch.linalg.inv", {"A": ["N", "N"]}, {"N": N}, 2 * N**3, 2 * N * N, "factorization", [[N, N]], bound="compute"
    ),
    Op(
        "torch.linalg.det",
        {"A": ["N", "N"]},
        {"N": N},
        2 * N**3 // 3,
        N * N + 1,
        "factorization",
        [[]],
        bound="compute",
    ),
]

COUNTED = [*THE_SIX, *POINTWISE, *REDUCTIONS, *NORMS_AND_LOSSES, *CONTRACTIONS, *WINDOWS_AND_INDICES]


@pytest.mark.parametrize(
    "op", COUNTED, ids=lambda op: f"{op.torch.removeprefix('torch.')}-{len(op.inputs)}-{sorted(op.kwargs)}"
)
def test_an_operation_is_counted_as_by_hand(op: Op) -> None:
    found = analysis(op.torch, op.inputs, op.kwargs, op.dims)
    size = found["sizes"]["small"]
    moved = 4 * op.moved if op.moved_bytes is None else op.moved_bytes
    counted = (
        size["flops"],
        size["bytes"],
        found["access"]["class"],
        size["bound"],
        [out["shape"] for out in size["outputs"]],
    )
    assert counted == (op.work, moved, op.access, op.bound, op.out)
    assert found["unknown"] == []
    assert size["intensity"] == (round(op.work / moved, 4) if moved else None)


def test_at_least_thirty_other_operations_are_counted() -> None:
    six = {op.torch for op in THE_SIX}
    assert len({op.torch for op in COUNTED} - six) >= 30


GROWTH = [
    (THE_SIX[0], {"M": 1.0, "N": 1.0}, {"M": 1.0, "N": 1.0}),
    (THE_SIX[1], {"M": 1.0, "N": 1.0}, {"M": 1.0, "N": 1.0}),
    (THE_SIX[2], {"B": 1.0, "H": 1.0, "S": 2.0, "D": 1.0}, {"B": 1.0, "H": 1.0, "S": 1.0, "D": 1.0}),
    (THE_SIX[5], {"M": 1.0, "N": 1.0, "K": 1.0}, {"M": 1.0, "N": 1.0, "K": 1.0}),
    (next(op for op in COUNTED if op.torch.endswith("linalg.inv")), {"N": 3.0}, {"N": 2.0}),
    (
        next(op for op in COUNTED if op.torch.endswith("cdist")),
        {"M": 1.0, "N": 1.0, "K": 1.0},
        {"M": 1.0, "N": 1.0, "K": 1.0},
    ),
    (next(op for op in COUNTED if op.torch.endswith(".outer")), {"M": 1.0, "N": 1.0}, {"M": 1.0, "N": 1.0}),
    (
        next(op for op in COUNTED if op.torch.endswith("embedding")),
        {"M": 0.0, "V": 0.0, "D": 0.0},
        {"M": 1.0, "V": 0.0, "D": 1.0},
    ),
]


@pytest.mark.parametrize(("op", "work", "memory"), GROWTH, ids=lambda value: getattr(value, "torch", ""))
def test_growth_is_the_exponent_of_the_fastest_term(op: Op, work: dict[str, float], memory: dict[str, float]) -> None:
    assert analysis(op.torch, op.inputs, op.kwargs, op.dims)["growth"] == {"work": work, "memory": memory}


def test_kwargs_that_name_a_dim_grow_with_it() -> None:
    found = analysis("torch.topk", {"input": MN}, {"k": "K"}, {"M": 4, "N": 4096, "K": 2})
    assert found["sizes"]["small"]["outputs"][0]["shape"] == [4, 2]
    assert found["outputs"][0] == {"shape": ["M", "K"], "dtype": "float32"}


def test_a_size_of_its_own_has_figures_of_its_own() -> None:
    sizes = {"small": {"M": 2, "N": 3}, "large": {"M": 20, "N": 30}}
    found = analysis("torch.exp", {"input": MN}, {}, {}, sizes=sizes)
    assert [(name, size["flops"], size["bytes"]) for name, size in found["sizes"].items()] == [
        ("small", 6, 48),
        ("large", 600, 4800),
    ]


def test_bytes_and_bound_follow_the_first_dtype() -> None:
    inputs = {"input": ["M", "K"], "other": ["K", "N"]}
    dims = {"M": 512, "N": 512, "K": 512}
    half, single, tf32 = (
        analysis("torch.matmul", inputs, {}, dims, **more)
        for more in ({"dtypes": ["float16", "float32"]}, {}, {"precision": "tf32"})
    )
    assert half["sizes"]["small"]["bytes"] == 3 * 2 * 512**2
    assert half["sizes"]["small"]["outputs"] == [{"shape": [512, 512], "dtype": "float16"}]
    assert [one["ridge"]["flops_per_byte"] for one in (half, single, tf32)] == [166.28, 11.94, 84.31]
    assert [one["sizes"]["small"]["bound"] for one in (half, single, tf32)] == ["compute", "compute", "compute"]


def test_a_machine_rate_that_was_not_measured_gives_no_bound() -> None:
    found = analysis("torch.matmul", {"input": ["M", "M"], "other": ["M", "M"]}, {}, {"M": 64}, dtypes=["float64"])
    assert (found["ridge"]["flops_per_byte"], found["sizes"]["small"]["bound"]) == (None, None)


def test_what_torch_says_of_an_operation_is_kept_without_markup() -> None:
    found = analysis(F + "softmax", {"input": MN}, {"dim": -1}, DIMS)
    assert found["operation"] == F + "softmax"
    assert found["signature"].startswith("(input: torch.Tensor, dim: ")
    assert found["documentation"]["summary"] == "Apply a softmax function."
    assert found["documentation"]["math"] == [r"\text{Softmax}(x_{i}) = \frac{\exp(x_i)}{\sum_j \exp(x_j)}"]
    assert found["definition"] == "out_i = e^(x_i) / Σ_j e^(x_j) along dim"
    assert found["aten"] == [
        {
            "op": "aten._softmax.default",
            "schema": "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
            "calls": 1,
            "work": "5n - 2 per row of n",
            "access": "row reduction",
        }
    ]


def test_a_builtin_has_the_signature_of_its_docstring() -> None:
    found = analysis("torch.add", {"input": MN, "other": MN}, {}, DIMS)
    assert found["signature"] == "(input, other, *, alpha=1, out=None) -> Tensor"
    assert found["documentation"]["summary"] == "Adds other, scaled by alpha, to input."
    assert found["documentation"]["math"] == [
        r"\text{{out}}_i = \text{{input}}_i + \text{{alpha}} \times \text{{other}}_i"
    ]
    assert found["inputs"][0]["description"] == "the input tensor."
    attention = THE_SIX[2]
    assert analysis(attention.torch, attention.inputs, {}, HEADED)["signature"].startswith(
        "(query, key, value, attn_mask=None"
    )


def test_results_have_the_names_of_the_dims_that_they_follow() -> None:
    dims = {"M": 8, "N": 8}
    assert analysis("torch.outer", {"input": ["M"], "vec2": ["N"]}, {}, dims)["outputs"] == [
        {"shape": ["M", "N"], "dtype": "float32"}
    ]
    assert analysis("torch.kron", {"input": MN, "other": [2, 1]}, {}, dims)["outputs"] == [
        {"shape": ["2*M", "N"], "dtype": "float32"}
    ]


def test_an_operation_without_a_rule_is_named_and_not_guessed() -> None:
    found = analysis("torch.linalg.svdvals", {"A": MN}, {}, DIMS)
    size = found["sizes"]["small"]
    assert found["unknown"] == [{"op": "aten._linalg_svd.default", "why": "no rule counts its work"}]
    assert (size["flops"], size["intensity"], size["bound"], found["access"]["class"]) == (None, None, None, None)
    assert (size["outputs"], size["bytes"]) == ([{"shape": [M], "dtype": "float32"}], 4 * (M * N + M))
    assert found["growth"]["work"] == {"M": None, "N": None}


def test_one_unknown_part_makes_the_whole_unknown() -> None:
    found = analysis("torch.cdist", {"x1": MN, "x2": MN}, {"p": 2.5}, DIMS)
    assert (found["sizes"]["small"]["flops"], found["unknown"][0]["op"]) == (None, "aten._cdist_forward.default")


def test_complex_arithmetic_is_not_counted_as_real() -> None:
    found = analysis("torch.mul", {"input": MN, "other": MN}, {}, DIMS, dtypes=["complex64"])
    assert (found["sizes"]["small"]["flops"], found["unknown"][0]["op"]) == (None, "aten.mul.Tensor")


def test_a_result_that_depends_on_values_is_not_known() -> None:
    found = analysis("torch.nonzero", {"input": MN}, {}, DIMS)
    size = found["sizes"]["small"]
    assert found["unknown"] == [{"op": "aten.nonzero.default", "why": "its result depends on the values of its input"}]
    assert (found["outputs"], size["outputs"], size["flops"], size["bytes"], size["bound"]) == (
        None,
        None,
        None,
        None,
        None,
    )
    assert found["definition"] is not None


def test_an_operation_that_the_catalogue_lacks_has_no_definition() -> None:
    found = analysis("torch.special.bessel_j0", {"input": MN}, {}, DIMS)
    assert (found["definition"], found["notes"], found["sizes"]["small"]["flops"]) == (None, None, M * N)


def test_an_operation_without_a_rule_is_counted_over_the_decomposition_of_torch() -> None:
    found = analysis(F + "soft_margin_loss", {"input": MN, "target": MN}, {}, DIMS)
    # negate, multiply, exp, log1p; then the mean.
    assert found["sizes"]["small"]["flops"] == 5 * M * N
    assert found["aten"][0]["work"] == "counted over torch's own decomposition"


def test_a_decomposition_with_an_unknown_part_is_unknown() -> None:
    found = analysis(F + "soft_margin_loss", {"input": MN, "target": MN}, {}, DIMS, dtypes=["complex64"])
    assert found["sizes"]["small"]["flops"] is None
    assert "aten.mul.Tensor" in [one["op"] for one in found["unknown"]]
    assert found["aten"][0]["work"] is None


def test_only_contractions_are_held_against_the_rate_of_matrix_products() -> None:
    assert analysis("torch.exp", {"input": MN}, {}, DIMS, dtypes=["float16"])["ridge"]["flops_per_byte"] == 11.94


def test_an_expanded_tensor_has_its_own_elements_only() -> None:
    assert (Operand((3, 4), (0, 1), "float32").count, Operand((3, 4), (0, 1), "float32").distinct) == (12, 4)
    patterns = analysis(F + "normalize", {"input": MN}, {"dim": 1}, DIMS)["access"]["patterns"]
    assert patterns == ["row reduction", "broadcast", "elementwise"]


@pytest.mark.parametrize(
    ("torch_name", "inputs", "kwargs", "kind", "said"),
    [
        (F + "softmax", {"input": MN}, {"dimension": 1}, "TypeError", "dimension"),
        ("torch.add", {"a": MN}, {}, "TypeError", "add()"),
        ("torch.matmul", {"input": MN, "other": MN}, {}, "RuntimeError", "48x80"),
        ("torch.sum", {"input": MN}, {"dim": 7}, "IndexError", "range"),
        # Without values torch does not look at it.
        (F + "softmax", {"input": MN}, {"dim": 5}, "IndexError", "range"),
        ("torch.nothing_of_the_kind", {"input": MN}, {}, "LookupError", "torch.nothing_of_the_kind"),
        ("torch.nn.Softmax", {"input": MN}, {}, "LookupError", "not a function"),
    ],
)
def test_a_declaration_that_torch_refuses_is_rejected(
    torch_name: str, inputs: dict[str, Any], kwargs: dict[str, Any], kind: str, said: str
) -> None:
    reply = analyze(request(torch_name, inputs, kwargs, DIMS))
    failure = reply["documents"]["failure"]
    assert (reply["outcome"], reply["class"], list(reply["documents"])) == ("rejected", "exception", ["failure"])
    assert failure["class"] == kind
    assert said in failure["message"]
    assert failure["size"] == (None if kind == "LookupError" else "small")


@pytest.mark.parametrize(("mutates", "outcome"), [(["x"], "passed"), ([], "rejected")])
@pytest.mark.parametrize(
    "body", ["x.mul_(2)", "return x.mul_(2)", "if x.sum() == 0:\n        x[:2].fill_(1)\n    return x * 2"]
)
def test_a_reference_that_writes_to_an_input_says_so(
    tmp_path: Path, mutates: list[str], outcome: str, body: str
) -> None:
    (tmp_path / "reference.py").write_text(f"def scaled(x):\n    {body}\n", encoding="utf-8")
    asked = request("torch.exp", {"x": MN}, {}, DIMS)
    reference = {"root": str(tmp_path), "file": "reference.py", "name": "scaled", "init": {}}
    asked["op"] |= {"torch": None, "reference": reference, "mutates": mutates}
    reply = analyze(asked)
    assert reply["outcome"] == outcome
    if outcome == "rejected":
        failure = reply["documents"]["failure"]
        assert "writes to its input `x`, which `mutates` does not name" in failure["message"]
        assert "`mutates: [x]`" in failure["hint"]
    elif body == "x.mul_(2)":
        # What is read and written in place is all that it moves.
        assert reply["documents"]["analysis"]["sizes"]["small"]["bytes"] == 2 * 4 * M * N


def test_a_reference_that_returns_nothing_must_change_an_input(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("def scaled(x):\n    x * 2\n", encoding="utf-8")
    asked = request("torch.exp", {"x": MN}, {}, DIMS)
    reference = {"root": str(tmp_path), "file": "reference.py", "name": "scaled", "init": {}}
    asked["op"] |= {"torch": None, "reference": reference, "mutates": [], "overwrites": []}
    failure = analyze(asked)["documents"]["failure"]
    assert (failure["message"], "`mutates`" in failure["hint"]) == ("it returns no tensor", True)


def test_the_document_is_the_same_bytes_every_time() -> None:
    for op in THE_SIX:
        first, second = (
            json.dumps(analysis(op.torch, op.inputs, op.kwargs, op.dims), allow_nan=False) for _ in range(2)
        )
        assert first == second
        assert "0x" not in first


def test_the_catalogue_defines_what_it_refers_to() -> None:
    ops = json.loads(CATALOGUE.read_text(encoding="utf-8"))["ops"]
    assert len(ops) >= 80
    for entry in ops.values():
        assert set(entry) <= {"definition", "notes", "access", "same_as"}
        assert "definition" in ops[entry.get("same_as")] if "same_as" in entry else entry["definition"]


def test_the_probe_tells_versions_and_names() -> None:
    documents = probe({})["documents"]
    versions = {"python", "torch", "triton", "numpy", "ptxas", "cuda"}
    assert set(documents["toolchain"]) == {*versions, "cxx", "nvcc", "nvcc.at"}
    assert documents["names"] == sorted(set(documents["names"]))
    for op in COUNTED:
        assert op.torch in documents["names"]
        assert callable(declaration.resolve(op.torch))
    assert not any(name.endswith((".Optional", ".Tensor", ".nn")) for name in documents["names"])


def test_importing_the_harness_does_not_import_torch() -> None:
    code = "import sys, t2t_harness.phases.analyze, t2t_harness.phases.probe; sys.exit('torch' in sys.modules)"
    path = str(CATALOGUE.parent.parent / "python")
    assert (
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"], check=False
        ).returncode
        == 0
    )


def test_shapes_kwargs_and_layouts_are_bound() -> None:
    import torch

    assert declaration.bind_shape(["M", 3, "N"], DIMS) == [M, 3, N]
    assert declaration.bind_kwargs({"a": "M", "b": ["N", 2], "c": "mean", "d": "torch.float64"}, DIMS) == {
        "a": M,
        "b": [N, 2],
        "c": "mean",
        "d": torch.float64,
    }
    assert declaration.bind_init({"kind": "randint", "low": 0, "high": "N"}, DIMS) == {
        "kind": "randint",
        "low": 0,
        "high": N,
    }
    assert declaration.strides([2, 3, 4], "contiguous") == [12, 4, 1]
    assert declaration.strides([2, 3, 4], "transposed") == [12, 1, 3]
    assert declaration.strides([2, 3, 4], "strided") == [24, 8, 2]
    assert declaration.strides([2, 3, 4, 5], "channels_last") == [60, 1, 15, 3]
    with pytest.raises(ValueError, match="channels_last"):
        declaration.strides([2], "channels_last")
    with pytest.raises(KeyError, match="Q"):
        declaration.bind_shape(["Q"], DIMS)
