#!/usr/bin/env python3
"""Plimsoll's generator and loaders against pgbench's, sysbench's and psql's: ratios in pairs in random order.

    .plimsoll/venv/bin/python benches/against_peers.py --help

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, laboratory, machine, measured, say
from overhead.judge import orders
from peers import copying, judge
from peers.arms import OTHER_BUILD, Arm, Bare, Pgbench, Plimsoll, Run, Sysbench, Task
from peers.judge import Bound, Ratio
from peers.site import SETTINGS, Bank
from tables import bound_lines, ratio_lines

from plimsoll.run import agent
from plimsoll.run.signals import Interrupts

NAME = "against-peers"
KINDS = ("select_only", "tpcb_like", "point_select")
LOADS = ("loader", "copying")
CAPACITY_SHARE = 0.3
AGREEMENT = 0.05
LOADER_BOUND = 1.5
COPYING_BOUND = 0.8
WORSE_BY = 1.02  # than another build of the agent, at most


def pairs(ours: Arm, theirs: Arm, task: Task, count: int, seed: int) -> tuple[list[Run], list[Run]]:
    """Runs of both, each pair in random order; one of each before them is not counted."""
    for arm in (theirs, ours):
        arm.run(task)
    found: tuple[list[Run], list[Run]] = ([], [])
    began = time.monotonic()
    for number, ours_first in enumerate(orders(seed, count), start=1):
        both = Task(**{**asdict(task), "seed": task.seed + number})
        for mine in (ours_first, not ours_first):
            found[0 if mine else 1].append((ours if mine else theirs).run(both))
        left = (time.monotonic() - began) / number * (count - number)
        say(f"  pair {number} of {count}; load average {os.getloadavg()[0]:.1f}; about {left:.0f} s left")
    return found


def cost_bounds(kind: str, found: list[Ratio], is_other_build: bool) -> list[Bound]:
    """What the generator's cost is held to."""
    cpu, tps = found
    if is_other_build:
        return [judge.at_most(cpu, WORSE_BY)]
    if kind == "select_only":
        return [judge.at_most(cpu, 0.7), judge.median_at_least(tps, 1.05), judge.at_least(tps, 1.0)]
    if kind == "tpcb_like":
        return [judge.at_most(cpu, 0.8), judge.at_least(tps, 1.0)]
    return [judge.at_most(cpu, 0.5)]


def measure_cost(site: Bank, options: argparse.Namespace) -> list[dict[str, Any]]:
    """CPU time a transaction and throughput at saturation."""
    results = []
    for kind in options.kind or KINDS:
        theirs, judged, reported = _floor_arms(site) if options.floor else _arms(site, kind, options.against)
        for clients in options.clients:
            for ours in (judged, *reported):
                say(f"{kind}, {clients} connections: {ours.name} against {theirs.name}")
                task = Task(kind, clients, options.seconds, options.seed)
                mine, peers = pairs(ours, theirs, task, options.pairs, options.seed)
                found = judge.cost(mine, peers)
                bounds = cost_bounds(kind, found, options.against is not None) if ours is judged else []
                results.append(_result(f"{kind}, {clients} connections", ours, theirs, mine, peers, found, bounds))
    return results


def _arms(site: Bank, kind: str, other_build: Path | None = None) -> tuple[Arm, Arm, list[Arm]]:
    """The peer, ours with equal messages, and what is shown beside."""
    place = (site.cluster, site.install.bin_dir, site.folder)
    if other_build is not None:
        return Plimsoll(*place, program=other_build), Plimsoll(*place), []
    if kind == "point_select":
        peer = Sysbench(*place)
        peer.prepare()
        return peer, Plimsoll(*place, describe=False), []
    return _pgbench(site), Plimsoll(*place), [Plimsoll(*place, describe=False)]


def _pgbench(site: Bank) -> Pgbench:
    return Pgbench(site.cluster, site.install.bin_dir, site.logs)


def _floor_arms(site: Bank) -> tuple[Arm, Arm, list[Arm]]:
    place = (site.cluster, site.install.bin_dir, site.folder)
    bare = [Bare(*place, pin_threads=pinned, scale=site.scale) for pinned in (True, False)]
    return _pgbench(site), Plimsoll(*place), [Plimsoll(*place, pin_threads=False), *bare]


