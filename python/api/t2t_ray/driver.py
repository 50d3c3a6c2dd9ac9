"""The loop between t2t and the cluster: actions in, ends out. It keeps no order and tries nothing twice: that is for t2t.

Ray does not fail what runs on a node that is frozen or cut off. So an action is lost once its node is not alive any more.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol

from t2t_ray.messages import Asked, Cancel, Ended, Fault, Lost, Malformed, Node, Nodes, Perform, Told, read, write

LOOK = 0.5
"""How often the nodes are looked at, in seconds."""

ANSWER = 120.0
"""How long a node may take to tell its facts, in seconds: a worker of Ray has to start there first."""

PATIENCE = 3.0
"""How long what was cancelled may take to end before the driver leaves, in seconds."""


class Submitted(Protocol):
    """What a node does: an action, or telling its facts."""

    def result(self) -> dict[str, Any]: ...

    def cancel(self) -> None: ...


class Performs(Protocol):
    """What the driver asks of a cluster."""

    def nodes(self) -> list[Node]: ...

    def put(self, blob: bytes) -> Any: ...

    def ask(self, id: str, then: Any) -> Submitted: ...

    def submit(self, asked: Perform, refs: dict[str, Any], then: Any) -> Submitted: ...

    def leave(self) -> None: ...


class Driver:
    """What is in flight, and what nodes have."""

    def __init__(self, cluster: Performs, scratch: Path, out: IO[str], *, cores: bool = False) -> None:
        self.cluster = cluster
        self.cores = cores
        """Whether nodes that lend no device are asked, too."""
        self.scratch = scratch
        self.out = out
        self.events: queue.SimpleQueue[Asked | int | str | None] = queue.SimpleQueue()
        """What t2t says, the number of an action that is over, the id of a node that has told its facts, the end."""
        self.running: dict[int, tuple[Perform, Submitted]] = {}
        self.nodes: list[Node] = []
        self.asking: dict[str, Submitted] | None = None
        """By node, who has not told its facts. None before anybody was asked."""
        self.asked = 0.0
        self.facts: dict[str, tuple[dict[str, Any] | None, str | None]] = {}
        """By node, what it told, or why it told nothing."""
        self.has_told = False
        self.has: dict[str, set[str]] = {}
        """By node, the digests that it has as far as is known."""
        self.refs: dict[str, Any] = {}
        """The blobs that a node may still lack."""

    def tell(self, told: Told) -> None:
        """Tell t2t something. Where it is gone, its end of the other stream says so."""
        try:
            write(told, self.out)
        except OSError:
            self.events.put(None)

    def run(self, lines: Iterable[str]) -> None:
        """Serve until the lines end, and leave nothing running."""
        threading.Thread(target=self.listen, args=[lines], daemon=True).start()
        looked = 0.0
        try:
            while True:
                if time.monotonic() - looked >= LOOK:
                    self.look()
                    looked = time.monotonic()
                try:
                    event = self.events.get(timeout=LOOK)
                except queue.Empty:
                    continue
                if event is None:
                    return
                self.handle(event)
        except Exception as error:  # noqa: BLE001 (Ray has many ways to say that the head is gone)
            hint = "what was finished is kept: build again once the cluster is back"
            self.tell(Fault(f"the Ray cluster cannot be used any more: {reason(error)}", hint))
        finally:
            self.end()

    def listen(self, lines: Iterable[str]) -> None:
        """Pass on what t2t says. What is no line of the protocol ends the driver."""
        try:
            for line in lines:
                self.events.put(read(line))
        except Malformed:
            pass
        finally:
            self.events.put(None)

    def handle(self, event: Asked | int | str) -> None:
        """Do what t2t asks, or take what is over."""
        if isinstance(event, Perform):
            self.submit(event, event.blobs.keys() - self.has.get(event.node, set()))
        elif isinstance(event, Cancel):
            self.cancel(event.id)
        elif isinstance(event, int):
            self.land(event)
        elif isinstance(event, str):
            self.hear(event)

    def submit(self, asked: Perform, digests: Iterable[str]) -> None:
        """Submit an action with the blobs of these digests."""
        try:
            for digest in digests:
                if digest not in self.refs:
                    self.refs[digest] = self.cluster.put(Path(asked.blobs[digest]).read_bytes())
        except (OSError, KeyError) as error:
            self.tell(Lost(asked.id, f"cannot read what it takes: {error}"))
            return
        refs = {digest: self.refs[digest] for digest in digests}
        submitted = self.cluster.submit(asked, refs, lambda: self.events.put(asked.id))
        self.running[asked.id] = (asked, submitted)

    def land(self, id: int) -> None:
        """Tell how an action ended; one whose node turned out to lack something is sent again with that."""
        if id not in self.running:
            return
        asked, submitted = self.running.pop(id)
        try:
            ended = submitted.result()
        except Exception as error:  # noqa: BLE001 (whatever Ray raises is the cluster's fault)
            self.tell(Lost(id, f"{self.name(asked.node)}: {reason(error)}"))
            return
        if missing := ended["missing"]:
            self.has.pop(asked.node, None)
            if set(missing) <= asked.blobs.keys():
                # All are offered, and not those alone: what was sent was not kept either, as nothing ran. A node takes what it lacks.
                self.submit(asked, asked.blobs)
            else:
                self.tell(Lost(id, f"{self.name(asked.node)} lacks what the bundle names and nobody has"))
            return
        self.has.setdefault(asked.node, set()).update(asked.blobs)
        self.drop()
        result = None
        if ended["result"] is not None:
            # t2t may have swept what it keeps for a while.
            self.scratch.mkdir(parents=True, exist_ok=True)
            result = self.scratch / str(id)
            result.write_bytes(ended["result"])
        path = None if result is None else str(result)
        self.tell(Ended(id, ended["exit"], ended["document"], ended["said"], path))

    def drop(self) -> None:
        """Let go of the blobs that all nodes have."""
        everywhere = [self.has.get(node.id, set()) for node in self.nodes]
        for digest in [digest for digest in self.refs if all(digest in has for has in everywhere)]:
            del self.refs[digest]

    def cancel(self, id: int) -> None:
        """End an action; nothing more is said of it."""
        if id in self.running:
            _, submitted = self.running.pop(id)
            submitted.cancel()

    def ask(self) -> dict[str, Submitted]:
        """Ask the nodes that lend something that is wanted for their facts, and return them."""
        self.asked = time.monotonic()
        asked = [node.id for node in self.nodes if node.gpus > 0 or (self.cores and node.cpus > 0)]
        return {id: self.cluster.ask(id, functools.partial(self.events.put, id)) for id in asked}

    def hear(self, id: str) -> None:
        """Take the facts of a node, and tell of all nodes once it is the last."""
        submitted = self.asking.pop(id, None) if self.asking else None
        if submitted is None:
            return
        try:
            said = submitted.result()
            self.facts[id] = (said["document"], said["said"] if said["document"] is None else None)
        except Exception as error:  # noqa: BLE001 (whatever Ray raises is the cluster's fault)
            self.facts[id] = (None, reason(error))
        self.introduce()

    def give_up(self, id: str, why: str) -> None:
        """Wait for the facts of a node no more."""
        if self.asking:
            self.asking.pop(id).cancel()
            self.facts[id] = (None, why)

    def introduce(self) -> None:
        """Tell of all nodes, if nobody is left who has to tell its facts."""
        if not self.asking and not self.has_told:
            self.has_told = True
            self.tell_nodes()

    def tell_nodes(self) -> None:
        """Tell of all nodes that are alive."""
        unasked = (None, None)
        facts = [self.facts.get(node.id, unasked) for node in self.nodes]
        self.tell(Nodes([replace(node, facts=f, fault=w) for node, (f, w) in zip(self.nodes, facts, strict=True)]))

    def look(self) -> None:
        """Look which nodes are alive, tell that if it changed, and give up what runs on others."""
        nodes = self.cluster.nodes()
        has_changed = nodes != self.nodes
        gone = {node.id: node.name for node in self.nodes}
        self.nodes = nodes
        if has_changed and self.has_told:
            self.tell_nodes()
        if self.asking is None:
            self.asking = self.ask()
        alive = {node.id for node in nodes}
        for silent in list(self.asking):
            if silent not in alive:
                self.give_up(silent, "the node is not alive any more")
            elif time.monotonic() - self.asked >= ANSWER:
                self.give_up(silent, f"it did not tell its devices within {ANSWER:.0f} s")
        self.introduce()
        for id, (asked, submitted) in list(self.running.items()):
            if asked.node not in alive:
                del self.running[id]
                submitted.cancel()
                self.tell(Lost(id, f"{gone.get(asked.node, asked.node)}: the node is not alive any more"))
        for node in self.has.keys() - alive:
            # Whoever comes back has another id in Ray.
            del self.has[node]

    def name(self, id: str) -> str:
        """Return the name of a node."""
        return next((node.name for node in self.nodes if node.id == id), id)

    def end(self) -> None:
        """Cancel what runs, wait a moment for its end, and leave the cluster."""
        for submitted in [*(self.asking or {}).values(), *(submitted for _, submitted in self.running.values())]:
            with contextlib.suppress(Exception):
                submitted.cancel()
        end = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < end:
            try:
                event = self.events.get(timeout=0.1)
            except queue.Empty:
                continue
            if isinstance(event, int):
                self.running.pop(event, None)
        # It may hang where the head is gone, and nothing is left to be done then.
        leaving = threading.Thread(target=self.cluster.leave, daemon=True)
        leaving.start()
        leaving.join(PATIENCE)


def reason(error: BaseException) -> str:
    """Return in a line why the cluster failed an action. What a task raised there Ray tells as a traceback, whose last line says it."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return repr(cause)
    lines = str(error).strip().splitlines() or [""]
    # Numbers of Ray's own follow.
    return f"{type(error).__name__}: {lines[0].split(' lease_id=')[0].removesuffix('that terminated with:').strip()}"
