"""Elements that change between timed calls: torch and a driver leave the same, and torch knows of both."""

from __future__ import annotations

import ctypes
import random
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python")]

from t2t_harness.measuring import driver, elements


def by_driver(value: torch.Tensor, original: torch.Tensor, error: int = 0) -> elements.Changing:
    """Returns what `changing` does on a device, with a driver that writes to this process's memory, or fails with this `error`."""
    targets, sources, draws = elements.drawn_places(7, value.numel())

    def fill(size: int, address: int, bits: int, count: int) -> None:
        if error:
            raise driver.Failed(f"CUDA error {error}")
        assert count == 1
        driver.WORDS[size][1].from_address(address).value = bits

    return elements.ByDriver(
        [elements.element(value, place) for place in targets],
        [elements.element(original, place) for place in sources],
        draws,
        fill,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_driver_writes_what_torch_would(dtype: torch.dtype, is_turned: bool) -> None:
    original = torch.randn(23, 41).to(dtype)
    by_torch, written = original.clone(), original.clone()
    if is_turned:
        original, by_torch, written = original.t(), by_torch.t(), written.t()
    one, other = elements.changing(by_torch, original, 7), by_driver(written, original)
    for _ in range(200):
        version = written._version
        assert one.change() and other.change()
        assert written.equal(by_torch)
        assert written._version > version, "what remembers by version is told"
    assert not written.equal(original)


def test_an_element_that_a_driver_does_not_write_is_no_silent_fault() -> None:
    value = torch.randn(5, 7)
    with pytest.raises(driver.Failed, match="CUDA error 700"):
        by_driver(value, value.clone(), 700).change()


def test_nothing_changes_where_there_is_no_element() -> None:
    assert not elements.Changing([], [], random.Random(0)).change()


def test_the_driver_s_functions_take_words_of_the_size_that_they_write() -> None:
    assert {size: ctypes.sizeof(kind) for size, (_, kind) in driver.WORDS.items()} == {2: 2, 4: 4}
