"""Takes ops of the embedded generator through t2t on Triton's interpreter: renders them into a folder, formats and lints them, builds, and says what passed.

    python tests/generated.py [OP | family:NAME]... [--phase check] [--form standard] [--folder DIR] [--files DIR] [--json FILE]

Without names it takes the whole catalogue. `--files` reads families and templates from a folder in the place of the embedded ones. Needs t2t ($T2T_BIN, or `t2t` on the
path), cargo, and ruff beside this Python. Prints a line for each op that did not pass in all variants and dtypes, then a table by family. Exit code 1 if there is such an op.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RENDER = ["cargo", "run", "--quiet", "--package", "t2t-generate", "--example", "render", "--"]
LINE = re.compile(r"^(analyze|compile|check|bench) (\S+?)(?:/(\S+))? … (\w[\w -]*?)(?: \(([\w -]+)\))? [\d.]+ ?\w+")
"""A line of a build: phase, op, variant, outcome, class."""


def render(folder: Path, names: list[str], form: str, files: str | None) -> None:
    """Writes ops.yaml and the kernels of the named ops into `folder`."""
    own = ["--files", files] if files else []
    subprocess.run([*RENDER, str(folder), *names, "--form", form, *own], cwd=ROOT, check=True)


def is_tidy(folder: Path) -> bool:
    """Tells whether ruff finds nothing to say of the kernels, and prints what it says."""
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(ROOT / "pyproject.toml"), str(folder / "kernels")]
    checked = subprocess.run([*ruff, "check", "--quiet", *config])
    formatted = subprocess.run([*ruff, "format", "--diff", "--quiet", *config])
    return checked.returncode == formatted.returncode == 0


def build(folder: Path, phase: str) -> tuple[dict[tuple[str, str], dict[str, str]], float]:
    """Builds `folder` on the interpreter. Returns what became of each action, by phase and op, then variant, and the seconds that it took."""
    t2t = os.environ.get("T2T_BIN", "t2t")
    command = [t2t, "build", "--device", "cpu", "--phase", phase]
    begun = time.monotonic()
    ran = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - begun
    (folder / "build.txt").write_text(ran.stdout)
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for line in ran.stdout.splitlines():
        if match := LINE.match(line):
            action, op, variant, outcome, reason = match.groups()
            found[action, op][variant or ""] = reason or outcome
    if not found:
        raise SystemExit(f"t2t told nothing:\n{ran.stdout}")
    return found, seconds


def families(folder: Path) -> dict[str, list[str]]:
    """Returns the ops of `folder` by family, as the catalogue has them."""
    here = {one.name for one in (folder / "kernels").iterdir()}
    tables = sorted((ROOT / "assets" / "generators").glob("*.json"))
    of = {table.stem: [op for op in json.loads(table.read_text())["ops"] if op in here] for table in tables}
    return {family: ops for family, ops in of.items() if ops}


def main() -> int:
    """Runs what the command line asks for and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--phase", default="check")
    parser.add_argument("--form", default="standard", choices=["standard", "small", "general", "plain"])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--files")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="generated-"))
    folder.mkdir(parents=True, exist_ok=True)
    render(folder, asked.names, asked.form, asked.files)
    tidy = is_tidy(folder)
    found, seconds = build(folder, asked.phase)
    table = families(folder)
    passed: dict[str, list[str]] = {}
    for family, ops in table.items():
        passed[family] = []
        for op in ops:
            bad = [
                f"{action} {op}/{variant}: {outcome}"
                for action in asked.phase.split(",")
                for variant, outcome in (found.get((action, op)) or {"": "nothing was run"}).items()
                if outcome != "passed"
            ]
            print("\n".join(bad)) if bad else passed[family].append(op)
    print("| family | ops | passed |\n| --- | --- | --- |")
    for family, ops in table.items():
        print(f"| `{family}` | {len(ops)} | {len(passed[family])} |")
    total, right = sum(map(len, table.values())), sum(map(len, passed.values()))
    print(
        f"{right} of {total} ops passed {asked.phase} in {seconds:.0f} s, {seconds / max(total, 1):.1f} s an op; {folder}"
    )
    if asked.json:
        asked.json.write_text(json.dumps({"passed": passed, "seconds": seconds}, indent=1))
    return 0 if tidy and right == total else 1


if __name__ == "__main__":
    raise SystemExit(main())
