#!/usr/bin/env python3
"""What the probes in the kernel cost: CPU time a transaction with and without them, in pairs in random order.

    .plimsoll/venv/bin/python benches/probe_overhead.py --help

Exit codes: 0 every bound holds and nothing was lost; 1 a bound is broken, or events were lost; 2 the request is wrong;
3 it cannot be measured here; 4 cannot tell, or stopped. benches/README.md says how it is judged.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import BROKEN, CANNOT_TELL, HOLDS, IMPOSSIBLE, laboratory, machine, say
from overhead import table
from overhead.arms import Pair, run_segment
from overhead.judge import LOOKS, Rule, looks_up_to, orders
from overhead.probes import NAMES as PROBES
from overhead.probes import requests
from overhead.programs import Programs, take_over
from overhead.recorder import record
from overhead.servers import LoadedSite, Orders, SelectOnly, TpcbLike

from plimsoll.environment import Fault
from plimsoll.run.agent import AgentFailed
from plimsoll.run.observer import Silent
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.target import ServerFailed

NAME = "probe-overhead"
SEGMENT_PAIRS = 50


@dataclass(frozen=True)
class Workload:
    """A load on a data set, with the server's settings beside the usual ones."""

    site: Callable[..., LoadedSite]
    settings: dict[str, bool | int | float | str]
    bound_percent: float
    title: str


WORKLOADS = {
    "wpi_orders": Workload(Orders, {"shared_buffers": "64MB"}, 2, "wpi_orders, 256 MiB of data, shared_buffers 64 MiB"),
    "wpi_orders_async": Workload(
        Orders,
        {"shared_buffers": "64MB", "synchronous_commit": False},
        2,
        "wpi_orders without waiting for the device at commit, 256 MiB of data, shared_buffers 64 MiB",
    ),
    "select_only": Workload(
        SelectOnly, {"shared_buffers": "128MB"}, 4, "pgbench select-only, scale 50, shared_buffers 128 MiB"
    ),
    "select_only_cached": Workload(
        SelectOnly, {"shared_buffers": "1GB"}, 4, "pgbench select-only, scale 50, all in shared_buffers (1 GiB)"
    ),
    "tpcb_like": Workload(
        TpcbLike, {"shared_buffers": "1GB"}, 3, "pgbench TPC-B-like, scale 50, all in shared_buffers (1 GiB)"
    ),
}


def measure(name: str, site: LoadedSite, options: argparse.Namespace) -> dict[str, Any]:
    """One workload, segment by segment, judged at the planned looks only."""
    workload = WORKLOADS[name]
    bound = workload.bound_percent if options.bound is None else options.bound
    rule = Rule(bound, looks_up_to(options.pairs_max))
    site.start(workload.settings)
    out = site.folder / "watch"
    out.mkdir(exist_ok=True)
    in_slices = options.one_in > 1
    asked = requests(options.names, site.folder, out, in_slices=in_slices, locks=options.locks, calls=options.calls)
    with contextlib.ExitStack() as taken:
        programs, *others = (
            _taken(asked, build, options, taken) for build in [None, *([options.against] if options.against else [])]
        )
        found = _pairs(name, site, programs, rule, options, *others)
    found["recorder"] = _recorded(name, site, asked, options)
    site.cluster.stop()
    part = f", one slice in {options.one_in}" if options.one_in > 1 else ""
    probes = ", ".join(asked) or "none"
    arms = ("without", "with") if options.against is None else ("the other", "this build")
    return {"title": f"{workload.title}; probes: {probes}{part}", "bound_percent": bound, "arms": arms} | found


def _taken(
    asked: dict[str, dict[str, Any]], build: Path | None, options: argparse.Namespace, until: contextlib.ExitStack
) -> Programs:
    """The programs of a build of the agent, none of which is left at the end."""
    programs = take_over(asked, build)
    until.callback(programs.close)
    programs.account_every = options.account_every
    if options.calls != "all":
        programs.count_calls_in_slices()
    if options.one_in > 1:
        programs.watch_one_slice_in(options.one_in)
    if options.only:
        programs.keep(options.only)
    return programs


def _recorded(
    name: str, site: LoadedSite, asked: dict[str, dict[str, Any]], options: argparse.Namespace
) -> dict[str, Any] | None:
    if not asked or not options.record_seconds:
        return None
    say(f"{name}: {options.record_seconds:g} s with the agent itself")
    probes = {probe: each["probes"][probe] for probe, each in asked.items()}
    request = {"out": str(site.folder / "watch"), "probes": probes}
    return record(site, request, options.record_seconds, options.seed).as_json()


