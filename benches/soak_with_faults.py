#!/usr/bin/env python3
"""A soak in which faults are planted, and whether it names each of them with its time.

    .plimsoll/venv/bin/python benches/soak_with_faults.py OUT --for 2h
    .plimsoll/venv/bin/python benches/soak_with_faults.py OUT --for 2h --no-faults

Runs `plimsoll soak` of a load that leaves its data as they are (planting/steady) and plants, in rounds that a seed has
drawn: ten SIGKILLs of any part (the front, which is begun again as its unit would; the agent; a backend of the server),
a crash of the server (SIGKILL of its first process), a warning in the kernel's log, and from the second round on a load
of other processes that takes 2 % of the machine more each round and a file in tmpfs that grows by 5 MB a minute. What
was planted stands in OUT/planted.jsonl, a line each, before the next is planted; the soak's record is OUT/soak. At the
end each line is looked for in the soak's own verdict. With --no-faults the same soak has to bound its drift and to
raise no alarm.

As root. Exit codes: 0 all was told (or, without faults, nothing was); 1 something was not; 2 the request is wrong; 3 it
is impossible here; 4 stopped, everything put back.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from planting import journal, machine
from planting.judge import Row, alarms, judged
from planting.plan import (
    AGENT,
    BACKEND,
    FRONT,
    LEAK,
    LOAD,
    SERVER,
    WARNING,
    Planned,
    planned,
    share_taken,
)
from planting.soak import Soak

from plimsoll.experiment.soaking import seconds_of

STEADY: Final = Path(__file__).resolve().parent / "planting/steady/experiment.toml"
ROUNDS: Final = 36
LOOK_S: Final = 0.1
RESUME_S: Final = 1.0  # of nobody at work, before the front is begun again
# A kill costs a start of the server, some 20 s, and what of its round was done: of a shorter soak not all is planted.
SECONDS_MIN: Final = 1500.0
STARTS_MAX: Final = 3  # of a front that ends by itself, without a round between
MIB: Final = 2**20
# What the server holds in shared memory comes and goes with its starts and is counted with the leak: at most this share
# of it. A soak asked for the same without faults has the same settings.
CACHE_SHARE: Final = 0.1


class StoppedByUser(Exception):
    """Ctrl-C or SIGTERM."""


def options(seconds: float, words: argparse.Namespace) -> list[str]:
    """What the soak is asked for; sizes follow its length."""
    leak_mib = words.leak * 1e6 / MIB * seconds / 60
    sets = {
        "target.settings.shared_buffers": f"{max(4, min(512, round(CACHE_SHARE * leak_mib)))} MiB",
        "warmup.seconds_min": 5,
        "warmup.seconds_max": max(10, round(seconds / 60)),
        # Of the soak's length a twenty-fourth is a floor, which takes four readings (analysis/soak/growth.py).
        "probes.kernel_every_seconds": max(1, min(60, round(seconds / 400))),
    }
    given = [f"{name}={value}" for name, value in sets.items()] + (words.sets or [])
    each = [word for one in given for word in ("--set", one)]
    return [
        "--for",
        words.length,
        "--round",
        f"{seconds / words.rounds:g}s",
        "--go-on",
        "--seed",
        str(words.seed),
        *each,
    ]


class Planting:
    """Plants what is due, and keeps the soak at work; `journal`: where what was planted is written."""

    def __init__(
        self, soak: Soak, plan: Sequence[Planned], out: Path, words: argparse.Namespace, round_s: float
    ) -> None:
        self.soak, self.plan, self.journal = soak, list(plan), out / "planted.jsonl"
        self.words, self.round_s = words, round_s
        self.load: machine.GrowingLoad | None = None
        self.leak: machine.Leak | None = None
        self._load_began_at = 0.0
        self._taken: tuple[float, float] = (0.0, 0.0)  # of the load: its CPU time at a time
        self._begun: tuple[tuple[str, int] | None, float] = (None, 0.0)  # the attempt under way, and since when
        self._starts = 0

    def carry(self) -> int:
        """From the soak's begin to its end; the front's last exit code."""
        self.soak.begin()
        done = 0
        while True:
            if (now := self.soak.rounds_done()) != done:
                done, self._starts = now, 0
                print(f"{_clock()} {done} rounds done{self._load_took()}", flush=True)
            if not self.soak.is_at_work():
                assert self.soak.front is not None
                code = int(self.soak.front.returncode)
                if code == 0 or self.soak.series()["result"] is not None or self._starts >= STARTS_MAX:
                    return code
                self._starts += 1
                time.sleep(RESUME_S)
                self.soak.begin()
            self._grow(done)
            self._plant_what_is_due()
            time.sleep(LOOK_S)

    def end(self) -> None:
        for one in (self.load, self.leak):
            if one is not None:
                one.end()

    def _grow(self, done: int) -> None:
        if self.load is not None:
            self.load.set(share_taken(done + 1 - self._load_began_at, self.words.drift / 100))

    def _load_took(self) -> str:
        """Which share of the CPUs the load has taken since it was last asked: it is to be what was planted."""
        if self.load is None:
            return ""
        before, self._taken = self._taken, (self.load.taken_s(), time.monotonic())
        share = (self._taken[0] - before[0]) / (self._taken[1] - before[1]) / len(os.sched_getaffinity(0))
        return f", the load took {100 * share:.1f} % of the CPUs"

    def _plant_what_is_due(self) -> None:
        under_load = self.soak.under_load()
        if under_load != self._begun[0]:
            self._begun = (under_load, time.monotonic())
        if under_load is None or not self.plan:
            return
        number, into_it = int(under_load[0].rpartition("-")[2]), time.monotonic() - self._begun[1]
        due = self.plan[0]
        # What could not be planted in its round (a slow look) is planted in the next; never two kills in one attempt.
        if number >= due.round and into_it >= due.share * self.round_s and self._plant(due, *under_load):
            self.plan.pop(0)
            if due.what not in (LOAD, LEAK, WARNING):
                self.plan = [one if one.round > number else _later(one, number + 1) for one in self.plan]

    def _plant(self, due: Planned, name: str, attempt: int) -> bool:
        """Whether it could be; a process that is not there just now is looked for again."""
        pid: int | None = None
        text: str | None = None
        at = time.time_ns()
        if due.what == FRONT:
            pid = self.soak.kill_front()
        elif due.what in (AGENT, BACKEND, SERVER):
            find = {AGENT: machine.agent, SERVER: machine.server, BACKEND: lambda state: machine.backend(state, at)}
            if (pid := find[due.what](self.soak.state)) is None:
                return False
            os.kill(pid, signal.SIGKILL)
        elif due.what == WARNING:
            text = f"WARNING: planted by soak_with_faults, number {at % 10**6}"
            machine.warn(text)
        elif due.what == LOAD:
            self.load, self._load_began_at = machine.GrowingLoad(), float(self.soak.rounds_done())
            self._taken = (self.load.taken_s(), time.monotonic())
        else:
            self.leak = machine.Leak(self.words.leak * 1e6 / 60)
        journal.write(self.journal, journal.Fault(due.what, at, name, attempt, pid, text))
        print(f"{_clock()} planted in {name}, attempt {attempt}: {due.what}", flush=True)
        return True


def _later(one: Planned, number: int) -> Planned:
    return Planned(one.what, number, one.share)


def table(rows: Sequence[Row], missing: Sequence[Planned]) -> list[str]:
    """Planted at, told at, told as."""
    lines = [f"{'planted at':<10} {'told at':<9} {'planted':<16} told as"]
    for row in rows:
        told = "MISSING" if row.told_ns is None else _clock(row.told_ns)
        as_what = row.told_as or f"not told ({row.fault.round}, attempt {row.fault.attempt})"
        lines.append(f"{_clock(row.fault.epoch_ns):<10} {told:<9} {row.fault.what:<16} {as_what}")
    lines += [f"{'never':<10} {'MISSING':<9} {one.what:<16} the soak ended before it was planted" for one in missing]
    return lines


def _clock(epoch_ns: int | None = None) -> str:
    at = time.time() if epoch_ns is None else epoch_ns / 1e9
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """The first one ends what is done; while everything is put back none does."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, signal.SIG_IGN)
        raise StoppedByUser

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, stop)
    yield


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a new folder: the record, what was planted, what the front said")
    parser.add_argument("--for", dest="length", default="2h", help="how long the soak is [2h]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"into how many rounds it is cut [{ROUNDS}]")
    parser.add_argument(
        "--experiment", default=str(STEADY), help="what is soaked [a load that keeps its data as they are]"
    )
    parser.add_argument("--set", dest="sets", action="append", help="of the experiment, as `plimsoll soak` has it")
    parser.add_argument(
        "--drift", type=float, default=2.0, help="percent of the machine a round that the load takes [2]"
    )
    parser.add_argument("--leak", type=float, default=5.0, help="MB a minute that the file in tmpfs grows by [5]")
    parser.add_argument("--no-faults", action="store_true", help="the same soak, in which nothing is planted")
    parser.add_argument("--seed", type=int, default=24)
    return parser.parse_args()


def main() -> int:
    words = _parsed()
    try:
        seconds = seconds_of(words.length)
        plan = [] if words.no_faults else planned(words.rounds, words.seed)
    except ValueError as error:
        print(f"soak_with_faults: {error}", file=sys.stderr)
        return 2
    if words.out.exists() and any(words.out.iterdir()):
        print(f"soak_with_faults: {words.out}: is no new folder", file=sys.stderr)
        return 2
    if os.geteuid() != 0 or not os.access("/dev/kmsg", os.R_OK | os.W_OK):
        print("soak_with_faults: it takes root, and a kernel's log that root may write to", file=sys.stderr)
        return 3
    out = words.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    print(f"seed {words.seed}; {len(plan)} faults in {words.rounds} rounds of {seconds / words.rounds:g} s", flush=True)
    if plan and seconds < SECONDS_MIN:
        print(f"below {SECONDS_MIN / 60:.0f}m it may end before all is planted, and then exits 1", flush=True)
    soak = Soak(words.experiment, options(seconds, words), out / "soak", out / "front.log")
    planting = Planting(soak, plan, out, words, seconds / words.rounds)
    try:
        with _stopped_by_signals():
            code = planting.carry()
    except StoppedByUser:
        print("stopped; everything is being put back", flush=True)
        return 4
    finally:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, signal.SIG_IGN)
        planting.end()
        soak.close()
    return _told(out, soak, planting, code, is_calm=words.no_faults)


def _told(out: Path, soak: Soak, planting: Planting, code: int, *, is_calm: bool) -> int:
    verdict = soak.verdict()
    if code != 0 or verdict is None:
        print(f"the soak's front ended with exit code {code}; see {soak.log}")
        return 1
    if is_calm:
        said = alarms(verdict)
        lines = ["no drift that is larger than its bound, and no alarm" if not said else "alarms:", *said]
    else:
        rows = judged(journal.read(planting.journal), verdict)
        lines, said = table(rows, planting.plan), [row.fault.what for row in rows if not row.is_told]
        said += [one.what for one in planting.plan]
        lines.append(
            f"{len(rows) + len(planting.plan) - len(said)} of {len(rows) + len(planting.plan)} faults are told"
        )
    lines.insert(0, f"the soak: {verdict['soak']['drift']['verdict']}, {len(verdict['soak']['each'])} rounds")
    (out / "table.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
