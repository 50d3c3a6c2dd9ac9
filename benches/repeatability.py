"""Says whether figures hold: everything is built twice from an empty cache on one device, and the two are compared.

Compared are the Final and the figure of each size of every variant, of torch and of torch.compile, by op. A figure counts where neither build calls
it unstable; two figures of it agree if they differ by at most 5 % at the op's largest size and in the Final, and by 10 % at smaller sizes. The chosen
variant must be the same, or one that the other build says it ties with. Exit code 1 where something that counts does not hold, or nothing counts.

    python benches/repeatability.py [WORKSPACE] [--op OP]... [--keep DIR] [--out FILE]      builds twice, then compares
    python benches/repeatability.py --once DIR [WORKSPACE] [--op OP]...                     builds once, into DIR; to be compared later
    python benches/repeatability.py --from A B [--out FILE]                                 compares what `t2t publish` wrote

A and B are workspaces, `assets/results` folders, or folders of one device in them. Building needs a CUDA device, and t2t: $T2T_BIN, or `t2t` on the
path. Prints a table in Markdown; --out writes it, or with a name that ends in .json the figures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LARGEST, SMALLER = 0.05, 0.10
"""Shares by which two figures may differ: in the Final and at the largest size; at the others."""

SPREAD = 1.2
"""How many times as long the 80th percentile of a run's calls may take as the 20th, as in crates/report/src/rank/stability.rs: where it takes longer, the host was behind the device."""


def main() -> None:
    """Builds and compares as asked, and ends with the exit code."""
    arguments = parse()
    if arguments.once:
        print(build(Path(arguments.workspace), arguments.op, Path(arguments.once)))
        return
    if arguments.of:
        found = compared(*(records(Path(name)) for name in arguments.of))
    else:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(arguments.keep or folder)
            builds = [build(Path(arguments.workspace), arguments.op, home / name) for name in ("first", "second")]
            found = compared(*map(records, builds))
    text = table(found)
    if arguments.out:
        is_json = arguments.out.endswith(".json")
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n" if is_json else text + "\n")
    print(text)
    sys.exit(0 if found["holds"] else 1)


def parse() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", nargs="?", default=".", help="the folder with ops.yaml")
    parser.add_argument("--op", action="append", default=[], help="only this op; may be given several times")
    parser.add_argument("--from", dest="of", nargs=2, metavar=("A", "B"), help="compare these, and build nothing")
    parser.add_argument("--once", metavar="DIR", help="build once, into this folder, and compare nothing")
    parser.add_argument("--keep", metavar="DIR", help="keep both built workspaces in this folder")
    parser.add_argument("--out", help="where the table, or as .json the figures, are written")
    return parser.parse_args()


def build(workspace: Path, ops: list[str], home: Path) -> Path:
    """Builds a copy of the workspace without results in `home`, publishes, and returns the folder with the results."""
    binary = os.environ.get("T2T_BIN") or shutil.which("t2t")
    if not binary:
        sys.exit("error: no t2t was found\nhint: name the binary in T2T_BIN, or put it on the path")
    copy_sources(workspace, ops, home, binary)
    environment = {**os.environ, "T2T_PYTHON": os.environ.get("T2T_PYTHON", sys.executable)}
    for command in (["build"], ["publish"]):
        ran = subprocess.run(
            [binary, "--device", "cuda", *command],
            cwd=home,
            env=environment,
            check=False,
            text=True,
            capture_output=True,
        )
        (home / f"{command[0]}.txt").write_text(ran.stdout + ran.stderr)
        if ran.returncode not in (0, 1) or (command == ["publish"] and ran.returncode):
            sys.exit(f"error: t2t {command[0]} ended with {ran.returncode}\n{ran.stdout[-1000:]}{ran.stderr[-2000:]}")
    return home / "assets/results"


def copy_sources(workspace: Path, ops: list[str], home: Path, binary: str) -> None:
    """Copies what a build reads. Of ops.yaml all ops are kept: those that were not asked for are taken off by name."""
    home.mkdir(parents=True, exist_ok=True)
    for name in ("cache", "logs", "assets/results"):
        shutil.rmtree(home / name, ignore_errors=True)
    for name in ("kernels", "assets"):
        if (workspace / name).is_dir():
            ignored = shutil.ignore_patterns("results", "__pycache__")
            shutil.copytree(workspace / name, home / name, dirs_exist_ok=True, ignore=ignored)
    text = (workspace / "ops.yaml").read_text()
    (home / "ops.yaml").write_text(only(text, ops) if ops else text)


def only(text: str, ops: list[str]) -> str:
    """Returns an ops.yaml whose `ops` are those asked for; each op is a line at the first indentation below `ops:` and all that is deeper."""
    lines, kept, inside, takes = text.splitlines(keepends=True), [], False, True
    indent: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        is_text = bool(line.strip()) and not line.lstrip().startswith("#")
        if is_text and depth == 0:
            inside, takes = line.startswith("ops:"), True
        elif is_text and inside and (indent is None or depth == indent):
            indent = depth
            takes = line.strip().partition(":")[0].strip("\"'") in ops
        if takes:
            kept.append(line)
    return "".join(kept)


def records(place: Path) -> dict[str, dict[str, Any]]:
    """Returns target → artifact → document of a publication. `place` is that of one device, the folder of all, or a workspace."""
    found = next(
        (
            one
            for one in (place, place / "assets/results")
            if list(one.glob("records/*.json")) or list(one.glob("*/records/*.json"))
        ),
        None,
    )
    if found is None:
        sys.exit(f"error: `{place}` has no published results\nhint: run `t2t publish` there")
    devices = sorted({file.parent.parent for file in [*found.glob("records/*.json"), *found.glob("*/records/*.json")]})
    devices = [one for one in devices if one.name != "interpreter"] or devices
    if len(devices) > 1:
        sys.exit(f"error: `{found}` has results of several devices\nhint: name one: {', '.join(map(str, devices))}")
    documents = {}
    for file in sorted(devices[0].glob("records/*.json")):
        for one in json.loads(file.read_text())["records"]:
            target = one["record"]["identity"]["target"]
            documents[target] = {name: told["json"] for name, told in one["documents"].items() if "json" in told}
    return documents


