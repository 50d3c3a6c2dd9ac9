"""Launchers made ahead: Triton itself must find them, and a machine that cannot make them goes on without."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from t2t_harness.triton import launchers


def compiled(**signature: str) -> Any:
    """Returns what a launcher is written from, of a kernel with these parameters."""
    function = SimpleNamespace(arg_names=list(signature))
    metadata = SimpleNamespace(num_ctas=1, tensordesc_meta=None)
    return SimpleNamespace(src=SimpleNamespace(constants={}, signature=signature, fn=function), metadata=metadata)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder Triton's cache."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return tmp_path


def load_as_triton(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, Any]]:
    """Returns the file that Triton would load for a C text, and what was counted. Nothing is loaded: there is no driver."""
    from triton.backends.nvidia import driver
    from triton.runtime import build

    monkeypatch.setattr(build, "_load_module_from_path", lambda name, path: path)
    monkeypatch.setattr(build, "_build", lambda name, source, *rest: source)
    with launchers.counted() as count:
        path = driver.compile_module_from_src(src=text, name=launchers.LAUNCHER)
    return str(path), count.facts()


def test_triton_finds_a_launcher_that_was_made_ahead_on_a_machine_without_a_driver(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = compiled(x="*fp32", n="i32", BLOCK="constexpr")
    forge = launchers.Forge()
    forge.want(kernel)
    forge.want(kernel)
    forge.finish()
    assert forge.reason is None
    assert forge.count.facts() == {"hits": 0, "misses": [launchers.LAUNCHER]}
    made = [*cache.glob("*/*.so")]
    assert [file.parent.name for file in made] == list(forge.folders)
    content = made[0].read_bytes()
    assert b"libcuda.so.1" in content
    assert str(cache).encode() not in content
    assert load_as_triton(launchers.source_of(kernel.src, kernel.metadata), monkeypatch) == (
        str(made[0]),
        {"hits": 1, "misses": []},
    )

    again = launchers.Forge()
    again.want(kernel)
    again.finish()
    assert again.count.facts() == {"hits": 1, "misses": []}
    assert again.folders == forge.folders


def test_another_signature_is_another_launcher_and_counts_as_missing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge = launchers.Forge()
    forge.want(compiled(x="*fp32", n="i32"))
    forge.finish()
    kernel = compiled(x="*fp32", n="i64")
    other = launchers.source_of(kernel.src, kernel.metadata)
    _, counted = load_as_triton(other, monkeypatch)
    assert counted == {"hits": 0, "misses": [launchers.LAUNCHER]}


@pytest.mark.parametrize("compiler", ["/nonexistent/cc", "false"])
def test_without_a_c_compiler_nothing_is_made_and_the_reason_is_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    forge = launchers.Forge()
    forge.want(compiled(x="*fp32"))
    forge.finish()
    assert forge.reason
    assert (forge.folders, forge.count.facts()) == (set(), {"hits": 0, "misses": []})


def test_a_kernel_that_triton_writes_no_launcher_for_ends_nothing(cache: Path) -> None:
    forge = launchers.Forge()
    forge.want(compiled(x="no type at all"))
    forge.finish()
    assert forge.reason is not None
    assert forge.folders == set()


def test_what_a_compiler_says_of_an_error_is_told() -> None:
    assert launchers.last_line("a.c: In function\na.c:1:1: error: no\n note: so\n") == "a.c:1:1: error: no"
