"""How wrappers are called: by names, as `call` says, classes, attributes, and modules that are installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).resolve().parent)]

from test_check import GOOD, check

from t2t_harness.cases import calling
from t2t_harness.sources import loading


@pytest.mark.parametrize(
    ("written", "args", "kwargs"),
    [
        ("entry()", (), {}),
        ("entry(b, a)", (2, 1), {}),
        ("entry(a, -1, 0.5, 'x', None, keep=True)", (1, -1, 0.5, "x", None), {"keep": True}),
        ("entry([a, b], shape=(a, 3))", ([1, 2],), {"shape": (1, 3)}),
    ],
)
def test_arguments_are_placed_as_the_call_says(written: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert calling.placed(written, {"a": 1, "b": 2, "c": 3}) == (args, kwargs)


def test_a_name_that_a_case_lacks_is_said() -> None:
    with pytest.raises(LookupError, match="`call` names `dim`"):
        calling.placed("entry(dim)", {"a": 1})


OTHERS = """
def scaled(factor, destination, values):
    assert factor == 2 and destination is None
    return run(values.contiguous(), torch.empty(values.shape, dtype=values.dtype, device="cuda"))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, input, other):
        return run(input.contiguous(), torch.empty(input.shape, dtype=input.dtype, device="cuda"))


class Doubler:
    def __call__(self, input, other):
        return triton_double(input, other)


class wrappers:
    nested = Double
"""


@pytest.mark.parametrize(
    ("entry", "call"),
    [
        ("triton_double", None),
        ("scaled", "entry(other, None, values=input)"),
        ("Double.apply", "entry(input, other)"),
        ("wrappers.nested.apply", "entry(input, 2)"),
        ("Doubler", None),
    ],
)
def test_a_wrapper_of_any_form_passes(tmp_path: Path, entry: str, call: str | None) -> None:
    judged = check(tmp_path, GOOD + OTHERS, entry=entry, call=call)
    assert judged["outcome"] == "passed", judged["documents"]["evidence"]["failure"]


def test_a_call_with_swapped_arguments_is_rejected(tmp_path: Path) -> None:
    judged = check(tmp_path, GOOD + OTHERS, entry="scaled", call="entry(3, None, input)")
    assert judged["class"] == "exception"


def test_a_missing_part_of_an_entry_is_the_files_fault(tmp_path: Path) -> None:
    judged = check(tmp_path, GOOD + OTHERS, entry="wrappers.gone")
    assert judged["class"] == "source"


def test_an_installed_module_is_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "installed_kernels"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "gated.py").write_text("class Gated:\n    apply = staticmethod(lambda x: x)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    variant = {"file": "installed_kernels.gated", "module": "installed_kernels.gated", "entry": "Gated.apply"}
    assert loading.load_entry(str(tmp_path), variant)(3) == 3
