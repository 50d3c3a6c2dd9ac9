"""Whose fault it is where there is no room on the disk."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from t2t_harness.faults import machine

FULL = "/dev/full"
"""A file that never has room."""


def written() -> None:
    """Writes where there is no room, as torch and Triton do: outside of the workspace."""
    with open(FULL, "w", buffering=1) as file:
        file.write("more\n")


def test_no_room_for_what_others_write_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as found:
        written()
    with pytest.raises(OSError, match="No space left") as raised:
        machine.raise_if_it_failed(found.value, tmp_path)
    assert raised.value.errno == errno.ENOSPC
    wrapped = RuntimeError("a kernel was not compiled")
    wrapped.__cause__ = found.value
    with pytest.raises(OSError, match="No space left"):
        machine.raise_if_it_failed(wrapped, tmp_path)


def test_what_the_workspace_writes_or_raises_itself_is_its_own_fault(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(f"def fill():\n    with open('{FULL}', 'w', buffering=1) as file:\n        print('x', file=file)\n")
    names: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    fill = names["fill"]
    assert callable(fill)
    with pytest.raises(OSError, match="No space left") as found:
        fill()
    machine.raise_if_it_failed(found.value, tmp_path)
    machine.raise_if_it_failed(ValueError("n must be even"), tmp_path)
    machine.raise_if_it_failed(FileNotFoundError(errno.ENOENT, "none"), tmp_path)


def test_a_compiler_says_it_in_what_it_prints() -> None:
    machine.raise_if_it_says_so("k.cu(3): error: identifier is undefined")
    with pytest.raises(OSError, match="No space left") as found:
        machine.raise_if_it_says_so("fatal: error writing /tmp/x.o: No space left on device")
    assert found.value.errno == errno.ENOSPC
