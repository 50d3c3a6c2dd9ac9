"""The record of a rejection: its class, one line for people, the place in the workspace, and the lines that led there.

It is what a log shows and a regeneration is given. It knows nothing of cases and verdicts, and imports neither torch
nor Triton.
"""

from __future__ import annotations

import linecache
import math
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypedDict

from t2t_harness.faults import bounds, order, refusal
from t2t_harness.faults.misfit import Misfit

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from t2t_harness.boundary.documents import Failure, Json, SourcePlace

FOREIGN = ("site-packages", "dist-packages", ".venv", "cache")
"""Folders below a workspace whose code is not the user's."""


class Figures(TypedDict, total=False):
    """What a failure may tell of the result that is wrong."""

    index: list[int] | None
    got: Json
    expected: Json
    max_abs: float
    max_rel: float
    bad: int
    total: int


class Frame(TypedDict):
    """A frame of a stack, in a file of the workspace."""

    file: str
    line: int
    column: int | None
    function: str


MESSAGE = 2000
"""A message is cut to this many characters."""


def failure(
    class_: str,
    message: str,
    *,
    root: str | Path,
    case: str | None = None,
    error: BaseException | None = None,
    place: SourcePlace | None = None,
    printed: str | None = None,
    hint: str | None = None,
    given: str | None = None,
    **figures: Unpack[Figures],
) -> Failure:
    """Returns the document `failure` (`Failure` in boundary/documents.py).

    With `error`, the traceback is reduced to the lines of the workspace `root`, and the last of them is the place
    unless `place` (file relative to `root`, line, column) is given. `printed` is text with a stack of a process that is
    gone. `given` is the line that tells of the case (`naming.given`).
    """
    frames = [] if error is None else workspace_frames(error, root)
    if error is None and printed is not None:
        frames = printed_frames(printed, root)
    if place is None and error is not None:
        place = place_of(error, frames, root)
    elif place is None and frames:
        place = frame_place(frames[-1])
    if hint is None and error is not None:
        hint = refusal.hint(chain(error), root)
    return {
        "class": class_,
        "case": case,
        "given": given,
        "message": message[:MESSAGE],
        "place": place,
        "excerpt": excerpt(root, place),
        "hint": hint,
        "traceback": [f"{frame['file']}:{frame['line']} in {frame['function']}" for frame in frames],
        "index": figures.get("index"),
        "got": json_number(figures.get("got")),
        "expected": json_number(figures.get("expected")),
        "max_abs": json_number(figures.get("max_abs")),
        "max_rel": json_number(figures.get("max_rel")),
        "bad": figures.get("bad"),
        "total": figures.get("total"),
    }


def cites(record: Failure | None) -> bool:
    """Tells whether a failure, or None, cites lines of source."""
    return record is not None and bool(record["place"] or record["traceback"])


def describe(error: BaseException) -> str:
    """Returns `Type: message` of the exception that started it all, on one line.

    Triton's interpreter wraps what a kernel raises, and its compiler what a called function raises.
    """
    first = chain(error)[-1]
    text = " ".join(str(first).split())
    return f"{type(first).__name__}: {text}" if text else type(first).__name__


