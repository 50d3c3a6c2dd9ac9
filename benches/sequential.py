"""Does what t2t does the published way: one Python process an op, one op after the other, nothing ahead and nothing at once.

Each process imports torch, triton and the op's variants, compares each variant with torch once a size, and times both in turns by
`triton.testing.do_bench(warmup=25, rep=100)`, ten times a size; then eager torch and torch.compile in turns. Triton compiles and autotunes when a
kernel is first called. All caches are empty. What is measured of that: the wall time, and how much of it lies inside timing (of the
protocol, and of Triton's autotuner, its compilations not counted). The rest is overhead; it is told apart by what the process was doing.

What is compared with torch is by default what the published way compares: the op's sizes, in its first dtype, at 1e-5. With `--cases all` it is
what t2t judges, on the same inputs: declared and edge cases and the op's own, in all dtypes, with their tolerances. Then both do the same job.

    python benches/sequential.py [WORKSPACE] [--op OP]... [--runs N] [--out FILE]       the published way alone
    python benches/sequential.py [WORKSPACE] [--op OP]... --against [--out FILE]        and `t2t build` from an empty cache after it
    python benches/sequential.py [WORKSPACE] [--op OP]... --only-t2t [--out FILE]       `t2t build` alone
    python benches/sequential.py --sum FILE FILE...                                     the table of several such files: a run split by op

Needs a CUDA device, and t2t: $T2T_BIN, or `t2t` on the path. Says what each op took as soon as it is done, and then prints a table; --out keeps all
figures as JSON, written anew after each op: a run that is killed leaves those of the ops that it finished.
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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()
HERE = Path(__file__).resolve().parent
HARNESS = os.environ.get("T2T_HARNESS") or str(HERE.parent / "python")
DEVICE = "cuda"
COMPARED = {
    "published": "compared with torch are the sizes alone",
    "all": "compared with torch are all cases that t2t judges",
}
SAMPLED_EVERY = 0.1
"""Seconds between two looks at the device's utilization."""


def main() -> None:
    """Runs what was asked for and prints the table."""
    arguments = parse()
    if arguments.child:
        child(json.loads(Path(arguments.child).read_text()), Path(arguments.workspace), arguments)
        return
    if arguments.sum:
        print(table(joined([json.loads(Path(name).read_text()) for name in arguments.sum])))
        return
    workspace = Path(arguments.workspace).resolve()
    found: dict[str, Any] = {"device": device_name(), "cases": arguments.cases, "ops": {}, "t2t": None}
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.only_t2t:
            for declared in declarations(workspace, arguments.op):
                name = declared["op"]["name"]
                found["ops"][name] = one_op(declared, workspace, Path(folder), arguments)
                print(told(name, found["ops"][name]), file=sys.stderr, flush=True)
                keep(found, arguments.out)
        if arguments.against or arguments.only_t2t:
            found["t2t"] = by_t2t(workspace, arguments.op, Path(folder), arguments.keep)
    keep(found, arguments.out)
    print(table(found))


def keep(found: dict[str, Any], out: str | None) -> None:
    """Writes the figures so far, if they are to be kept; whoever is killed here leaves the file whole."""
    if out:
        beside = Path(f"{out}.new")
        beside.write_text(json.dumps(found, indent=1) + "\n")
        beside.replace(out)


