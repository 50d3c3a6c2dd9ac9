"""Says how often the screening of `t2t improve` errs and what it takes of a device, from recorded runs: those of published results, without a device.

The test of python/t2t_harness/measuring/screening.py is played on pairs that are drawn from the runs that records hold: at each size one run of the incumbent and one of the
candidate, drawn apart. So a recorded run stands for a part of one, and what slows both at once, which pairs are to cancel, is not in it. Every two variants of an op are played in
both orders, and each against itself; the means of all runs are the truth. What a pair takes is reckoned from the time of a call, and of clearing the cache.

    python benches/screening.py [RESULTS]... [--draws N] [--out FILE]

RESULTS are folders of one device as `t2t publish` writes them; without any, those in assets/results. Prints a table in Markdown; --out writes the figures as JSON. Exit code 1
where it errs more often than it says, or where screening a candidate that loses takes more than three seconds of the device.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import stopping as recorded
from stopping import Op

from t2t_harness.measuring import screening, statistics, stopping
from t2t_harness.phases import screen

COPIES_MS = 1.0
"""About what writing the inputs of a run takes, in ms."""

MOST_S = 3.0
"""What a candidate that loses may take of the device, in seconds."""


def main() -> None:
    """Plays as asked and ends with the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", help="folders of one device")
    parser.add_argument("--draws", type=int, default=200, help="how often each two kernels are played")
    parser.add_argument("--out", help="where to write the figures")
    arguments = parser.parse_args()
    home = recorded.ROOT / "assets" / "results"
    folders = [Path(name).resolve() for name in arguments.results] or sorted(home.iterdir())
    ops = [op for folder in folders for op in recorded.ops_of(folder.name, recorded.records(folder))]
    told = play_all(ops, random.Random(1), arguments.draws)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(told, indent=1) + "\n")
    print(table(told), end="")
    sys.exit(0 if holds(told) else 1)


def play(op: Op, names: tuple[str, str], chance: random.Random) -> tuple[screening.End, float]:
    """Returns the end of a screening of the second variant beside the first, and the seconds that it takes of the device."""
    sizes = [[op.benches[name][place]["variant"] for place in range(len(op.benches[name]))] for name in names]
    pair_ms = sum(
        recorded.run_ms(op, statistics.mean(runs), stopping.PARTS) + COPIES_MS for one in sizes for runs in one
    )
    spent_ms = sum(recorded.estimate_ms(statistics.mean(runs)) for one in sizes for runs in one)
    finals: list[list[float]] = [[], []]
    while True:
        spent_ms += pair_ms
        for place, one in enumerate(sizes):
            finals[place].append(math.fsum(chance.choice(runs) for runs in one))
        end = screening.end(finals[0], finals[1], is_spent=spent_ms / 1e3 > screen.SPENT_S)
        if end is not None:
            return end, spent_ms / 1e3


def final(op: Op, name: str) -> float:
    """Returns the sum over the sizes of the mean of all recorded runs."""
    return recorded.true_final(op, name, "variant")


def play_all(ops: list[Op], chance: random.Random, draws: int) -> dict[str, Any]:
    """Returns how often screenings ended how, by whether the candidate is truly faster, and what they took."""
    counts: Counter[str] = Counter()
    taken: dict[str, list[float]] = {"loses": [], "may win": []}
    for op in ops:
        for names in itertools.product(op.variants, op.variants):
            ratio = final(op, names[1]) / final(op, names[0])
            kind = "itself" if names[0] == names[1] else "no faster" if ratio >= 1 else kind_of(ratio)
            for _ in range(draws):
                end, seconds = play(op, names, chance)
                counts[kind] += 1
                counts[f"{kind}: {end.why}"] += 1
                counts["intervals"] += 1
                counts["intervals that miss"] += not end.low <= ratio <= end.high
                taken["may win" if end.may_win else "loses"].append(seconds)
    durations = {
        how: {"mean": statistics.mean(values), "most": max(values), "screenings": len(values)}
        for how, values in taken.items()
        if values
    }
    return {"ops": len(ops), "draws": draws, "counts": dict(counts), "seconds": durations}


def kind_of(ratio: float) -> str:
    """Returns what a truly faster candidate is called: one that is worth a bench, or one that is not."""
    return "worth a bench" if ratio < 1 - screening.WORTH else "hardly faster"


def rates(told: dict[str, Any]) -> dict[str, float]:
    """Returns the shares of what went wrong."""
    found = told["counts"]

    def share(whole: str, *parts: str) -> float:
        return float(sum(found.get(f"{whole}: {part}", 0) for part in parts) / max(1, found.get(whole, 0)))

    return {
        "a kernel is called faster than itself": share("itself", "faster"),
        "a candidate that is no faster is called faster": share("no faster", "faster"),
        "one that is worth a bench is called slower, or without gain": share("worth a bench", "slower", "no-gain"),
    }


def holds(told: dict[str, Any]) -> bool:
    """Tells whether error rates and time are as promised."""
    found = told["counts"]
    misses = found["intervals that miss"] / found["intervals"]
    is_short = told["seconds"]["loses"]["most"] <= MOST_S
    return is_short and misses <= screening.ERROR and max(rates(told).values()) <= screening.ERROR / 2


def table(told: dict[str, Any]) -> str:
    """Returns the figures as Markdown."""
    found = told["counts"]
    misses = found["intervals that miss"] / found["intervals"]
    lines = [f"{found['intervals']} screenings of {told['ops']} ops.", "", "| how often | share |", "| --- | --- |"]
    lines += [f"| {words} | {100 * rate:.2f} % |" for words, rate in rates(told).items()]
    lines += [f"| the last interval of a screening misses the ratio | {100 * misses:.2f} % |", ""]
    lines += ["| a candidate that | screenings | seconds of the device | at most |", "| --- | --- | --- | --- |"]
    for how, one in told["seconds"].items():
        lines.append(f"| {how} | {one['screenings']} | {one['mean']:.2f} | {one['most']:.2f} |")
    ends = ", ".join(f"{name} {count}" for name, count in sorted(found.items()) if ": " in name)
    return "\n".join([*lines, "", f"Ends: {ends}."]) + "\n"


if __name__ == "__main__":
    main()
