"""Sets generated kernels beside eager torch, torch.compile, FlagGems and Liger-Kernel on one CUDA device, in one run.

It makes a workspace by `t2t add`, builds it, and takes the chosen variant of each op: its figures beside torch's are those of the build. A
process for each other side then calls it in turns with eager torch, on the inputs that the build measured at, with the cache flushed before each call. What is compared
across processes is the ratio to eager torch, which each has of its own.

    python benches/catalogue.py FOLDER [--op NAME]... [--peers DIR] [--out FILE.json]
    python benches/catalogue.py FOLDER --op ... --prepare      makes the workspace and builds it, on any machine

FOLDER is made where it is not there, and built further where it is. --peers names a folder with flag_gems and liger_kernel (`pip install --target DIR --no-deps
flag_gems liger-kernel`, and what they import); without it they are left out. Needs t2t ($T2T_BIN, or `t2t` on the path), torch and Triton.
Prints a table in Markdown. Exit code 1 where a goal is missed: 90 % of ops at 1.0 of eager torch or faster at Large, and a geometric mean of at least 1.0 against each other side.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HARNESS = os.environ.get("T2T_HARNESS") or str(ROOT / "python")
SIZE = "large"
SHARE = 0.9
"""The part of the ops that is to be as fast as eager torch, or faster."""

ROUNDS = 30
"""So often each side is called in turns with eager torch."""

FLUSHED = 1 << 28
"""Bytes that are written before each call, more than any cache on a device holds."""

SIDES = ("compile", "flag_gems", "liger")
"""What chosen variants are set beside, other than eager torch."""

LIGER: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "softmax": ("softmax", "LigerSoftmaxFunction", ("input",)),
    "layer_norm": ("layer_norm", "LigerLayerNormFunction", ("input", "weight", "bias", "eps")),
    "rms_norm": ("rms_norm", "LigerRMSNormFunction", ("input", "weight", "eps")),
    "kl_div": ("kl_div", "LigerKLDivLossFunction", ("input", "target", "reduction")),
    "cross_entropy": ("cross_entropy", "LigerCrossEntropyFunction", ("input", "target")),
}
"""torch's function → the module below liger_kernel.ops, its autograd function, and the names of what is passed on to it."""


def main() -> None:
    """Builds, measures, prints, and ends with the exit code."""
    arguments = parse()
    folder = Path(arguments.folder).resolve()
    if arguments.side:
        print(json.dumps(measured(folder, arguments.side, arguments.op[0])))
        return
    if not (folder / "ops.yaml").exists():
        made(folder, arguments.op)
    build(folder)
    if arguments.prepare:
        return
    found = []
    for declared in json.loads(t2t(folder, "graph", "--format", "ops", *arguments.op)):
        found.append(beside(folder, declared["op"]["name"], arguments.peers))
        print(line(found[-1]), flush=True)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    told, is_reached = summary(found)
    print("\n".join(told))
    sys.exit(0 if is_reached else 1)


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the workspace, which is made where it is not there")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--peers", help="the folder with flag_gems and liger_kernel")
    parser.add_argument("--prepare", action="store_true", help="makes and builds the workspace alone")
    parser.add_argument("--out", help="where the figures are written as JSON")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    return parser.parse_args()


def t2t(folder: Path, *arguments: str) -> str:
    """Returns what t2t prints in `folder`. Ends the process where it is used badly or the machine fails."""
    binary = os.environ.get("T2T_BIN") or shutil.which("t2t")
    if not binary:
        sys.exit("error: no t2t was found\nhint: name the binary in T2T_BIN, or put it on the path")
    ran = subprocess.run([binary, *arguments], cwd=folder, check=False, stdout=subprocess.PIPE, text=True)
    if ran.returncode > 1:
        sys.exit(f"error: t2t {arguments[0]} ended with {ran.returncode}")
    return ran.stdout


