"""Does what t2t does the published way: one Python process an op, one op after the other, nothing ahead and nothing at once.

Each process imports torch, triton and the op's variants, compares each variant with torch once a size, and times both in turns by
`triton.testing.do_bench(warmup=25, rep=100)`, ten times a size; then eager torch and torch.compile in turns. Triton compiles and autotunes when a
kernel is first called. All caches are empty. What is measured of that: the wall time, and how much of it lies inside timing (of the
protocol, and of Triton's autotuner, its compilations not counted). The rest is overhead.

    python benches/sequential.py [WORKSPACE] [--op OP]... [--runs N] [--out FILE]       the published way alone
    python benches/sequential.py [WORKSPACE] [--op OP]... --against [--out FILE]        and `t2t build` from an empty cache after it
    python benches/sequential.py [WORKSPACE] [--op OP]... --only-t2t [--out FILE]       `t2t build` alone
    python benches/sequential.py --sum FILE FILE...                                     the table of several such files: a run split by op

Needs a CUDA device, and t2t: $T2T_BIN, or `t2t` on the path. Prints a table; --out keeps all figures as JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()
SAMPLED_EVERY = 0.1
"""Seconds between two looks at the device's utilization."""


def main() -> None:
    """Runs what was asked for and prints the table."""
    arguments = parse()
    if arguments.child:
        child(json.loads(Path(arguments.child).read_text()), Path(arguments.out), arguments.runs)
        return
    if arguments.sum:
        print(table(joined([json.loads(Path(name).read_text()) for name in arguments.sum])))
        return
    workspace = Path(arguments.workspace).resolve()
    found: dict[str, Any] = {"device": device_name(), "ops": {}, "t2t": None}
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.only_t2t:
            for declared in declarations(workspace, arguments.op):
                name = declared["op"]["name"]
                found["ops"][name] = one_op(declared, workspace, Path(folder), arguments)
                print(f"{name}: {found['ops'][name]['wall_s']:.1f} s", file=sys.stderr, flush=True)
        if arguments.against or arguments.only_t2t:
            found["t2t"] = by_t2t(workspace, arguments.op, Path(folder), arguments.keep)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", nargs="?", default=".", help="the folder with ops.yaml")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--runs", type=int, default=None, help="runs a size, in place of those that ops.yaml declares")
    parser.add_argument("--out", help="where the figures are kept, as JSON")
    parser.add_argument("--against", action="store_true", help="run `t2t build` from an empty cache afterwards")
    parser.add_argument("--only-t2t", action="store_true", help="run `t2t build` from an empty cache alone")
    parser.add_argument("--keep", help="keep the workspace that t2t built, with its trace, in this folder")
    parser.add_argument("--sum", nargs="+", help="sum up figures that --out kept")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def t2t() -> str:
    """Returns the t2t binary."""
    found = os.environ.get("T2T_BIN") or shutil.which("t2t")
    if not found:
        sys.exit("error: no t2t was found\nhint: name the binary in T2T_BIN, or put it on the path")
    return found


def declarations(workspace: Path, ops: list[str]) -> list[dict[str, Any]]:
    """Returns the ops of the workspace, nothing left to default."""
    command = [t2t(), "--device", "cuda", "graph", "--format", "ops", *ops]
    ran = subprocess.run(command, cwd=workspace, check=False, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr)
    return list(json.loads(ran.stdout))


