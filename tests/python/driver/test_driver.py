"""The driver of a Ray cluster over a stand-in for the cluster: what it says to t2t, what it sends to nodes, what it leaves running."""

from __future__ import annotations

import io
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "python/api"))

from t2t_ray import driver as module
from t2t_ray.driver import Driver
from t2t_ray.messages import Malformed, Node, Perform, read

FACTS: dict[str, Any] = {"document": {"version": 1}, "said": ""}
"""What `node.facts` returns."""

ONE, TWO = (Node(name, f"10.0.0.{number}", 4, 2, {}) for number, name in enumerate(["one", "two"], 1))


class Submitted:
    """An action at the stand-in."""

    def __init__(self, asked: Perform, refs: dict[str, Any], then: Callable[[], None]) -> None:
        self.asked, self.refs, self.then = asked, refs, then
        self.end: Any = None
        self.is_cancelled = False

    def result(self) -> dict[str, Any]:
        if isinstance(self.end, Exception):
            raise self.end
        return self.end

    def cancel(self) -> None:
        self.is_cancelled = True
        self.then()

    def ends(self, end: Any) -> None:
        self.end = end
        self.then()


class Asked:
    """A node that is asked for its facts."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then
        self.answer: Any = None
        self.is_cancelled = False

    def result(self) -> dict[str, Any]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancel(self) -> None:
        self.is_cancelled = True

    def says(self, answer: Any) -> None:
        self.answer = answer
        self.then()


class Cluster:
    """A stand-in for a cluster, which does what the test says."""

    def __init__(self) -> None:
        self.alive: list[Node] | Exception = [ONE, TWO]
        self.submitted: queue.SimpleQueue[Submitted] = queue.SimpleQueue()
        self.asked: dict[str, Asked] = {}
        self.answers: dict[str, Any] = {"one": FACTS, "two": FACTS}
        """What nodes answer at once. Others take their time."""
        self.has_left = False

    def nodes(self) -> list[Node]:
        if isinstance(self.alive, Exception):
            raise self.alive
        return list(self.alive)

    def put(self, blob: bytes) -> Any:
        return blob

    def ask(self, id: str, then: Callable[[], None]) -> Asked:
        self.asked[id] = asked = Asked(then)
        if id in self.answers:
            asked.says(self.answers[id])
        return asked

    def submit(self, asked: Perform, refs: dict[str, Any], then: Callable[[], None]) -> Submitted:
        submitted = Submitted(asked, refs, then)
        self.submitted.put(submitted)
        return submitted

    def leave(self) -> None:
        self.has_left = True


class Told(io.StringIO):
    """The driver's output, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def write(self, text: str) -> int:
        self.lines.put(json.loads(text))
        return len(text)

    def next(self) -> dict[str, Any]:
        return self.lines.get(timeout=60)


