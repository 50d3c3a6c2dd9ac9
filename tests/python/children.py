"""Runs a function of the harness in a forked child, as t2t's worker does: it may patch what it likes, and nothing of it stays.

The children come from a server that has imported what `preloaded` names, and has done nothing with it.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import multiprocessing.forkserver
import os
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

HARNESS = str(Path(__file__).resolve().parents[2] / "python")


def ask(
    target: str, request: dict[str, Any], interpreter: bool = False, constants: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the reply of `module.function` of the harness's phases to `request`; Triton's cache lies in the request's scratch folder.

    `constants` are other values of the harness's own, each as `package.module.NAME`. Raises ChildProcessError where the child ends without a reply.
    """
    start_server(interpreter)
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(sender, target, request, interpreter, constants or {}))
    process.start()
    sender.close()
    try:
        reply: dict[str, Any] = receiver.recv()
    except EOFError:
        process.join()
        raise ChildProcessError(f"the child ended with {process.exitcode}") from None
    process.join()
    return reply


@functools.cache
def start_server(interpreter: bool) -> None:
    """Starts the server that forks the children. One serves all: a test session is either interpreted or compiled, as the two folders of tests are run."""
    os.environ["TRITON_INTERPRET"] = "1" if interpreter else "0"
    multiprocessing.set_forkserver_preload(["preloaded"])
    # The server is a process of its own, and has no path of this one but what the variable says.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), HARNESS, *([before] if before else [])])
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def answer(
    sender: Connection, target: str, request: dict[str, Any], interpreter: bool, constants: Mapping[str, Any]
) -> None:
    """Calls the function in the child and sends what it returns."""
    sys.path.insert(0, HARNESS)
    os.environ["TRITON_CACHE_DIR"] = str(Path(request["scratch"]) / "triton")
    os.environ["TRITON_INTERPRET"] = "1" if interpreter else "0"
    os.chdir(request["scratch"])
    for name, value in constants.items():
        home, _, constant = name.rpartition(".")
        setattr(importlib.import_module(f"t2t_harness.{home}"), constant, value)
    module, _, function = target.rpartition(".")
    sender.send(getattr(importlib.import_module(f"t2t_harness.phases.{module}"), function)(request))
    sender.close()