def device_name() -> str:
    """Returns the model of the first device, or of none."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        lines = []
    return lines[0] if lines else "no device"


def one_op(declared: dict[str, Any], workspace: Path, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs one op in a process of its own, with empty caches, and returns its figures."""
    home = folder / declared["op"]["name"]
    home.mkdir()
    (home / "op.json").write_text(json.dumps(declared))
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": str(home / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "CUDA_CACHE_PATH": str(home / "cuda"),
        "PYTHONPATH": os.pathsep.join([str(workspace), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, __file__, "--child", str(home / "op.json"), "--out", str(home / "out.json")]
    command += [] if arguments.runs is None else ["--runs", str(arguments.runs)]
    with Utilization() as busy:
        begun = time.perf_counter()
        ended = subprocess.run(command, cwd=workspace, env=environment, check=False)
        wall = time.perf_counter() - begun
    if ended.returncode:
        sys.exit(f"error: the process of `{declared['op']['name']}` ended with {ended.returncode}")
    figures = json.loads((home / "out.json").read_text())
    return {**figures, "wall_s": wall, "utilization": busy.facts()}


class Spent:
    """Seconds inside `do_bench`: the protocol's, and the autotuner's, the first call of each not counted, which may compile."""

    def __init__(self) -> None:
        from triton import testing
        from triton.runtime import autotuner

        self.protocol = self.autotune = 0.0
        self.is_tuning = False
        inner, run = testing.do_bench, autotuner.Autotuner.run

        def do_bench(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
            fn()
            begun = time.perf_counter()
            try:
                return inner(fn, *args, **kwargs)
            finally:
                spent = time.perf_counter() - begun
                if self.is_tuning:
                    self.autotune += spent
                else:
                    self.protocol += spent

        def tuned(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            before, self.is_tuning = self.is_tuning, True
            try:
                return run(tuner, *args, **kwargs)
            finally:
                self.is_tuning = before

        testing.do_bench, autotuner.Autotuner.run = do_bench, tuned


def child(declared: dict[str, Any], out: Path, runs: int | None) -> None:
    """Checks and measures one op in this process, and writes the figures."""
    import torch
    from triton import testing

    spent, op = Spent(), declared["op"]
    protocol = declared["protocol"] | ({} if runs is None else {"runs": runs})
    reference = function_of(op["torch"])
    wrappers = {one["name"]: wrapper_of(one) for one in declared["variants"]}
    dtype = getattr(torch, op["dtypes"][0])
    checks: dict[str, dict[str, bool]] = {}
    figures: dict[str, dict[str, Any]] = {}

    def mean(call: Callable[[], Any]) -> float:
        return float(testing.do_bench(call, warmup=protocol["warmup_ms"], rep=protocol["rep_ms"]))

    def in_turns(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
        rows = [{name: mean(call) for name, call in calls.items()} for _ in range(protocol["runs"])]
        return {name: [row[name] for row in rows] for name in calls}

    cases = list(cases_of(op, dtype))
    for name, wrapper in wrappers.items():
        checks[name], figures[name] = {}, {}
        for size, inputs, kwargs in cases:
            calls = {"variant": bound(wrapper, inputs, kwargs), "torch": bound(reference, inputs, kwargs)}
            checks[name][size] = torch.allclose(calls["variant"](), calls["torch"](), atol=1e-5, rtol=1e-5)
            figures[name][size] = in_turns(calls)
    figures["torch.compile"] = {}
    for size, inputs, kwargs in cases if "torch.compile" in declared["baselines"] else []:
        torch._dynamo.reset()
        compiled = torch.compile(reference, dynamic=False)
        calls = {"torch.compile": bound(compiled, inputs, kwargs), "torch": bound(reference, inputs, kwargs)}
        figures["torch.compile"][size] = in_turns(calls)
    found = {
        "protocol_s": spent.protocol,
        "autotune_s": spent.autotune,
        "inside_s": time.perf_counter() - STARTED,
        "allclose": checks,
        "figures": figures,
    }
    out.write_text(json.dumps(found))


def bound(function: Callable[..., Any], inputs: dict[str, Any], kwargs: dict[str, Any]) -> Callable[[], Any]:
    """Returns a call of `function` with the arguments by their names."""
    everything = {**inputs, **kwargs}
    return lambda: function(**everything)


def function_of(name: str) -> Callable[..., Any]:
    """Returns what a dotted name below torch stands for."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def wrapper_of(variant: dict[str, Any]) -> Callable[..., Any]:
    """Returns the wrapper of a variant, its file imported by the name that it has in the workspace."""
    module = importlib.import_module(".".join(Path(variant["file"]).with_suffix("").parts))
    return getattr(module, variant["entry"])  # type: ignore[no-any-return]


def cases_of(op: dict[str, Any], dtype: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yields size, inputs and keyword arguments of each size, the inputs random as declared."""
    import torch

    torch.manual_seed(0)
    for size, binding in op["sizes"].items():

        def value(told: Any, binding: dict[str, int] = binding) -> Any:
            if isinstance(told, list):
                return [value(one) for one in told]
            return binding.get(told, told) if isinstance(told, str) else told

        inputs = {}
        for given in op["inputs"]:
            kind = getattr(torch, given["dtype"]) if given["dtype"] else dtype
            inputs[given["name"]] = random(torch, value(given["shape"]), kind, given["init"], value)
        yield size, inputs, {name: value(told) for name, told in op["kwargs"].items()}


def random(torch: Any, shape: list[int], dtype: Any, init: dict[str, Any], value: Callable[[Any], Any]) -> Any:
    """Returns a tensor on the device, filled as `init` says."""
    if init["kind"] == "randint":
        return torch.randint(value(init["low"]), value(init["high"]), shape, device="cuda", dtype=dtype)
    if init["kind"] in ("constant", "ones"):
        return torch.full(shape, value(init.get("value", 1)), device="cuda", dtype=dtype)
    made = torch.empty(shape, device="cuda", dtype=torch.float32)
    if init["kind"] == "uniform":
        return made.uniform_(value(init["low"]), value(init["high"])).to(dtype)
    return made.normal_(value(init["mean"]), value(init["std"])).to(dtype)


def by_t2t(workspace: Path, ops: list[str], folder: Path, keep: str | None) -> dict[str, Any]:
    """Runs `t2t build` on a copy of the workspace without results, and returns its figures."""
    home = Path(keep) if keep else folder / "t2t"
    home.mkdir(parents=True, exist_ok=True)
    for name in ("ops.yaml", "kernels", "assets"):
        source = workspace / name
        if source.is_dir():
            shutil.copytree(
                source, home / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("results", "__pycache__")
            )
        elif source.exists():
            shutil.copy2(source, home / name)
    shutil.rmtree(home / "cache", ignore_errors=True)
    trace = home / "trace.json"
    command = [t2t(), "--device", "cuda", "build", *ops, "--trace", str(trace)]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"}
    environment.setdefault("T2T_PYTHON", sys.executable)
    with Utilization() as busy:
        begun = time.perf_counter()
        ended = subprocess.run(command, cwd=home, env=environment, check=False, capture_output=True, text=True)
        wall = time.perf_counter() - begun
    (home / "build.txt").write_text(ended.stdout + ended.stderr)
    if ended.returncode not in (0, 1):
        sys.exit(f"error: t2t ended with {ended.returncode}\n{ended.stderr[-2000:]}")
    return {"wall_s": wall, "exit": ended.returncode, "utilization": busy.facts(), **traced(trace)}


def traced(trace: Path) -> dict[str, Any]:
    """Returns what a trace says of the devices: seconds inside timing, seconds at work, and from the first to the last of it, all summed over devices."""
    told = json.loads(trace.read_text())
    events = told["traceEvents"] if isinstance(told, dict) else told
    by_device: dict[tuple[Any, Any], dict[str, list[tuple[float, float]]]] = {}
    for event in events:
        kind = event.get("args", {}).get("kind") or event.get("cat") or event.get("name")
        if event.get("ph") == "X" and kind not in ("timing", "work"):
            kind = event.get("name")
        if event.get("ph") == "X" and kind in ("timing", "work"):
            spans = by_device.setdefault((event.get("pid"), event.get("tid")), {"timing": [], "work": []})
            spans[kind].append((event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6))
    figures = {"devices": len(by_device), "timing_s": 0.0, "busy_s": 0.0, "span_s": 0.0}
    for spans in by_device.values():
        both = spans["timing"] + spans["work"]
        figures["timing_s"] += covered(spans["timing"])
        figures["busy_s"] += covered(both)
        figures["span_s"] += max(end for _, end in both) - min(begin for begin, _ in both)
    return figures


def covered(spans: list[tuple[float, float]]) -> float:
    """Returns the length of the union of `spans`."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


class Utilization:
    """The share of time in which the driver saw a kernel on the device, from the first to the last such moment: a figure that nobody here makes."""

    def __init__(self) -> None:
        self.samples: list[int] = []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def __enter__(self) -> Utilization:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.thread.join()

    def sample(self) -> None:
        """Looks at the first device until it is over."""
        look = looking()
        while look and not self.is_over.wait(SAMPLED_EVERY):
            self.samples.append(look())

    def facts(self) -> dict[str, Any]:
        """Returns the mean in percent, over all and from the first to the last busy sample."""
        busy = [number for number, sample in enumerate(self.samples) if sample > 0]
        between = self.samples[busy[0] : busy[-1] + 1] if busy else []
        mean = lambda values: sum(values) / len(values) if values else None  # noqa: E731
        return {"samples": len(self.samples), "percent": mean(self.samples), "percent_between": mean(between)}


def looking() -> Callable[[], int] | None:
    """Returns what tells the utilization of the first device in percent: NVML, else nvidia-smi; None where there is neither."""
    try:
        import pynvml

        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        return lambda: int(pynvml.nvmlDeviceGetUtilizationRates(device).gpu)
    except Exception:
        pass
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]

    def ask() -> int:
        text = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
        return int(text) if text.isdigit() else 0

    return ask


def joined(files: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the figures of several files as one; those of t2t are summed up."""
    found: dict[str, Any] = {"device": files[0]["device"], "ops": {}, "t2t": None}
    for one in files:
        found["ops"] |= one["ops"]
        if one["t2t"] and found["t2t"] is None:
            found["t2t"] = dict(one["t2t"])
        elif one["t2t"]:
            for name in ("wall_s", "timing_s", "busy_s", "span_s"):
                found["t2t"][name] += one["t2t"][name]
    return found


def table(found: dict[str, Any]) -> str:
    """Returns the figures as a table in Markdown."""
    rows = [
        (name, one["wall_s"], one["protocol_s"] + one["autotune_s"], one["utilization"])
        for name, one in found["ops"].items()
    ]
    lines = [
        f"{found['device']}; times in seconds; `timing` lies inside do_bench, the autotuner's too",
        "",
        "| who | wall | timing | overhead | timing / wall | driver's utilization |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(f"sequential, {name}", wall, timing, used) for name, wall, timing, used in rows]
    wall, timing = sum(one[1] for one in rows), sum(one[2] for one in rows)
    if rows:
        lines.append(row("sequential, all", wall, timing, None))
    ours = found["t2t"]
    if ours:
        lines.append(row("t2t build", ours["wall_s"], ours["timing_s"] / max(ours["devices"], 1), ours["utilization"]))
        share = 100 * ours["busy_s"] / ours["span_s"] if ours["span_s"] else 0.0
        lines += [
            "",
            f"device at work, first to last action: {share:.1f} % of {ours['span_s']:.1f} s ({ours['devices']} device(s))",
        ]
    if ours and rows:
        theirs, own = wall - timing, ours["wall_s"] - ours["timing_s"] / max(ours["devices"], 1)
        lines.append(f"wall: {wall / ours['wall_s']:.2f} times t2t's; overhead: {theirs / own:.2f} times t2t's")
    failed = [
        f"{op}/{name} at {size}"
        for op, one in found["ops"].items()
        for name, sizes in one["allclose"].items()
        for size, is_close in sizes.items()
        if not is_close
    ]
    if failed:
        lines.append(f"not allclose at 1e-5, measured all the same: {', '.join(failed)}")
    return "\n".join(lines)


def row(who: str, wall: float, timing: float, used: dict[str, Any] | None) -> str:
    """Returns a row of the table."""
    percent = used and used["percent_between"]
    told = "" if percent is None else f"{percent:.0f} %"
    return f"| {who} | {wall:.1f} | {timing:.1f} | {wall - timing:.1f} | {100 * timing / wall:.0f} % | {told} |"


if __name__ == "__main__":
    main()
