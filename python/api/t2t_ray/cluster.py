"""The cluster: the only module that knows Ray."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import AuthenticationError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from t2t_ray import node
from t2t_ray.messages import Node, Perform

# Nodes need no module of t2t: what runs there travels with the task.
cloudpickle.register_pickle_by_value(node)

MODEL = "t2t.device"
"""The label by which the owner of a node says which model of device it has."""

TRIES = 4
"""How often joining a cluster is tried."""

SOON = 20.0
"""It is tried again only while so much time has passed, in seconds."""

PAUSE = 1.0
"""How long is waited before it is tried again, in seconds."""


HINT = (
    "`ray start --head` starts a cluster, whose client server listens on port 10001; one with a token "
    "answers nobody without it: $RAY_AUTH_MODE=token and $RAY_AUTH_TOKEN"
)
"""What helps where there is no cluster at an address."""

TOKEN_HINT = "give Ray the cluster's token: $RAY_AUTH_MODE=token with $RAY_AUTH_TOKEN or $RAY_AUTH_TOKEN_PATH"
"""What helps where a cluster has a token."""

ANSWER = 5.0
"""How long is waited for an answer of a head, in seconds."""


class Unreachable(Exception):
    """The cluster cannot be used: what is wrong, and what helps."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Cluster:
    """A Ray cluster. Whatever it is asked may raise RayError or ConnectionError once its head is gone."""

    def __init__(self, address: str) -> None:
        # A client that is gone is given no time to come back: what it started is to end.
        os.environ.setdefault("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        began = time.monotonic()
        for left in reversed(range(TRIES)):
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="t2t")
                break
            except AuthenticationError as error:
                message = f"the token for the Ray cluster at {address} cannot be read: {first_lines(error)}"
                raise Unreachable(message, TOKEN_HINT) from error
            except (RayError, OSError, RuntimeError, ValueError) as error:
                if why := refuses(address):
                    raise Unreachable(f"the Ray cluster at {address} {why}", TOKEN_HINT) from error
                # A client server that is busy lets a client go before it is in. One that is not there takes longer to say so, and is not asked again.
                if left > 0 and time.monotonic() - began < SOON:
                    with contextlib.suppress(Exception):
                        ray.shutdown()
                    time.sleep(PAUSE)
                    continue
                raise Unreachable(f"cannot reach the Ray cluster at {address}: {first_lines(error)}", HINT) from error
        self.perform_there = ray.remote(node.remotely)
        self.tell_there = ray.remote(node.facts)
        self.gpus: dict[str, int] = {}
        self.models: dict[str, str] = {}

    def nodes(self) -> list[Node]:
        """Return the nodes that are alive, in the order of their names."""
        found = []
        for row in ray.nodes():
            if row["Alive"]:
                has, labels = row["Resources"], row.get("Labels") or {}
                cpus, gpus = int(has.get("CPU", 0)), int(has.get("GPU", 0))
                found.append(Node(row["NodeID"], row["NodeManagerAddress"], cpus, gpus, dict(labels)))
        self.gpus = {node.id: node.gpus for node in found}
        self.models = {node.id: node.labels[MODEL] for node in found if MODEL in node.labels}
        return sorted(found, key=lambda node: (node.name, node.id))

    def put(self, blob: bytes) -> Any:
        """Return a reference to bytes, which are there for as long as somebody holds it."""
        return ray.put(blob)

    def ask(self, id: str, then: Callable[[], None]) -> Task:
        """Have a node tell its facts, which takes none of its devices and cores. `then` is called as `submit` does."""
        where = NodeAffinitySchedulingStrategy(id, soft=False)
        options = {"num_gpus": 0, "num_cpus": 0, "max_retries": 0, "scheduling_strategy": where}
        return Task(self.tell_there.options(**options).remote(), then)

    def submit(self, asked: Perform, refs: Mapping[str, Any], then: Callable[[], None]) -> Task:
        """Have the node of `asked` perform it, with the blobs of `refs`. `then` is called from a thread of Ray's when it is over."""
        where = NodeAffinitySchedulingStrategy(asked.node, soft=False)
        options = {"num_gpus": asked.gpus, "num_cpus": asked.cpus, "max_retries": 0, "scheduling_strategy": where}
        if asked.gpus > 0 and asked.node in self.models:
            options["label_selector"] = {MODEL: self.models[asked.node]}
        listed = {digest: [ref] for digest, ref in refs.items()}
        of = max(self.gpus.get(asked.node, 0), 1)
        return Task(self.perform_there.options(**options).remote(asked.bundle, of, asked.jobs, listed), then)

    def leave(self) -> None:
        """Leave the cluster: Ray ends what this process started there."""
        ray.shutdown()


class Task:
    """What was submitted."""

    def __init__(self, ref: Any, then: Callable[[], None]) -> None:
        self.ref = ref
        self.future: Future[dict[str, Any]] = ref.future()
        self.future.add_done_callback(lambda _: then())

    def result(self) -> dict[str, Any]:
        """Return what it returned, once it is over. Raises RayError where the cluster failed it."""
        return self.future.result(timeout=0)

    def cancel(self) -> None:
        """End it, with all that it started. What is over is left alone."""
        ray.cancel(self.ref, force=True)


def refuses(address: str) -> str | None:
    """Return how a head refuses the token of this process, which Ray does not tell where it joins; None where it does not, or does not answer."""
    try:
        import grpc  # type: ignore[import-untyped, unused-ignore]
        from ray._private.authentication.authentication_utils import is_token_auth_enabled
        from ray._private.grpc_utils import init_grpc_channel
        from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc, ray_client_pb2, ray_client_pb2_grpc
    except ImportError:
        # They are Ray's own, and not for others: another version of it may have moved them.
        return None
    named = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    try:
        with contextlib.closing(init_grpc_channel(named.removeprefix("ray://"))) as channel:
            if named.startswith("ray://"):
                ping = ray_client_pb2.ClusterInfoRequest(type=ray_client_pb2.ClusterInfoType.PING)
                ray_client_pb2_grpc.RayletDriverStub(channel).ClusterInfo(ping, timeout=ANSWER)
            else:
                asked = gcs_service_pb2.GetClusterIdRequest()
                gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel).GetClusterId(asked, timeout=ANSWER)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            return "has another token" if is_token_auth_enabled() else "wants a token, and none was given"
    return None


def first_lines(error: BaseException) -> str:
    """Return the beginning of an error as one line: Ray says what is wrong in the lines after the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3])[:500] or type(error).__name__
