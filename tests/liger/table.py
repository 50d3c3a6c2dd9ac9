"""Prints what t2t made of each op of the workspace beside it, module by module; ends with 1 where a row is not what is expected.

usage: table.py OPS.YAML CHECKS.XML EXPECTED.JSON PACKAGE
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


@dataclass(frozen=True)
class Row:
    """What became of one op."""

    op: str
    how: str
    """How the op is declared: a torch function, a reference, by `t2t adopt`; and whether its wrapper is of tests/liger."""
    verdict: str
    """`passed`, `not judged`, or the class of the rejection."""
    reason: str
    seconds: float


def main(ops: Path, checks: Path, expected: Path, package: Path) -> int:
    """Prints the table, then what is not as expected; returns 1 where there is such."""
    known: dict[str, Any] = json.loads(expected.read_text(encoding="utf-8"))
    rows = {row.op: row for row in read(checks, declared(ops.read_text(encoding="utf-8")))}
    print("| module | op | declared | verdict | reason | s |\n| --- | --- | --- | --- | --- | --- |")
    for module, of_module in sorted(known.items()):
        if isinstance(of_module, str):
            print(f"| `{module}` | | not declared | | {of_module} | |")
            continue
        for op, wanted in of_module.items():
            print(line(module, rows.get(op), op, wanted))
    problems = wrong(known, rows, {file.stem for file in package.glob("*.py")} - {"__init__"})
    print(
        f"\n{len(rows)} ops, {sum(row.verdict == 'passed' for row in rows.values())} passed; {len(problems)} not as expected"
    )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def declared(text: str) -> dict[str, str]:
    """Returns how each op of an ops.yaml is declared."""
    found = {}
    for name, body in re.findall(r"(?m)^  (\w+):\n((?:    .*\n|\n)*)", text[text.index("\nops:") :]):
        how = "torch function" if re.search(r"(?m)^    torch:", body) else "reference"
        how = "adopt" if name.startswith("adopted_") else how
        found[name] = how if "module: liger_kernel" in body else f"{how}, own wrapper"
    return found


def read(checks: Path, how: dict[str, str]) -> list[Row]:
    """Returns a row for each check of a JUnit file; where an earlier phase was rejected, what that says."""
    rows = []
    for suite in ElementTree.parse(checks).getroot().iter("testsuite"):
        cases = list(suite.iter("testcase"))
        op = cases[0].attrib["classname"]
        seconds = sum(float(case.get("time", "0")) for case in cases)
        failures = [found for case in cases for found in case.iter() if found.tag in ("failure", "error")]
        skipped = [found for case in cases for found in case.iter("skipped")]
        verdict, reason = "passed", ""
        if failures:
            verdict, reason = failures[0].attrib["type"], failures[0].attrib["message"]
        elif skipped:
            verdict, reason = "not judged", skipped[0].attrib["message"]
        rows.append(Row(op, how.get(op, "?"), verdict, reason, seconds))
    return rows


def line(module: str, row: Row | None, op: str, wanted: dict[str, str]) -> str:
    """Returns the line of the table for one op, with why it is not passed where that is known."""
    if row is None:
        return f"| `{module}` | `{op}` | ? | not checked | | |"
    why = wanted.get("why", "")
    reason = ". ".join(part for part in (row.reason.split("\n")[0][:120], why) if part)
    return f"| `{module}` | `{op}` | {row.how} | `{row.verdict}` | {reason} | {row.seconds:.0f} |"


def wrong(known: dict[str, Any], rows: dict[str, Row], modules: set[str]) -> list[str]:
    """Returns what is not as expected: verdicts, beginnings of reasons, ops and modules that nobody expects or that are missing."""
    ops = {
        op: wanted for of_module in known.values() if not isinstance(of_module, str) for op, wanted in of_module.items()
    }
    problems = [f"module {module}: expected.json does not have it" for module in sorted(modules - set(known))]
    problems += [f"module {module}: the package does not have it" for module in sorted(set(known) - modules)]
    problems += [f"op {op}: expected.json does not have it" for op in sorted(set(rows) - set(ops))]
    for op, wanted in ops.items():
        if op not in rows:
            problems.append(f"op {op}: was not checked")
            continue
        row = rows[op]
        if row.verdict != wanted["verdict"] or not row.reason.startswith(wanted.get("reason", "")):
            said = wanted["verdict"] + (f", {wanted['reason']}" if "reason" in wanted else "")
            problems.append(f"op {op}: {row.verdict}, {row.reason or 'no reason'}; expected {said}")
    return problems


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:])))
