"""Products of TF32, the default of `tl.dot`: what they lose is allowed where the op declares that precision, also where inputs are ill-conditioned."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from checks import check, declared, tensor
from test_careless import PRODUCT

REFERENCE = '''"""What is right."""

import torch


def features(input, mat2):
    """Returns random Fourier features of the rows of `input`."""
    return torch.sin(input @ mat2)
'''

KERNEL = PRODUCT.replace(', input_precision="ieee"', "").replace(
    "rows * N + cols, total,", "rows * N + cols, tl.sin(FACTOR),"
)


def features(root: Path, **more: Any) -> dict[str, Any]:
    """Returns the op, its reference written below `root`."""
    file = root / "references/features.py"
    file.parent.mkdir(parents=True)
    file.write_text(REFERENCE, encoding="utf-8")
    reference = {"file": "references/features.py", "name": "features", "init": {}, "root": str(root)}
    given = [tensor("input", ["M", "K"]), tensor("mat2", ["K", "N"])]
    given_op = {**declared("", given, {"M": 20, "K": 24, "N": 12}, seeds=1), "torch": None, "reference": reference}
    return {**given_op, "tolerances": {"float32": [1e-2, 1e-2]}, **more}


@pytest.mark.parametrize(
    ("precision", "factor", "class_"),
    [("tf32", "total", None), ("ieee", "total", "mismatch"), ("tf32", "total * 1.02", "mismatch")],
)
def test_what_tf32_loses_is_allowed_where_it_is_declared(
    tmp_path: Path, precision: str, factor: str, class_: str | None
) -> None:
    declaration = features(tmp_path / "workspace", precision=precision)
    documents = check(tmp_path, declaration, KERNEL.replace("FACTOR", factor))
    assert documents["verdict"]["class"] == class_, documents["evidence"]["failure"]
