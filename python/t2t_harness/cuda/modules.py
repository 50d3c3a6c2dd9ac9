"""Modules of torch's that compile built, in the process that calls them: `load_inline` returns them, and what they launch is theirs.

torch is imported only inside functions.
"""

from __future__ import annotations

import importlib.util
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


def held_in(index: images.Index, files: Mapping[str, bytes]) -> dict[str, Held]:
    """Returns the modules of an archive, by the digest of what they are built from."""
    found = {}
    for digest, facts in index.get("modules", {}).items():
        library = files[Path(images.library(digest)).name]
        found[digest] = Held(facts["name"], frozenset(facts["kernels"]), library, index.get("abi", {}))
    return found


def provider(held: Mapping[str, Held], folder: Path) -> Callable[..., object]:
    """Returns what stands in the place of torch's `load_inline`: it returns modules that are `held`, which are put into `folder`, and builds nothing.

    It raises AbiMismatch for one that was built for another torch or Python, and Refused for one that was not built.
    """
    loaded: dict[str, object] = {}

    def provided(*args: object, **kwargs: object) -> object:
        own = inline.called(*args, **kwargs)  # type: ignore[arg-type]
        digest = own.digest()
        if digest not in held:
            names = ", ".join(f"`{one.name}`" for one in held.values()) or "nothing"
            raise inline.Refused(
                f"`{own.name}` is given other sources or flags here than where it was compiled, which made {names}: what is built may not depend on the device"
            )
        if digest not in loaded:
            require_abi(held[digest])
            loaded[digest] = load(own, held[digest], folder / digest[:16])
        return loaded[digest]

    return provided


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


def load(own: inline.Extension, module: Held, folder: Path) -> object:
    """Returns a module, loaded from a file in `folder`, its functions watched; of one whose operators are torch's, the file's path, as torch does."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{own.name}.so"
    file.write_bytes(module.library)
    if not own.is_python_module:
        import torch

        torch.ops.load_library(str(file))  # type: ignore[no-untyped-call]
        return str(file)
    spec = importlib.util.spec_from_file_location(own.name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return Watched(made, module)


class Watched(types.ModuleType):
    """A module whose functions are watched."""

    def __init__(self, made: types.ModuleType, module: Held) -> None:
        super().__init__(made.__name__, made.__doc__)
        self.__file__ = made.__file__
        for name, value in vars(made).items():
            if not name.startswith("__"):
                setattr(self, name, called(name, value, module) if is_function(value) else value)


def is_function(value: object) -> bool:
    """Tells whether a module's attribute is a function: classes stay what they are."""
    return callable(value) and not isinstance(value, type)


def called(name: str, function: Callable[..., object], module: Held) -> Callable[..., object]:
    """Returns a function of a module as it is watched."""

    def call(*args: object, **kwargs: object) -> object:
        if watcher is None:
            return function(*args, **kwargs)
        given = (*args, *kwargs.values())
        return watcher(f"{module.name}.{name}", module.kernels, given, lambda: function(*args, **kwargs))

    call.__name__, call.__doc__ = name, function.__doc__
    return call


def flat(values: Iterable[object]) -> list[object]:
    """Returns values with those in lists and tuples among them."""
    found: list[object] = []
    for value in values:
        found += flat(value) if isinstance(value, (list, tuple)) else [value]
    return found