def class_of(error: BaseException) -> str:
    """Returns the class of what kernel code raised: `memory` where the host or the device had none left, `out-of-bounds` where it wrote outside of its tensors, `nondeterministic` where it does not end in another order, that of a gradient which is none of its input, else `exception`."""
    first = chain(error)[-1]
    if isinstance(first, bounds.OutOfBounds):
        return "out-of-bounds"
    if isinstance(first, order.Endless):
        return "nondeterministic"
    if isinstance(first, Misfit):
        return first.class_
    ran_out = isinstance(first, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(first)
    return "memory" if ran_out or is_device_memory(first) else "exception"


def is_device_memory(error: BaseException) -> bool:
    """Tells whether `error` is torch's, raised where a device has no memory left."""
    return type(error).__name__ == "OutOfMemoryError" and type(error).__module__.split(".")[0] == "torch"


def chain(error: BaseException) -> list[BaseException]:
    """Returns `error` and its explicit causes, the first cause last."""
    found = [error]
    while (cause := found[-1].__cause__) is not None and cause not in found:
        found.append(cause)
    return found


def workspace_frames(error: BaseException, root: str | Path) -> list[Frame]:
    """Returns file (relative to `root`), line, column and function of the workspace's frames, outermost first, causes
    included."""
    frames: list[Frame] = []
    for one in chain(error):
        for summary in traceback.extract_tb(one.__traceback__):
            file = workspace_file(summary.filename, root)
            if file is None or summary.lineno is None:
                continue
            column = getattr(summary, "colno", None)
            frame: Frame = {
                "file": file,
                "line": summary.lineno,
                "column": None if column is None else column + 1,
                "function": summary.name,
            }
            if frame not in frames:
                frames.append(frame)
    return frames


def workspace_file(file: str, root: str | Path) -> str | None:
    """Returns `file` relative to `root`, or None where it is not the workspace's own source, or no file, as in `<string>`."""
    if file.startswith("<"):
        return None
    try:
        relative = Path(file).resolve().relative_to(Path(root).resolve())
    except (ValueError, OSError):
        return None
    own = Path(__file__).resolve().parents[1] in Path(file).resolve().parents
    return None if own or set(relative.parts) & set(FOREIGN) else relative.as_posix()


def printed_frames(text: str, root: str | Path) -> list[Frame]:
    """Returns the workspace's frames in a stack that Python printed: a traceback, or what faulthandler prints at a
    crash."""
    pattern = re.compile(r'^\s*File "([^"]+)", line (\d+)(?:,)? in (\S+)', re.MULTILINE)
    frames: list[Frame] = []
    for file, line, function in pattern.findall(text):
        own = workspace_file(file, root)
        if own is not None:
            frames.append({"file": own, "line": int(line), "column": None, "function": function})
    return frames[::-1] if "most recent call first" in text else frames


def place_of(error: BaseException, frames: list[Frame], root: str | Path) -> SourcePlace | None:
    """Returns where `error` points to: what a syntax or compile error names, else the innermost workspace frame, else
    None."""
    for one in reversed(chain(error)):
        place = syntax_place(one, root) or compile_place(one, root)
        if place is not None:
            return place
    return frame_place(frames[-1]) if frames else None


def frame_place(frame: Frame) -> SourcePlace:
    """Returns the place of a frame."""
    return {"file": frame["file"], "line": frame["line"], "column": frame["column"]}


def place_in(told: object, root: str | Path) -> SourcePlace | None:
    """Returns the place that the kernel's process told, or None where that is none of a file of the workspace."""
    if not isinstance(told, dict) or not isinstance(told.get("file"), str) or not isinstance(told.get("line"), int):
        return None
    file = workspace_file(str(Path(root) / told["file"]), root)
    return None if file is None else {"file": file, "line": told["line"], "column": None}


def syntax_place(error: BaseException, root: str | Path) -> SourcePlace | None:
    """Returns the place that a SyntaxError of a workspace file names, or None."""
    if not isinstance(error, SyntaxError) or error.filename is None:
        return None
    file = workspace_file(error.filename, root)
    return None if file is None else {"file": file, "line": error.lineno or 1, "column": error.offset or None}


def compile_place(error: BaseException, root: str | Path) -> SourcePlace | None:
    """Returns the user's own line for Triton's CompilationError, whose line is of the function's normalized source, or
    None.

    The error holds that source; the function is found among those of the workspace's modules by it. The column is that
    of the normalized text, so it is left out.
    """
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    line = getattr(node, "lineno", None)
    if not isinstance(source, str) or line is None:
        return None
    for function in jit_functions(root):
        if getattr(function, "src", None) != source:
            continue
        origin = getattr(function, "t2t_origin", None)
        file = workspace_file(function.fn.__code__.co_filename, root)
        if file is not None:
            first = getattr(function, "starting_line_number", 1)
            own = first + line - 1 if origin is None else nearest(origin.lines, line)
            return {"file": file, "line": own, "column": None}
    return None


def nearest(lines: dict[int, int], line: int) -> int:
    """Returns the user's line for the printed `line`, or for the last printed line before it that is known."""
    known = [printed for printed in lines if printed <= line]
    return lines[max(known)] if known else min(lines.values(), default=line)


def jit_functions(root: str | Path) -> Iterator[Any]:
    """Yields the Triton functions of the workspace's modules, without their autotuners and heuristics."""
    # Finding out where a file really lies takes long.
    roots = (str(root), os.path.realpath(root))
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
        if isinstance(file, str) and file.startswith(roots) and workspace_file(file, root) is not None:
            for value in list(vars(module).values()):
                while not hasattr(value, "src") and hasattr(value, "arg_names") and hasattr(value, "fn"):
                    value = value.fn
                if hasattr(value, "src") and hasattr(value, "fn"):
                    yield value


def excerpt(root: str | Path, place: SourcePlace | None) -> str | None:
    """Returns the line of the workspace that `place` names, without indentation, or None."""
    if place is None:
        return None
    return linecache.getline(str(Path(root) / place["file"]), place["line"] or 0).strip() or None


def json_number(value: Json) -> Json:
    """Returns `value` as JSON can hold it: NaN and the infinities become `"nan"`, `"inf"` and `"-inf"`."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
