"""Carries Triton's cache from the machine that compiled to the machine that launches.

An archive holds, per compiled kernel, a folder named by Triton's key with metadata, ttir, ttgir, llir, ptx and cubin. Triton finds them through a
group file that names absolute paths, so the group files are left out and written again where the archive is unpacked. Launchers (launchers.py) have
folders of their own, with one file.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")
"""What is kept of each kernel, in the order in which it is made. Triton's `.source` is not: nothing reads it again."""

GROUP = "__grp__"

MEMBER = re.compile(r"(?P<folder>[A-Z0-9]+)/(?P<file>[^/]*[^/.][^/]*)")
"""The name of a file in an archive."""


def install() -> None:
    """Makes Triton write a file of its cache under another name in the same folder first, where it makes and removes a folder for each."""
    from triton.runtime.cache import FileCacheManager

    def put_whole(self: Any, data: Any, filename: str, binary: bool = True) -> str:
        """Writes a file at once and whole, and returns its path."""
        place = Path(self.cache_dir, filename)
        beside = place.with_name(f"{os.getpid()}-{threading.get_ident()}.new")
        beside.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        beside.replace(place)
        return str(place)

    FileCacheManager.put = put_whole


def pack(cache: Path, folders: Iterable[str], launchers: Iterable[str], archive: Path) -> None:
    """Writes what lies in `folders` (compiled kernels) and `launchers` below `cache` to `archive`.

    The same kernels are the same bytes, wherever and whenever; a launcher is what this machine's C compiler makes of the same text.
    """
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for file in [*kernel_files(cache, folders), *launcher_files(cache, launchers)]:
            data = file.read_bytes()
            if file.suffix == ".json":
                data = without_installation(data)
            member = tarfile.TarInfo(f"{file.parent.name}/{file.name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def kernel_files(cache: Path, folders: Iterable[str]) -> Iterator[Path]:
    """Yields the files to keep of every complete kernel in `folders` below the folder `cache`, sorted."""
    for folder in sorted(set(folders)):
        for metadata in sorted((cache / folder).glob("*.json")):
            files = [metadata, *stages_of(metadata)]
            if not metadata.name.startswith(GROUP) and files[-1].suffix == ".cubin":
                yield from sorted(files)


def launcher_files(cache: Path, folders: Iterable[str]) -> list[Path]:
    """Returns the files of the launchers in `folders` below the folder `cache`, sorted."""
    return [file for folder in sorted(set(folders)) for file in sorted((cache / folder).glob("*.so"))]


def stages_of(metadata: Path) -> list[Path]:
    """Returns the files beside Triton's `metadata` that hold the kernel, in the order in which they were made. Gluon's first is ttgir."""
    return [file for stage in STAGES if (file := metadata.with_suffix(f".{stage}")).is_file()]


def without_installation(metadata: bytes) -> bytes:
    """Returns Triton's metadata with the folder of the Triton that wrote it taken out: nothing reads it after compiling."""
    import triton

    return metadata.replace(str(Path(triton.__file__).parent).encode(), b"triton")


def read(archive: Path) -> dict[str, dict[str, bytes]]:
    """Returns what `archive` holds: the folder of each kernel or launcher → its files → their content.

    Raises ValueError for a member that is no file in a folder.
    """
    folders: dict[str, dict[str, bytes]] = {}
    # Only what `pack` writes is taken: files, each in a folder of the cache.
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive.read_bytes()))) as tar:
        for member in tar:
            parts, content = MEMBER.fullmatch(member.name), tar.extractfile(member) if member.isreg() else None
            if parts is None or content is None:
                raise ValueError(f"`{member.name}` is no compiled kernel")
            folders.setdefault(parts["folder"], {})[parts["file"]] = content.read()
    return folders


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts files of an archive into a folder of Triton's cache, so that Triton finds the kernel there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_groups(folder)


def unpack(archive: Path, cache: Path) -> None:
    """Unpacks `archive` below the folder `cache`, so that Triton finds the kernels there. Raises ValueError as `read` does."""
    for folder, files in read(archive).items():
        put(cache / folder, files)


def write_groups(folder: Path) -> None:
    """Writes the group file of each kernel in `folder`: the absolute path of each of its files."""
    for metadata in folder.glob("*.json"):
        if not metadata.name.startswith(GROUP):
            files = [metadata, *stages_of(metadata)]
            paths = {file.name: str(file.resolve()) for file in files if file.is_file()}
            (folder / f"{GROUP}{metadata.name}").write_text(json.dumps({"child_paths": paths}))


def unpack_all(request: Common) -> None:
    """Unpacks the archives that the request lists under `warm` into `$TRITON_CACHE_DIR`. Without any, does nothing."""
    for archive in request.get("warm") or []:
        unpack(Path(archive), Path(os.environ["TRITON_CACHE_DIR"]))


def unpack_as_asked(request: Common) -> None:
    """Has Triton find what the archives under `warm` hold, as `unpack_all` does, but each kernel is unpacked when Triton first looks for it: a measurement needs few of those
    that were compiled. Processes that this one forks do not share what is unpacked later."""
    from triton.runtime.cache import FileCacheManager

    archives = [read(Path(archive)) for archive in request.get("warm") or []]
    packed = {folder: files for archive in archives for folder, files in archive.items()}
    begin, one_at_a_time = FileCacheManager.__init__, threading.Lock()

    def beginning(self: Any, key: str, *args: Any, **kwargs: Any) -> None:
        with one_at_a_time:
            files = packed.pop(key, None)
            if files is not None:
                put(Path(os.environ["TRITON_CACHE_DIR"], key), files)
        begin(self, key, *args, **kwargs)

    FileCacheManager.__init__ = beginning
