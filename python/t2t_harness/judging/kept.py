"""Results in a file that `safetensors` reads, written one after the other as they are made, or at once where they are few bytes. What is few bytes of many cases lies in one file: on some
file systems a new file takes as long as the case (ext4 passes over each file that went away in the last minutes).

From a device they come through one piece of pinned memory, to which a device copies at full speed, and go straight into the file: no memory as large
as a result is allocated in between. The file is opened anew for each, since a kernel may close open descriptors. torch is imported only inside
functions.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import eights
from t2t_harness.judging import files, progress

if TYPE_CHECKING:
    import torch

HEADER = 1 << 16
"""Bytes that are left free for the header: what a header is followed by, up to its stated length, may be spaces (the format of safetensors)."""

PIECE = 4 << 20
"""Bytes that are copied from a device at once."""

FEW = 1 << 20
"""Results of so many bytes together, or fewer, are held until all are there."""

ALIGNED = 8
"""What a header's length is a multiple of (the format of safetensors)."""

SMALL = 2 << 20
"""The size of a file that is read whole."""

MOST_OF_PROBE = 1 << 28
"""The most bytes of results that are kept of a probe: they pass through the host's memory."""

PACK = "small"
"""The file in a candidate's folder with the results of all cases that have few bytes of them: for each what a file of its own would hold, one after the other."""

DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""What safetensors calls a dtype of torch."""

AS_BYTES = "|" + eights.SCALES
"""The end of the names of results of that dtype, which are kept as bytes: safetensors reads it from files and not from bytes (0.8)."""


class TooLarge(Exception):
    """Results have more bytes than are kept of them; the message says how many."""


class Writer:
    """A file in the making, or the next part of the file `pack`, where there is one and the results have few bytes. It takes `most` bytes, or as many as come."""

    def __init__(self, path: Path, pack: Path | None = None, most: int | None = None) -> None:
        self.path, self.pack, self.most = path, pack, most
        self.at: list[int] | None = None
        """Where they begin and end in the pack, in bytes, once they are there."""
        self.entries: dict[str, dict[str, object]] = {}
        self.end = 0
        """Bytes of results so far."""
        self.held: bytearray | None = bytearray()
        """Those results, as long as they are few bytes: then the file is written at once."""

    def add(self, name: str, value: torch.Tensor) -> None:
        """Writes a result, in row-major order, complex numbers as pairs of real ones. Raises ValueError for a dtype that the format has no name for, and TooLarge where it has no room for it."""
        if not is_kept(value):
            raise ValueError(f"a result of dtype {name_of(value)} cannot be kept")
        if self.most is not None and self.end + value.numel() * value.element_size() > self.most:
            raise TooLarge(f"a result has {value.numel():,} elements, too many for a probe")
        if name_of(value) == eights.SCALES:
            import torch

            name, value = name + AS_BYTES, value.view(torch.uint8)
        plain = dense(value)
        begin, self.end = self.end, self.end + plain.numel() * plain.element_size()
        if self.held is not None and self.end <= FEW:
            for piece in pieces(plain):
                self.held += piece
        else:
            self.write(plain)
        self.entries[name] = {
            "dtype": DTYPES[name_of(plain)],
            "shape": list(plain.shape),
            "data_offsets": [begin, self.end],
        }

    def write(self, plain: torch.Tensor) -> None:
        """Writes a dense tensor to the end of the file, after what was held."""
        if self.held is not None:
            self.path.write_bytes(bytes(8 + HEADER) + self.held)
            self.held = None
        with self.path.open("ab") as file:
            for piece in pieces(plain):
                file.write(piece)

    def close(self) -> None:
        """Writes the header: only now is there anything to read."""
        text = json.dumps(self.entries).encode()
        if self.held is not None:
            text = text.ljust(-(-len(text) // ALIGNED) * ALIGNED)
            whole = struct.pack("<Q", len(text)) + text + self.held
            if self.pack is None or len(whole) > SMALL:
                files.put(self.path, whole)
            else:
                begin = files.put(self.pack, whole, appends=True)
                self.at = [begin, begin + len(whole)]
            return
        if len(text) > HEADER:
            # Of hundreds of results.
            with self.path.open("rb") as file:
                file.seek(8 + HEADER)
                results = file.read()
            self.path.write_bytes(struct.pack("<Q", len(text)) + text + results)
            return
        with self.path.open("r+b") as file:
            file.write(struct.pack("<Q", HEADER) + text.ljust(HEADER))


def is_kept(value: torch.Tensor) -> bool:
    """Tells whether the format has a name for the dtype of a result."""
    return value.dtype.is_complex or name_of(value) in (*DTYPES, eights.SCALES)


def name_of(value: torch.Tensor) -> str:
    """Returns torch's name of a tensor's dtype."""
    return _name_of(value.dtype)


@functools.cache
def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def dense(value: torch.Tensor) -> torch.Tensor:
    """Returns `value` in row-major order without gaps, complex numbers as pairs; it may share memory with `value`."""
    import torch

    plain = value.detach()
    if type(plain) is not torch.Tensor:
        plain = plain.as_subclass(torch.Tensor)
    if plain.dtype.is_complex:
        plain = torch.view_as_real(plain.resolve_conj())
    # A tensor of one element counts as contiguous whatever its strides are, and keeps them.
    if plain.is_contiguous() and plain.numel() > 1 and not plain.is_neg():
        return plain
    return plain.clone(memory_format=torch.contiguous_format)


def pieces(value: torch.Tensor) -> Iterator[memoryview]:
    """Yields the bytes of a dense tensor, each piece valid until the next one."""
    import torch

    if value.numel() == 0:
        return
    if not value.is_cuda and value.numel() * value.element_size() <= FEW:
        # torch's views take longer than the few bytes do.
        yield memoryview(ctypes.string_at(value.data_ptr(), value.numel() * value.element_size()))
        return
    flat = value.reshape(-1).view(torch.uint8)
    if not value.is_cuda:
        yield flat.numpy().data
        return
    room = staging()
    for begin in range(0, flat.numel(), PIECE):
        part = flat[begin : begin + PIECE]
        yield room[: part.numel()].copy_(part).numpy().data


@functools.cache
def staging() -> torch.Tensor:
    """Returns the memory that pieces come through, pinned where the system lets this process pin any."""
    import torch

    try:
        return torch.empty(PIECE, dtype=torch.uint8, pin_memory=True)
    except RuntimeError:
        return torch.empty(PIECE, dtype=torch.uint8)


def of_case(folder: Path, position: int, at: Sequence[int] | None) -> dict[str, torch.Tensor]:
    """Returns the results of case number `position` that a candidate left in `folder`: in a file of its own, or from `at[0]` to `at[1]` in the pack, in bytes. Raises OSError, TypeError or
    ValueError where it holds none."""
    from safetensors import SafetensorError
    from safetensors.torch import load as loaded

    if at is None:
        return load(folder / f"{position}.safetensors")
    begin, end = at
    if not 0 <= begin <= end <= begin + SMALL:
        raise ValueError(f"no part of a file: {begin} to {end}")
    with open(folder / PACK, "rb", opener=progress.regular) as file:
        part = os.pread(file.fileno(), end - begin, begin)
    try:
        return as_made(loaded(part))
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def as_made(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the tensors by the names that they were kept under, in the dtype that they were made in."""
    import torch

    return {
        name.removesuffix(AS_BYTES): value.view(torch.float8_e8m0fnu) if name.endswith(AS_BYTES) else value
        for name, value in tensors.items()
    }


def load(path: Path) -> dict[str, torch.Tensor]:
    """Returns the tensors of a file that a candidate wrote. Raises OSError or ValueError where it holds none."""
    from safetensors import SafetensorError
    from safetensors.torch import load, load_file

    try:
        with open(path, "rb", opener=progress.regular) as file:
            # A small file is read sooner than mapped.
            if os.fstat(file.fileno()).st_size <= SMALL:
                return as_made(load(file.read()))
        return as_made(load_file(str(path)))
    except SafetensorError as error:
        raise ValueError(str(error)) from error
