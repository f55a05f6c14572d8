#!/usr/bin/env python3
"""Equal servers, and servers that differ by a planted ratio, by windows and by trials: how often told, how sharply.

    .plimsoll/venv/bin/python benches/known_differences.py --help

Each run is one of `./plimsoll run`, on private servers on this machine, for so many minutes. Equal treatments differ by
a variable that no statement reads; planted ones by how long a function of the server counts inside each transaction.
Twenty runs of both designs take hours: with --into FILE each run's pairs are kept as they come, the runs that FILE has
are not done again, and --for ends between two runs; what is judged is all that FILE has of the same question.
Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 a run ended without a verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# One transaction of TPC-B's shape, and a loop of the server's own that takes CPU time and nothing else.
SCRIPT = """\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
SELECT count_to(:loops);
END;
"""
SETUP = """CREATE FUNCTION count_to(loops bigint) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN FOR step IN 1..loops LOOP NULL; END LOOP; END $$;
"""
EXPERIMENT = """format = 1
name = "known-differences"
title = "What do equal servers, and servers with a planted difference, look like?"

[environment]
memory = "768 MiB"
swap = 0

[target]
server = "postgresql"

[target.settings]
shared_buffers = "256 MiB"
fsync = {fsync}
synchronous_commit = true
full_page_writes = true
checkpoint_timeout = "1h"
max_wal_size = "16GB"
autovacuum = false

[workload]
name = "script"
clients = 8
data = "bank"
scale = 10
setup = "setup.sql"
variables = {{ loops = {loops}, nothing = 0 }}
files = [{{ path = "transaction.sql" }}]

[warmup]
until = "none"
prewarm = true

[measure]
seconds = {measure}

[design]
{design}

[[factors]]
path = "workload.variables.{varied}"
levels = {levels}
"""


START_SECONDS = 2.5  # of a clone, a start, a cache that is filled from the tables, counters and an end
SWITCH_SECONDS = 0.02  # from one window to the next
NEIGHBOUR = """import random, time
while True:
    end = time.monotonic() + random.expovariate(1)
    while time.monotonic() < end:
        pass
    time.sleep(random.expovariate(1))
