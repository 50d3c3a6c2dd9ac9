"""Who refuses a token: a head of Ray that has one, asked by processes with none, another one and the right one."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

API = Path(__file__).parents[3] / "python/api"
TOKEN, ANOTHER = "a" * 64, "b" * 64
STARTS = "from ray.scripts.scripts import main; main()"
ASKS = "import sys; sys.path.insert(0, sys.argv.pop(1)); from t2t_ray.cluster import refuses; print([refuses(address) for address in sys.argv[1:]])"
PATIENCE = 60.0
"""How long a head may take to start, in seconds."""


class Head(NamedTuple):
    """A head: where it is joined directly, and where its client server listens."""

    direct: str
    client: str
    home: Path

    def expect(self, answer: str | None, **environment: str) -> None:
        """Expect this answer from both addresses for a process with this environment. A head that is busy may not answer in time at first."""
        words = [sys.executable, "-c", ASKS, str(API), self.direct, self.client]
        own = {**os.environ, "HOME": str(self.home), **environment}
        end = time.monotonic() + PATIENCE
        while True:
            told = subprocess.run(words, env=own, capture_output=True, text=True, check=True, timeout=60).stdout
            if told.strip() == str([answer] * 2) or time.monotonic() > end:
                break
        assert told.strip() == str([answer] * 2)


def port() -> int:
    """Return a port that nobody has now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Make a folder whose path is short: the names of Ray's sockets are long, and may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="t2t", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def head(home: Path) -> Iterator[Head]:
    """Start a head with a token, and end it."""
    direct, client = port(), port()
    options = [f"--port={direct}", f"--ray-client-server-port={client}", f"--temp-dir={home}", "--log-style=record"]
    options += ["--include-dashboard=false", "--num-cpus=1", "--object-store-memory=100000000"]
    environment = {**os.environ, "HOME": str(home), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    words = [sys.executable, "-c", STARTS, "start", "--head", "--block", *options]
    with open(home / "log", "w") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        found = Head(f"127.0.0.1:{direct}", f"ray://127.0.0.1:{client}", home)
        end = time.monotonic() + PATIENCE
        while not answers(client) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        assert answers(client), (home / "log").read_text()
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(number: int) -> bool:
    """Return whether somebody listens on a port."""
    with socket.socket() as asks:
        return asks.connect_ex(("127.0.0.1", number)) == 0


def test_a_token_that_is_missing_or_wrong_is_told_as_such(head: Head) -> None:
    head.expect("wants a token, and none was given", RAY_AUTH_MODE="disabled")
    head.expect("has another token", RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=ANOTHER)
    head.expect(None, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN)


def test_who_is_not_there_refuses_no_token(head: Head) -> None:
    nobody = Head(f"127.0.0.1:{port()}", f"ray://127.0.0.1:{port()}", head.home)
    nobody.expect(None, RAY_AUTH_MODE="disabled")
