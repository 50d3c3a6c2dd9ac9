"""What nvcc made of a file, in an archive: under which names, and which of it a device runs.

It loads nothing, and imports neither torch nor Triton.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

FOLDER = "CUDA"
"""The folder of an archive that holds what nvcc made."""

INDEX = "index.json"
"""The file in it that says what that is, as JSON (`Index`)."""


PARTS = "PARTS"
"""The folder that holds what modules of torch's are made of, for the next compile."""


class OfFlags(TypedDict, total=False):
    """What an archive says of a module's flags."""

    names_architectures: bool
    """Whether they name the architectures."""


class ModuleFacts(OfFlags):
    """A module of torch's that was built."""

    name: str
    kernels: list[str]
    """Their names, as the driver has them."""


class OfTorch(TypedDict, total=False):
    """What an archive says of modules of torch's, if it has any."""

    abi: dict[str, str]
    """What they fit: torch, Python, C++ ABI."""
    modules: dict[str, ModuleFacts]
    """By the digest of what they are built from."""


class Index(OfTorch):
    """What an archive holds."""

    file: str
    """The `.cu`, or the Python file that has torch build, relative to the workspace."""
    compiler: str
    architectures: list[str]


class NoImage(RuntimeError):
    """Nothing that was compiled runs on the device."""


def member(target: str, ending: str) -> str:
    """Returns the name in an archive of a stage for an architecture."""
    return f"{FOLDER}/{target}.{ending}"


def library(digest: str) -> str:
    """Returns the name in an archive of a module of torch's."""
    return member(digest, "so")


def image(files: Mapping[str, bytes], capability: tuple[int, int]) -> bytes:
    """Returns what a device of a compute capability runs: its own cubin, else that of a lower minor version, else PTX, which its driver compiles.

    Raises NoImage where there is neither.
    """
    major, minor = capability
    cubins = {name[3:-6]: name for name in files if re.fullmatch(r"sm_\d+[af]?\.cubin", name)}
    ptx = {name[8:-4]: name for name in files if re.fullmatch(r"compute_\d+[af]?\.ptx", name)}
    own = [f"{major}{minor}a", f"{major}{minor}f", *(f"{major}{lower}" for lower in range(minor, -1, -1))]
    for number in own:
        if number in cubins:
            return files[cubins[number]]
    fitting = [number for number in ptx if number.isdecimal() and divmod(int(number), 10) <= capability]
    if fitting:
        # A text for the driver ends with a zero.
        return files[ptx[max(fitting, key=int)]] + b"\0"
    made = ", ".join(sorted(name.split(".")[0] for name in [*cubins.values(), *ptx.values()]))
    raise NoImage(f"the device has compute capability {major}.{minor}, and the kernels are compiled for {made}")
