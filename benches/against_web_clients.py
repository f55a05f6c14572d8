#!/usr/bin/env python3
"""The load of web serving beside wrk, h2load, ab and oha: ratios in pairs in random order.

    .plimsoll/venv/bin/python benches/against_web_clients.py --help

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, machine, measured, say
from overhead.judge import orders
from peers import judge
from peers.web import PEERS, Client, Plimsoll, Run, Site, Task, had_by, site, there
from tables import bound_lines, ratio_lines

from plimsoll.environment import Fault, StateDir, web_servers
from plimsoll.run.signals import Interrupts

KINDS = ("keep_alive", "one_request", "rate")
# Whom each kind is measured against: h2load keeps its connections, and of these oha alone has an open loop.
AGAINST = {"keep_alive": ("wrk", "h2load", "ab", "oha"), "one_request": ("wrk", "ab"), "rate": ("oha",)}
CAPACITY_SHARE = 0.5


def pairs(place: Site, task: Task, peer: Client, options: argparse.Namespace) -> tuple[list[Run], list[Run]]:
    """Runs of both, each pair in random order; one of each before them is not counted."""
    ours = Plimsoll()
    for client in (peer, ours):
        client.run(place, task)
    found: tuple[list[Run], list[Run]] = ([], [])
    for number, ours_first in enumerate(orders(options.seed, options.pairs), start=1):
        both = replace(task, seed=task.seed + number)
        for mine in (ours_first, not ours_first):
            found[0 if mine else 1].append((ours if mine else peer).run(place, both))
        said = f"{found[0][-1].requests_per_s:,.0f} and {found[1][-1].requests_per_s:,.0f} requests/s"
        say(f"  pair {number} of {options.pairs}: {said}; load average {os.getloadavg()[0]:.1f}")
    return found


def bounds_of(kind: str, peer: str, found: dict[str, judge.Ratio]) -> list[judge.Bound]:
    """What is promised beside this peer."""
    if kind == "rate":
        return [judge.at_most(found[name], 1.0) for name in ("p50", "p99")]
    if kind == "one_request":
        return [judge.at_least(found["requests/s"], 0.9)]
    if peer == "wrk":
        return [judge.at_least(found["requests/s"], 0.95), judge.at_most(found["CPU a request"], 1.1)]
    return [judge.at_most(found["CPU a request"], 0.6)] if peer == "oha" else []


def measure(place: Site, kind: str, peer: Client, options: argparse.Namespace) -> dict[str, Any]:
    """One kind of work by ours and by a peer."""
    task = Task(options.connections, options.seconds, keeps=kind != "one_request", seed=options.seed % 1_000_000)
    if kind == "rate":
        full = Plimsoll().run(place, task)
        task = replace(task, rate=round(CAPACITY_SHARE * full.requests_per_s))
    title = f"{kind}, {task.connections} connections" + ("" if task.rate is None else f", {task.rate} requests/s")
    say(f"{title}: plimsoll and {peer.name}")
    ours, theirs = pairs(place, task, peer, options)

    def ratio(what: str, of: Any) -> judge.Ratio:
        return judge.ratio(what, *([float(of(run)) for run in runs] for runs in (ours, theirs)))

    found = {
        "requests/s": ratio("requests/s", lambda run: run.requests_per_s),
        "CPU a request": ratio("CPU a request", lambda run: run.cpu_us),
        "CPU without the start": ratio("CPU without the start", lambda run: run.load_us),
    }
    if task.rate is not None:
        found |= {name: ratio(name, lambda run, name=name: run.quantiles_us[name]) for name in ("p50", "p99")}
    return {
        "title": title,
        "arms": {"plimsoll": _means(ours), peer.name: _means(theirs)},
        "ratios": [asdict(each) for each in found.values()],
        "bounds": [asdict(bound) for bound in bounds_of(kind, peer.name, found)],
    }


def _means(runs: list[Run]) -> dict[str, float]:
    def mean(key: str) -> float:
        return float(sum(getattr(run, key) for run in runs) / len(runs))

    return {key: mean(key) for key in ("requests_per_s", "cpu_us", "load_us")}


def text_of(result: dict[str, Any]) -> str:
    """One comparison in text."""
    lines = [result["title"]]
    for name, arm in result["arms"].items():
        cpu = f"{arm['cpu_us']:8.2f} us of CPU a request ({arm['load_us']:.2f} without the start)"
        lines.append(f"  {name:10}{arm['requests_per_s']:12,.0f} requests/s {cpu}")
    return "\n".join([*lines, *ratio_lines(result["ratios"]), *bound_lines(result["bounds"])])


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """On one server, every kind beside every peer that is here."""
    nginx = web_servers.nginx()
    if nginx is None:
        raise Fault("there is no nginx", remedy="run setup/setup --web, which starts no service")
    if (os.cpu_count() or 1) < 2:
        raise Fault("server and client need a CPU each", remedy="measure on a machine with two")
    results = []
    with StateDir().hold_lock(), interrupts.may_cut(), site(str(nginx.program)) as place:
        for kind in options.kind or KINDS:
            for name in AGAINST[kind]:
                if not there(name):
                    say(f"{kind}: {name} not had, and left out; {had_by(name)}")
                    continue
                results.append(measure(place, kind, PEERS[name], options))
                if not options.json:
                    print(text_of(results[-1]), flush=True)
    if not results:
        raise Fault("no peer is here", remedy="install the packages wrk, nghttp2-client and apache2-utils")
    return results


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated; all if left out")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=20, help="runs of each side")
    parser.add_argument("--seconds", type=int, default=5, help="of one run")
    parser.add_argument("--seed", type=int, default=None, help="of the order of sides and of the requests")
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    if options.pairs < 3 or options.seconds < 1 or options.connections < 1:
        parser.error("--pairs must be at least 3, --seconds and --connections at least 1")
    options.seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    return options


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    about = {**machine(), "seed": options.seed}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")

    results = measured("against_web_clients", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(results, int):
        return results
    if options.json:
        print(json.dumps({**about, "results": results}))
    return code_of(bound for result in results for bound in result["bounds"])


if __name__ == "__main__":
    sys.exit(main())
