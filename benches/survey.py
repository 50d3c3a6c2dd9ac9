"""Sets every kernel of the embedded generator beside eager torch on one CUDA device, by the time of the device alone: which families are fast, and which are not.

It makes a workspace by `t2t add` and writes the kernels. Processes beside each other first call each kernel once, so that it is compiled; then one process calls eager torch and the
variants of an op in turns, after a flush of the cache, on inputs of one measured size. Nothing is judged but that a result is near torch's: what is right, `t2t build` says, and what is
chosen, too. `benches/catalogue.py` measures few ops in full.

    python benches/survey.py FOLDER [--op NAME]... [--dtype NAME] [--size NAME] [--out FILE.json]

Needs t2t ($T2T_BIN, or `t2t` on the path), torch, Triton and a CUDA device. All ops take some 80 s of an H200 with 16 cores. Prints a table in Markdown, the slowest op first, and how many ops
are at least as fast as eager torch. Exit code 1 where those are less than 90 %.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import catalogue

TURNS, CALLS = 4, 5
"""How many turns each side takes, and how many calls are timed in each."""

STUDENT = 3.182
"""Student's t of a 95 % interval of as many turns."""

SLOW_S = 0.05
"""A call that takes longer is timed once a turn."""

JOBS = 12
"""The most processes that compile at once: each has a context on the device."""


def main() -> None:
    """Makes the workspace, compiles, measures, prints, and ends with the exit code."""
    arguments = parse()
    folder = Path(arguments.folder).resolve()
    if arguments.part:
        child(folder, arguments)
        return
    if not (folder / "ops.yaml").exists():
        made(folder, arguments.op, arguments.dtype)
    ops = [str(one["op"]["name"]) for one in declared(folder, arguments.op)]
    compile_all(folder, ops, arguments.size)
    found = list(asked(folder, ops, arguments.size))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(found, arguments.size)))
    fast, measured = told(found)
    print(f"\n{fast} of {measured} ops are at least as fast as eager torch at {arguments.size} (to reach: 90 %)")
    sys.exit(0 if measured and fast >= catalogue.SHARE * measured else 1)


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the workspace, which is made where it is not there")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--dtype", help="the one dtype of a workspace that is made")
    parser.add_argument("--size", default=catalogue.SIZE, help="the measured size (default: large)")
    parser.add_argument("--out", help="where the figures are written as JSON")
    parser.add_argument("--part", choices=("compile", "measure"), help=argparse.SUPPRESS)
    return parser.parse_args()


def made(folder: Path, ops: list[str], dtype: str | None) -> None:
    """Makes a workspace of the ops, or of all that the generator knows, with their kernels."""
    folder.mkdir(parents=True, exist_ok=True)
    catalogue.t2t(folder, "add", "--write", *(ops or catalogue.every(folder)))
    if dtype is not None:
        catalogue.narrow(folder, dtype)


def declared(folder: Path, ops: list[str]) -> list[Any]:
    """Returns the ops of the workspace as the harness reads them."""
    found: list[Any] = json.loads(catalogue.t2t(folder, "graph", "--format", "ops", *ops))
    return found


def command(folder: Path, part: str, ops: list[str], size: str) -> list[str]:
    """Returns the command line of a child of this program."""
    named = [word for op in ops for word in ("--op", op)]
    return [sys.executable, str(Path(__file__)), str(folder), "--part", part, "--size", size, *named]


def compile_all(folder: Path, ops: list[str], size: str) -> None:
    """Has processes beside each other call each kernel once. What fails there is told of when it is measured."""
    jobs = max(min(JOBS, (os.cpu_count() or 1) - 1, len(ops)), 1)
    processes = [
        subprocess.Popen(command(folder, "compile", ops[number::jobs], size), stderr=subprocess.DEVNULL)
        for number in range(jobs)
    ]
    for process in processes:
        process.wait()


def asked(folder: Path, ops: list[str], size: str) -> Iterator[dict[str, Any]]:
    """Yields what a process of its own measures, op by op. Where it dies over an op, another one goes on behind it."""
    rest = list(ops)
    while rest:
        ended: list[str] = []
        for one in catalogue.heard(command(folder, "measure", rest, size), dict(os.environ), ended):
            rest.remove(one["op"])
            yield one
        if rest:
            yield {"op": rest.pop(0), "why": ended[0]}


