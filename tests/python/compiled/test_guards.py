"""Guards around tensors, on the CPU's memory: a device's is seen to be the same by tests/it/cuda.rs."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from t2t_harness.judging import guards, watch


def made(run: int = 0) -> guards.Guards:
    return guards.Guards(partial(watch.poison, run=run))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex64])
def test_an_input_between_guards_is_as_it_was(dtype: torch.dtype) -> None:
    value = torch.arange(35).to(dtype).as_strided((3, 5), (11, 2))
    (own,) = made().inputs({"x": value}).values()
    assert (own.shape, own.stride(), own.dtype) == (value.shape, value.stride(), value.dtype)
    assert own.equal(value)
    assert own.data_ptr() % 16 == 0


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (0, "4096 bytes before the beginning"),
        (guards.BYTES - 1, "1 bytes before"),
        (guards.BYTES + 20, "0 bytes behind"),
    ],
)
def test_what_is_written_outside_is_told_with_its_place(place: int, words: str) -> None:
    guarded = made()
    own = guarded.inputs({"x": torch.zeros(5)})["x"]
    assert guarded.broken() == []
    guarded = made()
    own = guarded.inputs({"x": torch.zeros(5)})["x"]
    guards.bytes_of(own.untyped_storage())[place] ^= 1
    (told,) = guarded.broken()
    assert "1 bytes were written outside of input `x`" in told and words in told


def test_what_lies_outside_differs_between_runs() -> None:
    one, other = (made(run).inputs({"x": torch.zeros(5)})["x"] for run in (0, 1))
    behind = [value.as_strided((6,), (1,))[5].item() for value in (one, other)]
    assert behind[0] != behind[0] and behind[1] == behind[1]


def test_memory_that_torch_made_larger_is_no_longer_guarded() -> None:
    guarded = made()
    own = guarded.between(torch.empty(4), "", copies=False)
    own.resize_(20)
    guarded.forget([own])
    own.fill_(1.0)
    assert guarded.broken() == []
