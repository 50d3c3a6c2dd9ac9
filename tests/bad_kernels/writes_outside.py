"""Writes, renames and removes outside its scratch folder, and raises if any of it works."""

import os
import pwd
from pathlib import Path

from kernels.add.right import triton_add as add

ROOT = Path(__file__).resolve().parents[2]
NAME = "t2t-bad-kernel-was-here"


def places():
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    folders = (ROOT, ROOT / "kernels/add", ROOT / "cache", ROOT / "logs", home, Path("/tmp"), Path("/dev/shm"))
    return [*(folder / NAME for folder in folders), Path(__file__), ROOT / "ops.yaml", ROOT / "cache/journal"]


def write(path):
    path.open("ab").close()


def rename(path):
    path.rename(path.with_suffix(".renamed"))


def remove(path):
    path.unlink()


def attempt(act, path):
    try:
        act(path)
    except OSError:
        return
    raise AssertionError(f"{act.__name__} of {path} worked")


def triton_add(input, other, *, alpha=1):
    for act in (write, rename, remove):
        for path in places():
            attempt(act, path)
    return add(input, other, alpha=alpha)