"""


@dataclass(frozen=True)
class Found:
    """What a run said of a pair: the ratio of throughput, second over first, its interval (if it has one), the word."""

    design: str
    run: int
    first: str
    second: str
    ratio: float
    low: float | None
    high: float | None
    word: str

    @property
    def half_width(self) -> float:
        """Of the interval, as a share; without one it is endless."""
        return math.inf if self.low is None or self.high is None else math.sqrt(self.high / self.low) - 1

    @property
    def is_told(self) -> bool:
        """Whether the two are said to differ."""
        return self.word in ("worse", "better")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", choices=("windows", "trials"), action="append", help="may be repeated [windows]")
    parser.add_argument("--equal", type=int, metavar="SERVERS", help="so many equal servers [5]")
    parser.add_argument("--planted", type=float, metavar="PERCENT", help="two servers, one of them this much slower")
    parser.add_argument("--runs", type=int, default=20, help="[20]")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each run [5]")
    parser.add_argument("--blocks", type=int, default=2, help="[2]")
    parser.add_argument(
        "--loops", type=int, default=20_000, help="of the unhurried server, in each transaction [20000]"
    )
    parser.add_argument("--window", type=float, default=1.0, metavar="SECONDS", help="how long one is [1]")
    parser.add_argument("--lead-in", type=float, default=0.25, metavar="SECONDS", help="of each, left out [0.25]")
    parser.add_argument("--no-fsync", action="store_true", help="commits do not wait for the device")
    parser.add_argument("--neighbour", action="store_true", help="another process burns one CPU half of the time")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--into", type=Path, metavar="FILE", help="pairs are kept there and taken from there")
    parser.add_argument("--for", type=float, dest="budget", metavar="MINUTES", help="begin no run that would end later")
    parser.add_argument("--json", action="store_true", help="pairs as JSON, one a line")
    asked = parser.parse_args()
    if (asked.equal is None) == (asked.planted is None):
        parser.error("one of --equal and --planted is needed")
    designs = asked.design or ["windows"]
    order = [(number, design) for number in range(1, asked.runs + 1) for design in shuffled(designs, asked, number)]
    kept = Kept(asked.into, question_of(asked))
    left = [one for one in order if one not in kept.runs]
    ends = math.inf if asked.budget is None else time.monotonic() + 60 * asked.budget
    with tempfile.TemporaryDirectory(prefix="plimsoll-known-", dir="/var/tmp") as folder, neighbour(asked.neighbour):
        levels = list(range(asked.equal)) if asked.equal else planted(Path(folder), asked) if left else []
        began = time.monotonic()
        for done, (number, design) in enumerate(left):
            each = (time.monotonic() - began) / done if done else 60 * asked.minutes
            if time.monotonic() + each > ends:
                break
            pairs = one_run(Path(folder), design, number, levels, asked)
            if pairs is None:
                return 3
            kept.add(pairs)
            for pair in pairs:
                print(json.dumps(asdict(pair)) if asked.json else line(pair), flush=True)
            minutes = (time.monotonic() - began) / (done + 1) * (len(left) - done - 1) / 60
            print(f"{done + 1} of {len(left)} runs; about {minutes:.0f} min left", file=sys.stderr, flush=True)
    held = [judged(design, kept.of(design), asked) for design in designs]
    return 0 if all(held) else 1


def question_of(asked: argparse.Namespace) -> dict[str, Any]:
    """What two runs must have been asked alike to be judged together."""
    names = ("equal", "planted", "minutes", "blocks", "loops", "window", "lead_in", "no_fsync", "neighbour", "seed")
    return {name: getattr(asked, name) for name in names}


@dataclass
class Kept:
    """The pairs of all runs so far; a line of the file is a pair, what was asked, and the commit that was measured."""

    file: Path | None
    question: dict[str, Any]
    pairs: list[Found] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.file is None or not self.file.exists():
            return
        names = [column.name for column in fields(Found)]
        for number, text in enumerate(self.file.read_text().splitlines(), start=1):
            try:
                row = json.loads(text)
                if row["question"] == self.question:
                    self.pairs.append(Found(**{name: row[name] for name in names}))
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{self.file}, line {number}: not a pair ({error}); name another file") from error

    @property
    def runs(self) -> set[tuple[int, str]]:
        """Number and design of those that are through."""
        return {(pair.run, pair.design) for pair in self.pairs}

    def of(self, design: str) -> list[Found]:
        """The pairs of one design."""
        return [pair for pair in self.pairs if pair.design == design]

    def add(self, pairs: list[Found]) -> None:
        """All pairs of a run in one write, so that a file never holds half a run."""
        self.pairs += pairs
        if self.file is not None:
            also = {"commit": commit(), "day": time.strftime("%Y-%m-%d"), "question": self.question}
            with self.file.open("a") as file:
                file.write("".join(json.dumps({**asdict(pair), **also}) + "\n" for pair in pairs))


def commit() -> str:
    """Of this tree; "+" where it has changes besides."""
    said = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(said, capture_output=True, text=True, check=True).stdout.strip()


def shuffled(designs: list[str], asked: argparse.Namespace, number: int) -> list[str]:
    """The designs of one round in random order."""
    return random.Random(f"{asked.seed} {number}").sample(designs, len(designs))


def planted(folder: Path, asked: argparse.Namespace) -> list[int]:
    """Loops of the two servers, from how much slower twice the loops are: time a transaction is linear in them."""
    pairs = one_run(folder, "windows", 0, [asked.loops, 2 * asked.loops], asked)
    if not pairs:
        raise SystemExit(3)
    share = 1 / pairs[0].ratio - 1
    print(f"twice the loops take {share:.1%} longer", file=sys.stderr, flush=True)
    return [asked.loops, round(asked.loops * (1 + asked.planted / 100 / share))]


def one_run(folder: Path, design: str, number: int, levels: list[int], asked: argparse.Namespace) -> list[Found] | None:
    """One run of the command line and what its verdict says of each pair; None where it has none."""
    place, out = folder / "experiment", folder / f"{design}-{number}"
    place.mkdir(exist_ok=True)
    (place / "transaction.sql").write_text(SCRIPT)
    (place / "setup.sql").write_text(SETUP)
    (place / "experiment.toml").write_text(text_of(design, levels, asked))
    argv = [str(ROOT / "plimsoll"), "run", str(place), "--out", str(out), "--seed", str(asked.seed + number)]
    done = subprocess.run([*argv, "--no-page", "--json"], stdout=subprocess.PIPE, check=False)
    try:
        verdict = json.loads((out / "verdict.json").read_text())
    except (OSError, ValueError):
        print(f"{design} {number}: no verdict; ./plimsoll run ended with {done.returncode}", file=sys.stderr)
        return None
    finally:
        shutil.rmtree(out, ignore_errors=True)
    pairs: list[dict[str, Any]] = verdict["comparisons"][0]["pairs"]
    levels_of_noise(verdict["comparisons"][0].get("noise"))
    if not pairs:
        print(f"{design} {number}: nothing to compare: {verdict['exclusions']}", file=sys.stderr)
        return None
    return [
        Found(design, number, one["first"], one["second"], one["ratio"], one["low"], one["high"], one["verdict"])
        for one in pairs
        if one["ratio"] is not None
    ]


def levels_of_noise(noise: dict[str, Any] | None) -> None:
    """Of windows: how much each scatters, all of a server's together, and its start."""
    found = (noise or {}).get("levels")
    if found is not None:
        each, together, start = (found[key] for key in ("window_sd_log", "windows_sd_log", "start_sd_log"))
        of_start = "unknown" if start is None else f"{start:.1%}"
        print(f"a window scatters by {each:.1%}, a server's together by {together:.1%}, its start by {of_start}")


