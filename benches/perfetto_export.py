#!/usr/bin/env python3
"""How long a window of 60 s at 5,000 transactions a second takes to export as a Perfetto trace: wall and CPU time.

    .plimsoll/venv/bin/python benches/perfetto_export.py --help

The record is made by arithmetic (tests/unit/export/trace_world.py): it has the size of a real one and nothing else of
it. Each export is a process of its own, from the command line to the closed file. Exit codes: 0 every wall time is
within the bound; 1 one is not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
WORLD: dict[str, Any] = runpy.run_path(str(ROOT / "tests/unit/export/trace_world.py"))


def exported(run: Path, out: Path, seconds: int) -> dict[str, float]:
    """One export, timed from outside."""
    argv = [sys.executable, "-P", "-m", "plimsoll", "export", str(run), "--format", "perfetto"]
    argv += ["--out", str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    answer = subprocess.run(
        [*argv, "--for", str(seconds)], env=environment, check=True, capture_output=True, text=True
    ).stdout
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = json.loads(answer)
    return {"wall_s": wall, "cpu_s": cpu, "mib": said["bytes"] / 2**20, "arrows": said["arrows"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of the window [60]")
    parser.add_argument("--rate", type=int, default=5_000, help="transactions a second [5000]")
    parser.add_argument("--kinds", type=int, default=8, help="kinds of wait of each transaction [8]")
    parser.add_argument("--backends", type=int, default=50, help="[50]")
    parser.add_argument("--repeats", type=int, default=3, help="[3]")
    parser.add_argument("--bound", type=float, default=20.0, help="seconds of wall time that an export may take [20]")
    asked = parser.parse_args()
    count = asked.seconds * asked.rate
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run = WORLD["busy"](folder / "run", count, asked.seconds, asked.backends, asked.kinds)
        print(f"{count:,} transactions, {asked.kinds} kinds of wait each, {asked.backends} backends, load {load()}")
        found = []
        for repeat in range(asked.repeats):
            out = folder / f"{repeat}.pftrace"
            found.append(exported(run, out, asked.seconds))
            out.unlink()
            print(" ".join(f"{key} {value:,.1f}" for key, value in found[-1].items()))
    wall, cpu = (median(one[key] for one in found) for key in ("wall_s", "cpu_s"))
    worst = max(one["wall_s"] for one in found)
    print(f"median wall {wall:.1f} s, CPU {cpu:.1f} s; longest {worst:.1f} s, bound {asked.bound:.0f} s; load {load()}")
    return 0 if worst <= asked.bound else 1


def load() -> str:
    """What else the machine did, on average of a minute."""
    return f"{os.getloadavg()[0]:.2f}"


if __name__ == "__main__":
    sys.exit(main())
