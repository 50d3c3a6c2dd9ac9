"""Finds what kernel code imports, the workspace's own modules first, and reports every place that was looked at.

`kernels` always means the workspace's folder, whatever is installed under that name. Other modules are looked for in the workspace's root, in `src`
and in the folders that `sources:` names, before what is installed. The workspace's modules are compiled from their source and never from a `.pyc`: a
cached one is reused when size and second agree, so an edit within a second could run the old code.

A module outside the workspace is reported by its name, as `module:mykernels.ops`, whether or not it is found: t2t looks it up itself. Modules that
the toolchain imports, and those that were imported before any kernel, are not reported: the versions in the key stand for them.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, ModuleType

PACKAGES = ("kernels",)
"""Top-level packages that always mean folders of the workspace."""

HOMES = ("", "src")
"""Folders of the workspace that other packages are looked for in."""

SOURCES = "T2T_SOURCES"
"""The variable that names further ones, relative to the workspace, parted by colons."""

TOOLCHAIN = frozenset(
    ("torch", "triton", "numpy", "nvidia", "sympy", "mpmath", "networkx", "functorch", "torchgen", "safetensors")
)
"""Packages that stand for their versions, with what they import."""

MARK = "module:"
"""What the name of a module begins with, where t2t is told of it like of a file."""


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from source, ignoring byte code."""

    def get_code(self, fullname: str) -> CodeType:
        """Returns the code compiled from the source bytes of the module `fullname`. Raises SyntaxError also where Python gives up: what nests too deep is a fault of the file."""
        path = self.get_filename(fullname)
        try:
            return compile(self.get_data(path), path, "exec", dont_inherit=True)
        except (MemoryError, RecursionError) as error:
            raise SyntaxError("it nests deeper than Python compiles", (path, 1, None, None)) from error


class WorkspaceFinder(importlib.abc.MetaPathFinder):
    """Finds the workspace's modules, and reports every path that it looked at and every module that it did not find.

    `given` are the top-level packages that are never the workspace's.
    """

    def __init__(self, root: Path, folders: Iterable[str], given: Iterable[str], probed: Callable[[str], None]) -> None:
        self.root = root
        self.homes = [root / folder for folder in dict.fromkeys((*HOMES, *folders))]
        self.given = frozenset(given)
        self.own = set(PACKAGES)
        self.probed = probed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a workspace module, or None for those of other packages.

        Raises ModuleNotFoundError for a module of `PACKAGES` that has no file.
        """
        top, _, below = fullname.partition(".")
        if top in PACKAGES:
            return self._kernels(fullname)
        if top in self.given or (top not in self.own and self._is_asked_by_given()):
            return None
        if top in self.own or not below:
            folders = self.homes if path is None else [Path(folder) for folder in path]
            spec = self._in_folders(fullname, folders, is_below=bool(below))
            if spec is not None:
                self.own.add(top)
                return spec
        self.probed(str(self.root / f"{MARK}{fullname}"))
        return None

    def namespace(self, fullname: str) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a package that has folders in the workspace and no file, or None."""
        if "." in fullname or fullname in self.given:
            return None
        folders = [str(home / fullname) for home in self.homes if (home / fullname).is_dir()]
        if not folders:
            return None
        self.own.add(fullname)
        return _namespace(fullname, folders)

    def name_of(self, file: str) -> str | None:
        """Returns the dotted name by which the workspace file `file` is imported; None where that is another file's, or it has none."""
        path = self.root / file
        for home in sorted(self.homes, key=lambda home: -len(home.parts)):
            if not path.is_relative_to(home):
                continue
            parts = path.relative_to(home).with_suffix("").parts
            earlier = [other / parts[0] for other in self.homes[: self.homes.index(home)]]
            is_hidden = any(base.exists() or base.with_name(f"{base.name}.py").exists() for base in earlier)
            if not is_hidden and parts[0] not in self.given and not any("." in part for part in parts):
                return ".".join(parts)
        return None

    def _kernels(self, fullname: str) -> importlib.machinery.ModuleSpec:
        spec = self._in_folders(fullname, [self.root.joinpath(*fullname.split(".")[:-1])], is_below=True)
        if spec is None:
            raise ModuleNotFoundError(f"no module named {fullname!r} in the workspace", name=fullname)
        return spec

    def _in_folders(
        self, fullname: str, folders: Iterable[Path], *, is_below: bool
    ) -> importlib.machinery.ModuleSpec | None:
        own = fullname.rpartition(".")[2]
        portions = []
        for folder in folders:
            base = folder / own
            found = self._with_file(fullname, base)
            if found is not None:
                return found
            if is_below and base.is_dir():
                portions.append(str(base))
        return _namespace(fullname, portions) if portions else None

    def _with_file(self, fullname: str, base: Path) -> importlib.machinery.ModuleSpec | None:
        for file, folders in ((base / "__init__.py", [str(base)]), (base.with_name(f"{base.name}.py"), None)):
            self.probed(str(file))
            if file.is_file():
                loader = SourceLoader(fullname, str(file))
                return importlib.util.spec_from_file_location(
                    fullname, file, loader=loader, submodule_search_locations=folders
                )
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            file = base.with_name(base.name + suffix)
            if file.is_file():
                self.probed(str(file))
                return importlib.util.spec_from_file_location(fullname, file)
        return None

    def _is_asked_by_given(self) -> bool:
        """Tells whether the import stands in code of a given package that is not Python's own."""
        frame = sys._getframe(2)
        while frame is not None and _is_importing(str(frame.f_globals.get("__name__"))):
            frame = frame.f_back  # type: ignore[assignment]
        name = "" if frame is None else str(frame.f_globals.get("__name__")).partition(".")[0]
        return name in self.given and name not in ("__main__", "t2t_harness") and name not in sys.stdlib_module_names


class NamespaceFinder(importlib.abc.MetaPathFinder):
    """Finds the workspace's packages that have no file, once nobody else found any of that name."""

    def __init__(self, own: WorkspaceFinder) -> None:
        self.own = own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of such a package, or None."""
        return self.own.namespace(fullname)


def install_finder(root: str) -> WorkspaceFinder:
    """Puts the workspace finder for `root` in front of all others, once, and returns it."""
    for known in sys.meta_path:
        if isinstance(known, WorkspaceFinder) and known.root == Path(root):
            return known
    try:
        from t2t_worker import note_probe as probed
    except ImportError:

        def probed(path: str) -> None:
            return None

    # The process that forked this one may have looked at folders long ago.
    importlib.invalidate_caches()
    folders = [folder for folder in os.environ.get(SOURCES, "").split(":") if folder]
    finder = WorkspaceFinder(Path(root), folders, given(), probed)
    sys.meta_path.insert(0, finder)
    sys.meta_path.append(NamespaceFinder(finder))
    return finder


def given() -> set[str]:
    """Returns the names that are never of a workspace's packages: those of what is imported already, of the toolchain and of Python's own modules."""
    # A package of the workspace may have been imported for another finder. Modules inside of packages do no harm here: nobody asks for them.
    return (set(sys.modules) - set(PACKAGES)) | TOOLCHAIN | sys.stdlib_module_names


def _namespace(fullname: str, folders: list[str]) -> importlib.machinery.ModuleSpec:
    spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
    spec.submodule_search_locations = folders
    return spec


def _is_importing(name: str) -> bool:
    return name == __name__ or name.partition(".")[0] == "importlib"
