"""What a candidate and a bench keep of results, read back by safetensors itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from t2t_harness.judging import kept

DTYPES = [getattr(torch, name) for name in kept.DTYPES]


def back(tmp_path: Path, **values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Returns what is read of `values`, written one after the other."""
    writer = kept.Writer(tmp_path / "results")
    for name, value in values.items():
        writer.add(name, value)
    writer.close()
    return load_file(tmp_path / "results")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back_bit_by_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    bits = torch.arange(24 * dtype.itemsize, dtype=torch.uint8)
    value = (bits % 2 if dtype is torch.bool else bits).view(dtype).reshape(2, 3, -1)
    found = back(tmp_path, a=value)["a"]
    assert (found.dtype, found.shape) == (dtype, value.shape)
    assert torch.equal(found.reshape(-1).view(torch.uint8), value.reshape(-1).view(torch.uint8))


FORMS = {
    "transposed": torch.arange(12.0).reshape(3, 4).t(),
    "strided": torch.arange(12.0)[::3],
    "expanded": torch.arange(3.0)[:, None].expand(3, 4),
    "part": torch.arange(12.0).reshape(3, 4)[1:],
    "lone": torch.arange(4.0).reshape(1, 4)[:, ::2][:, 1:],
    "scalar": torch.tensor(3.0),
    "empty": torch.empty(0, 4),
    "leaf": torch.ones(2, requires_grad=True),
    "negative": torch.arange(4.0).to(torch.complex64).conj().imag,
}


def test_results_of_all_forms_come_back_dense_in_one_file(tmp_path: Path) -> None:
    found = back(tmp_path, **FORMS)
    assert sorted(found) == sorted(FORMS)
    for name, value in FORMS.items():
        assert torch.equal(found[name], value), name
        assert found[name].is_contiguous()


def test_complex_numbers_come_back_as_pairs(tmp_path: Path) -> None:
    value = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert back(tmp_path, a=value)["a"].tolist() == [[1.0, -2.0], [3.0, 4.0]]


def test_hundreds_of_results_have_room(tmp_path: Path) -> None:
    values = {f"c{index}.0": torch.full((3,), float(index)) for index in range(1200)}
    found = back(tmp_path, **values)
    assert (tmp_path / "results").stat().st_size > kept.HEADER + 1200 * 12
    assert all(torch.equal(found[name], value) for name, value in values.items())


@pytest.mark.parametrize("size", [3, kept.FEW], ids=["held", "written"])
def test_there_is_nothing_to_read_before_the_end(tmp_path: Path, size: int) -> None:
    writer = kept.Writer(tmp_path / "results")
    writer.add("a", torch.ones(size))
    with pytest.raises((SafetensorError, FileNotFoundError)):
        load_file(tmp_path / "results")
    before = os.listdir("/proc/self/fd")
    writer.add("b", torch.ones(3))
    assert os.listdir("/proc/self/fd") == before
    writer.close()
    found = load_file(tmp_path / "results")
    assert {name: value.numel() for name, value in found.items()} == {"a": size, "b": 3}


def test_what_the_format_has_no_name_for_is_refused(tmp_path: Path) -> None:
    value = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    assert not kept.is_kept(value) and kept.is_kept(torch.ones(1, dtype=torch.complex64))
    with pytest.raises(ValueError, match="qint8"):
        kept.Writer(tmp_path / "results").add("a", value)


def packed(tmp_path: Path, position: int, value: torch.Tensor) -> list[int] | None:
    """Leaves the result of a case in a candidate's folder, and returns where it is told to lie."""
    writer = kept.Writer(tmp_path / f"{position}.safetensors", tmp_path / kept.PACK)
    writer.add("a", value)
    writer.close()
    return writer.at


def test_results_of_few_bytes_lie_in_one_file_and_others_in_their_own(tmp_path: Path) -> None:
    values = [torch.arange(3.0), torch.empty(0), torch.ones(kept.FEW), torch.tensor(7)]
    places = [packed(tmp_path, position, value) for position, value in enumerate(values)]
    assert sorted(os.listdir(tmp_path)) == ["2.safetensors", kept.PACK]
    assert [place is None for place in places] == [False, False, True, False]
    for position, (value, place) in enumerate(zip(values, places, strict=True)):
        assert torch.equal(kept.of_case(tmp_path, position, place)["a"], value)


@pytest.mark.parametrize("at", [[0, 1 << 60], [-8, 8], [8, 0], [4, 40], [1 << 40, (1 << 40) + 8], ["0", "9"], [0], 7])
def test_what_no_results_lie_at_is_an_error(tmp_path: Path, at: Any) -> None:
    packed(tmp_path, 0, torch.arange(3.0))
    with pytest.raises((OSError, TypeError, ValueError)):
        kept.of_case(tmp_path, 0, at)


def test_a_pack_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    at = packed(tmp_path / "own", 0, torch.arange(3.0))
    (tmp_path / kept.PACK).symlink_to(tmp_path / "own" / kept.PACK)
    with pytest.raises(OSError, match="Too many levels"):
        kept.of_case(tmp_path, 0, at)


class Device:
    """A tensor that says that it lies on a device."""

    is_cuda = True

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value

    def numel(self) -> int:
        return self.value.numel()

    def reshape(self, *shape: int) -> torch.Tensor:
        return self.value.reshape(*shape)


def test_a_large_result_comes_through_one_piece_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "PIECE", 64)
    room = torch.empty(64, dtype=torch.uint8)
    monkeypatch.setattr(kept, "staging", lambda: room)
    value = torch.arange(40, dtype=torch.int32)
    found = [bytes(piece) for piece in kept.pieces(Device(value))]  # type: ignore[arg-type]
    assert [len(piece) for piece in found] == [64, 64, 32]
    assert b"".join(found) == value.numpy().tobytes()


def test_memory_that_cannot_be_pinned_does_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = torch.empty

    def refusing(*args: int, pin_memory: bool = False, **kwargs: torch.dtype) -> torch.Tensor:
        if pin_memory:
            raise RuntimeError("no pinned memory")
        return empty(*args, **kwargs)

    monkeypatch.setattr(torch, "empty", refusing)
    assert kept.staging.__wrapped__().numel() == kept.PIECE