def _pairs(
    name: str,
    site: LoadedSite,
    programs: Programs,
    rule: Rule,
    options: argparse.Namespace,
    other: Programs | None = None,
) -> dict[str, Any]:
    planned = orders(options.seed, rule.looks[-1])
    run_segment(site, programs, planned[:10], options.window_ms / 1000, 0, other)  # warms up; not counted
    uncached, load_average = site.uncached_bytes(), 0.0
    say(f"{name}: looks at {', '.join(map(str, rule.looks))} pairs")
    pairs: list[Pair] = []
    verdict, why = "cannot tell", f"{rule.looks[-1]} pairs were not enough"
    began = time.monotonic()
    while len(pairs) < rule.looks[-1]:
        if pairs and time.monotonic() - began > 60 * options.minutes_max:
            why = f"{options.minutes_max:g} minutes were not enough"
            break
        look = next(look for look in rule.looks if look > len(pairs))
        until = min(look, len(pairs) + SEGMENT_PAIRS)
        load_average = max(load_average, os.getloadavg()[0])
        pairs += run_segment(site, programs, planned[len(pairs) : until], options.window_ms / 1000, until, other)
        _progress(name, pairs, rule, time.monotonic() - began)
        if lost := programs.lost() + (other.lost() if other is not None else 0):
            verdict, why = "broken", f"{lost} events were lost"
            break
        if len(pairs) == look:
            found, reason = rule.judge([pair.work_ratio for pair in pairs])
            say(f"{name}: look at {look} pairs: {found or 'go on'}: {reason}")
            if found is not None:
                verdict, why = found, reason
                break
    return {
        "workload": name,
        "looks": rule.looks,
        "confidence": rule.confidence,
        "verdict": verdict,
        "why": why,
        "lost": programs.lost(),
        "uncached_bytes": max(uncached, site.uncached_bytes()),
        "load_average": load_average,
        "figures": table.figures(pairs, rule),
        "pairs": [
            {"probe_first": pair.probe_first, "with": pair.arm_with.as_json(), "without": pair.arm_without.as_json()}
            for pair in pairs
        ],
    }


def _progress(name: str, pairs: list[Pair], rule: Rule, seconds: float) -> None:
    look = next(look for look in rule.looks if look >= len(pairs))
    left = seconds / len(pairs) * (look - len(pairs))
    say(f"{name}: {len(pairs)} pairs; load average {os.getloadavg()[0]:.1f}; {left:.0f} s to the look at {look} pairs")


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """Every workload, on a server for each data set; whatever happens the machine is put back."""
    results: list[dict[str, Any]] = []
    try:
        with laboratory(NAME, interrupts) as place:
            sites: dict[Callable[..., LoadedSite], LoadedSite] = {}
            for name in options.workload or WORKLOADS:
                kind = WORKLOADS[name].site
                if kind not in sites:
                    say(f"{name}: making its data set")
                    folder = place.state.work / f"{NAME}-{len(sites)}"
                    sites[kind] = kind(place.state, place.journal, place.install, folder)
                    sites[kind].build()
                results.append(measure(name, sites[kind], options))
                if not options.json:
                    print(table.of(results[-1]), flush=True)
    except Stopped:
        say("stopped: the machine is put back")
        return []
    return results


def code_of(results: list[dict[str, Any]]) -> int:
    """The worst verdict decides."""
    verdicts = {result["verdict"] for result in results}
    if "broken" in verdicts:
        return BROKEN
    return HOLDS if verdicts == {"holds"} else CANNOT_TELL


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="may be repeated; all if left out")
    parser.add_argument(
        "--probe", action="append", choices=[*PROBES, "all", "none"], help="may be repeated; all: together; none: A/A"
    )
    parser.add_argument(
        "--only", action="append", metavar="PROBE.PROGRAM", help="attach only this program; may be repeated"
    )
    parser.add_argument(
        "--calls",
        choices=("slices", "files", "all"),
        default="slices",
        help="of syscalls: which are counted one by one",
    )
    parser.add_argument("--locks", action="store_true", help="of the profile: waits for the kernel's locks, too")
    parser.add_argument(
        "--record-seconds", type=float, default=10, help="of the load beside the agent itself; 0: not measured"
    )
    parser.add_argument(
        "--account-every", type=int, default=5, help="windows: as the agent accounts for run time; 0 never"
    )
    parser.add_argument("--one-in", type=int, default=1, help="of the breakdown: watch one slice of 50 ms in so many")
    parser.add_argument("--against", type=Path, help="the programs of another build of the agent where there were none")
    parser.add_argument("--bound", type=float, metavar="PERCENT", help="2 for wpi_orders, 4 for select-only")
    parser.add_argument("--window-ms", type=int, default=250, help="length of a window")
    parser.add_argument("--pairs-max", type=int, default=800, help="looks at 100, 200, 400, 800 pairs and at the last")
    parser.add_argument("--minutes-max", type=float, default=15, help="of one workload")
    parser.add_argument("--seed", type=int, default=None, help="of the order of arms")
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    if options.pairs_max < LOOKS[0] or options.window_ms < 50:
        parser.error(f"--pairs-max must be at least {LOOKS[0]}, --window-ms at least 50")
    asked = set(options.probe or ["page_cache"])
    options.names = tuple(name for name in PROBES if "all" in asked or name in asked)
    if "none" in asked and len(asked) > 1:
        parser.error("--probe none goes with no other")
    if options.one_in > 1 and "breakdown" not in options.names:
        parser.error("--one-in is for the breakdown")
    if options.locks and "profile" not in options.names:
        parser.error("--locks is for the profile")
    options.seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    return options


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether the bounds hold."""
    options = parse(argv)
    about = {**machine(), "seed": options.seed}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")
    interrupts = Interrupts(Silent())
    try:
        with interrupts.handled(), contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
            results = measure_all(options, interrupts)
    except (Fault, AgentFailed, ServerFailed) as failure:
        say(f"probe_overhead: {failure}")
        return IMPOSSIBLE
    if options.json:
        print(json.dumps({**about, "results": results}))
    return code_of(results)


if __name__ == "__main__":
    sys.exit(main())
