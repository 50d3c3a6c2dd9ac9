"""Sets generated kernels beside eager torch, torch.compile, FlagGems and Liger-Kernel on one CUDA device, in one run.

It makes a workspace by `t2t add`, builds it, and takes the chosen variant of each op: its figures beside torch's are those of the build, and so are those of torch.compile.
A process for each library, and one for the chosen variants, then calls it in turns with eager torch, on inputs of the size and the dtype that the build measured. The cache is
flushed before each call, for so long that the host is ahead: those are times of the device alone, also where a slow host shows in the build's figures. What is compared across
processes is the ratio to eager torch, which each has of its own. A library whose result is not torch's is not compared.

    python benches/catalogue.py FOLDER [--op NAME]... [--auto] [--dtype NAME] [--peers DIR] [--out FILE.json]
    python benches/catalogue.py FOLDER --op ... --prepare      makes the workspace and builds it, on any machine

FOLDER is made where it is not there, and built further where it is, of its ops those that are named. --auto has its benches end early (`bench: {stop: auto}`), and --dtype has kernels
checked in that dtype alone, for a device that is lent for minutes. --peers names a folder with flag_gems and
liger_kernel (`pip install --target DIR --no-deps flag_gems liger-kernel sqlalchemy`); without it they are left out. Needs t2t ($T2T_BIN, or `t2t` on the path), torch and Triton.
Prints a table in Markdown for each size, the largest first; --out is written anew whenever a side is measured. Exit code 1 where a goal is missed: 90 % of ops at 1.0 of eager torch or faster at Large, and a geometric mean of at least 1.0 against each other side.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HARNESS = os.environ.get("T2T_HARNESS") or str(ROOT / "python")
SIZE = "large"
"""The size that goals are held against."""

SIZES = (SIZE, "medium", "small")
SHARE = 0.9
"""The part of the ops that is to be as fast as eager torch, or faster."""

TURNS, CALLS = 6, 8
"""How many turns each side takes with eager torch, and how many calls are timed in each."""

STUDENT = 2.571
"""Student's t of a 95 % interval of as many turns."""

PATIENCE = 120.0
"""Seconds that a library may take until it has told something of an op: some tune for long."""

FLUSHED = 1 << 31
"""Bytes that are written before each call: more than any cache on a device holds, and enough that the host has made the call before the device gets to it."""

CLOSE = 1e-2
"""How far from torch's a library's result may be, as a share of the largest value: another op is farther."""

COMPILE = "torch.compile"

LIBRARIES = ("flag_gems", "liger")

SIDES = (COMPILE, *LIBRARIES)
"""What chosen variants are set beside, other than eager torch."""

CHOSEN = "chosen"
"""The chosen variant, called as libraries are."""

Call = Callable[[], Any]

Around = Callable[[], contextlib.AbstractContextManager[Any]]
"""Makes the context in which a side is called."""

LIGER: dict[str, tuple[str, str, tuple[str | None, ...]]] = {
    "softmax": ("softmax", "LigerSoftmaxFunction", ("input",)),
    "layer_norm": ("layer_norm", "LigerLayerNormFunction", ("input", "weight", "bias", "eps")),
    "rms_norm": ("rms_norm", "LigerRMSNormFunction", ("input", "weight", "eps")),
    "kl_div": ("kl_div", "LigerKLDivLossFunction", ("input", "target", "reduction")),
    "cross_entropy": ("cross_entropy", "LigerCrossEntropyFunction", ("input", "target", None)),
}
"""torch's function → the module below liger_kernel.ops, its autograd function, and the names of what is passed on to it, None for none."""


