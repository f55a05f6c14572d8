#!/usr/bin/env python3
"""raw_storage's phases against bonnie++'s: ratios of K/s in pairs in random order.

    .plimsoll/venv/bin/python benches/against_bonnie.py --help

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured, and why some phases have no bound.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, machine, measured, say
from overhead.judge import orders
from peers import judge
from tables import HELD

from plimsoll.environment import Fault, StateDir
from plimsoll.run import agent
from plimsoll.run.signals import Interrupts

CHUNK_BYTES = 8_192
SEEKS, SEEKERS = 8_192, 5  # bonnie++'s own
AGREEMENT = 0.05
# Columns of bonnie++'s line of figures, of those phases that are the same in both.
COLUMNS = {"write": 11, "rewrite": 13, "read": 17, "seeks": 19}


@dataclass(frozen=True)
class Figures:
    """Of one phase: K/s (seeks a second), and seconds of CPU time a K (a seek)."""

    rate: float
    cpu: float


def theirs(folder: Path, size_mb: int) -> dict[str, Figures]:
    """Figures of each phase by bonnie++; what it took less than half a second for it does not tell."""
    program = shutil.which("bonnie++", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise Fault("there is no bonnie++", remedy="install Debian's package bonnie++")
    sizes = ["-r", "0", "-s", f"{size_mb}:{CHUNK_BYTES}", "-n", "0"]
    argv = [program, "-d", str(folder), "-u", "root", *sizes, "-f", "-q", "-x", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Fault(f"bonnie++: {done.stderr.strip()}", remedy="see its words")
    fields = done.stdout.strip().splitlines()[-1].split(",")
    told = {phase: at for phase, at in COLUMNS.items() if not fields[at].startswith("+")}
    return {
        phase: Figures(float(fields[at]), float(fields[at + 1]) / 100 / float(fields[at])) for phase, at in told.items()
    }


def ours(folder: Path, seed: int, options: argparse.Namespace) -> dict[str, Figures]:
    """Figures of each phase by the agent, which verifies every chunk unless told not to."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        workload = {
            "name": "raw_storage",
            "seed": seed,
            "file_bytes": options.size_mb << 20,
            "chunk_bytes": CHUNK_BYTES,
        }
        # bonnie++ has an fsync within the time of each phase, where the original has none.
        workload |= {"seeks": SEEKS, "seekers": SEEKERS, "fsync": True, "verify": options.verify}
        kept = (
            {"rows_max": 20_000_000, "sample_one_in": 100} if options.rows else {"rows_max": 0, "sample_one_in": 1_000}
        )
        about: dict[str, Any] = {"target": {"kind": "files", "folder": place}}
        agent.call("populate", about | {"workload": workload | {"phase": "write"}})
        found = {}
        for phase in COLUMNS:
            found[phase] = _phase(about | kept | {"workload": workload | {"phase": phase}}, phase)
        agent.call("drop", about | {"workload": workload | {"phase": "write"}})
    return found


def _phase(request: dict[str, Any], phase: str) -> Figures:
    with tempfile.TemporaryDirectory() as out:
        clients = SEEKERS if phase == "seeks" else 1
        summary = agent.call("load", request | {"clients": clients, "out": out})
    # The file's end is in the time, and is no chunk.
    done = summary["by_kind"][phase]["done"]
    if done != summary["facts"]["records_planned"]:
        raise Fault(
            f"{phase}: {summary['identity']} {summary['errors']}", remedy="run it again, and look at the folder"
        )
    seconds = (summary["ended_ns"] - summary["started_ns"]) / 1e9
    each = 1 if phase == "seeks" else CHUNK_BYTES / 1024
    moved = float(done * each)
    health = summary["health"]
    return Figures(moved / seconds, (health["cpu_user_ns"] + health["cpu_system_ns"]) / 1e9 / moved)


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All phases by both, pair by pair."""
    say(f"{folder}: one of each, not counted")
    theirs(folder, options.size_mb)
    ours(folder, options.seed, options)
    runs: dict[bool, list[dict[str, Figures]]] = {True: [], False: []}
    for number, ours_first in enumerate(orders(options.seed, options.pairs), start=1):
        for mine in (ours_first, not ours_first):
            run = ours(folder, options.seed + number, options) if mine else None
            runs[mine].append(run or theirs(folder, options.size_mb))
        say(f"  pair {number} of {options.pairs}; load average {os.getloadavg()[0]:.1f}")
    told = [phase for phase in COLUMNS if all(phase in run for run in runs[False])]

    def of(phase: str, figure: str) -> judge.Ratio:
        both = [[getattr(run[phase], figure) for run in runs[mine]] for mine in (True, False)]
        return judge.ratio(phase, *both)

    rates, cpu = [of(phase, "rate") for phase in told], [of(phase, "cpu") for phase in told]
    return {
        "folder": str(folder),
        "ours": [{phase: asdict(one) for phase, one in run.items()} for run in runs[True]],
        "theirs": [{phase: asdict(one) for phase, one in run.items()} for run in runs[False]],
        "untold": [phase for phase in COLUMNS if phase not in told],
        "rates": [asdict(one) for one in rates],
        "cpu": [asdict(one) for one in cpu],
        "bounds": [asdict(judge.within(one, AGREEMENT)) for one in rates],
    }


def text_of(found: dict[str, Any]) -> str:
    """A folder's result in text."""
    lines = [found["folder"]]
    for rate, cpu, bound in zip(found["rates"], found["cpu"], found["bounds"], strict=True):
        phase = rate["what"]
        for whose in ("ours", "theirs"):
            rates = [run[phase]["rate"] for run in found[whose]]
            lines.append(f"  {phase:8} {whose:7} {min(rates):,.0f} to {max(rates):,.0f} K/s")
        ratios = [f"{each['value']:.3f} x [{each['low']:.3f}, {each['high']:.3f}]" for each in (rate, cpu)]
        lines.append(f"    rate {ratios[0]}, CPU time a K {ratios[1]}; {bound['text']}: {HELD[bound['holds']]}")
    lines += [f"  {phase:8} not told by bonnie++: less than half a second" for phase in found["untold"]]
    return "\n".join(lines)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--folder",
        type=Path,
        action="append",
        help="on the file system to be measured; may be repeated; /dev/shm and the state folder if left out",
    )
    parser.add_argument("--size-mb", type=int, default=2048)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None, help="of the order of arms, and of our seeks")
    parser.add_argument("--rows", action="store_true", help="ours leaves a row for each chunk, not one in a thousand")
    parser.add_argument(
        "--verify",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether ours compares what it reads with what it wrote, which bonnie++ does not",
    )
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    if options.pairs < 3:
        parser.error("--pairs must be at least 3")
    options.folder = options.folder or [Path("/dev/shm"), StateDir().prepare().work]
    if not all(folder.is_dir() for folder in options.folder):
        parser.error("--folder must be a folder")
    options.seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    return options


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """One folder after the other, each with a folder of its own in it."""
    found = []
    for folder in options.folder:
        with interrupts.may_cut(), tempfile.TemporaryDirectory(dir=folder, prefix="against-bonnie-") as place:
            found.append(measure(Path(place), options))
    return found


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    about = {**machine(), "seed": options.seed, "size_mb": options.size_mb, "verify": options.verify}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")
    found = measured("against_bonnie", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(found, int):
        return found
    print(json.dumps({**about, "folders": found}) if options.json else "\n".join(map(text_of, found)))
    return code_of([bound for one in found for bound in one["bounds"]])


if __name__ == "__main__":
    sys.exit(main())
