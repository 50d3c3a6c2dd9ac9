"""Loads kernel files from the workspace, from the very bytes that t2t hashed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from t2t_harness.sources import methods
from t2t_harness.sources.finder import SourceLoader, install_finder

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Variant
    from t2t_harness.sources.entry import Entry


class VariantRefuser(importlib.abc.MetaPathFinder):
    """Refuses the import of what could be a variant: any file in an op's folder below `kernels` but those that are `allowed`."""

    def __init__(self, files: Sequence[str]) -> None:
        self.file = files[0]
        self.allowed = [module_name(file) for file in files]

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Returns None for what may be imported. Raises ImportError for the rest."""
        if fullname.startswith("kernels.") and fullname.count(".") >= 2 and fullname not in self.allowed:
            message = f"{self.file} may not import `{fullname}`: what is right must not depend on a kernel"
            raise ImportError(message, name=fullname)


def refuse_variants(files: Sequence[str | None]) -> VariantRefuser:
    """Makes the import of any variant fail from now on, and returns what does so. `files` are those that may be imported, first the one that is."""
    refuser = VariantRefuser([file for file in files if file is not None])
    sys.meta_path.insert(0, refuser)
    return refuser


@contextlib.contextmanager
def without_variants(files: Sequence[str | None]) -> Iterator[None]:
    """Makes the import of any variant fail for the length of the context."""
    refuser = refuse_variants(files)
    try:
        yield
    finally:
        sys.meta_path.remove(refuser)


def module_name(file: str) -> str:
    """Returns the dotted name of the workspace file `file`, as in `kernels.softmax.v1_baseline`."""
    return ".".join(Path(file).with_suffix("").parts)


def load_file(root: str, file: str) -> ModuleType:
    """Returns the module of the workspace file `file` (relative to `root`), imported under the name by which others import it, if there is one."""
    known = install_finder(root).name_of(file)
    if known is not None:
        return importlib.import_module(known)
    name = module_name(file)
    path = str(Path(root) / file)
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(name, path))
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_entry(root: str, variant: Variant) -> Entry:
    """Returns the wrapper that `variant` declares, of a file of the workspace or of an installed module: a function, a class, anything else that can be called, or an operator.

    Raises AttributeError where the module lacks it, TypeError where it is none of these, and what a factory of operators raises.
    """
    install_finder(root)
    home = variant.get("module")
    found = load_file(root, variant["file"]) if home is None else importlib.import_module(home)
    entry: object = found
    for part in variant["entry"].split("."):
        entry = getattr(entry, part)
    return cast("Entry", methods.entry_of(entry, variant))
