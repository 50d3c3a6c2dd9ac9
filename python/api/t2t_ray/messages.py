"""The lines that t2t and the driver say to each other, one JSON object each. A change that one side must know gives another VERSION."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import IO, Any

VERSION = 4
"""The protocol; t2t says its own in `open`. 1: first. 2: nodes tell their devices. 3: nodes that lend cores are asked, too. 4: it says
when it joins."""


@dataclass(frozen=True)
class Open:
    """The first line from t2t: which cluster, as `ray.init` takes it, the folder for results, and whether nodes that lend nothing but `cores` are wanted, too."""

    version: int
    address: str
    scratch: str
    cores: bool = False


@dataclass(frozen=True)
class Perform:
    """An action for a node. `blobs` says where on this machine the bytes lie that the bundle names."""

    id: int
    node: str
    gpus: int
    cpus: int
    bundle: str
    blobs: dict[str, str]
    jobs: int | None = None


@dataclass(frozen=True)
class Cancel:
    """The action is not wanted any more; nothing is said of it."""

    id: int


Asked = Open | Perform | Cancel
KINDS: dict[str, type[Open] | type[Perform] | type[Cancel]] = {"open": Open, "perform": Perform, "cancel": Cancel}


@dataclass(frozen=True)
class Node:
    """A node that is alive, by its id in Ray. `name` is for people: its address. `facts` is what `t2t perform facts` says there, or `fault` why it says nothing; a node
    that lends nothing that is wanted, and one that came later, is not asked."""

    id: str
    name: str
    cpus: int
    gpus: int
    labels: dict[str, str]
    facts: dict[str, Any] | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Joining:
    """It joins the cluster now: where it ends before it has said more, as Ray ends a process that finds no head, this is the hint."""

    hint: str


@dataclass(frozen=True)
class Nodes:
    """All nodes that are alive, said once each of them has told its facts, and whenever that changes."""

    nodes: list[Node]


@dataclass(frozen=True)
class Ended:
    """`t2t perform run` ended on a node: its exit code, its document if it printed one, its last words, and where the result lies if there is one."""

    id: int
    exit: int
    document: dict[str, Any] | None
    said: str
    result: str | None


@dataclass(frozen=True)
class Lost:
    """The action did not end, by the fault of the node or the cluster."""

    id: int
    reason: str


@dataclass(frozen=True)
class Fault:
    """The driver cannot go on, and ends."""

    message: str
    hint: str


Told = Joining | Nodes | Ended | Lost | Fault


class Malformed(ValueError):
    """A line that is none of the protocol."""


def read(line: str) -> Asked:
    """Return what a line from t2t says."""
    try:
        message = json.loads(line)
        [(kind, fields)] = message.items()
        return KINDS[kind](**fields)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise Malformed(f"cannot read {line[:200]!r}: {error!r}") from error


def write(told: Told, to: IO[str]) -> None:
    """Write a line to t2t."""
    to.write(json.dumps({type(told).__name__.lower(): asdict(told)}) + "\n")
    to.flush()
