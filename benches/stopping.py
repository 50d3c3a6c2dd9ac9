"""Says what `bench: {stop: auto}` costs and how often it errs, from recorded runs: those of published results, without a device.

The test of python/t2t_harness/measuring/stopping.py is played on the runs that records hold. A tenth of a run stands for a recorded one: on an H200 runs of 20 ms vary from
one to the next as those of 100 ms do, since most runs of a call have one of two speeds. What a run takes is reckoned from the time of a call, and of clearing the cache.

- *Replay*: the recorded runs in their order; after the last one, recorded runs drawn at random. Is the same variant chosen, or named as one that ties, and what share of the
  time of ten runs does that take?
- *Simulation*: all runs drawn at random, many times over. How often is a variant told from itself, measured a second time; called faster than one that is faster by all
  runs; chosen though another is faster and not named? A comparison may err in one case of twenty.

    python benches/stopping.py [RESULTS]... [--history] [--draws N] [--out FILE]

RESULTS are folders of one device as `t2t publish` writes them; without any, those in assets/results. `--history` adds what git knows of the same folders. Prints a table in
Markdown; --out writes it, or with a name that ends in .json the figures. Exit code 1 where a choice differs, a fifth of the time is not enough, or it errs too often.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from t2t_harness.measuring import statistics, stopping  # noqa: E402

CLEAR_MS = 0.085
"""What clearing the cache takes on an H200, in ms."""

ESTIMATES, CALLS = 5, 6
"""Calls with a cleared cache by which a run is estimated, and all calls that it takes."""

FIFTH = 0.2
"""The most of the time that may be taken."""

Means = dict[str, list[float]]
"""Subject → the means of its runs in ms."""


@dataclass
class Op:
    """What was published of an op at once."""

    name: str
    at: str
    """The results that it is of."""
    runs: int = 0
    lengths_ms: tuple[float, float] = (0.0, 0.0)
    benches: dict[str, list[Means]] = field(default_factory=dict)
    """Variant, or `baseline` → the largest size first, its runs by subject."""
    chosen: str | None = None
    ties: list[str] = field(default_factory=list)

    @property
    def variants(self) -> list[str]:
        """Returns the measured variants, in declared order."""
        return [name for name in self.benches if name != "baseline"]


@dataclass
class Played:
    """One measurement as it would have been."""

    finals: dict[str, stopping.Known]
    """Subject → the sum of its figures."""
    ends: list[stopping.Stop]
    milliseconds: float
    whole_ms: float
    """What all runs would have taken."""
    is_stable: bool


def main() -> None:
    """Plays as asked and ends with the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", help="folders of one device")
    parser.add_argument("--history", action="store_true", help="add what git knows of these folders")
    parser.add_argument("--draws", type=int, default=40, help="how often each measurement is simulated")
    parser.add_argument("--out", help="where to write")
    arguments = parser.parse_args()
    folders = [Path(name).resolve() for name in arguments.results] or sorted((ROOT / "assets" / "results").iterdir())
    found = [op for folder in folders for op in ops_of(folder.name, records(folder))]
    if arguments.history:
        found += [op for folder in folders for op in past(folder)]
    found = distinct(found)
    chance = random.Random(1)
    told = {"replay": replay(found, chance), "simulation": simulation(found, chance, arguments.draws)}
    text = table(told)
    if arguments.out:
        is_json = arguments.out.endswith(".json")
        Path(arguments.out).write_text(json.dumps(told, indent=1) + "\n" if is_json else text)
    print(text, end="")
    sys.exit(0 if holds(told) else 1)


def records(folder: Path) -> Iterator[Any]:
    """Yields the documents `records` of a folder of results."""
    for file in sorted((folder / "records").glob("*.json")):
        yield json.loads(file.read_text(encoding="utf-8"))


