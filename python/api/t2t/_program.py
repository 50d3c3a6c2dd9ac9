"""The program `t2t`: where it is, and one call of it.

It knows exit codes and streams, and nothing of what a command is about.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

WHOLE, REJECTED, MISUSE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes (docs/reference/commands.md)."""

Place = str | os.PathLike[str]


class T2tError(Exception):
    """A call of t2t that came to no answer. `exit_code` is what the program ended with, and the message what it said."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class MisuseError(T2tError, ValueError):
    """t2t was asked for what there is not, or `ops.yaml` is wrong: exit code 2."""


class MachineError(T2tError, OSError):
    """The machine failed: exit code 3, or a signal other than that of Ctrl-C, whose negative number is the code then."""


def program() -> str:
    """Returns the path of the program `t2t`: `$T2T_BIN`, or the one that was installed with this module, or the first on the path. Raises FileNotFoundError where there is none."""
    if named := os.environ.get("T2T_BIN"):
        return named
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    found = next((str(folder / "t2t") for folder in beside if (folder / "t2t").is_file()), shutil.which("t2t"))
    if found is None:
        raise FileNotFoundError("there is no program `t2t`: install the package `t2t`, or name it in $T2T_BIN")
    return found


def document(arguments: Sequence[str], workspace: Place | None) -> Any:
    """Returns the JSON that a command prints. What it warns of goes to standard error. Raises T2tError where it fails."""
    ran = subprocess.run([program(), *arguments], cwd=workspace, capture_output=True, text=True, check=False)
    if ran.returncode != WHOLE:
        raise error_of(ran.returncode, ran.stderr)
    sys.stderr.write(ran.stderr)
    return json.loads(ran.stdout)


def events(
    arguments: Sequence[str], workspace: Place | None, *, shows: bool, heard: Callable[[dict[str, Any]], None]
) -> int:
    """Runs a build, passes each of its events to `heard` as it comes, and returns the exit code, 0 or 1. Raises T2tError for any other, and KeyboardInterrupt where the build was interrupted.

    What the build prints is seen only where it `shows`. An exception in `heard` ends the build.
    """
    source, sink = os.pipe()
    # A file holds whatever is printed: a pipe would be full once nobody reads it.
    with os.fdopen(source, encoding="utf-8") as lines, tempfile.TemporaryFile("w+", encoding="utf-8") as told:
        try:
            child = subprocess.Popen(
                [program(), "build", "--events", f"/dev/fd/{sink}", *arguments],
                cwd=workspace, stdout=None if shows else subprocess.DEVNULL, stderr=None if shows else told, pass_fds=[sink],
            )  # fmt: skip
        finally:
            os.close(sink)
        with child:
            try:
                for event in parsed(lines):
                    heard(event)
            except BaseException:
                # It stops what it runs, keeps what has finished, and waits for nobody to read events.
                lines.close()
                child.terminate()
                raise
        told.seek(0)
        said = told.read()
    # A second Ctrl-C does not wait for what is in flight: the signal itself ends the program then.
    if child.returncode in (INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
    if child.returncode not in (WHOLE, REJECTED):
        raise error_of(child.returncode, said)
    return child.returncode


def parsed(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yields the events of a build. A last line that is not whole is that of a process that was killed."""
    for line in lines:
        if line.endswith("\n"):
            yield json.loads(line)


def error_of(code: int, said: str) -> T2tError:
    """Returns the error for an exit code, with what the program said."""
    message = said.strip() or f"t2t ended with {code}"
    return MisuseError(message, code) if code == MISUSE else MachineError(message, code)
