#!/usr/bin/env python3
"""decision_support's load test against psql's \\copy and against DBT-3's way: ratios in pairs in random order.

    .plimsoll/venv/bin/python benches/load_test.py --help

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, laboratory, machine, measured, say
from overhead.judge import orders
from peers import judge, tables
from peers.site import SETTINGS, Bank
from tables import bound_lines

from plimsoll.run.signals import Interrupts

NAME = "load-test"
LINES_BOUND = 1.4
WHOLE_BOUND = 0.7


def measure(dss: tables.DecisionSupport, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of ours, of a copy of ready lines, and of generating, copying and indexing everything, pair by pair."""
    say("loading once, not counted")
    rows = dss.ours().rows[tables.LINES]
    dss.model()
    dss.empty("ours")
    loads: list[tables.Load] = []
    copied_s: list[float] = []
    theirs_s: list[float] = []
    for number, ours_first in enumerate(orders(options.seed, options.pairs), start=1):
        for mine in (ours_first, not ours_first):
            if mine:
                loads.append(dss.ours())
                dss.empty("ours")
                continue
            theirs_s.append(dss.theirs())
            dss.empty("theirs")
            # The file of lines that generating has just written is ready now.
            copied_s.append(dss.copy_lines())
            dss.empty("theirs")
        ours = loads[-1]
        say(
            f"  pair {number} of {options.pairs}: lineitem {ours.lines_s:.1f} s, \\copy {copied_s[-1]:.1f} s; "
            f"everything {ours.whole_s:.1f} s, generate-then-copy {theirs_s[-1]:.1f} s; "
            f"load average {os.getloadavg()[0]:.1f}"
        )
    lines = judge.ratio("rows of lineitem a second", [1 / one.lines_s for one in loads], [1 / s for s in copied_s])
    whole = judge.ratio("time of everything", [one.whole_s for one in loads], theirs_s)
    return {
        "lines": rows,
        "ours": [asdict(one) for one in loads],
        "copied_s": copied_s,
        "theirs_s": theirs_s,
        "ratios": [asdict(lines), asdict(whole)],
        "bounds": [asdict(judge.at_least(lines, LINES_BOUND)), asdict(judge.at_most(whole, WHOLE_BOUND))],
    }


def text_of(found: dict[str, Any]) -> str:
    """The result in text."""
    lines = []
    for name, seconds in [
        ("lineitem by populate", [one["lines_s"] for one in found["ours"]]),
        ("lineitem by \\copy", found["copied_s"]),
        ("everything by populate", [one["whole_s"] for one in found["ours"]]),
        ("generate-then-copy", found["theirs_s"]),
    ]:
        lines.append(f"  {name:26}{min(seconds):8.1f} to {max(seconds):.1f} s")
    last = found["ours"][-1]
    for phase in last["phases"]:
        lines.append(f"    {phase['phase']:24}{phase['ended_s'] - phase['began_s']:8.1f} s")
    for each in found["ratios"]:
        lines.append(f"  {each['what']:28}{each['value']:.3f} x [{each['low']:.3f}, {each['high']:.3f}]")
    return "\n".join([*lines, *bound_lines(found["bounds"])])


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> dict[str, Any]:
    """On one server; whatever happens the machine is put back."""
    settings = dict(SETTINGS) | {"wal_level": options.wal_level}
    if options.wal_level == "minimal":
        settings["max_wal_senders"] = 0
    with laboratory(NAME, interrupts) as place:
        site = Bank(place.state, place.journal, place.install, place.state.work / NAME, scale=0)
        say("making its server")
        site.build()
        site.start(settings)
        folder = site.folder / "tbl"
        with tables.files(folder, site.cluster.user):
            found = measure(tables.DecisionSupport(site, folder, options.scale_factor, options.parallel), options)
        site.cluster.stop()
    return found


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--parallel", type=int, default=2, help="our connections")
    parser.add_argument("--wal-level", default="replica", choices=["minimal", "replica"])
    parser.add_argument("--seed", type=int, default=None, help="of the order of arms")
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    if options.pairs < 3:
        parser.error("--pairs must be at least 3")
    options.seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    return options


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    about = {**machine(), "seed": options.seed, "scale_factor": options.scale_factor, "wal_level": options.wal_level}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")
    found = measured("load_test", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(found, int):
        return found
    print(json.dumps({**about, **found}) if options.json else text_of(found))
    return code_of(found["bounds"])


if __name__ == "__main__":
    sys.exit(main())