def past(folder: Path) -> Iterator[Op]:
    """Yields what was published in the folder before, the newest first."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout

    for revision in git("log", "--format=%h", "--", "records").split():
        names = git("ls-tree", "--name-only", revision, "records/").split()
        yield from ops_of(revision, (json.loads(git("show", f"{revision}:./{name}")) for name in names))


def distinct(found: list[Op]) -> list[Op]:
    """Returns the ops without those whose runs are those of an earlier one."""
    seen: dict[str, Op] = {}
    for op in found:
        seen.setdefault(json.dumps(op.benches, sort_keys=True), op)
    return list(seen.values())


def ops_of(at: str, files: Iterator[Any]) -> Iterator[Op]:
    """Yields the ops of the documents `records` whose selection was published, with all runs of those that were measured."""
    for file in files:
        ops: dict[str, Op] = {}
        for record in file["records"]:
            target = record["record"]["identity"]["target"].rsplit(":", 1)[0]
            name, _, variant = target.partition("/")
            documents = {kind: one["json"] for kind, one in record["documents"].items() if "json" in one}
            op = ops.setdefault(name, Op(name, at))
            told = documents.get("bench", documents.get("baseline"))
            if told is not None and told["clock"] != "host" and "stop" not in told["protocol"]:
                op.runs = int(told["protocol"]["runs"])
                op.lengths_ms = told["protocol"]["warmup_ms"], told["protocol"]["rep_ms"]
                op.benches[variant or "baseline"] = sizes_of(told)
            if "selection" in documents:
                op.chosen, op.ties = documents["selection"]["chosen"], documents["selection"]["ties"]
        yield from (op for op in ops.values() if op.chosen is not None and op.variants)


def sizes_of(document: Any) -> list[Means]:
    """Returns the runs of each size of a bench or a baseline, the largest first."""
    sizes = [
        {
            who: [run["mean"] for run in one["runs"]]
            for who, one in size.items()
            if isinstance(one, dict) and "runs" in one
        }
        for size in sorted(document["sizes"].values(), key=volume, reverse=True)
    ]
    return [{who: means for who, means in size.items() if len(means) > 1} for size in sizes]


def volume(size: Any) -> int:
    """Returns the product of a size's dims."""
    product = 1
    for length in size["binding"].values():
        product *= length
    return product


def play(op: Op, name: str, chance: random.Random, *, in_order: bool) -> Played:
    """Returns how a measurement of the op would have gone, with the recorded runs `in_order` first, or all drawn."""
    sizes = op.benches[name]
    test = stopping.Test(stopping.plan(op.runs, len(sizes)))
    ends, taken, whole, varied = [], 0.0, 0.0, False
    for size in sizes:
        made: Means = {who: [] for who in size}
        stop = None
        while stop is None:
            begun = len(next(iter(made.values())))
            for run in range(begun, begun + test.next_turn(begun)):
                is_kept = in_order and run < min(map(len, size.values()))
                place = run if is_kept else chance.randrange(min(map(len, size.values())))
                for who, means in size.items():
                    made[who].append(means[place])
            stop = test.end(made)
        ends.append(stop)
        for means in made.values():
            call = statistics.mean(means)
            taken += estimate_ms(call) + stop.runs * run_ms(op, call, stopping.PARTS)
            whole += op.runs * (estimate_ms(call) + run_ms(op, call, 1))
            varied |= statistics.variation(means) > statistics.STEADY
    return Played(test.before, ends, taken, whole, not varied)


def estimate_ms(call: float) -> float:
    """Returns how long it takes to estimate how many calls fit in a run."""
    return CALLS * call + ESTIMATES * CLEAR_MS


def run_ms(op: Op, call: float, parts: int) -> float:
    """Returns how long one of so many parts of a run takes."""
    warmup, rep = (length / parts / (call + CLEAR_MS) for length in op.lengths_ms)
    return max(1, int(warmup)) * call + max(1, int(rep)) * (call + CLEAR_MS)


def choose(op: Op, played: dict[str, Played]) -> tuple[str, list[str]]:
    """Returns the variant that is chosen, and those that it ties with, by the rule of crates/report/src/rank.rs."""
    own = {name: played[name].finals["variant"] for name in op.variants}
    best = min(own, key=lambda name: own[name].mean)
    level = [name for name in own if name == best or not own[name].differs(own[best])]
    stable = [name for name in level if played[name].is_stable]
    chosen = (stable or level)[0]
    return chosen, [name for name in level if name != chosen]


def outcome(op: Op, chosen: str, ties: list[str]) -> str:
    """Returns how a choice compares with the published one."""
    if chosen == op.chosen:
        return "same"
    return "tie" if op.chosen in ties or chosen in op.ties else "other"


def replay(ops: list[Op], chance: random.Random) -> dict[str, Any]:
    """Returns the choices and the time of the recorded runs."""
    choices: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    shares: dict[str, list[float]] = {}
    told, taken, whole = [], 0.0, 0.0
    for op in ops:
        played = {name: play(op, name, chance, in_order=True) for name in op.benches}
        chosen, ties = choose(op, played)
        how = outcome(op, chosen, ties)
        choices[how] += 1
        if how != "same":
            told.append({"op": op.name, "results": op.at, "published": op.chosen, "chosen": chosen, "ties": ties})
        mine = sum(one.milliseconds for one in played.values())
        all_runs = sum(one.whole_ms for one in played.values())
        shares.setdefault(op.name, []).append(mine / all_runs)
        taken, whole = taken + mine, whole + all_runs
        ends.update(f"{stop.why} at {stop.runs}" for one in played.values() for stop in one.ends)
    return {
        "ops": len(ops),
        "choices": dict(choices),
        "not_the_same": told,
        "share_of_time": taken / whole,
        "seconds": [taken / 1e3, whole / 1e3],
        "by_op": {name: [statistics.mean(values), max(values)] for name, values in sorted(shares.items())},
        "ends": dict(ends.most_common()),
    }


