"""Where a result is wrong: a picture of the wrong elements, in which rows, columns and blocks they are, and by how many units in the last place.

It stands alone: `t2t repro` puts a copy of it beside its script. It imports torch, inside functions, and nothing of t2t.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

HEIGHT, WIDTH = 16, 64
"""The most lines and columns of a picture in a terminal."""

PIXELS = 512
"""The most pixels of a file's picture in each direction."""

RANGES = 4
"""So many ranges of places are told, and how many more there are."""

ULPS = (1, 4, 16, 256, 1 << 16)
"""Where the bins of distances begin, in units in the last place."""

BITS = {"torch.float16": 16, "torch.bfloat16": 16, "torch.float32": 32, "torch.float64": 64}


def told(got: torch.Tensor, expected: torch.Tensor, right: torch.Tensor, constants: Mapping[str, int]) -> list[str]:
    """Returns lines about the elements that are not `right`, all three of one shape. `constants` are those of the kernel's launch, among them the lengths of its blocks."""
    wrong = matrix(~right)
    rows, columns = wrong.shape
    found = [f"wrong in {places('row', wrong.any(1).tolist())}, {places('column', wrong.any(0).tolist())}"]
    # By which of the two a kernel counts, its constants do not say.
    counted = {"columns": wrong.any(0), "elements": wrong.reshape(-1)}
    if rows == 1:
        del counted["columns"]
    for name, length in constants.items():
        if "BLOCK" not in name.upper():
            continue
        by = [
            f"{places('block', of_blocks(flags, length))} of {what}"
            for what, flags in counted.items()
            if 1 < length < len(flags)
        ]
        if by:
            found.append(f"by {name} = {length}: {'; '.join(by)}")
    if distances := ulps(got, expected, right):
        found.append(f"units in the last place: {distances}")
    if rows * columns > 1:
        found += ["", *picture(wrong), "", ". right   + some wrong   # all wrong"]
    return found


def matrix(values: torch.Tensor) -> torch.Tensor:
    """Returns a tensor as rows of its last dim."""
    if values.dim() == 0:
        return values.reshape(1, 1)
    return values.reshape(-1, values.shape[-1]) if values.numel() else values.reshape(0, max(values.shape[-1], 1))


def of_blocks(flags: torch.Tensor, length: int) -> list[bool]:
    """Returns of each block of so many `flags` whether one of them is set."""
    return [bool(flags[first : first + length].any()) for first in range(0, len(flags), length)]


def places(what: str, flags: Sequence[bool]) -> str:
    """Returns in words at which places something is wrong, by what such a place is called; `flags` says it of each."""
    at = [place for place, is_wrong in enumerate(flags) if is_wrong]
    if len(at) == len(flags):
        return f"every {what}" if len(at) > 1 else f"its {what}"
    step = at[1] - at[0] if len(at) > 2 else 1
    if step > 1 and at == list(range(at[0], at[-1] + 1, step)):
        return f"{what} {at[0]} and each {ordinal(step)} from there to {at[-1]}, of {len(flags)}"
    ranges: list[list[int]] = []
    for place in at:
        if ranges and place == ranges[-1][-1] + 1:
            ranges[-1][1:] = [place]
        else:
            ranges.append([place])
    words = [" to ".join(map(str, one)) for one in ranges[:RANGES]]
    more = f" and {len(ranges) - RANGES} more" if len(ranges) > RANGES else ""
    return f"{what}{'s' if len(at) > 1 else ''} {', '.join(words)}{more} of {len(flags)}"


def ordinal(number: int) -> str:
    """Returns `2nd` for 2."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def ulps(got: torch.Tensor, expected: torch.Tensor, right: torch.Tensor) -> str:
    """Returns how far the wrong elements are off, as a histogram in words; nothing where they are no floats of one type."""
    import torch

    bits = BITS.get(str(got.dtype))
    if bits is None or got.dtype != expected.dtype or bool(right.all()):
        return ""
    ours, theirs = got[~right], expected[~right]
    is_finite = ours.isfinite() & theirs.isfinite()
    one, other = ordered(ours[is_finite], bits), ordered(theirs[is_finite], bits)
    # Of numbers of two signs the distance may not fit an integer; it is long then, and floats are near enough.
    is_apart = (one < 0) != (other < 0)
    far = torch.where(is_apart, one.double().abs() + other.double().abs(), (one - other).abs().double())
    edges = [*ULPS, float("inf")]
    counts = [int(((far >= low) & (far < high)).sum()) for low, high in zip(edges, edges[1:], strict=False)]
    names = [f"{low} to {high - 1}" for low, high in zip(ULPS, ULPS[1:], strict=False)] + [f"{ULPS[-1]} and more"]
    binned = [f"{count} by {name}" for name, count in zip(names, counts, strict=True) if count]
    if rest := int((~is_finite).sum()):
        binned.append(f"{rest} not finite on one side")
    return ", ".join(binned)


def ordered(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns integers in the order of the floats `values`, neighbours one apart."""
    import torch

    kind = {16: torch.int16, 32: torch.int32, 64: torch.int64}[bits]
    whole = values.contiguous().view(kind).long()
    magnitude = whole & ((1 << (bits - 1)) - 1)
    return torch.where(whole < 0, -magnitude, magnitude)


def picture(wrong: torch.Tensor) -> list[str]:
    """Returns the lines of a picture of a matrix, each with its first row before it."""
    high, wide = (-(-length // most) for length, most in zip(wrong.shape, (HEIGHT, WIDTH), strict=True))
    margin = len(str(wrong.shape[0] - 1))
    found = []
    for first in range(0, wrong.shape[0], high):
        parts = [wrong[first : first + high, left : left + wide] for left in range(0, wrong.shape[1], wide)]
        cells = [part.float().mean().item() for part in parts]
        drawn = "".join("." if part == 0 else "#" if part == 1 else "+" for part in cells)
        found.append(f"{first:>{margin}} {drawn}")
    return [*found, f"{'':>{margin}} each sign is {high} x {wide} elements"] if high * wide > 1 else found


def save(path: Path, got: torch.Tensor, expected: torch.Tensor, right: torch.Tensor) -> None:
    """Writes a PNG file: white where the elements of a pixel are right, else red, the darker the larger the error is against the largest (PNG, ISO/IEC 15948)."""
    wrong = matrix(~right)
    error = (matrix(got).double() - matrix(expected).double()).abs().nan_to_num(nan=1e300, posinf=1e300)
    error = error.clamp(max=1e300).masked_fill(~wrong, 0)
    high, wide = (max(-(-length // PIXELS), 1) for length in wrong.shape)
    most = float(error.max()) or 1.0
    rows = []
    for first in range(0, wrong.shape[0], high):
        pixels = bytearray()
        for left in range(0, wrong.shape[1], wide):
            part = slice(first, first + high), slice(left, left + wide)
            # From light to dark over six orders of magnitude.
            share = max(0.0, 1 + _log10(float(error[part].max()) / most) / 6)
            light = int(200 * (1 - share))
            pixels += bytes((200 - light // 4, light, light) if bool(wrong[part].any()) else (255, 255, 255))
        rows.append(b"\0" + bytes(pixels))
    width = -(-wrong.shape[1] // wide)
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else -300.0