def made(folder: Path, ops: list[str]) -> None:
    """Makes a workspace of the ops, or of all that the generator knows."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = t2t(folder, "add", "--list").splitlines()
    # A family has a line of its own; the names of its ops are indented below it.
    t2t(folder, "add", *(ops or [name for one in listed if one.startswith(" ") for name in one.split()]))


def build(folder: Path) -> None:
    """Builds all that is stale. A rejected kernel is a result, and ends nothing."""
    t2t(folder, "build")


def beside(folder: Path, op: str, peers: str | None) -> dict[str, Any]:
    """Returns the figures of an op: its chosen variant, the ratio of eager torch's time to it, and for each other side that has the op the ratio of eager torch's time to that."""
    told: dict[str, Any] = {"op": op, "variant": None, "ratio": None, "sides": {}}
    shown = t2t(folder, "artifact", f"{op}:select", "selection")
    chosen = json.loads(shown) if shown.strip() else {}
    figures = chosen.get("figures") or {}
    of_size = (figures.get("sizes") or {}).get(SIZE)
    if not of_size:
        return {**told, "why": chosen.get("note") or "no variant passed"}
    told |= {"variant": chosen["chosen"], "ratio": of_size["speedup"], "interval": of_size["interval"]}
    for side in SIDES:
        if side == "compile" or peers:
            told["sides"][side] = asked(folder, side, op, peers)
    return told


def asked(folder: Path, side: str, op: str, peers: str | None) -> dict[str, Any]:
    """Returns what a process of its own measures of one side: `ratio`, or `why` there is none."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), peers)))}
    command = [sys.executable, str(Path(__file__)), str(folder), "--side", side, "--op", op]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if ran.returncode or not ran.stdout.strip():
        return {"why": (ran.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]}
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def measured(folder: Path, side: str, op: str) -> dict[str, Any]:
    """Returns the ratio of eager torch's median time to that of one side, called in turns, and both in milliseconds."""
    sys.path.insert(0, HARNESS)
    import torch

    from t2t_harness.cases import cases, inputs
    from t2t_harness.measuring import timing
    from t2t_harness.op import operation

    declared: Any = next(iter(json.loads(t2t(folder, "graph", "--format", "ops", op))))["op"]
    timing.set_precision(declared)
    case = next(one for one in cases.bench_cases(declared) if one.name.startswith(SIZE))
    given, kwargs = inputs.make_inputs(declared, case, "cuda"), inputs.kwargs_of(declared, case)
    function = operation.ready(declared, case.binding, case.dtype, "cuda")

    def eager() -> Any:
        return operation.call(function, declared, given, kwargs)

    with torch.no_grad(), prepared(side, declared, eager, {**given, **kwargs}) as other:
        if other is None:
            return {"why": "it has no such op"}
        times = in_turns(eager, other)
    return {"ratio": times[0] / times[1], "eager_ms": times[0], "ms": times[1]}


@contextlib.contextmanager
def prepared(
    side: str, declared: Any, eager: Callable[[], Any], known: dict[str, Any]
) -> Iterator[Callable[[], Any] | None]:
    """Gives the call of one side, or None where it has no such op: FlagGems has it if it launches a kernel of Triton's for it."""
    if side == "compile":
        import torch

        yield torch.compile(eager)
        return
    if side == "liger":
        yield of_liger(declared, known)
        return
    flag_gems: Any = __import__("flag_gems")
    launched: list[str] = []
    knobs: Any = __import__("triton.knobs").knobs

    def noted(metadata: Any) -> None:
        launched.append(str(metadata))

    def replaced() -> Any:
        with flag_gems.use_gems():
            return eager()

    knobs.runtime.launch_enter_hook.add(noted)
    replaced()
    knobs.runtime.launch_enter_hook.remove(noted)
    yield replaced if launched else None


def of_liger(declared: Any, known: dict[str, Any]) -> Callable[[], Any] | None:
    """Returns Liger-Kernel's call of the op, None where it has none."""
    row = LIGER.get(str(declared["torch"]).rpartition(".")[2])
    if row is None:
        return None
    module, name, passed = row
    apply: Any = getattr(__import__(f"liger_kernel.ops.{module}", fromlist=[name]), name).apply
    given = [known[one] for one in passed if one in known]
    return lambda: apply(*given)


def in_turns(*calls: Callable[[], Any]) -> list[float]:
    """Returns the median time of each call on the device in milliseconds. They are called in turns, each after a flush of the caches."""
    import torch

    event: Any = torch.cuda.Event
    for call in calls:
        for _ in range(3):
            call()
    flush = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")
    pairs: list[list[tuple[Any, Any]]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, kept in zip(calls, pairs, strict=True):
            begin, end = event(enable_timing=True), event(enable_timing=True)
            flush.zero_()
            begin.record()
            call()
            end.record()
            kept.append((begin, end))
    torch.cuda.synchronize()
    return [statistics.median(begin.elapsed_time(end) for begin, end in kept) for kept in pairs]


def line(one: dict[str, Any]) -> str:
    """Returns a row of the table: the ratio to eager torch, and against each other side the ratio of the two ratios."""
    if one["ratio"] is None:
        return f"| {one['op']} | | {one['why']} | | | |"
    low, high = one["interval"]
    against = [relative(one, side) for side in SIDES]
    cells = " | ".join("" if ratio is None else f"{ratio:.2f}" for ratio in against)
    return f"| {one['op']} | {one['variant']} | {one['ratio']:.2f} [{low:.2f}, {high:.2f}] | {cells} |"


def relative(one: dict[str, Any], side: str) -> float | None:
    """Returns how much faster the chosen variant is than one side, both against eager torch; None where that has no such op."""
    ratio = one["sides"].get(side, {}).get("ratio")
    return None if ratio is None or one["ratio"] is None else float(one["ratio"]) / float(ratio)


def summary(found: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Returns lines that say which goals were reached, and whether all were."""
    ratios = [float(one["ratio"]) for one in found if one["ratio"] is not None]
    fast = sum(ratio >= 1.0 for ratio in ratios)
    is_reached = bool(found) and fast >= SHARE * len(found)
    told = ["", f"- {fast} of {len(found)} ops are at least as fast as eager torch at {SIZE} (to reach: 90 %)"]
    for side in SIDES:
        against = [ratio for one in found if (ratio := relative(one, side)) is not None]
        if against:
            mean = math.exp(sum(map(math.log, against)) / len(against))
            is_reached = is_reached and mean >= 1.0
            told.append(f"- {side}: geometric mean of {len(against)} ops {mean:.2f}× (to reach: 1.00×)")
    return told, is_reached


if __name__ == "__main__":
    main()