def text_of(design: str, levels: list[int], asked: argparse.Namespace) -> str:
    """The experiment's file, whose run takes about as long as is asked for."""
    each = asked.minutes * 60 / (asked.blocks * len(levels)) - START_SECONDS
    if design == "windows":
        rounds = max(4, int(each / (asked.window + SWITCH_SECONDS)))
        keys = f'''kind = "windows"
blocks = {asked.blocks}
rounds = {rounds}
window_seconds = {asked.window}
lead_in_seconds = {asked.lead_in}
stop = "never"'''
    else:
        keys = f"blocks = {asked.blocks}"
    return EXPERIMENT.format(
        fsync="false" if asked.no_fsync else "true",
        loops=asked.loops,
        measure=max(2, int(each)),
        design=keys,
        varied="nothing" if asked.planted is None else "loops",
        levels=levels,
    )


@contextlib.contextmanager
def neighbour(is_wanted: bool) -> Iterator[None]:
    """Beside all runs a process that burns one CPU half of the time, in spells of random length."""
    if not is_wanted:
        yield
        return
    burner = subprocess.Popen([sys.executable, "-c", NEIGHBOUR])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


def line(pair: Found) -> str:
    """For people."""
    interval = "[no interval]" if pair.low is None else f"[{pair.low:.4f}, {pair.high:.4f}]"
    ratio = f"{pair.second} / {pair.first}: {pair.ratio:.4f} {interval}"
    return f"{pair.design:8} run {pair.run:3}  {ratio:44} +-{pair.half_width:6.2%}  {pair.word}"


def judged(design: str, found: list[Found], asked: argparse.Namespace) -> bool:
    """Prints what all runs of a design amount to, against the bounds of windows; trials have none."""
    if not found:
        print(f"{design}: no run yet")
        return False
    runs = len({pair.run for pair in found})
    width = statistics.median(pair.half_width for pair in found)
    told = [pair for pair in found if pair.is_told]
    print(f"{design}: {len(found)} pairs of {runs} runs, median half-width {width:.2%}")
    if asked.planted is None:
        bound = 0.10 if asked.neighbour else 0.06
        print(f"{design}: {len(told)} false alarms; bounds 1, and a half-width of {bound:.0%}")
        holds = len(told) <= 1 and width <= bound
    else:
        truth = math.exp(statistics.mean(math.log(pair.ratio) for pair in found))
        inside = sum(pair.low is None or pair.high is None or pair.low <= truth <= pair.high for pair in found)
        least = 0.9 if asked.planted >= 5 else 0.7
        print(
            f"{design}: the ratio of all runs together {truth:.4f}; {len(told)} of {len(found)} runs tell the two apart"
        )
        print(f"{design}: {inside} of {len(found)} intervals hold it; bounds {least:.0%} and 90%")
        holds = len(told) >= least * len(found) and inside >= 0.9 * len(found)
    return holds or design == "trials"


if __name__ == "__main__":
    sys.exit(main())