def main() -> None:
    """Builds, measures, prints, and ends with the exit code."""
    arguments = parse()
    folder = Path(arguments.folder).resolve()
    if arguments.side:
        tell(folder, arguments.side, arguments.op)
        return
    if not (folder / "ops.yaml").exists():
        made(folder, arguments.op, arguments.dtype, is_auto=arguments.auto)
    build(folder, arguments.op)
    if arguments.prepare:
        return
    ops = [str(one["op"]["name"]) for one in json.loads(t2t(folder, "graph", "--format", "ops", *arguments.op))]
    found = {op: built(folder, op) for op in ops}
    keep(arguments.out, found)
    for side in (CHOSEN, *(LIBRARIES if arguments.peers else ())):
        for op, told in asked(folder, side, ops, arguments.peers or ""):
            found[op]["sides"][side] = told
            keep(arguments.out, found)
    for size in SIZES:
        print("\n".join([*heading(size), *(line(one, size) for one in found.values()), ""]))
    words, is_reached = summary(list(found.values()))
    print("\n".join(words))
    sys.exit(0 if is_reached else 1)


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the workspace, which is made where it is not there")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--auto", action="store_true", help="benches end early, in a workspace that is made")
    parser.add_argument("--dtype", help="the one dtype of a workspace that is made")
    parser.add_argument("--peers", help="the folder with flag_gems and liger_kernel")
    parser.add_argument("--prepare", action="store_true", help="makes and builds the workspace alone")
    parser.add_argument("--out", help="where the figures are written as JSON")
    parser.add_argument("--side", choices=(CHOSEN, *LIBRARIES), help=argparse.SUPPRESS)
    return parser.parse_args()


def keep(out: str | None, found: dict[str, dict[str, Any]]) -> None:
    """Writes what is known so far."""
    if out:
        Path(out).write_text(json.dumps(list(found.values()), indent=1) + "\n", encoding="utf-8")


def t2t(folder: Path, *arguments: str) -> str:
    """Returns what t2t prints in `folder`. Ends the process where it is used badly or the machine fails."""
    binary = os.environ.get("T2T_BIN") or shutil.which("t2t")
    if not binary:
        sys.exit("error: no t2t was found\nhint: name the binary in T2T_BIN, or put it on the path")
    ran = subprocess.run([binary, *arguments], cwd=folder, check=False, stdout=subprocess.PIPE, text=True)
    if ran.returncode > 1:
        sys.exit(f"error: t2t {arguments[0]} ended with {ran.returncode}")
    return ran.stdout


def made(folder: Path, ops: list[str], dtype: str | None, *, is_auto: bool) -> None:
    """Makes a workspace of the ops, or of all that the generator knows."""
    folder.mkdir(parents=True, exist_ok=True)
    t2t(folder, "add", *(ops or every(folder)))
    if is_auto:
        file = folder / "ops.yaml"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("ops:\n", "defaults: {bench: {stop: auto}}\nops:\n", 1), encoding="utf-8")
    if dtype is not None:
        narrow(folder, dtype)


def every(folder: Path) -> list[str]:
    """Returns the names of all ops that the generator knows."""
    # A family has a line of its own; the names of its ops are indented below it.
    listed = t2t(folder, "add", "--list").splitlines()
    return [name for one in listed if one.startswith(" ") for name in one.split()]


def narrow(folder: Path, dtype: str) -> None:
    """Has each op of a workspace that was just made be of one dtype."""
    file = folder / "ops.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"^( +dtypes): \[.*\]$", rf"\1: [{dtype}]", text, flags=re.MULTILINE), encoding="utf-8")


def build(folder: Path, ops: list[str]) -> None:
    """Builds what is stale of the ops, or of all, and shows what is built. A rejected kernel is a result, and ends nothing."""
    print(t2t(folder, "build", *ops), file=sys.stderr)


def document(folder: Path, target: str, name: str) -> Any:
    """Returns a document of a result as the build left it, an empty one where there is none."""
    shown = t2t(folder, "artifact", target, name)
    return json.loads(shown) if shown.strip() else {}


def built(folder: Path, op: str) -> dict[str, Any]:
    """Returns what the build says of an op: its chosen variant, and at each size the ratio of eager torch's time to it, and to that of torch.compile."""
    told: dict[str, Any] = {"op": op, "variant": None, "sizes": {}, "sides": {COMPILE: of_compile(folder, op)}}
    chosen = document(folder, f"{op}:select", "selection")
    sizes = (chosen.get("figures") or {}).get("sizes") or {}
    if SIZE not in sizes:
        return {**told, "why": chosen.get("note") or "no variant passed"}
    told["sizes"] = {
        size: {
            "ratio": of_size["speedup"],
            "interval": of_size["interval"],
            "eager_ms": of_size["torch_ms"],
            "ms": of_size["ms"],
        }
        for size, of_size in sizes.items()
    }
    return {**told, "variant": chosen["chosen"], "ties": chosen["ties"]}