class Driven:
    """A driver that runs over a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.cluster, self.told = Cluster(), Told()
        self.folder = folder
        self.said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.driver = Driver(self.cluster, folder, self.told)
        self.thread = threading.Thread(target=self.driver.run, args=[self.lines()], daemon=True)
        self.thread.start()

    def lines(self) -> Iterator[str]:
        while (line := self.said.get()) is not None:
            yield line

    def say(self, kind: str, **fields: Any) -> None:
        self.said.put(json.dumps({kind: fields}))

    def perform(self, id: int, node: Node, *blobs: str) -> Submitted:
        """Ask for an action with these blobs, and return it as it was submitted."""
        for blob in blobs:
            (self.folder / blob).write_text(f"bytes of {blob}")
        places = {blob: str(self.folder / blob) for blob in blobs}
        self.say("perform", id=id, node=node.id, gpus=1, cpus=0, bundle="{}", blobs=places)
        return self.cluster.submitted.get(timeout=60)

    def leave(self) -> None:
        """Leave as t2t does, and wait until the driver is gone."""
        self.said.put(None)
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def driven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driven]:
    monkeypatch.setattr(module, "LOOK", 0.01)
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    driven = Driven(tmp_path)
    assert [node["name"] for node in driven.told.next()["nodes"]["nodes"]] == ["10.0.0.1", "10.0.0.2"]
    yield driven
    driven.leave()
    assert driven.cluster.has_left


def test_a_cluster_without_nodes_is_told_as_one(tmp_path: Path) -> None:
    told, cluster = Told(), Cluster()
    cluster.alive = []
    Driver(cluster, tmp_path, told).run([])
    assert told.next() == {"nodes": {"nodes": []}}


def test_nodes_that_lend_cores_alone_are_asked_where_cores_are_wanted(tmp_path: Path) -> None:
    told, cluster = Told(), Cluster()
    cores, none = Node("cores", "10.0.0.3", 4, 0, {}), Node("none", "10.0.0.4", 0, 0, {})
    cluster.alive, cluster.answers["cores"] = [ONE, cores, none], FACTS
    ends: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    driver = Driver(cluster, tmp_path, told, cores=True)
    thread = threading.Thread(target=driver.run, args=[iter(ends.get, None)], daemon=True)
    thread.start()
    assert [node["facts"] for node in told.next()["nodes"]["nodes"]] == [{"version": 1}, {"version": 1}, None]
    assert cluster.asked.keys() == {"one", "cores"}
    ends.put(None)
    thread.join(60)


def test_nodes_are_told_with_their_facts_once_each_has_said_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK", 0.01)
    three, four = Node("three", "10.0.0.3", 4, 1, {}), Node("four", "10.0.0.4", 4, 0, {})
    told, cluster = Told(), Cluster()
    cluster.alive, cluster.answers = [ONE, TWO, three, four], {}
    ends: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    driver = Driver(cluster, tmp_path, told)
    thread = threading.Thread(target=driver.run, args=[iter(ends.get, None)], daemon=True)
    thread.start()
    while len(cluster.asked) < 3:
        time.sleep(0.01)
    assert cluster.asked.keys() == {"one", "two", "three"}, "one that lends no device is not asked"
    cluster.asked["one"].says(FACTS)
    cluster.asked["two"].says({"document": None, "said": "there is no t2t"})
    with pytest.raises(queue.Empty):
        told.lines.get(timeout=0.2)
    cluster.asked["three"].says(RuntimeError("the worker died"))
    nodes = told.next()["nodes"]["nodes"]
    assert [(node["facts"], node["fault"]) for node in nodes] == [
        ({"version": 1}, None),
        (None, "there is no t2t"),
        (None, "RuntimeError: the worker died"),
        (None, None),
    ]
    # Whoever comes later is not asked.
    cluster.alive = [ONE, Node("five", "10.0.0.5", 4, 1, {})]
    nodes = told.next()["nodes"]["nodes"]
    assert [(node["facts"], node["fault"]) for node in nodes] == [({"version": 1}, None), (None, None)]
    ends.put(None)
    thread.join(60)


def test_a_node_that_does_not_tell_its_facts_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK", 0.01)
    monkeypatch.setattr(module, "ANSWER", 0.1)
    told, cluster = Told(), Cluster()
    del cluster.answers["two"]
    ends: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    thread = threading.Thread(target=Driver(cluster, tmp_path, told).run, args=[iter(ends.get, None)], daemon=True)
    thread.start()
    nodes = told.next()["nodes"]["nodes"]
    assert [node["fault"] for node in nodes] == [None, "it did not tell its devices within 0 s"]
    assert cluster.asked["two"].is_cancelled
    ends.put(None)
    thread.join(60)


def end(**more: Any) -> dict[str, Any]:
    return {"exit": 0, "document": {"outcome": "passed"}, "said": "", "result": b"an export", "missing": []} | more


def test_how_an_action_ended_is_told_with_the_place_of_its_result(driven: Driven) -> None:
    driven.perform(7, ONE, "a").ends(end())
    ended = driven.told.next()["ended"]
    assert (ended["id"], ended["exit"], ended["document"]) == (7, 0, {"outcome": "passed"})
    assert Path(ended["result"]).read_bytes() == b"an export"
    driven.perform(8, ONE).ends(end(exit=3, document=None, result=None, said="error: no"))
    ended = driven.told.next()["ended"]
    assert (ended["exit"], ended["result"], ended["said"]) == (3, None, "error: no")


def test_a_blob_travels_to_a_node_once(driven: Driven) -> None:
    first = driven.perform(1, ONE, "a", "b")
    assert first.refs == {"a": b"bytes of a", "b": b"bytes of b"}
    # It is not known yet what the node has.
    assert driven.perform(2, ONE, "b").refs.keys() == {"b"}
    first.ends(end())
    driven.told.next()
    assert driven.perform(3, ONE, "a", "b", "c").refs.keys() == {"c"}
    assert driven.perform(4, TWO, "a").refs.keys() == {"a"}


def test_a_node_that_lost_what_it_had_is_sent_it_again(driven: Driven) -> None:
    driven.perform(1, ONE, "a").ends(end())
    driven.told.next()
    second = driven.perform(2, ONE, "a", "b")
    assert second.refs.keys() == {"b"}
    # Nothing ran there, so what was sent with it was not kept.
    second.ends({"missing": ["a"]})
    again = driven.cluster.submitted.get(timeout=60)
    assert (again.asked.id, again.refs) == (2, {"a": b"bytes of a", "b": b"bytes of b"})
    again.ends({"missing": ["z"]})
    assert driven.told.next() == {"lost": {"id": 2, "reason": "10.0.0.1 lacks what the bundle names and nobody has"}}


def test_what_runs_on_a_node_that_is_gone_is_lost_and_what_runs_elsewhere_goes_on(driven: Driven) -> None:
    first, second = driven.perform(1, ONE), driven.perform(2, TWO)
    driven.cluster.alive = [TWO]
    assert [node["id"] for node in driven.told.next()["nodes"]["nodes"]] == ["two"]
    assert driven.told.next() == {"lost": {"id": 1, "reason": "10.0.0.1: the node is not alive any more"}}
    # A frozen node that goes on after all is not heard.
    first.ends(end())
    second.ends(end())
    assert driven.told.next()["ended"]["id"] == 2
    assert first.is_cancelled and not second.is_cancelled


def test_what_the_cluster_fails_is_lost_with_the_node_and_the_reason(driven: Driven) -> None:
    driven.perform(1, TWO).ends(RuntimeError("the worker died\nwith more"))
    assert driven.told.next() == {"lost": {"id": 1, "reason": "10.0.0.2: RuntimeError: the worker died"}}
    driven.say("perform", id=2, node="one", gpus=1, cpus=0, bundle="{}", blobs={"a": str(driven.folder / "none")})
    assert "cannot read what it takes" in driven.told.next()["lost"]["reason"]


def test_of_what_is_cancelled_nothing_is_said(driven: Driven) -> None:
    first = driven.perform(1, ONE)
    driven.say("cancel", id=1)
    driven.say("cancel", id=9)
    # Lines are taken in turn: once this one was submitted the others have been.
    second = driven.perform(2, ONE)
    second.ends(end())
    assert driven.told.next()["ended"]["id"] == 2
    assert first.is_cancelled and not second.is_cancelled


def test_whoever_leaves_leaves_nothing_running(driven: Driven) -> None:
    running = [driven.perform(number, ONE) for number in range(3)]
    driven.leave()
    assert all(one.is_cancelled for one in running)


def test_a_line_that_is_none_ends_the_driver(driven: Driven) -> None:
    running = driven.perform(1, ONE)
    driven.said.put("no JSON")
    driven.thread.join(60)
    assert running.is_cancelled and driven.cluster.has_left


def test_a_cluster_that_is_gone_is_a_fault(driven: Driven) -> None:
    driven.cluster.alive = ConnectionError("the head is gone")
    fault = driven.told.next()["fault"]
    assert fault["message"] == "the Ray cluster cannot be used any more: ConnectionError: the head is gone"
    driven.thread.join(60)


@pytest.mark.parametrize("line", ["", "[]", "7", '{"open": {}}', '{"close": {}}', '{"cancel": {"id": 1}, "open": {}}'])
def test_a_line_says_one_thing_of_the_protocol(line: str) -> None:
    with pytest.raises(Malformed):
        read(line)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "cannot read 'nothing"),
        ('{"cancel": {"id": 1}}', "t2t_ray speaks version 4, and t2t another one"),
        ('{"open": {"version": 1, "address": "x", "scratch": "y"}}', "t2t_ray speaks version 4, and t2t another one"),
    ],
)
def test_who_does_not_open_the_driver_as_t2t_does_is_told_so(line: str, message: str) -> None:
    path = str(Path(module.__file__).parents[1])
    command = [sys.executable, "-m", "t2t_ray"]
    ran = subprocess.run(command, input=f"{line}\n", capture_output=True, text=True, env={"PYTHONPATH": path})
    assert ran.returncode == 1
    assert message in json.loads(ran.stdout)["fault"]["message"]
