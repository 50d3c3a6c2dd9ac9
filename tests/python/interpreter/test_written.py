"""Kernels that others wrote of ops that ops.yaml says little about (`written/`), and each with a mistake that its author would not see in the sizes at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks import both_tests, check, declared, tensor

from t2t_harness.cases import bindings

FOLDER = Path(__file__).parent / "written"

PLANE: list[int | str] = ["B", "C", "H", "W"]
HEADS: list[int | str] = ["B", "H", "S", 16]


def op(name: str, inputs: list[dict[str, Any]], sizes: list[dict[str, int]], **more: Any) -> dict[str, Any]:
    """Returns an op of two check sizes, the second of which is measured, too."""
    small, large = sizes
    checked = {"small": small, "medium": large}
    return declared(name, inputs, small, check_sizes=checked, sizes=checked, seeds=1, **more)


CONV = op(
    "torch.nn.functional.conv1d",
    [tensor("input", ["B", "C", "L"]), tensor("weight", ["O", "C // 2", 3]), tensor("bias", ["O"])],
    [{"B": 2, "C": 4, "O": 4, "L": 16}, {"B": 2, "C": 8, "O": 8, "L": 33}],
    kwargs={"padding": 1, "groups": 2},
)

OPS = {
    "conv1d": CONV,
    "max_pool2d": op(
        "torch.nn.functional.max_pool2d",
        [tensor("input", PLANE)],
        [{"B": 2, "C": 2, "H": 8, "W": 8}, {"B": 1, "C": 3, "H": 13, "W": 16}],
        kwargs={"kernel_size": 3, "stride": 2, "padding": 1},
    ),
    "cosine_similarity": op(
        "torch.nn.functional.cosine_similarity",
        [tensor("x1", ["M", "N"]), tensor("x2", ["M", "N"])],
        [{"M": 8, "N": 64}, {"M": 16, "N": 200}],
        kwargs={"dim": 1, "eps": 1e-8},
    ),
    "attention": op(
        "torch.nn.functional.scaled_dot_product_attention",
        [
            tensor("query", ["B", "H", "L", 16]),
            tensor("key", HEADS),
            tensor("value", HEADS),
            tensor("attn_mask", ["L", "S"]),
        ],
        [{"B": 1, "H": 2, "L": 24, "S": 48}, {"B": 2, "H": 1, "L": 40, "S": 80}],
    ),
    "matmul": op(
        "torch.matmul",
        [tensor("input", ["M", "K"]), tensor("other", ["K", "N"])],
        [{"M": 48, "K": 64, "N": 32}, {"M": 64, "K": 128, "N": 96}],
    ),
}

MISTAKES = {
    "groups of outputs are as large as those of inputs": ("conv1d", "oc // (OC // groups)", "oc // cpg"),
    "a window may begin in the padding": ("max_pool2d", "        out -= 1\n", "        out -= 0\n"),
    "eps is for the product of the norms": (
        "cosine_similarity",
        "tl.maximum(norm_a, eps) * tl.maximum(norm_b, eps)",
        "tl.maximum(norm_a * norm_b, eps)",
    ),
    "nothing but masked keys so far": ("attention", 'tl.where(m_new == float("-inf"), 0.0, m_new)', "m_new"),
    "the rest is looked for of another block": ("matmul", 'args["K"] % args["BLOCK_K"]', 'args["K"] % 16'),
}
"""The mistake → the kernel, what is written there, and what is written instead."""


def kernel(name: str) -> tuple[dict[str, Any], str]:
    """Returns the op and the kernel's source, whose wrapper is called `wrapper`."""
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return OPS[name], source.replace(f"def triton_{name}(", "def wrapper(")


test_the_kernel_passes, test_the_mistake_is_seen = both_tests({name: kernel(name) for name in OPS}, MISTAKES)


def test_channels_in_groups_keep_lengths_that_torch_takes(tmp_path: Path) -> None:
    assert bindings.steps(CONV) == {"C": 2, "O": 2}
    documents = check(tmp_path, *kernel("conv1d"))
    dropped = [case for case in documents["evidence"]["cases"] if "torch refuses" in str(case["reason"])]
    assert len(dropped) < len(documents["evidence"]["cases"]) / 4, [case["name"] for case in dropped]