def of_compile(folder: Path, op: str) -> dict[str, Any]:
    """Returns the ratios of eager torch's time to that of torch.compile in the op's baseline, or `why` there are none."""
    found = document(folder, f"{op}:baseline", "baseline")
    told: dict[str, Any] = {}
    for size, figures in found.get("sizes", {}).items():
        eager, compiled = figures.get("torch"), figures.get("torch.compile")
        if eager and compiled:
            of_eager, of_compiled = within(eager), within(compiled)
            told[size] = {
                "ratio": eager["mean"] / compiled["mean"],
                "interval": [of_eager[0] / of_compiled[1], of_eager[1] / of_compiled[0]],
                "eager_ms": eager["mean"],
                "ms": compiled["mean"],
            }
    if SIZE not in told:
        return {"why": found.get("reasons", {}).get("torch.compile", "no baseline")}
    return {"sizes": told}


def within(figure: Any) -> tuple[float, float]:
    """Returns the interval of a figure: its own where it ended early, else two standard errors of its runs."""
    half = figure.get("within")
    if half is None:
        half = 2.0 * figure["cv"] * figure["mean"] / math.sqrt(len(figure["runs"]))
    return figure["mean"] - half, figure["mean"] + half


def asked(folder: Path, side: str, ops: list[str], peers: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields what a process of its own measures of one side, by op: `sizes`, or `why` there are none. Where the process dies over an op, another one goes on behind it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), peers)))}
    rest = list(ops)
    while rest:
        named = [word for op in rest for word in ("--op", op)]
        ended: list[str] = []
        is_first = True
        for one in heard(
            [sys.executable, str(Path(__file__)), str(folder), "--side", side, *named], environment, ended
        ):
            is_first = False
            rest.remove(one["op"])
            yield str(one.pop("op")), one
        if rest and (is_first or ended[0] == SLOW):
            # It died over the first one that it told nothing of.
            yield rest.pop(0), {"why": ended[0]}


def heard(command: list[str], environment: dict[str, str], ended: list[str]) -> Iterator[dict[str, Any]]:
    """Yields what a process tells of ops, and puts the last that it said of its end into `ended`. A process that tells nothing for long is ended."""
    late: list[bool] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process,
    ):
        lines: Any = process.stdout

        def end() -> None:
            late.append(True)
            process.kill()

        while True:
            timer = threading.Timer(PATIENCE, end)
            timer.start()
            one = next(lines, None)
            timer.cancel()
            if one is None:
                break
            if one.startswith(TOLD):
                yield json.loads(one[len(TOLD) :])
        process.wait()
        errors.seek(0)
        said = errors.read().strip()
    # What a library says of itself goes where the build's lines go.
    print(said[-4000:], file=sys.stderr)
    ended.append(SLOW if late else (said.splitlines() or ["it ended without a word"])[-1][:200])


SLOW = f"it took longer than {PATIENCE:.0f} s"

LACKS = "it has no such op"

TOLD = "told: "
"""What a line with figures begins with; a library may print others."""


def tell(folder: Path, side: str, ops: list[str]) -> None:
    """Measures one side and prints what comes of each op, a line of JSON each. Where an op fails the device may be broken: that ends the process, with the next ones untold."""
    sys.path.insert(0, HARNESS)
    import torch

    for declared in json.loads(t2t(folder, "graph", "--format", "ops", *ops)):
        op, why = declared["op"], None
        try:
            with torch.no_grad():
                told = measured(op, side, wrapper(folder, op["name"]) if side == CHOSEN else None)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            told = {"why": why}
        print(TOLD + json.dumps({"op": op["name"], **told}), flush=True)
        if why is not None:
            torch.cuda.synchronize()


