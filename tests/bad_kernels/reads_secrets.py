"""Looks for results where they might lie, and raises if any can be read."""

import os
import sys
from pathlib import Path

from kernels.add.right import triton_add as add

ROOT = Path(__file__).resolve().parents[2]


def places():
    """The store, the workspace, every folder beside this one, and the judge's."""
    scratch = Path.cwd()
    action = scratch.parent
    near = [number for number in range(256) if str(number) != action.name]
    others = [action.parent / str(number) / child for number in near for child in ("main", "candidate", "judge")]
    store = [ROOT / "cache", ROOT / "cache/journal", ROOT / "cache/cas", action.parent, action]
    return [ROOT, ROOT / "ops.yaml", *store, action / "judge", *others, Path(f"/proc/{os.getppid()}/mem")]


def is_readable(path):
    try:
        if path.is_dir():
            return bool(os.listdir(path)) or True
        return bool(path.open("rb").read(1)) or True
    except OSError:
        return False


def processes():
    """All others: the server, t2t, whoever started it."""
    return [Path("/proc", name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def is_told(path):
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def names_on_the_stack():
    frame = sys._getframe()
    while frame is not None:
        yield from frame.f_locals
        frame = frame.f_back


def triton_add(input, other, *, alpha=1):
    found = [path for path in places() if is_readable(path)]
    found += [process for process in processes() if is_told(process / "environ") or is_told(process / "maps")]
    found += [name for name in names_on_the_stack() if name in ("expected", "oracle", "reference", "right", "plain")]
    if found:
        raise AssertionError(f"this can be read: {found}")
    return add(input, other, alpha=alpha)