def measure_latency(site: Bank, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Latency at a share of capacity, from pgbench's own log and from our rows."""
    results = []
    theirs, ours, _ = _arms(site, "select_only")
    for clients in options.clients:
        full = theirs.run(Task("select_only", clients, options.seconds, options.seed))
        rate = round(CAPACITY_SHARE * full.tps)
        say(f"select_only, {clients} connections at {rate}/s")
        task = Task("select_only", clients, options.seconds, options.seed, float(rate))
        mine, peers = pairs(ours, theirs, task, options.pairs, options.seed)
        found = judge.latency(mine, peers)
        bounds = [judge.within(each, AGREEMENT) for each in found]
        title = f"latency of select_only, {clients} connections at {rate}/s, {CAPACITY_SHARE:.0%} of capacity"
        results.append(_result(title, ours, theirs, mine, peers, found, bounds))
    return results


def measure_loader(site: Bank, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows a second of the whole of `pgbench -i` and of `populate`, into the same empty database."""
    rows = options.scale * 100_011
    peer = "pgbench" if options.against is None else OTHER_BUILD
    found: dict[str, list[float]] = {"plimsoll": [], peer: []}
    phases: list[Any] = []
    for number, ours_first in enumerate(orders(options.seed, options.pairs), start=1):
        for mine in (ours_first, not ours_first):
            site.drop_tables()
            began = time.monotonic()
            phases.append(_fill(site, options, mine))
            found["plimsoll" if mine else peer].append(rows / (time.monotonic() - began))
        said = ", ".join(f"{name} {values[-1]:,.0f} rows/s" for name, values in found.items())
        say(f"  pair {number} of {options.pairs}: {said}")
    ratio = judge.ratio("rows a second", found["plimsoll"], found[peer])
    bound = judge.at_least(ratio, LOADER_BOUND if options.against is None else 1 / WORSE_BY)
    title = f"loading scale {options.scale}, {options.partitions} partitions, wal_level {options.wal_level}"
    return [
        {
            "title": title,
            "ratios": [asdict(ratio)],
            "bounds": [asdict(bound)],
            "rows_per_second": found,
            "phases": phases,
        }
    ]


def measure_copying(site: Bank, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows a second of order_entry's loader against `psql \\copy` of the same rows from ready files."""
    tables = copying.OrderEntry(site, options.scale, options.parallel)
    found: dict[str, list[float]] = {"plimsoll": [], "psql": []}
    whole: list[float] = []
    with copying.files(site.cluster.user):
        tables.ours()
        rows = tables.prepare()
        tables.empty("ours")
        for number, ours_first in enumerate(orders(options.seed, options.pairs), start=1):
            for mine in (ours_first, not ours_first):
                if mine:
                    load = tables.ours()
                    whole.append(load.whole_s)
                    found["plimsoll"].append(rows / load.rows_s)
                else:
                    found["psql"].append(rows / tables.theirs())
                tables.empty("ours" if mine else "theirs")
            said = ", ".join(f"{name} {values[-1]:,.0f} rows/s" for name, values in found.items())
            say(f"  pair {number} of {options.pairs}: {said}; {60 * options.scale / whole[-1]:.1f} warehouses a minute")
    ratio = judge.ratio("rows a second", found["plimsoll"], found["psql"])
    title = f"order_entry, {options.scale} warehouses, {options.parallel} sessions, wal_level {options.wal_level}"
    return [
        {
            "title": title,
            "ratios": [asdict(ratio)],
            "bounds": [asdict(judge.at_least(ratio, COPYING_BOUND))],
            "rows_per_second": found,
            "warehouses_per_minute": [60 * options.scale / seconds for seconds in whole],
        }
    ]


def _fill(site: Bank, options: argparse.Namespace, mine: bool) -> dict[str, Any]:
    if mine or options.against is not None:
        return _populate(site, options, agent.PROGRAM if mine else options.against)
    return _init_phases(site, options)


def _populate(site: Bank, options: argparse.Namespace, program: Path) -> dict[str, Any]:
    tables = {"scale": options.scale, "partitions": options.partitions}
    workload = {"name": "bank", "seed": 1, "transaction": "tpcb_like", **tables}
    target = {**site.cluster.connection.as_request(), "schema": "public"}
    seen: list[Any] = []
    request = {"target": target, "workload": workload, "parallel": 2}
    running = agent.Agent("populate", request, program=program)
    seen.extend(line for line in running.lines() if line.get("event") in ("phase", "populated"))
    running.finish()
    return {"plimsoll": [{key: line.get(key) for key in ("phase", "seconds")} for line in seen]}


def _init_phases(site: Bank, options: argparse.Namespace) -> dict[str, Any]:
    output = site.pgbench_init(options.scale, options.partitions)
    done = re.search(r"done in .*", output)
    return {"pgbench": done[0] if done else output[-200:]}


def _result(
    title: str,
    ours: Arm,
    theirs: Arm,
    mine: list[Run],
    peers: list[Run],
    found: list[Ratio],
    bounds: list[Bound],
) -> dict[str, Any]:
    def means(runs: list[Run]) -> dict[str, float]:
        return {
            "cpu_us": sum(run.cpu_us for run in runs) / len(runs),
            "tps": sum(run.tps for run in runs) / len(runs),
            "transactions": sum(run.transactions for run in runs) / len(runs),
        }

    return {
        "title": title,
        "arms": {ours.name: means(mine), theirs.name: means(peers)},
        "ratios": [asdict(each) for each in found],
        "bounds": [asdict(each) for each in bounds],
    }


def text_of(result: dict[str, Any]) -> str:
    """One comparison in text."""
    lines = [result["title"]]
    for name, arm in result.get("arms", {}).items():
        lines.append(f"  {name:26}{arm['cpu_us']:8.2f} us of CPU a transaction {arm['tps']:12,.0f} transactions/s")
    for name, values in result.get("rows_per_second", {}).items():
        lines.append(f"  {name:26}{sum(values) / len(values):12,.0f} rows/s")
    if loads := result.get("warehouses_per_minute"):
        lines.append(f"  warehouses a minute, whole: {min(loads):.1f} to {max(loads):.1f}")
    return "\n".join([*lines, *ratio_lines(result["ratios"]), *bound_lines(result["bounds"])])


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """On one server; whatever happens the machine is put back."""
    measures = {"cost": measure_cost, "latency": measure_latency, "loader": measure_loader, "copying": measure_copying}
    settings = dict(SETTINGS) | ({} if options.durable else {"synchronous_commit": False})
    if options.what in LOADS:
        settings |= {"wal_level": options.wal_level} | (
            {"max_wal_senders": 0} if options.wal_level == "minimal" else {}
        )
    with laboratory(NAME, interrupts) as place:
        scale = 0 if options.what in LOADS else options.scale
        site = Bank(place.state, place.journal, place.install, place.state.work / NAME, scale=scale)
        say("making its data set")
        site.build()
        site.start(settings)
        results = measures[options.what](site, options)
        site.cluster.stop()
    return results


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["cost", "latency", *LOADS], help="what is compared")
    parser.add_argument("--kind", action="append", choices=KINDS, help="of cost; may be repeated; all if left out")
    parser.add_argument(
        "--against", type=Path, help="of cost and loader: another build of the agent in the place of the peer"
    )
    parser.add_argument("--floor", action="store_true", help="of cost: beside it a bare client, and threads not pinned")
    parser.add_argument("--clients", action="append", type=int, help="may be repeated; 8 and 32 if left out")
    parser.add_argument("--pairs", type=int, help="runs of each arm; 20, of the loaders 5")
    parser.add_argument("--seconds", type=float, default=5, help="of one run")
    parser.add_argument("--scale", type=int, help="of the tables; 50, of the loader 100; of copying: warehouses, 10")
    parser.add_argument("--parallel", type=int, default=2, help="sessions of copying, on both sides")
    parser.add_argument("--partitions", type=int, default=0, help="of the loader's accounts, by range")
    parser.add_argument("--wal-level", default="replica", choices=["minimal", "replica"], help="of a loader's server")
    parser.add_argument("--durable", action="store_true", help="wait for the device at commit")
    parser.add_argument("--seed", type=int, default=None, help="of the order of arms and of the transactions")
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    options.pairs = options.pairs or (5 if options.what in LOADS else 20)
    options.scale = options.scale or {"loader": 100, "copying": 10}.get(options.what, 50)
    options.clients = options.clients or [8, 32]
    if options.pairs < 3 or options.seconds < 1:
        parser.error("--pairs must be at least 3, --seconds at least 1")
    if options.against is not None and (options.floor or options.what not in ("cost", "loader")):
        parser.error("--against is of cost and loader, and not with --floor")
    if options.against is not None and not os.access(options.against, os.X_OK):
        parser.error(f"--against {options.against}: not a program")
    if options.floor:
        options.kind = ["select_only"]
    options.seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    return options


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    about = {**machine(), "seed": options.seed}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")
    results = measured("against_peers", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(results, int):
        return results
    if options.json:
        print(json.dumps({**about, "results": results}))
    else:
        print("\n".join(text_of(result) for result in results))
    return code_of(bound for result in results for bound in result["bounds"])


if __name__ == "__main__":
    sys.exit(main())