def child(folder: Path, arguments: argparse.Namespace) -> None:
    """Compiles or measures the named ops in this process; tells a line of JSON for each that it measured."""
    sys.path.insert(0, catalogue.HARNESS)
    import torch

    for one in declared(folder, arguments.op):
        op = one["op"]
        try:
            with torch.no_grad():
                figures = measured(folder, op, one["variants"], arguments.size, arguments.part)
        except Exception as error:
            figures = {"why": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            with contextlib.suppress(RuntimeError):
                torch.cuda.empty_cache()
        if arguments.part == "measure":
            print(catalogue.TOLD + json.dumps({"op": op["name"], **figures}), flush=True)
            if "why" in figures:
                # A broken device ends the process.
                torch.cuda.synchronize()


def measured(folder: Path, op: Any, variants: Any, size: str, part: str) -> dict[str, Any]:
    """Returns eager torch's median time in milliseconds, and by variant the ratio of that to its own and the 95 % interval, or `why` there is none. Compiling alone returns nothing."""
    from t2t_harness.cases import called_with, cases, declared_inputs
    from t2t_harness.measuring import timing
    from t2t_harness.op import operation

    timing.set_precision(op)
    case = next((one for one in cases.bench_cases(op) if one.name.startswith(size)), None)
    if case is None:
        return {"why": f"it has no size `{size}`"}
    given, kwargs = declared_inputs.make_inputs(op, case, "cuda"), called_with.kwargs_of(op, case)
    function = operation.ready(op, case.binding, case.dtype, "cuda")
    eager = functools.partial(operation.call, function, op, given, kwargs)
    right = catalogue.first_of(eager())
    sides, reasons = {}, {}
    for variant in variants:
        name = variant["name"]
        try:
            call = functools.partial(operation.call, wrapper(folder, variant), op, given, kwargs)
            result = catalogue.first_of(call())
            if part == "measure" and not is_close(result, right):
                reasons[name] = "its result is not torch's"
                continue
            sides[name] = call
        except Exception as error:
            reasons[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    if part == "compile":
        return {}
    of_eager, *others = in_turns([eager, *sides.values()])
    figures: dict[str, Any] = {name: {"why": why} for name, why in reasons.items()}
    for name, of_other in zip(sides, others, strict=True):
        logs = [math.log(one / another) for one, another in zip(of_eager, of_other, strict=True)]
        half, middle = STUDENT * statistics.stdev(logs) / math.sqrt(TURNS), statistics.fmean(logs)
        interval = [math.exp(middle - half), math.exp(middle + half)]
        figures[name] = {"ratio": math.exp(middle), "interval": interval, "ms": statistics.median(of_other)}
    return {"eager_ms": statistics.median(of_eager), "variants": figures}


def wrapper(folder: Path, variant: Any) -> Any:
    """Returns the wrapper of a variant."""
    path = folder / variant["file"]
    spec: Any = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, variant["entry"])


def is_close(result: Any, right: Any) -> bool:
    """Tells whether two results are of one shape, and near each other where both are finite; of truth values and integers, whether nearly all are equal."""
    import torch

    if result.shape != right.shape:
        return False
    if not right.dtype.is_floating_point:
        return bool((result == right).double().mean() >= 1 - catalogue.CLOSE)
    finite = torch.isfinite(result) & torch.isfinite(right)
    one, other = result[finite].double(), right[finite].double()
    if one.numel() == 0:
        return True
    return bool((one - other).abs().max() <= catalogue.CLOSE * other.abs().max().clamp(min=1e-6))


def in_turns(sides: list[catalogue.Call]) -> list[list[float]]:
    """Returns the median times of the calls of each side, a turn each, in milliseconds of the device."""
    import torch

    flush = torch.empty(catalogue.FLUSHED, dtype=torch.uint8, device="cuda")
    medians: list[list[float]] = [[] for _ in sides]
    calls = [CALLS] * len(sides)
    for turn in range(TURNS + 1):
        for number, call in enumerate(sides):
            median = catalogue.timed(call, calls[number], flush)
            # The first turn warms, and says how many calls the others have.
            if turn > 0:
                medians[number].append(median)
            elif median > SLOW_S * 1e3:
                calls[number] = 1
    return medians


def best(one: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Returns the fastest variant of an op and its figures, None where none was measured."""
    figures = {name: figure for name, figure in one.get("variants", {}).items() if "ratio" in figure}
    return max(figures.items(), key=lambda item: item[1]["ratio"]) if figures else None


def told(found: list[dict[str, Any]]) -> tuple[int, int]:
    """Returns how many ops are at least as fast as eager torch, as far as the interval can tell, and how many there are."""
    fastest = [best(one) for one in found]
    return sum(one is not None and one[1]["interval"][1] >= 1.0 for one in fastest), len(found)


def table(found: list[dict[str, Any]], size: str) -> list[str]:
    """Returns the table of a size in Markdown, the slowest op first."""
    rows = [f"| {size} | eager torch, µs | fastest | eager / fastest | each |", "| --- | --- | --- | --- | --- |"]

    def order(one: dict[str, Any]) -> float:
        fastest = best(one)
        return 0.0 if fastest is None else float(fastest[1]["ratio"])

    for one in sorted(found, key=order):
        fastest = best(one)
        each = ", ".join(
            f"{figure['ratio']:.2f}" if "ratio" in figure else f"{name}: {figure['why']}"
            for name, figure in sorted(one.get("variants", {}).items())
        )
        if fastest is None:
            rows.append(f"| {one['op']} | | | | {one.get('why', each)} |")
            continue
        name, figure = fastest
        rows.append(f"| {one['op']} | {one['eager_ms'] * 1e3:.1f} | {name} | {catalogue.cell(figure)} | {each} |")
    return rows


if __name__ == "__main__":
    main()
