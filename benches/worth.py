"""Fills the table of what the kernels are worth on one CUDA device: v4_optimized, and the chosen variant where it is another, against eager torch.

For each op: its declared sizes, and for the ops of TABLE further sizes and dtypes, with what is to be reached there. Each is compiled ahead in
parallel processes, tuned, and timed in turns with torch by the harness's own bench (docs/reference/measuring.md): medians and means of the runs, their ratio
with its 95 % bootstrap interval, percent of a copy of 1 GiB measured in this run, TFLOP/s, and the error against float64 beside torch's own.

    python benches/worth.py [WORKSPACE] [--op OP]... [--variant OP=NAME]... [--runs N] [--out FILE]
    python benches/worth.py --compile DIR --target nvidia-h200 [WORKSPACE] ...     compiles alone, on any machine, into DIR
    python benches/worth.py --compiled DIR [WORKSPACE] ...                         takes what was compiled there

Needs t2t ($T2T_BIN, or `t2t` on the path), torch and Triton. Prints a table in Markdown; --out writes it, or with a name that ends in .json the figures.
Exit code 1 where a goal that is to be reached was not.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HARNESS = os.environ.get("T2T_HARNESS") or str(ROOT / "python")
ROWS = {"wide": {"M": 16384, "N": 8192}}
HALVES = ("float16", "bfloat16")
TABLE: dict[str, dict[str, Any]] = {
    "add": {"more": ROWS, "ratio": {"large": 1.0, "wide": 1.0}, "percent": {"large": 90, "wide": 90}},
    "gelu": {"more": ROWS, "ratio": {"large": 1.02}, "percent": {"large": 88}},
    "softmax": {"more": ROWS, "ratio": {"large": 1.65, "wide": 2.1}},
    "layernorm": {"more": ROWS, "ratio": {"large": 1.5, "wide": 1.6}},
    "matmul": {"dtypes": HALVES, "ratio": {"large": 1.3}, "half_ratio": {"large": 1.0}, "no_worse": True},
    "mha": {"dtypes": HALVES[:1], "ratio": {"large": 2.0}, "half_ratio": {"large": 1.0}, "allclose": True},
}
"""Op → further sizes and dtypes, and what is to be reached by size: the ratio to torch (`half_ratio` in 16 bits), the percent of the copy, and
whether, in float32, the error may be no larger than torch's, and whether the result must be allclose to torch's."""

SMALL_GOAL = 1.0
"""What the geometric mean over the ops is to reach at each smaller size."""

GIB = 1 << 30


@dataclass(frozen=True)
class Subject:
    """One variant of one op in one dtype."""

    declared: Mapping[str, Any]
    variant: Mapping[str, Any]
    dtype: str

    @property
    def op(self) -> str:
        """Returns the op's name."""
        return str(self.declared["op"]["name"])

    @property
    def name(self) -> str:
        """Returns what it is called in file names."""
        return f"{self.op}-{self.variant['name']}-{self.dtype}"

    def declaration(self, sizes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the declaration of the measured sizes, or of some of them."""
        return {**self.declared["op"], "dtypes": [self.dtype], "check_sizes": {}, "sizes": sizes or self.sizes()}

    def sizes(self) -> dict[str, Any]:
        """Returns the declared sizes and those of the table, of float32 alone, from the smallest on."""
        more = TABLE.get(self.op, {}).get("more", {}) if self.dtype == "float32" else {}
        sizes = {**self.declared["op"]["sizes"], **more}
        return dict(sorted(sizes.items(), key=lambda one: math.prod(one[1].values())))


def main() -> None:
    """Compiles, measures, prints, and ends with the exit code."""
    arguments = parse()
    begun, workspace = time.perf_counter(), Path(arguments.workspace).resolve()
    target = device_row(arguments.target)
    subjects = list(subjects_of(workspace, arguments, target["id"]))
    with tempfile.TemporaryDirectory() as folder:
        work = Work(workspace, Path(folder), target)
        compiled = Path(arguments.compile or arguments.compiled or Path(folder) / "compiled")
        if not arguments.compiled:
            compile_all(work, subjects, compiled)
            say(begun, "compiled")
        if arguments.compile:
            return
        found: dict[str, Any] = {"device": target["id"], "runs": arguments.runs, "rows": []}
        found["copy_gb_s"] = work.ask(copy_rate, {"scratch": work.scratch("copy")})
        for subject in subjects:
            found["rows"] += measured(work, subject, compiled / f"{subject.name}", arguments.runs, found["copy_gb_s"])
            say(begun, subject.name)
    text = table(found)
    if arguments.out:
        is_json = arguments.out.endswith(".json")
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n" if is_json else text + "\n")
    print(text)
    sys.exit(0 if all(row["reached"] is not False for row in found["rows"]) else 1)


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", nargs="?", default=".", help="the folder with ops.yaml")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--variant", action="append", default=[], metavar="OP=NAME", help="this variant of an op too")
    parser.add_argument("--runs", type=int, default=10, help="runs of each size")
    parser.add_argument("--out", help="where the table, or as .json the figures, are written")
    parser.add_argument("--target", help="the device to compile for, as in nvidia-h200 (default: the one that is here)")
    parser.add_argument("--compile", metavar="DIR", help="compile alone, into this folder")
    parser.add_argument("--compiled", metavar="DIR", help="take what was compiled into this folder")
    return parser.parse_args()


def say(begun: float, what: str) -> None:
    """Says on standard error what is done, and when."""
    print(f"{time.perf_counter() - begun:6.1f} s  {what}", file=sys.stderr, flush=True)


def device_row(target: str | None) -> dict[str, Any]:
    """Returns the row of the device table, with its id, that is asked for or that the first device has."""
    rows = json.loads((ROOT / "assets/devices.json").read_text())
    if target is None:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        try:
            name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]
        except (OSError, IndexError, subprocess.CalledProcessError):
            sys.exit("error: no CUDA device was found\nhint: with --compile DIR, name one by --target")
        target = next((id_ for id_, row in rows.items() if row["name"] == name), None)
    if target not in rows:
        sys.exit(f"error: the device table has no `{target}`\nhint: it has {', '.join(rows)}")
    return {**rows[target], "id": target}


def subjects_of(workspace: Path, arguments: argparse.Namespace, device: str) -> list[Subject]:
    """Returns what is measured: of each op the last declared variant, the chosen one, and those that were asked for, in each dtype."""
    binary = os.environ.get("T2T_BIN") or shutil.which("t2t")
    if not binary:
        sys.exit("error: no t2t was found\nhint: name the binary in T2T_BIN, or put it on the path")
    command = [
        binary,
        "--device",
        "auto" if shutil.which("nvidia-smi") else "cpu",
        "graph",
        "--format",
        "ops",
        *arguments.op,
    ]
    ran = subprocess.run(command, cwd=workspace, check=False, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr)
    asked = [tuple(told.split("=", 1)) for told in arguments.variant]
    found = []
    for declared in json.loads(ran.stdout):
        name = declared["op"]["name"]
        variants = {one["name"]: one for one in declared["variants"]}
        wanted = [chosen(workspace, device, name), *(variant for op, variant in asked if op == name)]
        names = dict.fromkeys([list(variants)[-1], *(one for one in wanted if one in variants)])
        dtypes = dict.fromkeys([declared["op"]["dtypes"][0], *TABLE.get(name, {}).get("dtypes", ())])
        found += [Subject(declared, variants[variant], dtype) for variant in names for dtype in dtypes]
    return found


def chosen(workspace: Path, device: str, op: str) -> str | None:
    """Returns the variant that the published results of the device chose, or None."""
    file = workspace / "assets/results" / device / "records" / f"{op}.json"
    records = json.loads(file.read_text())["records"] if file.exists() else []
    documents = (one["documents"] for one in records if one["record"]["identity"]["target"] == f"{op}:select")
    return next((told["selection"]["json"]["chosen"] for told in documents if "selection" in told), None)


class Work:
    """Children of a server that has imported torch and Triton: each calls one function, in a scratch folder of its own."""

    def __init__(self, workspace: Path, folder: Path, target: Mapping[str, Any]) -> None:
        self.workspace, self.folder, self.target = workspace, folder, target
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["torch", "triton", "torch._dynamo", "safetensors.torch"])

    def scratch(self, name: str) -> str:
        """Makes a folder and returns it."""
        made = self.folder / name
        made.mkdir(parents=True, exist_ok=True)
        return str(made)

    def request(self, subject: Subject, lane: str, scratch: str, runs: int, sizes: Any = None) -> dict[str, Any]:
        """Returns a request of the harness (docs/design/harness.md)."""
        return {
            "op": subject.declaration(sizes),
            "variant": {**subject.variant, "lanes": ["interpreter", "cuda"]},
            "root": str(self.workspace),
            "scratch": scratch,
            "lane": lane,
            "model": self.target["id"],
            "devices": [self.target],
            "targets": [self.target],
            "protocol": {**subject.declared["protocol"], "runs": runs},
            "tune": None,
            "warm": [],
        }

    def ask(self, function: str | Callable[[dict[str, Any]], Any], request: Mapping[str, Any]) -> Any:
        """Returns what a function of this file, or of the phases of the harness, returns. Raises RuntimeError where it raises."""
        receiver, sender = self.context.Pipe(duplex=False)
        process = self.context.Process(target=answer, args=(sender, function, dict(request)))
        process.start()
        sender.close()
        try:
            is_good, reply = receiver.recv()
        except EOFError:
            is_good, reply = False, "the process died"
        process.join()
        if not is_good:
            raise RuntimeError(f"{getattr(function, '__name__', function)}: {reply}")
        return reply


def answer(sender: Any, function: str | Callable[[dict[str, Any]], Any], request: dict[str, Any]) -> None:
    """Calls the function in a child and sends what it returns. The child has this file as its main module, whose functions it needs no name for."""
    # This file's folder may be on the path; the workspace's packages are found by the harness, whatever lies there.
    sys.path.insert(0, HARNESS)
    os.environ["TRITON_CACHE_DIR"] = str(Path(request["scratch"]) / "triton")
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    os.chdir(request["scratch"])
    try:
        called: Any = function
        if isinstance(function, str):
            module, _, name = function.rpartition(".")
            called = getattr(importlib.import_module(f"t2t_harness.phases.{module}"), name)
        sender.send((True, called(request)))
    except Exception as error:
        sender.send((False, f"{type(error).__name__}: {error}"))
    sender.close()


def compile_all(work: Work, subjects: list[Subject], into: Path) -> None:
    """Compiles every subject for every size, each in a process of its own, as many at once as there are cores."""
    into.mkdir(parents=True, exist_ok=True)

    def one(subject: Subject, size: str) -> None:
        scratch = work.scratch(f"compile-{subject.name}-{size}")
        request = work.request(subject, "compile", scratch, 1, {size: subject.sizes()[size]})
        reply = work.ask(compile_measured, request)
        if reply["outcome"] != "passed":
            raise RuntimeError(f"{subject.name}: {reply['documents']['failure']['message']}")
        home = into / subject.name
        home.mkdir(exist_ok=True)
        shutil.copy(Path(scratch) / "triton.tar.gz", home / f"{size}.tar.gz")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(one, subject, size) for subject in subjects for size in subject.sizes()]
        for job in jobs:
            try:
                job.result()
            except RuntimeError as error:
                print(f"warning: {error}", file=sys.stderr)


def compile_measured(request: Any) -> Any:
    """Compiles what is measured, and no edge case."""
    from t2t_harness.cases import block_edges, cases
    from t2t_harness.phases import compile

    cases.fixed_edges = lambda *_: []
    block_edges.length_edges = lambda *_: []
    return compile.compile_variant(request)


def copy_rate(request: dict[str, Any]) -> float:
    """Returns the rate of a copy of 1 GiB on the device in GB/s, read and written bytes together."""
    import torch
    from triton.testing import do_bench

    source, target = (torch.empty(GIB, dtype=torch.uint8, device="cuda") for _ in range(2))
    return 2 * GIB / float(do_bench(lambda: target.copy_(source), return_mode="median")) / 1e6


def measured(work: Work, subject: Subject, archives: Path, runs: int, copy: float) -> list[dict[str, Any]]:
    """Returns the rows of one subject, one a size; one row with what went wrong where it could not be measured."""
    request = work.request(subject, "cuda", work.scratch(subject.name), runs)
    request["warm"] = sorted(str(file) for file in archives.glob("*.tar.gz"))
    head = {"op": subject.op, "variant": subject.variant["name"], "dtype": subject.dtype}
    try:
        tuned = work.ask("tune.tune", request)
        told = (
            tuned
            if tuned["outcome"] != "passed"
            else work.ask("bench.bench", {**request, "tune": tuned["documents"]["tune"]})
        )
        if told["outcome"] != "passed":
            return [{**head, "size": "", "failed": told["documents"]["failure"]["message"], "reached": False}]
        figures = work.ask(figures_of, {**request, "bench": told["documents"]["bench"]})
        facts = work.ask(facts_of, {**request, "tune": tuned["documents"]["tune"]})
    except RuntimeError as error:
        return [{**head, "size": "", "failed": str(error), "reached": False}]
    return [row(head, size, of_size, facts[size], copy) for size, of_size in figures["sizes"].items()]


def figures_of(request: Any) -> dict[str, Any]:
    """Returns the document of a bench with the figures that are made of its raw times."""
    from t2t_harness.phases import measured

    document: Any = dict(request["bench"])
    measured.figures(request, Path(request["scratch"]), document)
    return dict(document)


def facts_of(request: Any) -> dict[str, dict[str, Any]]:
    """Returns by size: bytes read and written at least, operations as torch counts them, and the errors of variant and torch against float64."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from t2t_harness.cases import called_with, cases, declared_inputs
    from t2t_harness.judging import oracle
    from t2t_harness.measuring import timing
    from t2t_harness.op import operation
    from t2t_harness.phases import tune as tuning
    from t2t_harness.sources import loading
    from t2t_harness.triton import launching, stage

    timing.set_precision(request["op"])
    found = {}
    with stage.lane(request):
        entry = loading.load_entry(request["root"], request["variant"])
        for case in cases.bench_cases(request["op"]):
            given = declared_inputs.make_inputs(request["op"], case, "cuda")
            args, kwargs = called_with.call_arguments(entry, request["op"], case, given)

            def choose(tuner: Any, configs: list[Any]) -> list[Any]:
                key = [str(part) for part in recorder.key]
                wanted = tuning.chosen_facts(request["tune"], launching.kernel_name(tuner), key)
                return [config for config in configs if launching.config_facts(config) == wanted] or configs[:1]

            with launching.recording("cuda", choose) as recorder:
                out: Any = entry(*args, **kwargs)
            with FlopCounterMode(display=False) as counter:
                torch_op = operation.ready(request["op"], case.binding, case.dtype, "cuda")
                operation.call(torch_op, request["op"], given, called_with.kwargs_of(request["op"], case))
            right = oracle.reference(request["op"], case, given)
            plain: Any = right.plain["0"]
            exact = plain.double() if right.oracle is None else right.oracle["0"].double()
            scale = exact.norm().clamp_min(1e-30)
            atol, rtol = request["op"]["tolerances"].get(case.dtype, (1e-5, 1e-5))
            found[case.name.rsplit("/", 1)[0]] = {
                "bytes": sum(value.nbytes for value in (*given.values(), plain)),
                "flop": counter.get_total_flops(),
                "error": float((out.double() - exact).norm() / scale),
                "torch_error": float((plain.double() - exact).norm() / scale),
                "allclose": bool(torch.allclose(out, plain, atol=atol, rtol=rtol)),
            }
            del given, out, plain, exact, right, args
            torch.cuda.empty_cache()
    return found


def row(
    head: Mapping[str, Any], size: str, figures: Mapping[str, Any], facts: Mapping[str, Any], copy: float
) -> dict[str, Any]:
    """Returns a row: the figures of one subject at one size, and whether it reached what it is to reach."""
    variant, torch = figures["variant"], figures["torch"]
    low, high = interval([run["mean"] for run in torch["runs"]], [run["mean"] for run in variant["runs"]])
    percent = 100 * facts["bytes"] / (variant["median"] * 1e6) / copy
    goals = TABLE.get(head["op"], {})
    half = head["dtype"] in HALVES
    goal = goals.get("half_ratio" if half else "ratio", {}).get(size)
    percent_goal = None if half else goals.get("percent", {}).get(size)
    reached = None
    if goal is not None:
        # At 1.00 the interval decides.
        ratio = high if goal == 1.0 else torch["mean"] / variant["mean"]
        reached = ratio >= goal and percent >= (percent_goal or 0)
        reached = reached and (half or not goals.get("no_worse") or facts["error"] <= facts["torch_error"])
        reached = reached and (half or not goals.get("allclose") or facts["allclose"])
    return {
        **head,
        "size": size,
        "binding": figures["binding"],
        "config": figures["config"],
        "mean_ms": [variant["mean"], torch["mean"]],
        "median_ms": [variant["median"], torch["median"]],
        "cv": [variant["cv"], torch["cv"]],
        "ratio": torch["mean"] / variant["mean"],
        "median_ratio": torch["median"] / variant["median"],
        "interval": [low, high],
        "percent_of_copy": percent,
        "tflop_s": facts["flop"] / variant["mean"] / 1e9 if facts["flop"] else None,
        "goal": goal,
        "percent_goal": percent_goal,
        "reached": reached,
        **{name: facts[name] for name in ("error", "torch_error", "allclose")},
    }


def interval(over: list[float], under: list[float], draws: int = 2000) -> tuple[float, float]:
    """Returns the 95 % bootstrap interval of the ratio of the two means; the runs of both were made in turns and are drawn together."""
    chance, number = random.Random(0), len(over)
    ratios = []
    for _ in range(draws):
        drawn = [chance.randrange(number) for _ in range(number)]
        ratios.append(sum(over[at] for at in drawn) / sum(under[at] for at in drawn))
    ratios.sort()
    return ratios[draws * 25 // 1000], ratios[draws * 975 // 1000]


def table(found: Mapping[str, Any]) -> str:
    """Returns the figures in Markdown."""
    lines = [
        f"{found['device']}, {found['runs']} runs a size in turns with eager torch; copy of 1 GiB: {found['copy_gb_s']:.0f} GB/s",
        "",
        "| op | size | dtype | variant | mean (µs) | torch (µs) | ratio [95 %] | of medians | % of copy | TFLOP/s | error, torch's | goal | |",
        "| --- | --- | --- | --- | ---: | ---: | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    lines += [line(one) for one in found["rows"]]
    lines += ["", *small_lines(found["rows"])]
    return "\n".join(lines)


def line(one: Mapping[str, Any]) -> str:
    """Returns a row of the table."""
    if "failed" in one:
        return (
            f"| {one['op']} | | {one['dtype']} | {one['variant']} | {one['failed'][:120]} | | | | | | | | **failed** |"
        )
    dims = "×".join(str(length) for length in one["binding"].values())
    own, torch = (1000 * value for value in one["mean_ms"])
    told = "" if one["reached"] is None else "reached" if one["reached"] else "**missed**"
    goal = (
        ""
        if one["goal"] is None
        else f"≥ {one['goal']:.2f}×" + (f", ≥ {one['percent_goal']} %" if one["percent_goal"] else "")
    )
    flop = "" if one["tflop_s"] is None else f"{one['tflop_s']:.0f}"
    share = "" if flop else f"{one['percent_of_copy']:.0f}"
    steady = "" if max(one["cv"]) <= 0.05 else " (unstable)"
    ratio = f"{one['ratio']:.2f} [{one['interval'][0]:.2f}, {one['interval'][1]:.2f}]{steady}"
    errors = f"{one['error']:.1e}, {one['torch_error']:.1e}{'' if one['allclose'] else ', not allclose'}"
    return f"| {one['op']} | {one['size']}, {dims} | {one['dtype']} | {one['variant']} | {own:.1f} | {torch:.1f} | {ratio} | {one['median_ratio']:.2f} | {share} | {flop} | {errors} | {goal} | {told} |"


def small_lines(rows: list[Mapping[str, Any]]) -> list[str]:
    """Returns the geometric means over the ops at sizes that all ops have but the largest, of each op's best variant in its first dtype."""
    sizes: dict[str, dict[str, float]] = {}
    for one in rows:
        if "ratio" in one and one["dtype"] not in HALVES:
            best = sizes.setdefault(one["size"], {})
            best[one["op"]] = max(best.get(one["op"], 0.0), one["ratio"])
    ops = {one["op"] for one in rows}
    lines = []
    for size, ratios in sizes.items():
        if ratios.keys() == ops:
            mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
            lines.append(f"- {size}: geometric mean of {len(ratios)} ops {mean:.2f}× (to reach: {SMALL_GOAL:.2f}×)")
    return lines


if __name__ == "__main__":
    main()
