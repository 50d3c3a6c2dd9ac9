"""Modules of torch's that compile built: what an archive holds of them, whom they fit, and how their calls are watched.

torch is imported only inside functions.
"""

from __future__ import annotations

import sysconfig
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from t2t_harness.cuda import images, inline

Watcher = Callable[[str, frozenset[str], tuple[object, ...], Callable[[], object]], object]
"""Is given each call of a module's function, its name, the names of the module's kernels, its arguments, and does it; returns what it returns."""

watcher: Watcher | None = None
"""None where nobody watches."""


def abi() -> dict[str, str]:
    """Returns what a module fits: the versions of torch and of its C++ ABI, and Python's tag."""
    import torch

    return {
        "torch": str(torch.__version__),
        "cxx11": str(bool(torch.compiled_with_cxx11_abi())),
        "python": str(sysconfig.get_config_var("SOABI")),
    }


@dataclass(frozen=True)
class Held:
    """A module in an archive."""

    name: str
    kernels: frozenset[str]
    library: bytes
    abi: Mapping[str, str]
    """What it fits."""
    architectures: tuple[str, ...] = ()
    """What its kernels were compiled for; none where it has no kernels, or its flags name them."""


def held_in(index: images.Index, files: Mapping[str, bytes]) -> dict[str, Held]:
    """Returns the modules of an archive, by the digest of what they are built from."""
    found = {}
    for digest, facts in index.get("modules", {}).items():
        library = files[Path(images.library(digest)).name]
        kernels = frozenset(facts["kernels"])
        targets = tuple(index["architectures"]) if kernels and not facts.get("names_architectures", False) else ()
        found[digest] = Held(facts["name"], kernels, library, index.get("abi", {}), targets)
    return found


def require_abi(module: Held) -> None:
    """Raises AbiMismatch for a module that this process cannot load."""
    here = abi()
    other = [
        f"{name} {module.abi.get(name)}, and here is {here[name]}"
        for name in here
        if module.abi.get(name) != here[name]
    ]
    if other:
        raise inline.AbiMismatch(f"`{module.name}` was compiled for {'; for '.join(other)}")


def require_image(module: Held, capability: tuple[int, int]) -> None:
    """Raises NoImage for a module of whose kernels none runs on a device of a compute capability."""
    stages = {f"{target}.{'cubin' if target.startswith('sm') else 'ptx'}": b"" for target in module.architectures}
    if stages:
        images.image(stages, capability)


class Watched(types.ModuleType):
    """A module whose functions are watched."""

    def __init__(self, made: types.ModuleType, module: Held) -> None:
        super().__init__(made.__name__, made.__doc__)
        self.__file__ = made.__file__
        for name, value in vars(made).items():
            if not name.startswith("__"):
                setattr(self, name, called(f"{module.name}.{name}", value, module) if is_function(value) else value)


def is_function(value: object) -> bool:
    """Tells whether a module's attribute is a function: classes stay what they are."""
    return callable(value) and not isinstance(value, type)


def called(name: str, function: Callable[..., object], module: Held) -> Callable[..., object]:
    """Returns a function of a module, by a name that tells it from all others, as it is watched."""

    def call(*args: object, **kwargs: object) -> object:
        if watcher is None:
            return function(*args, **kwargs)
        given = (*args, *kwargs.values())
        return watcher(name, module.kernels, given, lambda: function(*args, **kwargs))

    call.__name__, call.__doc__ = name.rpartition(".")[2], function.__doc__
    return call


def flat(values: Iterable[object]) -> list[object]:
    """Returns values with those in lists and tuples among them."""
    found: list[object] = []
    for value in values:
        found += flat(value) if isinstance(value, (list, tuple)) else [value]
    return found
