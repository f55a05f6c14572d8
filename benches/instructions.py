#!/usr/bin/env python3
"""Instructions that the agent executes a transaction, or a row that it loads, beside another build of it.

    .plimsoll/venv/bin/python benches/instructions.py --against BUILD

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, laboratory, machine, measured, say
from peers import judge
from peers.callgrind import Count, copy_to_count, count
from peers.site import SETTINGS, Bank
from tables import bound_lines

from plimsoll.environment import Fault
from plimsoll.run import agent
from plimsoll.run.signals import Interrupts

NAME = "instructions"
SCALE = 1
ROWS = 100_011  # of a scale
NO_SAMPLES_MS = 3_600_000
NAME_MAX = 90


@dataclass(frozen=True)
class Work:
    """What is counted twice, once with little to do and once with more: the difference is what the more takes."""

    verb: str
    unit: str
    sizes: tuple[int, int]
    units_each: int
    judged: str  # "busiest": without the threads that write and sample by time; "instructions": of all threads
    request: Callable[[Bank, int], dict[str, Any]]


def load(kind: str, clients: int) -> Callable[[Bank, int], dict[str, Any]]:
    """A closed loop of one thread, so that there is nobody to wait for."""

    def request(site: Bank, transactions: int) -> dict[str, Any]:
        out = site.folder / "load"
        out.mkdir(exist_ok=True)
        return {
            "workload": {"name": "bank", "scale": SCALE, "seed": 1, "transaction": kind},
            "clients": clients,
            "stop": {"transactions": transactions},
            "sample": {"interval_ms": NO_SAMPLES_MS},
            "out": str(out),
        }

    return request


def rows(site: Bank, scale: int) -> dict[str, Any]:
    """The loader, into an empty database."""
    site.drop_tables()
    return {"workload": {"name": "bank", "scale": scale, "seed": 1, "transaction": "tpcb_like"}, "parallel": 2}


WORKS = {
    "select": Work("load", "transaction", (2_000, 12_000), 1, "busiest", load("select_only", 8)),
    "select alone": Work("load", "transaction", (2_000, 8_000), 1, "busiest", load("select_only", 1)),
    "tpcb": Work("load", "transaction", (500, 2_500), 1, "busiest", load("tpcb_like", 8)),
    "rows": Work("populate", "row", (1, 2), ROWS, "instructions", rows),
}


@dataclass(frozen=True)
class Each:
    """What one unit of work takes."""

    busiest: float  # instructions of the thread that executes most
    instructions: float  # of all threads
    system_calls: float
    by_function: dict[str, float]


def each_of(site: Bank, work: Work, program: Path) -> Each:
    """Counts both sizes. How many threads there were is not the same in both: some live for a moment."""
    little, more = (_threads(site, work, program, size) for size in work.sizes)
    units = (work.sizes[1] - work.sizes[0]) * work.units_each
    least, most = (max(thread.instructions for thread in threads) for threads in (little, more))
    small, large = sum(little, Count()), sum(more, Count())
    functions = Counter(large.by_function)
    functions.subtract(small.by_function)
    return Each(
        (most - least) / units,
        (large.instructions - small.instructions) / units,
        (large.system_calls - small.system_calls) / units,
        {name: number / units for name, number in functions.items()},
    )


def _threads(site: Bank, work: Work, program: Path, size: int) -> list[Count]:
    target = {**site.cluster.connection.as_request(), "schema": "public"}
    threads, last = count(program, work.verb, {"target": target, **work.request(site, size)}, site.folder)
    if work.verb == "load" and last["identity"]["done"] != size:
        raise Fault(f"plimsoll: {last['identity']}", remedy="see the server's log; run it again")
    return threads


def measure(site: Bank, name: str, programs: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """One kind of work by both builds in turn."""
    work = WORKS[name]
    if work.verb == "load":
        site.drop_tables()
        site.pgbench_init(SCALE)
    seen: dict[str, list[Each]] = {which: [] for which in programs}
    for number in range(options.times):
        for which, program in programs.items():
            seen[which].append(each_of(site, work, program))
        said = ", ".join(f"{which} {getattr(each[-1], work.judged):,.1f}" for which, each in seen.items())
        say(f"{name}: {number + 1} of {options.times}: instructions a {work.unit}: {said}")
    ours, theirs = seen.values()
    judged = ([float(getattr(one, work.judged)) for one in each] for each in (ours, theirs))
    ratio = judge.ratio(f"instructions a {work.unit}", *judged)
    bound = judge.at_most(ratio, 1 + options.bound / 100)
    return {
        "title": f"{name}, a {work.unit}",
        "seen": {which: [{**asdict(one), "by_function": {}} for one in each] for which, each in seen.items()},
        "ratios": [asdict(ratio)],
        "bounds": [asdict(bound)],
        "functions": _changes(ours[-1], theirs[-1], options.functions),
    }


def _changes(ours: Each, theirs: Each, largest: int) -> list[tuple[str, float, float]]:
    """The functions that differ most: name, ours, theirs."""
    names = {*ours.by_function, *theirs.by_function}
    both = [(name, ours.by_function.get(name, 0.0), theirs.by_function.get(name, 0.0)) for name in names]
    return sorted(both, key=lambda each: -abs(each[1] - each[2]))[:largest]


def text_of(result: dict[str, Any]) -> str:
    """One kind of work in text."""
    lines = [result["title"]]
    for which, each in result["seen"].items():
        for key in ("busiest", "instructions", "system_calls"):
            lines.append(f"  {which:12}{key:14}" + " ".join(f"{one[key]:10,.2f}" for one in each))
    for ratio in result["ratios"]:
        lines.append(f"  {ratio['what']}: {ratio['value']:.4f} x [{ratio['low']:.4f}, {ratio['high']:.4f}]")
    lines += bound_lines(result["bounds"])
    for name, ours, theirs in result["functions"]:
        lines.append(f"    {ours - theirs:+8.1f} {theirs:8.1f} {ours:8.1f}  {name[:NAME_MAX]}")
    return "\n".join(lines)


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """On one server; whatever happens the machine is put back."""
    results = []
    with laboratory(NAME, interrupts) as place:
        site = Bank(place.state, place.journal, place.install, place.state.work / NAME, scale=0)
        say("making its data set")
        site.build()
        site.start(dict(SETTINGS) | {"synchronous_commit": False})
        programs = {
            "this build": copy_to_count(agent.PROGRAM, site.folder / "this-build"),
            "the other": copy_to_count(options.against, site.folder / "the-other"),
        }
        for name in options.work or WORKS:
            results.append(measure(site, name, programs, options))
            if not options.json:
                print(text_of(results[-1]), flush=True)
        site.cluster.stop()
    return results


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", type=Path, required=True, help="the other build of the agent")
    parser.add_argument("--work", action="append", choices=WORKS, help="may be repeated; all if left out")
    parser.add_argument("--times", type=int, default=3, help="that each is counted by each build")
    parser.add_argument("--bound", type=float, default=2, metavar="PERCENT", help="that this build may execute more")
    parser.add_argument("--functions", type=int, default=0, help="how many of those that differ most are shown")
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    if options.times < 3:
        parser.error("--times must be at least 3")
    if not os.access(options.against, os.X_OK):
        parser.error(f"--against {options.against}: not a program")
    return options


def main(argv: list[str] | None = None) -> int:
    """Counts, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    results = measured("instructions", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(results, int):
        return results
    if options.json:
        print(json.dumps({**machine(), "results": results}))
    return code_of(bound for result in results for bound in result["bounds"])


if __name__ == "__main__":
    sys.exit(main())