def wrapper(folder: Path, op: str) -> Any:
    """Returns the wrapper of the op's chosen variant."""
    variant = document(folder, f"{op}:select", "selection")["chosen"]
    spec: Any = importlib.util.spec_from_file_location(f"chosen_{op}", folder / "kernels" / op / f"{variant}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, f"triton_{op}")


def measured(declared: Any, side: str, chosen: Any) -> dict[str, Any]:
    """Returns, by size, the ratio of eager torch's median time to that of one side, called in turns, its 95 % interval, and both in milliseconds; `why` where there is none."""
    from t2t_harness.cases import cases
    from t2t_harness.measuring import timing

    timing.set_precision(declared)
    told: dict[str, Any] = {}
    for size in SIZES:
        case = next((one for one in cases.bench_cases(declared) if one.name.startswith(size)), None)
        if case is None:
            continue
        of_size = measured_at(declared, case, side, chosen)
        if "why" in of_size:
            return {"why": of_size["why"]}
        told[size] = of_size
    return {"sizes": told}


def measured_at(declared: Any, case: Any, side: str, chosen: Any) -> dict[str, Any]:
    """Returns the figures of one size."""
    from t2t_harness.cases import called_with, declared_inputs
    from t2t_harness.op import operation

    given, kwargs = declared_inputs.make_inputs(declared, case, "cuda"), called_with.kwargs_of(declared, case)
    function = operation.ready(declared, case.binding, case.dtype, "cuda")

    def eager() -> Any:
        return operation.call(function, declared, given, kwargs)

    around: Around = contextlib.nullcontext
    other: Call | None = None
    if side == CHOSEN:
        other = functools.partial(operation.call, chosen, declared, given, kwargs)
    elif side == "flag_gems":
        around, other = of_gems(eager)
    else:
        around, other = of_liger(declared, {**given, **kwargs})
    if other is None:
        return {"why": LACKS}
    right = first_of(eager())
    with around():
        result = first_of(other())
    if not is_close(result, right):
        return {"why": "its result is not torch's"}
    of_eager, of_other = in_turns((contextlib.nullcontext, eager), (around, other))
    logs = [math.log(one / another) for one, another in zip(of_eager, of_other, strict=True)]
    half = STUDENT * statistics.stdev(logs) / math.sqrt(TURNS)
    middle = statistics.fmean(logs)
    return {
        "ratio": math.exp(middle),
        "interval": [math.exp(middle - half), math.exp(middle + half)],
        "eager_ms": statistics.median(of_eager),
        "ms": statistics.median(of_other),
    }


def first_of(result: Any) -> Any:
    """Returns the first tensor of a result."""
    return result[0] if isinstance(result, (tuple, list)) else result


def is_close(result: Any, right: Any) -> bool:
    """Tells whether two results are of one shape, and their values near each other."""
    if result.shape != right.shape:
        return False
    return bool((result.double() - right.double()).abs().max() <= CLOSE * right.double().abs().max())


def of_gems(eager: Call) -> tuple[Around, Call | None]:
    """Returns the context in which FlagGems computes for torch, and the call; None for it where no kernel of Triton's is launched then."""
    flag_gems: Any = __import__("flag_gems")
    launched: list[str] = []
    hook: Any = __import__("triton.knobs").knobs.runtime.launch_enter_hook

    def around() -> Any:
        # What flushes the cache stays torch's.
        return flag_gems.use_gems(exclude=["zero_"])

    def noted(metadata: Any) -> None:
        launched.append(str(metadata))

    hook.add(noted)
    try:
        with around():
            eager()
    finally:
        hook.remove(noted)
    return around, eager if launched else None


def of_liger(declared: Any, known: dict[str, Any]) -> tuple[Around, Call | None]:
    """Returns a context that does nothing, and Liger-Kernel's call of the op, None where it has none."""
    row = LIGER.get(str(declared["torch"]).rpartition(".")[2])
    if row is None:
        return contextlib.nullcontext, None
    module, name, passed = row
    apply: Any = getattr(__import__(f"liger_kernel.ops.{module}", fromlist=[name]), name).apply
    given = [known.get(one) if one else None for one in passed if one in known or one is None]
    return contextlib.nullcontext, lambda: apply(*given)


def in_turns(*sides: tuple[Around, Call]) -> list[list[float]]:
    """Returns the median times on the device of the call of each side, a turn each, in milliseconds. Sides take turns of some calls, each after a flush of the caches."""
    import torch

    flush = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")
    medians: list[list[float]] = [[] for _ in sides]
    for _ in range(TURNS):
        for (around, call), kept in zip(sides, medians, strict=True):
            with around():
                for _ in range(3):
                    call()
                kept.append(timed(call, CALLS, flush))
    return medians


def timed(call: Call, count: int, flush: Any) -> float:
    """Returns the median of the times on the device of so many calls, in milliseconds. `flush` is a tensor that is written before each: it holds more than the caches, and the host is ahead meanwhile."""
    import torch

    event: Any = torch.cuda.Event
    pairs: list[tuple[Any, Any]] = []
    for _ in range(count):
        begin, end = event(enable_timing=True), event(enable_timing=True)
        flush.zero_()
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return float(statistics.median(begin.elapsed_time(end) for begin, end in pairs))


def heading(size: str) -> list[str]:
    """Returns the head of the table of a size."""
    return [
        f"| {size} | chosen | eager torch / chosen | of the device alone | torch.compile / chosen | FlagGems / chosen | Liger / chosen |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]


def line(one: dict[str, Any], size: str) -> str:
    """Returns a row of the table: the ratio to eager torch, and against each other side the ratio of the two ratios, with intervals."""
    of_size = one["sizes"].get(size)
    if of_size is None:
        return f"| {one['op']} | | {one.get('why', '')} | | | | |"
    alone = one["sides"].get(CHOSEN, {}).get("sizes", {}).get(size)
    cells = (of_size, alone, *(relative(one, side, size) for side in SIDES))
    shown = " | ".join(cell(each) for each in cells)
    return f"| {one['op']} | {one['variant']} | {shown} |"


def cell(figures: dict[str, Any] | None) -> str:
    """Returns a ratio and its interval."""
    if figures is None:
        return ""
    low, high = figures["interval"]
    return f"{figures['ratio']:.2f} [{low:.2f}, {high:.2f}]"


def relative(one: dict[str, Any], side: str, size: str) -> dict[str, Any] | None:
    """Returns how much faster the chosen variant is than one side, both against eager torch and measured alike, as far as their intervals allow; None where that has no such op."""
    of_side = one["sides"].get(side, {}).get("sizes", {}).get(size)
    of_chosen = (one if side == COMPILE else one["sides"].get(CHOSEN, {})).get("sizes", {}).get(size)
    if of_chosen is None or of_side is None:
        return None
    (low, high), (least, most) = of_chosen["interval"], of_side["interval"]
    return {"ratio": of_chosen["ratio"] / of_side["ratio"], "interval": [low / most, high / least]}


def summary(found: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Returns lines that say which goals were reached, and whether all were."""
    ratios = [float(one["sizes"][SIZE]["ratio"]) for one in found if one["sizes"]]
    fast = sum(ratio >= 1.0 for ratio in ratios)
    is_reached = bool(found) and fast >= SHARE * len(found)
    told = [f"- {fast} of {len(found)} ops are at least as fast as eager torch at {SIZE} (to reach: 90 %)"]
    for side in SIDES:
        against = [float(ratio["ratio"]) for one in found if (ratio := relative(one, side, SIZE)) is not None]
        if against:
            mean = math.exp(sum(map(math.log, against)) / len(against))
            is_reached = is_reached and mean >= 1.0
            told.append(f"- {side}: geometric mean of {len(against)} ops {mean:.2f}× (to reach: 1.00×)")
        reasons = [(one["op"], one["sides"].get(side, {}).get("why", LACKS)) for one in found]
        told += [f"- {side}, {op}: {why}" for op, why in reasons if why != LACKS]
    return told, is_reached


if __name__ == "__main__":
    main()