def simulation(ops: list[Op], chance: random.Random, draws: int) -> dict[str, Any]:
    """Returns how often comparisons err on runs that are drawn from the recorded ones, whose means are the truth."""
    counts: Counter[str] = Counter()
    for op, _ in itertools.product(ops, range(draws)):
        played = {name: play(op, name, chance, in_order=False) for name in op.variants}
        truth = {name: {who: true_final(op, name, who) for who in ("variant", "torch")} for name in op.variants}
        for name, one in played.items():
            again = play(op, name, chance, in_order=False)
            counts["itself"] += 1
            counts["told from itself"] += one.finals["variant"].differs(again.finals["variant"])
            counts["intervals"] += 1
            counts["intervals that miss"] += (
                abs(one.finals["variant"].mean - truth[name]["variant"]) > one.finals["variant"].within
            )
            count(
                counts,
                "torch",
                one.finals["variant"],
                one.finals["torch"],
                truth[name]["variant"],
                truth[name]["torch"],
            )
        for left, right in itertools.combinations(op.variants, 2):
            sides = played[left].finals["variant"], played[right].finals["variant"]
            count(counts, "pairs", *sides, truth[left]["variant"], truth[right]["variant"])
        chosen, ties = choose(op, played)
        fastest = min(truth, key=lambda name: truth[name]["variant"])
        counts["choices"] += 1
        counts["wrong choices"] += fastest not in (chosen, *ties)
        counts["ties"] += bool(ties)
    return dict(counts)


def true_final(op: Op, name: str, who: str) -> float:
    """Returns the sum over the sizes of the mean of all recorded runs."""
    return sum(statistics.mean(size[who]) for size in op.benches[name])


def count(
    counts: Counter[str], what: str, own: stopping.Known, other: stopping.Known, true_own: float, true_other: float
) -> None:
    """Counts a comparison, whether it decides, and whether it decides wrongly."""
    counts[what] += 1
    if own.differs(other):
        counts[f"{what} decided"] += 1
        counts[f"{what} wrong"] += (own.mean < other.mean) != (true_own < true_other)


def rates(told: dict[str, Any]) -> dict[str, float]:
    """Returns the shares of what went wrong."""
    found = told["simulation"]
    of = {
        "a variant is told from itself": ("told from itself", "itself"),
        "the slower of two variants is called faster": ("pairs wrong", "pairs"),
        "the slower of variant and torch is called faster": ("torch wrong", "torch"),
        "another is chosen than the fastest, which is not named": ("wrong choices", "choices"),
        "the interval of a Final misses it": ("intervals that miss", "intervals"),
    }
    return {words: found.get(part, 0) / max(1, found.get(whole, 0)) for words, (part, whole) in of.items()}


def holds(told: dict[str, Any]) -> bool:
    """Tells whether choices, time and error rates are as promised."""
    is_short = told["replay"]["share_of_time"] <= FIFTH
    return is_short and "other" not in told["replay"]["choices"] and max(rates(told).values()) <= stopping.ERROR


def table(told: dict[str, Any]) -> str:
    """Returns the figures as Markdown."""
    found = told["replay"]
    taken, whole = found["seconds"]
    choices = ", ".join(f"{count} {how}" for how, count in found["choices"].items())
    lines = [
        f"Replayed: {found['ops']} choices of an op ({choices}) in {100 * found['share_of_time']:.1f} % of the time, {taken:.0f} s of {whole:.0f} s.",
        "",
        "| op | share of the time | at most |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {100 * mean:.1f} % | {100 * most:.1f} % |" for name, (mean, most) in found["by_op"].items()]
    lines += ["", "Sizes ended: " + ", ".join(f"{how} {count}" for how, count in found["ends"].items()) + "."]
    lines += ["", "| simulated: how often | share |", "| --- | --- |"]
    lines += [f"| {words} | {100 * rate:.2f} % |" for words, rate in rates(told).items()]
    for one in found["not_the_same"]:
        ties = ", ".join(one["ties"])
        lines += [
            "",
            f"{one['op']} of {one['results']}: `{one['published']}` was published, `{one['chosen']}` is chosen, which ties with {ties}.",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
