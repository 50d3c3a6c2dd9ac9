"""What a script of `t2t repro` tells of wrong elements, and the file that it draws."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from t2t_harness.phases import repro_picture as picture


def told(expected: torch.Tensor, at: tuple[object, ...], by: float, **constants: int) -> list[str]:
    """Returns what is told where the elements `at` are off by `by`."""
    got = expected.clone()
    got[at] += by
    return picture.told(got, expected, got == expected, constants)


def test_rows_columns_and_blocks_are_told() -> None:
    lines = told(torch.ones(8, 96), (slice(2, 4), slice(32, 64)), 1.0, BLOCK_N=32, num_stages=3)
    assert lines[0] == "wrong in rows 2 to 3 of 8, columns 32 to 63 of 96"
    assert lines[1] == "by BLOCK_N = 32: block 1 of 3 of columns; blocks 7, 10 of 24 of elements"
    assert lines[2] == "units in the last place: 64 by 65536 and more"
    # Two columns a sign, and one row.
    assert lines[4:8] == [f"{row} {'.' * 48}" for row in (0, 1)] + [
        f"{row} {'.' * 16}{'#' * 16}{'.' * 16}" for row in (2, 3)
    ]
    assert lines[12] == "  each sign is 1 x 2 elements"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([True, True, True], "every row"),
        ([False, True, False, False], "row 1 of 4"),
        ([True, False] * 4, "row 0 and each 2nd from there to 6, of 8"),
        ([place % 10 in (0, 2, 3) for place in range(40)], "rows 0, 2 to 3, 10, 12 to 13 and 4 more of 40"),
        ([True], "its row"),
    ],
)
def test_places_are_told_in_words(flags: list[bool], words: str) -> None:
    assert picture.places("row", flags) == words


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_distances_are_counted_in_units_in_the_last_place(dtype: torch.dtype) -> None:
    expected = torch.tensor([1.0, -1.0, 0.0, 1.0, float("nan")], dtype=dtype)
    up, down = torch.tensor(2.0, dtype=dtype), torch.tensor(-2.0, dtype=dtype)
    got = torch.stack(
        [torch.nextafter(expected[0], up), torch.nextafter(expected[1], down), expected[2], up, expected[0]]
    )
    right = torch.tensor([False, False, True, False, False])
    words = picture.ulps(got, expected, right)
    assert words.startswith("2 by 1 to 3, 1 by ") and words.endswith(", 1 not finite on one side"), words


def test_the_zeros_are_one_place_and_the_smallest_numbers_beside_it() -> None:
    tiny = torch.finfo(torch.float32).smallest_normal * torch.finfo(torch.float32).eps
    assert picture.ordered(torch.tensor([tiny, -tiny, 0.0, -0.0]), 32).tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 5), (1030, 7)])
def test_every_shape_has_lines_and_a_file(tmp_path: Path, shape: tuple[int, ...]) -> None:
    expected = torch.zeros(shape)
    got = expected + 1
    right = got == expected
    lines = picture.told(got, expected, right, {})
    assert lines[0].startswith("wrong in ") and len(lines) <= picture.HEIGHT + 8
    picture.save(tmp_path / "0.png", got, expected, right)
    data = (tmp_path / "0.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    rows, columns = picture.matrix(expected).shape
    assert data.startswith(b"\x89PNG") and width <= picture.PIXELS and height <= picture.PIXELS
    assert (width, height) == (columns, -(-rows // -(-rows // picture.PIXELS)))
    start = data.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", data[start - 8 : start - 4])
    assert len(zlib.decompress(data[start : start + length])) == height * (1 + 3 * width)


def test_right_elements_are_white_and_the_largest_error_is_darkest(tmp_path: Path) -> None:
    expected = torch.zeros(1, 3)
    got = torch.tensor([[0.0, 1e-3, 1.0]])
    picture.save(tmp_path / "0.png", got, expected, got == expected)
    data = (tmp_path / "0.png").read_bytes()
    start = data.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", data[start - 8 : start - 4])
    pixels = zlib.decompress(data[start : start + length])[1:]
    right, small, large = pixels[0:3], pixels[3:6], pixels[6:9]
    assert right == b"\xff\xff\xff" and small[1] > large[1] == 0 and large[0] > large[1]
