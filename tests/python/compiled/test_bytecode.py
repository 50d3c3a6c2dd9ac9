"""Bytecode that is kept for installed packages: when it is made, and what is believed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HARNESS = Path(__file__).resolve().parents[3] / "python"

Call = Callable[..., str]

FILL = "from t2t_harness.server import bytecode; bytecode.fill()"
USE = "from t2t_harness.server import bytecode; bytecode.use(); import torch, torch.nn, other; print(torch.TOLD, torch.nn.TOLD, other.TOLD)"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Returns a folder with packages that have no bytecode, one of them called torch."""
    folder = tmp_path / "site"
    for name in (
        "torch/__init__.py",
        "torch/nn/__init__.py",
        "torch/_dynamo/__init__.py",
        "torch/tests/__init__.py",
        "other/__init__.py",
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("TOLD = 'source'\n")
    return folder


@pytest.fixture
def call(tmp_path: Path, site: Path) -> Call:
    """Returns a function that runs a text in a Python which finds the packages of `site` first, and returns what that printed."""

    def run(text: str, **variables: str) -> str:
        done = subprocess.run(
            command(text), env=environment(tmp_path, site, **variables), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def command(text: str) -> list[str]:
    """Returns the command that runs a text."""
    return [sys.executable, "-c", text]


def environment(folder: Path, site: Path, **variables: str) -> dict[str, str]:
    """Returns the environment of a server."""
    search = f"{site}:{HARNESS}"
    return {"PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1", "T2T_BYTECODE": str(folder / "kept"), **variables}


def kept(folder: Path) -> dict[str, Path]:
    """Returns the files that are kept, by the name of what they are of."""
    found = (folder / "kept").glob("*/**/*.pyc")
    return {"/".join(file.relative_to(folder / "kept").parts[1:]): file for file in found}


def name(module: str) -> str:
    """Returns the name of what is kept of a package."""
    return f"{module}/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"


def say(file: Path, told: str) -> None:
    """Changes what the kept bytecode in `file` says, keeping it whole."""
    data = file.read_bytes()[4:].replace(b"source", told.encode())
    file.write_bytes(zlib.crc32(data).to_bytes(4, "big") + data)


def test_what_is_kept_is_what_is_imported(tmp_path: Path, site: Path, call: Call) -> None:
    call(FILL)
    assert set(kept(tmp_path)) == {name("torch"), name("torch/nn"), name("torch/_dynamo")}, (
        "named packages, without their tests"
    )
    assert call(USE) == "source source source"
    for module in ("torch", "torch/nn"):
        say(kept(tmp_path)[name(module)], "kept_1")
    assert call(USE) == "kept_1 kept_1 source"
    assert call(USE, T2T_BYTECODE="") == "source source source"
    assert not list(site.rglob("*.pyc")), "nothing is written beside what is installed"


def test_what_is_not_of_the_source_as_it_is_or_not_whole_does_not_count(tmp_path: Path, site: Path, call: Call) -> None:
    call(FILL)
    files = kept(tmp_path)
    for module in ("torch", "torch/nn"):
        say(files[name(module)], "kept_1")
    files[name("torch")].write_bytes(files[name("torch")].read_bytes()[:-3])
    (site / "torch/nn/__init__.py").write_text("TOLD = 'edited'\nMORE = 1\n")
    assert call(USE) == "source edited source"
    call(FILL)
    say(files[name("torch/nn")], "kept_2")
    assert call(USE) == "source edited source"
    files[name("torch")].write_bytes(b"")
    assert call(USE) == "source edited source"


def test_nothing_is_made_twice_nor_where_there_is_some(tmp_path: Path, site: Path, call: Call) -> None:
    call(FILL)
    before = {file: file.stat().st_mtime_ns for file in kept(tmp_path).values()}
    call(FILL)
    assert {file: file.stat().st_mtime_ns for file in kept(tmp_path).values()} == before
    call("import torch, torch.nn, other", PYTHONDONTWRITEBYTECODE="")
    for file in before:
        say(file, "kept_1")
    assert call(USE) == "source source source", "Python's own comes first"
    for file in before:
        file.unlink()
    call(FILL)
    assert kept(tmp_path) == {}


def test_what_is_of_installations_that_are_gone_is_removed(tmp_path: Path, site: Path, call: Call) -> None:
    call(FILL)
    site.rename(tmp_path / "site2")
    (tmp_path / "kept" / "mine").mkdir()
    search = f"{tmp_path / 'site2'}:{HARNESS}"
    call(FILL, PYTHONPATH=search)
    assert len(kept(tmp_path)) == 3
    origins = [file.read_text() for file in tmp_path.glob("kept/*/origin")]
    assert origins == [str(tmp_path / "site2")]
    assert (tmp_path / "kept" / "mine").is_dir(), "what nobody here made stays"


def test_a_source_that_does_not_compile_keeps_nothing_back(tmp_path: Path, site: Path, call: Call) -> None:
    (site / "torch" / "broken.py").write_text("def\n")
    (site / "torch" / "strange.py").write_bytes(b"\xff\xfe")
    (site / "torch" / "later.py").write_text("TOLD = '\\d'\n")
    call(FILL)
    assert any("later" in one for one in kept(tmp_path))
    assert not any("broken" in one or "strange" in one for one in kept(tmp_path))


@pytest.mark.parametrize("is_told", [True, False])
def test_it_ends_all_that_it_started_when_told_and_when_nobody_is_left_to_tell(
    tmp_path: Path, site: Path, is_told: bool
) -> None:
    (site / "torch" / "endless.py").symlink_to(tmp_path / "pipe")
    # A source that is a pipe keeps whoever compiles it waiting for good.
    os.mkfifo(tmp_path / "pipe")
    above = f"import subprocess, time; print(subprocess.Popen({command(FILL)}).pid, flush=True); time.sleep(60)"
    text = FILL if is_told else above
    process = subprocess.Popen(command(text), env=environment(tmp_path, site), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.pid if is_told else int(process.stdout.readline())
    started = until(lambda: descendants(first))
    process.send_signal(signal.SIGTERM if is_told else signal.SIGKILL)
    process.wait()
    until(lambda: not any(is_running(one) for one in [first, *started]))


def test_it_leaves_nobody_behind_when_told_right_after_a_fork(tmp_path: Path, site: Path) -> None:
    (site / "torch" / "endless.py").symlink_to(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe")
    told = f"""
import os, signal
fork = os.fork
def forking():
    process = fork()
    if process:
        open({str(tmp_path / "forked")!r}, "a").write(f"{{process}}\\n")
        os.kill(os.getpid(), signal.SIGTERM)
    return process
os.fork = forking
{FILL}
"""
    ended = subprocess.run(command(told), env=environment(tmp_path, site), check=False, timeout=60)
    assert ended.returncode == 1
    forked = [int(line) for line in (tmp_path / "forked").read_text().split()]
    try:
        assert forked and not any(is_running(one) for one in forked)
    finally:
        for one in filter(is_running, forked):
            os.kill(one, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """Returns the children of a process; none once it is gone."""
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def is_running(process: int) -> bool:
    """Tells whether there is such a process that is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(ask: Callable[[], Any]) -> Any:
    """Returns the first answer that is true, which comes within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_it_does_nothing_where_who_started_it_is_gone_before_it_looks(tmp_path: Path, site: Path, call: Call) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    call(f"from t2t_harness.server import bytecode; bytecode.fill({gone.pid})")
    assert kept(tmp_path) == {}
    call("import os; from t2t_harness.server import bytecode; bytecode.fill(os.getppid())")
    assert set(kept(tmp_path)) == {name(one) for one in ("torch", "torch/nn", "torch/_dynamo")}


def test_who_compiles_ends_with_who_forked_it(tmp_path: Path, site: Path) -> None:
    text = (
        "import os, time\n"
        "from pathlib import Path\n"
        "from t2t_harness.server import bytecode\n"
        "def endless(*_):\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "bytecode.compile_one = endless\n"
        "own = os.getpid()\n"
        "if os.fork() == 0: bytecode.compile_all([Path('a.py')], Path('.'), Path('.'), own)\n"
        "time.sleep(600)\n"
    )
    above = subprocess.Popen(command(text), env=environment(tmp_path, site), stdout=subprocess.PIPE, text=True)
    assert above.stdout is not None
    compiles = int(above.stdout.readline())
    above.kill()
    above.wait()
    until(lambda: not is_running(compiles))
