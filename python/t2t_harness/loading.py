"""Loads kernel files from the workspace, from the very bytes that t2t hashed.

A meta-path finder maps the workspace's packages to the workspace before anything installed under the same name, so that
`from kernels.softmax.v1_baseline import ...` never finds a package of site-packages. Modules are compiled from their
source and never from a `.pyc`: a cached one is reused when size and second agree, so an edit within a second could run
the old code.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PACKAGES = ("kernels",)
"""Top-level packages that always mean folders of the workspace."""


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from source, ignoring byte code."""

    def get_code(self, fullname: str) -> CodeType:
        """Returns the code compiled from the source bytes of the module `fullname`."""
        path = self.get_filename(fullname)
        return compile(self.get_data(path), path, "exec", dont_inherit=True)


class WorkspaceFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of `PACKAGES` below the workspace root, and reports every path it looked at."""

    def __init__(self, root: Path, probed: Callable[[str], None]) -> None:
        self.root = root
        self.probed = probed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a workspace module, or None for modules of other packages.

        Raises ModuleNotFoundError for a workspace module that has no file.
        """
        if fullname.split(".")[0] not in PACKAGES:
            return None
        base = self.root.joinpath(*fullname.split("."))
        for file, folders in ((base / "__init__.py", [str(base)]), (base.with_suffix(".py"), None)):
            self.probed(str(file))
            if file.is_file():
                loader = SourceLoader(fullname, str(file))
                return importlib.util.spec_from_file_location(
                    fullname, file, loader=loader, submodule_search_locations=folders
                )
        if base.is_dir():
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(base)]
            return spec
        raise ModuleNotFoundError(f"no module named {fullname!r} in the workspace", name=fullname)


def install_finder(root: str) -> None:
    """Puts the workspace finder for `root` in front of all others, once."""
    if any(isinstance(finder, WorkspaceFinder) and finder.root == Path(root) for finder in sys.meta_path):
        return
    try:
        from t2t_worker import note_probe as probed
    except ImportError:

        def probed(path: str) -> None:
            return None

    # The process that forked this one may have looked at folders long ago.
    importlib.invalidate_caches()
    sys.meta_path.insert(0, WorkspaceFinder(Path(root), probed))


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
    """Returns the module of the workspace file `file` (relative to `root`), imported under its dotted name."""
    install_finder(root)
    if Path(file).parts[0] in PACKAGES:
        return importlib.import_module(module_name(file))
    name = module_name(file)
    path = str(Path(root) / file)
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(name, path))
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_entry(root: str, variant: dict[str, Any]) -> Any:
    """Returns the wrapper that `variant` declares, of a file of the workspace or of an installed module: a function, a class, or anything else that can be called.

    Raises AttributeError where the module lacks it.
    """
    install_finder(root)
    home: Any = variant.get("module")
    found = load_file(root, variant["file"]) if home is None else importlib.import_module(home)
    entry: Any = found
    for part in variant["entry"].split("."):
        entry = getattr(entry, part)
    if not callable(entry):
        raise TypeError(f"{variant['file']}: `{variant['entry']}` is not callable")
    return entry
