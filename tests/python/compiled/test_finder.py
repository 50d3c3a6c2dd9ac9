"""What the finder finds in a workspace, and what it tells of having looked."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_harness.faults import failure
from t2t_harness.phases import repro
from t2t_harness.sources import finder, signatures


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Returns what was looked at, relative to the workspace; nothing that a test imports stays."""
    looked: list[str] = []
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    own = finder.WorkspaceFinder(
        tmp_path,
        ["lib/inner"],
        {"torch", *sys.stdlib_module_names},
        lambda path: looked.append(Path(path).relative_to(tmp_path).as_posix()),
    )
    sys.meta_path.insert(0, own)
    sys.meta_path.append(finder.NamespaceFinder(own))
    yield looked
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(root: Path, file: str, text: str = "") -> None:
    """Writes a file of a workspace."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_folder_is_looked_in_and_the_root_wins(tmp_path: Path, told: list[str]) -> None:
    write(tmp_path, "mine_a.py", "PLACE = 'root'")
    write(tmp_path, "src/mine_a.py", "PLACE = 'src'")
    write(tmp_path, "src/mine_b/__init__.py")
    write(tmp_path, "src/mine_b/deep.py", "PLACE = 'src'")
    write(tmp_path, "lib/inner/mine_c.py", "PLACE = 'lib'")
    write(tmp_path, "mine_d/one/two.py", "PLACE = 'namespace'")
    places = {
        name: importlib.import_module(name).PLACE for name in ("mine_a", "mine_b.deep", "mine_c", "mine_d.one.two")
    }
    assert places == {"mine_a": "root", "mine_b.deep": "src", "mine_c": "lib", "mine_d.one.two": "namespace"}
    assert told[:2] == ["mine_a/__init__.py", "mine_a.py"]
    assert {"mine_c.py", "src/mine_c.py", "lib/inner/mine_c.py"} <= set(told)
    assert "mine_d/one/two.py" in told


def test_a_file_has_the_name_by_which_it_is_imported(tmp_path: Path, told: list[str]) -> None:
    own = next(one for one in sys.meta_path if isinstance(one, finder.WorkspaceFinder))
    write(tmp_path, "mine_k/code.py")
    names = {
        "kernels/my-op/v1.py": "kernels.my-op.v1",
        "mine_k/code.py": "mine_k.code",
        "src/mine_l/code.py": "mine_l.code",
        "src/mine_k/code.py": "src.mine_k.code",
        "lib/inner/mine_m.py": "mine_m",
        "lib/inner/code.py": "lib.inner.code",
        "lib/code.py": "lib.code",
        "torch/code.py": None,
        "lib/v1.2.py": None,
    }
    assert {file: own.name_of(file) for file in names} == names


def test_modules_are_compiled_from_source(tmp_path: Path, told: list[str]) -> None:
    write(tmp_path, "mine_e.py", "VALUE = 1")
    assert importlib.import_module("mine_e").VALUE == 1
    del sys.modules["mine_e"]
    write(tmp_path, "mine_e.py", "VALUE = 2")
    assert importlib.import_module("mine_e").VALUE == 2


def test_what_is_not_the_workspaces_is_told_by_its_name(tmp_path: Path, told: list[str]) -> None:
    write(tmp_path, "torch.py", "raise ImportError('this is the decoy')")
    write(tmp_path, "elsewhere/installed_f/__init__.py")
    write(tmp_path, "elsewhere/installed_f/below.py", "import nothing_h")
    sys.path.append(str(tmp_path / "elsewhere"))
    try:
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("missing_g.below")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("installed_f.below")
    finally:
        sys.path.remove(str(tmp_path / "elsewhere"))
    modules = [path for path in told if path.startswith(finder.MARK)]
    assert modules == ["module:missing_g", "module:installed_f", "module:installed_f.below", "module:nothing_h"]
    assert not any(path.startswith("torch") for path in told)


def test_what_the_toolchain_imports_is_its_own(tmp_path: Path, told: list[str]) -> None:
    write(tmp_path, "wanted_i.py")
    code = compile("try:\n    import wanted_i\nexcept ImportError:\n    pass\n", "torch/of_torch.py", "exec")
    exec(code, {"__name__": "torch.of_torch"})
    assert told == []
    exec(code, {"__name__": "kernels.softmax.v1"})
    assert told == ["wanted_i/__init__.py", "wanted_i.py"]


def test_a_missing_module_says_where_modules_are_looked_for(tmp_path: Path) -> None:
    error = ModuleNotFoundError("No module named 'mine_j'", name="mine_j")
    hint = failure.failure("exception", "none", root=tmp_path, error=error)["hint"]
    assert hint.startswith("kernels import `mine_j` from the workspace's root, from `src`, ")
    assert failure.failure("exception", "none", root=tmp_path, error=ValueError("no"))["hint"] is None


def test_a_file_that_cannot_be_written_is_told_apart_from_a_full_disk(tmp_path: Path) -> None:
    missing = PermissionError(13, "Permission denied", str(tmp_path / "none" / "file"))
    record = failure.failure("exception", "none", root=tmp_path, error=missing)
    assert record["hint"] is not None
    other = OSError(28, "No space left on device", str(tmp_path / "file"))
    assert failure.failure("exception", "none", root=tmp_path, error=other)["hint"] is None


@pytest.mark.parametrize(
    "text", ["x = 1\n" + "if x:\n  pass\n" + "elif x:\n  pass\n" * many for many in (3_000, 8_000)]
)
def test_what_nests_deeper_than_python_compiles_is_a_fault_of_the_file(
    tmp_path: Path, told: list[str], text: str
) -> None:
    write(tmp_path, "mine_deep.py", text)
    with pytest.raises(SyntaxError, match="nests deeper") as raised:
        importlib.import_module("mine_deep")
    assert failure.syntax_place(raised.value, tmp_path) == {"file": "mine_deep.py", "line": 1, "column": None}
    with pytest.raises(SyntaxError, match="nests deeper"):
        signatures.wrappers(text)
    assert repro.parameters(tmp_path / "mine_deep.py", "x") is None
