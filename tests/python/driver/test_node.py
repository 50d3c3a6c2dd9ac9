"""What runs on a node, with a stand-in for the program t2t."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "python/api"))

from t2t_ray import node

PROGRAM = """#!/bin/sh
echo "$@" >> "$0.log"
case "$2" in
    lacks) printf 'aa\\nbb\\n' ;;
    run) cat "$3/blobs/aa" "$3/blobs/bb" > "$4"; echo '{"outcome": "passed"}'; echo "warning: x" >&2 ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "t2t"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    monkeypatch.setenv("T2T_BIN", str(path))
    return path


def perform(**sent: bytes) -> dict[str, Any]:
    return node.perform("{}", None, 2, lambda digests: {digest: sent[digest] for digest in digests if digest in sent})


def test_what_the_node_lacks_is_fetched_before_it_performs(program: Path) -> None:
    ended = perform(aa=b"one ", bb=b"two", cc=b"not asked for")
    assert ended == {
        "exit": 0,
        "document": {"outcome": "passed"},
        "said": "warning: x\n",
        "result": b"one two",
        "missing": [],
    }
    lacks, run = Path(f"{program}.log").read_text().splitlines()
    parent = f"--parent {os.getpid()}"
    assert lacks.endswith(parent) and run.endswith(f"--jobs 2 {parent}")


def test_where_something_was_not_sent_nothing_runs(program: Path) -> None:
    assert perform(aa=b"one") == {"missing": ["bb"]}
    assert len(Path(f"{program}.log").read_text().splitlines()) == 1


def test_a_program_that_fails_is_told_with_its_words(program: Path) -> None:
    program.write_text("#!/bin/sh\necho 'error: no' >&2\nexit 2\n")
    ended = perform()
    assert (ended["exit"], ended["document"], ended["said"], ended["result"]) == (2, None, "error: no\n", None)


def test_a_node_without_t2t_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("T2T_BIN", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no t2t on this node: looked at"):
        node.binary()
    (tmp_path / "t2t").write_text("")
    assert node.binary() == str(tmp_path / "t2t")


def test_each_of_several_devices_has_its_part_of_the_cores() -> None:
    cores = sorted(os.sched_getaffinity(0))
    parts = []
    for number in range(2):
        with node.on_cores((number, 2)):
            parts.append(sorted(os.sched_getaffinity(0)))
    assert sorted(os.sched_getaffinity(0)) == cores
    assert all(parts) and (len(cores) == 1 or parts[0] + parts[1] == cores)
    with node.on_cores(None):
        assert sorted(os.sched_getaffinity(0)) == cores
