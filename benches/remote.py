"""Measures how long a workspace takes to restore everything from a remote cache whose every answer takes a while.

A generated workspace (as in scale.py) fills a folder; a server of a few lines serves it over HTTP, each answer after a delay, to a second workspace with
an empty store. Prints the median of some runs, with the number of requests and of the most that were open at once, beside a build of everything and a
restore from the folder itself. Figures of one run are comparable with each other only.

    python benches/remote.py [--t2t PATH] [--ops 63] [--delay-ms 20] [--runs 3]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from scale import ROOT, generate


def main() -> None:
    """Fills a remote cache, restores from it, and prints the times."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        generate(base / "work", base / "environment", arguments.ops)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": temporary,
            "T2T_PYTHON": str(base / "environment/bin/python"),
        }
        folder = f"file://{base / 'remote'}"

        def build(remote: str) -> float:
            """Returns how many seconds a build from an empty store takes."""
            shutil.rmtree(base / "work/cache", ignore_errors=True)
            shutil.rmtree(base / "work/logs", ignore_errors=True)
            started = time.perf_counter()
            command = [arguments.t2t, "build", "-q", "--device", "cpu", "--remote", remote]
            subprocess.run(command, cwd=base / "work", env=environment, check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - started

        print(f"{arguments.ops} ops, {arguments.ops * 15 + 1} actions")
        print(f"without a remote cache     {build('off'):6.2f} s")
        print(f"filling a folder           {build(folder):6.2f} s")
        print(f"restoring from the folder  {statistics.median(build(folder) for _ in range(arguments.runs)):6.2f} s")
        for delay in (0, arguments.delay_ms):
            server = Server(base / "remote", delay / 1000)
            restored = statistics.median(build(server.url) for _ in range(arguments.runs))
            print(
                f"restoring at {delay} ms an answer {restored:6.2f} s"
                f"   {server.requests // arguments.runs} requests, at most {server.most} at once"
            )


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--t2t", default=str(ROOT / ".venv/bin/t2t"), help="the release binary")
    parser.add_argument("--ops", type=int, default=63, help="how many ops the workspace has, of 15 actions each")
    parser.add_argument("--delay-ms", type=float, default=20, help="how long each answer takes")
    parser.add_argument("--runs", type=int, default=3, help="runs of each restore")
    return parser.parse_args()


class Server:
    """Serves the files of a folder, each after a delay, from a thread of its own."""

    def __init__(self, folder: Path, delay: float) -> None:
        self.folder, self.delay = folder, delay
        self.requests = self.open = self.most = 0
        loop, ready = asyncio.new_event_loop(), threading.Event()

        async def start() -> None:
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await server.serve_forever()

        threading.Thread(target=loop.run_until_complete, args=(start(),), daemon=True).start()
        ready.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection."""
        while head := await request(reader):
            self.requests, self.open = self.requests + 1, self.open + 1
            self.most = max(self.most, self.open)
            await asyncio.sleep(self.delay)
            file = self.folder / head.split(b" ", 2)[1].decode().lstrip("/")
            found = file.is_file()
            body = file.read_bytes() if found else b""
            self.open -= 1
            status = "200 OK" if found else "404 Not Found"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()


async def request(reader: asyncio.StreamReader) -> bytes:
    """Returns the head of the next request, or nothing where the connection has ended."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


if __name__ == "__main__":
    main()