def figures(documents: dict[str, dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns (op, who) → the Final and the figures by size in ms, those that do not count, and the sizes from the smallest on."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for target, artifacts in documents.items():
        name, _, phase = target.partition(":")
        document = artifacts.get(phase, {})
        if phase == "bench" and document.get("sizes"):
            op, _, variant = name.partition("/")
            found[op, variant] = of_subject(document, "variant", document["final_ms"])
        for who in document.get("finals", {}) if phase == "baseline" else ():
            if document["finals"][who] is not None:
                found[name, who] = of_subject(document, who, document["finals"][who])
    return found


def of_subject(document: dict[str, Any], who: str, final: float) -> dict[str, Any]:
    """Returns the figures of one subject of a bench or a baseline, and those that do not count: sizes whose runs vary by more than 5 % or whose figure is the
    host's, as it says itself or as its calls within a run tell (docs/reference/measuring.md, "Unstable figures"), the Final where they make up more than a tenth of it, and all of them where
    the device itself was disturbed."""
    sizes = dict(sorted(document["sizes"].items(), key=lambda one: math.prod(one[1]["binding"].values())))
    times = {size: told[who]["mean"] for size, told in sizes.items()}
    unsteady = [size for size, told in sizes.items() if told[who]["cv"] > 0.05]
    if document["clock"] != "host":
        unsteady += [size for size, told in sizes.items() if told[who]["p80"] > SPREAD * told[who]["p20"]]
    reasons = (document.get("why_unstable") or "").split("; ") if document["unstable"] else []
    unsteady += [size for size in sizes if any(one.startswith(f"{size}: the figure of {who} is") for one in reasons)]
    if any(reason and reason.partition(":")[0] not in sizes for reason in reasons):
        unsteady = list(sizes)
    if sum(times[size] for size in set(unsteady)) > 0.1 * sum(times.values()):
        unsteady.append("Final")
    return {"Final": final, "sizes": times, "unsteady": unsteady}


def compared(first: dict[str, dict[str, Any]], second: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the rows of the comparison, one a figure, the choices, and whether all that counts holds."""
    one, other = figures(first), figures(second)
    rows = []
    for op, who in sorted(one.keys() & other.keys()):
        left, right = one[op, who], other[op, who]
        largest = list(left["sizes"])[-1]
        for size in [*left["sizes"], "Final"]:
            pair = [side["Final"] if size == "Final" else side["sizes"].get(size) for side in (left, right)]
            if pair[1] is None:
                continue
            limit = LARGEST if size in (largest, "Final") else SMALLER
            difference = abs(pair[1] - pair[0]) / min(pair)
            counts = size not in left["unsteady"] + right["unsteady"]
            rows.append(
                {
                    "op": op,
                    "who": who,
                    "size": size,
                    "ms": pair,
                    "difference": difference,
                    "limit": limit,
                    "counts": counts,
                    "holds": difference <= limit,
                }
            )
    choices = [
        chosen(op, first, second)
        for op in sorted({target.partition(":")[0] for target in first if target.endswith(":select")})
    ]
    missing = sorted(f"{op}/{who}" for op, who in one.keys() ^ other.keys())
    holds = (
        all(row["holds"] or not row["counts"] for row in rows)
        and all(choice["holds"] for choice in choices)
        and not missing
        and any(row["counts"] for row in rows)
    )
    return {"rows": rows, "choices": choices, "missing": missing, "holds": holds}


def chosen(op: str, first: dict[str, dict[str, Any]], second: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns what both builds chose for an op, and whether that is the same or a declared tie."""
    both = [side.get(f"{op}:select", {}).get("selection", {}) for side in (first, second)]
    names = [told.get("chosen") for told in both]
    is_tie = names[1] in both[0].get("ties", []) or names[0] in both[1].get("ties", [])
    return {
        "op": op,
        "chosen": names,
        "is_tie": is_tie and names[0] != names[1],
        "holds": names[0] == names[1] or is_tie,
    }


def table(found: dict[str, Any]) -> str:
    """Returns the comparison in Markdown."""
    lines = [
        "| op | who | size | first (ms) | second (ms) | difference | limit | |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in found["rows"]:
        said = "unstable, not counted" if not row["counts"] else "agrees" if row["holds"] else "**differs**"
        times = " | ".join(f"{value:.5g}" for value in row["ms"])
        lines.append(
            f"| {row['op']} | {row['who']} | {row['size']} | {times} | {100 * row['difference']:.1f} % | {100 * row['limit']:.0f} % | {said} |"
        )
    lines += ["", "| op | chosen first | chosen second | |", "| --- | --- | --- | --- |"]
    for choice in found["choices"]:
        said = "a declared tie" if choice["is_tie"] else "the same" if choice["holds"] else "**another**"
        lines.append(f"| {choice['op']} | {choice['chosen'][0]} | {choice['chosen'][1]} | {said} |")
    counted = [row for row in found["rows"] if row["counts"]]
    agree = sum(row["holds"] for row in counted)
    lines += ["", f"{agree} of {len(counted)} stable figures agree; {len(found['rows']) - len(counted)} are unstable."]
    if found["missing"]:
        lines.append(f"Measured in one build alone: {', '.join(found['missing'])}.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
