"""Where the tests run: on a CUDA device, or in Triton's interpreter where there is none. It must be known before triton is imported."""

import functools
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")


def on_a_device(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the wrapper of a kernel with tensors of the CPU that answer `is_cuda` as on a device while it runs: it may insist on that."""

    @functools.wraps(wrapper)
    def call(*positional: Any, **named: Any) -> Any:
        torch.Tensor.is_cuda = property(lambda _: True)  # type: ignore[assignment]
        try:
            return wrapper(*positional, **named)
        finally:
            del torch.Tensor.is_cuda

    return call


def told() -> Any:
    """Returns what `cases.json` tells."""
    return json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests of kernels that Triton's interpreter cannot run, where there is no device."""
    if torch.cuda.is_available():
        return
    ops = told()["ops"]
    reason = "its kernel calls libdevice, which Triton's interpreter does not have"
    for item in items:
        # An item without parameters has none, or pytest's own mark for none.
        op = getattr(getattr(getattr(item, "callspec", None), "params", {}).get("case"), "op", None)
        if op is not None and ops[op]["needs_device"]:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _kernels_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        return
    dispatch = importlib.import_module("._dispatch", told()["package"])
    load = dispatch.load
    monkeypatch.setattr(dispatch, "load", lambda module, entry: on_a_device(load(module, entry)))