def told(name: str, one: dict[str, Any]) -> str:
    """Returns what an op took, on one line."""
    parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in parts_of(one).items())
    return f"{name}: {one['wall_s']:.1f} s ({parts})"


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", nargs="?", default=".", help="the folder with ops.yaml")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--runs", type=int, default=None, help="runs a size, in place of those that ops.yaml declares")
    parser.add_argument(
        "--cases",
        choices=("published", "all"),
        default="published",
        help="what is compared with torch: the sizes (published), or all that t2t judges",
    )
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
    }
    command = [sys.executable, __file__, str(workspace), "--child", str(home / "op.json"), "--cases", arguments.cases]
    command += ["--out", str(home / "out.json")]
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
    """Where the seconds of this process went: inside `do_bench` for the protocol and for the autotuner, the first call of each not counted, which
    may compile; inside Triton's compiler, for the autotuner and else; and inside what `part` names, less what of that is one of the others."""

    def __init__(self) -> None:
        import triton.compiler
        from triton import testing
        from triton.runtime import autotuner

        self.seconds: dict[str, float] = {}
        self.is_tuning = False
        measure, run, compile_ = testing.do_bench, autotuner.Autotuner.run, triton.compiler.compile

        def do_bench(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
            fn()
            with self.part("autotune" if self.is_tuning else "protocol"):
                return measure(fn, *args, **kwargs)

        def tuned(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            before, self.is_tuning = self.is_tuning, True
            try:
                return run(tuner, *args, **kwargs)
            finally:
                self.is_tuning = before

        def compiled(*args: Any, **kwargs: Any) -> Any:
            with self.part("autotune's compilations" if self.is_tuning else "compilations"):
                return compile_(*args, **kwargs)

        testing.do_bench, autotuner.Autotuner.run, triton.compiler.compile = do_bench, tuned, compiled

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts what runs inside as `name`, but for what is counted as another part meanwhile."""
        begun, before = time.perf_counter(), sum(self.seconds.values())
        try:
            yield
        finally:
            inner = sum(self.seconds.values()) - before
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun - inner


def child(declared: dict[str, Any], workspace: Path, arguments: argparse.Namespace) -> None:
    """Checks and measures one op in this process, and writes the figures."""
    # The workspace's modules come first, and this file's folder is no place for any.
    sys.path[:] = [str(workspace), *(place for place in sys.path if Path(place).resolve() != HERE), HARNESS]
    import torch
    from triton import testing

    op, spent = declared["op"], Spent()
    protocol = declared["protocol"] | ({} if arguments.runs is None else {"runs": arguments.runs})
    reference = function_of(op["torch"])
    wrappers = {one["name"]: wrapper_of(one) for one in declared["variants"]}
    spent.seconds["import"] = time.perf_counter() - STARTED
    checks: dict[str, dict[str, bool]] = {}
    figures: dict[str, dict[str, Any]] = {}

    def mean(call: Callable[[], Any]) -> float:
        return float(testing.do_bench(call, warmup=protocol["warmup_ms"], rep=protocol["rep_ms"]))

    def in_turns(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
        rows = [{name: mean(call) for name, call in calls.items()} for _ in range(protocol["runs"])]
        return {name: [row[name] for row in rows] for name in calls}

    def calls_of(name: str, function: Callable[..., Any], *given: dict[str, Any]) -> dict[str, Callable[[], Any]]:
        return {name: bound(function, *given), "torch": bound(reference, *given)}

    sizes = list(sizes_of(op, getattr(torch, op["dtypes"][0])))
    for name, wrapper in wrappers.items():
        checks[name], figures[name] = {}, {}
        if arguments.cases == "all":
            with spent.part("check"):
                checks[name] = judged(op, wrapper, workspace, arguments.out)
        for size, inputs, kwargs in sizes:
            calls = calls_of("variant", wrapper, inputs, kwargs)
            if arguments.cases == "published":
                with spent.part("check"):
                    checks[name][size] = torch.allclose(calls["variant"](), calls["torch"](), atol=1e-5, rtol=1e-5)
            figures[name][size] = in_turns(calls)
    figures["torch.compile"] = {}
    for size, inputs, kwargs in sizes if "torch.compile" in declared["baselines"] else []:
        with spent.part("torch.compile"):
            torch._dynamo.reset()
            calls = calls_of("torch.compile", torch.compile(reference, dynamic=False), inputs, kwargs)
            calls["torch.compile"]()
        figures["torch.compile"][size] = in_turns(calls)
    found = {
        "protocol_s": spent.seconds.pop("protocol", 0.0),
        "autotune_s": spent.seconds.pop("autotune", 0.0),
        "parts_s": spent.seconds,
        "inside_s": time.perf_counter() - STARTED,
        "allclose": checks,
        "figures": figures,
    }
    Path(arguments.out).write_text(json.dumps(found))


def judged(op: Any, wrapper: Callable[..., Any], workspace: Path, out: str) -> dict[str, bool]:
    """Returns by case whether the wrapper returns what torch does, for all cases that t2t judges but those that torch refuses."""
    from triton.runtime import jit

    from t2t_harness.cases import bindings, block_edges, cases, inputs
    from t2t_harness.phases import prepare
    from t2t_harness.triton import launching

    scratch, finders = Path(out).parent, list(sys.meta_path)
    (scratch / "inputs").mkdir(exist_ok=True)
    hooks = prepare.hook_cases(op, str(workspace), scratch) if op["cases"] else []
    # Reading cases.py forbids the import of variants.
    sys.meta_path[:] = finders
    constants: dict[str, int] = {}
    limit, run = bindings.limit_of("cuda"), jit.JITFunction.run

    def noted(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        known = {**dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
        constexprs = {one.name: known[one.name] for one in kernel.params if one.is_constexpr and one.name in known}
        for name, value in launching.constants_of(constexprs).items():
            constants.setdefault(name, value)
        return run(kernel, *args, grid=grid, warmup=warmup, **kwargs)

    found: dict[str, bool] = {}
    listed = list(cases.unique([*cases.declared_cases(op), *cases.fixed_edges(op, limit), *hooks]))
    jit.JITFunction.run = noted
    for case in listed:
        given = inputs.inputs_of(op, case, DEVICE, scratch)
        is_close = agrees(op, case, wrapper, given)
        if is_close is not None:
            found[case.name] = is_close
        if jit.JITFunction.run is noted and constants:
            # The blocks of the first launch decide the edge cases around them.
            jit.JITFunction.run = run
            listed += [one for one in block_edges.length_edges(op, constants, limit) if one not in listed]
    jit.JITFunction.run = run
    return found


def agrees(op: Any, case: Any, wrapper: Callable[..., Any], given: dict[str, Any]) -> bool | None:
    """Returns whether the wrapper's results are allclose to torch's, NaN where torch has NaN; None where torch refuses the case."""
    import torch

    from t2t_harness.cases import called_with
    from t2t_harness.judging import oracle
    from t2t_harness.op import operation

    def several(results: Any) -> list[Any]:
        return list(results) if isinstance(results, (tuple, list)) else [results]

    try:
        theirs = oracle.copies(given) if op["mutates"] else given
        torch_op = operation.ready(op, case.binding, case.dtype, "cuda")
        right = several(operation.call(torch_op, op, theirs, called_with.kwargs_of(op, case)))
    except Exception:
        return None
    args, kwargs = called_with.call_arguments(wrapper, op, case, given)
    try:
        left = several(wrapper(*args, **kwargs))
    except Exception as error:
        print(f"{op['name']}, {case.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return False
    atol, rtol = op["tolerances"].get(case.dtype, (1e-5, 1e-5))
    return len(left) == len(right) and all(
        own.shape == wanted.shape
        and own.dtype == wanted.dtype
        and torch.allclose(own, wanted, atol=atol, rtol=rtol, equal_nan=True)
        for own, wanted in zip(left, right, strict=True)
    )


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


def sizes_of(op: dict[str, Any], dtype: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
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
        return torch.randint(value(init["low"]), value(init["high"]), shape, device=DEVICE, dtype=dtype)
    if init["kind"] in ("constant", "ones"):
        return torch.full(shape, value(init.get("value", 1)), device=DEVICE, dtype=dtype)
    made = torch.empty(shape, device=DEVICE, dtype=torch.float32)
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
    # No bytecode that an earlier build made.
    environment["T2T_BYTECODE"] = str(folder / "bytecode")
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
        """Looks at the first visible device until it is over."""
        look = looking()
        while look and not self.is_over.wait(SAMPLED_EVERY):
            self.samples.append(look())

    def facts(self) -> dict[str, Any]:
        """Returns the mean in percent, over all and from the first to the last busy sample."""
        busy = [number for number, sample in enumerate(self.samples) if sample > 0]
        between = self.samples[busy[0] : busy[-1] + 1] if busy else []
        return {"samples": len(self.samples), "percent": mean(self.samples), "percent_between": mean(between)}


def mean(values: list[int]) -> float | None:
    """Returns the mean of `values`, None where there are none."""
    return sum(values) / len(values) if values else None


def looking() -> Callable[[], int] | None:
    """Returns what tells the utilization of the first visible device in percent: NVML, else nvidia-smi; None where there is neither."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    try:
        import pynvml

        pynvml.nvmlInit()
        by_number, by_uuid = pynvml.nvmlDeviceGetHandleByIndex, pynvml.nvmlDeviceGetHandleByUUID
        device = by_number(int(first)) if first.isdigit() else by_uuid(first.encode())
        return lambda: int(pynvml.nvmlDeviceGetUtilizationRates(device).gpu)
    except Exception:
        pass
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "-i", first, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]

    def ask() -> int:
        text = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
        return int(text) if text.isdigit() else 0

    return ask


def joined(files: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the figures of several files as one; those of t2t are summed up."""
    found: dict[str, Any] = {"device": files[0]["device"], "cases": files[0].get("cases"), "ops": {}, "t2t": None}
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
        f"{found['device']}; times in seconds; `timing` lies inside do_bench, the autotuner's too; {COMPARED[found.get('cases') or 'published']}",
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
    if any("parts_s" in one for one in found["ops"].values()):
        lines += ["", *parts_table(found["ops"])]
    failed = [
        f"{op}/{name} at {size}"
        for op, one in found["ops"].items()
        for name, sizes in one["allclose"].items()
        for size, is_close in sizes.items()
        if not is_close
    ]
    if failed:
        lines.append(f"not allclose, measured all the same: {', '.join(failed)}")
    return "\n".join(lines)


PARTS = ("import", "check", "compilations", "autotune's compilations", "torch.compile", "autotune", "protocol", "rest")
"""What a process of the published way does, in the order of the table."""


def parts_of(one: dict[str, Any]) -> dict[str, float]:
    """Returns the seconds of each of an op's PARTS."""
    named = {"autotune": one["autotune_s"], "protocol": one["protocol_s"], **one.get("parts_s", {})}
    named["rest"] = one["wall_s"] - sum(named.values())
    return {part: named.get(part, 0.0) for part in PARTS}


def parts_table(ops: dict[str, dict[str, Any]]) -> list[str]:
    """Returns the lines of a table that says what the ops' wall time went into."""
    lines = [f"| op | cases | {' | '.join(PARTS)} |", "| --- | ---: |" + " ---: |" * len(PARTS)]
    for name, one in ops.items():
        count = sum(map(len, one["allclose"].values()))
        lines.append(f"| {name} | {count} | {' | '.join(f'{value:.1f}' for value in parts_of(one).values())} |")
    return lines


def row(who: str, wall: float, timing: float, used: dict[str, Any] | None) -> str:
    """Returns a row of the table."""
    percent = used and used["percent_between"]
    told = "" if percent is None else f"{percent:.0f} %"
    return f"| {who} | {wall:.1f} | {timing:.1f} | {wall - timing:.1f} | {100 * timing / wall:.0f} % | {told} |"


if __name__ == "__main__":
    main()
