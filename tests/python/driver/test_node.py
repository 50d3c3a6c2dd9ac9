"""What runs on a node, with a stand-in for the program t2t."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "python/api"))

from t2t_ray import node

PROGRAM = """#!{python} -S
import json, os, sys
log = open(__file__ + ".log", "a")
log.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1:] == ["perform", "facts"]:
    print('{{"version": 1}}')
    sys.exit()
for line in sys.stdin:
    asked = json.loads(line)
    log.write(line)
    log.flush()
    said, document = "", ["aa", "bb"]
    if "run" in asked:
        folder, result = asked["run"]["folder"], asked["run"]["result"]
        with open(result, "wb") as file:
            [file.write(open(f"{{folder}}/blobs/{{name}}", "rb").read()) for name in document]
        said, document = "warning: x\\n", {{"outcome": "passed", "device": os.environ.get("CUDA_VISIBLE_DEVICES")}}
    print(json.dumps({{"exit": 0, "document": document, "said": said}}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "t2t"
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setenv("T2T_BIN", str(path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    yield path
    kept: Any = sys.modules.pop(node.KEPT, None)
    if server := getattr(kept, "server", None):
        server.end()


def perform(**sent: bytes) -> dict[str, Any]:
    return node.perform("{}", None, 2, lambda digests: {digest: sent[digest] for digest in digests if digest in sent})


def log(program: Path) -> list[str]:
    return Path(f"{program}.log").read_text().splitlines()


def test_what_the_node_lacks_is_fetched_before_it_performs(program: Path) -> None:
    ended = perform(aa=b"one ", bb=b"two", cc=b"not asked for")
    assert ended == {
        "exit": 0,
        "document": {"outcome": "passed", "device": "1"},
        "said": "warning: x\n",
        "result": b"one two",
        "missing": [],
    }
    started, lacks, run = log(program)
    assert started == f"perform serve --jobs 2 --parent {os.getpid()}"
    assert '"lacks"' in lacks and '"run"' in run


def test_where_something_was_not_sent_nothing_runs(program: Path) -> None:
    assert perform(aa=b"one") == {"missing": ["bb"]}
    assert len(log(program)) == 2


def test_one_server_performs_one_action_after_another_as_long_as_the_device_is_the_same(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts() -> int:
        return sum(line.startswith("perform serve") for line in log(program))

    sent = {"aa": b"1", "bb": b"2"}
    assert [perform(**sent)["result"] for _ in range(3)] == [b"12"] * 3
    assert starts() == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert perform(**sent)["document"]["device"] == "0"
    assert starts() == 2
    # One that was killed is started anew.
    kept: Any = sys.modules[node.KEPT]
    kept.server.process.kill()
    kept.server.process.wait()
    assert perform(**sent)["exit"] == 0
    assert starts() == 3


def test_a_program_that_fails_is_told_with_its_words(program: Path) -> None:
    program.write_text("#!/bin/sh\necho 'error: no' >&2\nexit 2\n")
    ended = perform()
    assert (ended["exit"], ended["document"], ended["said"], ended["result"]) == (2, None, "error: no\n", None)


def test_a_node_tells_its_facts_or_why_it_cannot(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert node.facts() == {"document": {"version": 1}, "said": ""}
    program.write_text("#!/bin/sh\necho 'error: unrecognized subcommand' >&2\nexit 2\n")
    why = "`t2t perform facts` ended with exit code 2: error: unrecognized subcommand"
    assert node.facts() == {"document": None, "said": why}
    monkeypatch.setenv("T2T_BIN", str(program.parent / "none"))
    assert node.facts()["document"] is None and "No such file" in node.facts()["said"]


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
