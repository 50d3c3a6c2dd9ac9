"""Bytecode that is kept for the harness itself: what is believed, and what is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[3] / "python"

CALL = """
import sys
sys.path.insert(0, sys.argv[1])
from t2t_harness.server import bytecode
bytecode.use()
from t2t_harness.cases import naming
print(naming.TOLD, naming.given.__code__.co_filename)
"""


@pytest.fixture
def harness(tmp_path: Path) -> Path:
    """Returns a folder with a copy of the harness, a module of which tells what it is of."""
    folder = tmp_path / "first"
    shutil.copytree(HARNESS / "t2t_harness", folder / "t2t_harness", ignore=shutil.ignore_patterns("__pycache__"))
    with naming(folder).open("a") as file:
        file.write("\nTOLD = 'source'\n")
    return folder


def naming(harness: Path) -> Path:
    """Returns the file of the module that tells what it is of."""
    return harness / "t2t_harness/cases/naming.py"


def call(folder: Path, harness: Path, **variables: str) -> str:
    """Returns what the module tells in a process that keeps all in the folder `kept` of `folder`, and checks where its code says it is from."""
    told = {"PYTHONDONTWRITEBYTECODE": "1", "T2T_BYTECODE": str(folder / "kept"), **variables}
    command = [sys.executable, "-c", CALL, str(harness)]
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, place = done.stdout.split()
    assert place == str(naming(harness))
    return said


def kept(folder: Path) -> dict[Path, bytes]:
    """Returns the files that are kept, with what they hold."""
    return {file: file.read_bytes() for file in sorted((folder / "kept/harness").iterdir())}


def of_naming(folder: Path) -> Path:
    """Returns the file that is kept of the module that tells what it is of."""
    return next(file for file, data in kept(folder).items() if b"TOLD" in data)


def say(file: Path, told: str) -> None:
    """Changes what kept bytecode says, keeping it whole."""
    data = file.read_bytes()[4:].replace(b"source", told.encode())
    file.write_bytes(zlib.crc32(data).to_bytes(4, "big") + data)


def test_what_is_kept_is_what_is_imported_wherever_the_same_source_lies(tmp_path: Path, harness: Path) -> None:
    assert call(tmp_path, harness) == "source"
    before = kept(tmp_path)
    assert len(before) > 1
    say(of_naming(tmp_path), "kept_1")
    assert call(tmp_path, harness) == "kept_1"
    shutil.copytree(harness, tmp_path / "second")
    os.utime(naming(tmp_path / "second"), (0, 0))
    assert call(tmp_path, tmp_path / "second") == "kept_1"
    assert call(tmp_path, harness, T2T_BYTECODE="") == "source"
    assert set(kept(tmp_path)) == set(before), "nothing is made twice"
    assert not list(harness.rglob("*.pyc")), "nothing is written beside the sources"


def test_what_is_of_another_source_does_not_count(tmp_path: Path, harness: Path) -> None:
    call(tmp_path, harness)
    say(of_naming(tmp_path), "kept_1")
    stat = naming(harness).stat()
    naming(harness).write_text(naming(harness).read_text().replace("'source'", "'edited'"))
    os.utime(naming(harness), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert call(tmp_path, harness) == "edited", "though its size and its time are the same"


@pytest.mark.parametrize("damage", ["cut", "emptied", "other bytes", "no code"])
def test_what_is_not_whole_does_not_count_and_is_made_again(tmp_path: Path, harness: Path, damage: str) -> None:
    call(tmp_path, harness)
    file = of_naming(tmp_path)
    data = file.read_bytes()
    nothing = b"N"
    file.write_bytes(
        {
            "cut": data[:-3],
            "emptied": b"",
            "other bytes": data[:60] + bytes(8) + data[68:],
            "no code": zlib.crc32(nothing).to_bytes(4, "big") + nothing,
        }[damage]
    )
    assert call(tmp_path, harness) == "source"
    assert file.read_bytes() == data


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path, harness: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    assert call(tmp_path, harness) == "source"


def test_what_was_made_long_ago_is_removed(tmp_path: Path, harness: Path) -> None:
    call(tmp_path, harness)
    file, left = of_naming(tmp_path), tmp_path / "kept/harness/1.new"
    left.write_bytes(b"")
    for old in (file, left):
        os.utime(old, (time.time() - 40 * 86400, time.time() - 40 * 86400))
    before = set(kept(tmp_path))
    assert call(tmp_path, harness) == "source"
    assert set(kept(tmp_path)) == before - {left}
    assert file.stat().st_mtime > time.time() - 86400
