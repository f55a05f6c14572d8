#!/usr/bin/env python3
"""Plimsoll's workload `files` against fio: ratios in pairs in random order.

    .plimsoll/venv/bin/python benches/against_fio.py --help

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, machine, measured, say
from overhead.judge import orders
from peers.arms import Run
from peers.files import Files, FilesArm, Fio, Reads
from peers.judge import Bound, Ratio
from peers.side_by_side import Apart, TimedRun, judged, shared
from tables import bound_lines, ratio_lines

from plimsoll.environment import Fault, StateDir
from plimsoll.run.signals import Interrupts

CASES = ("sync", "io_uring", "direct")
ORDERS = ("random", "sequential")
ON = {"sync": "tmpfs", "io_uring": "ext4", "direct": "ext4"}
DEPTH = 32
LEAD_S = 1.0  # so much longer each is at work where both are at the same time
MIB = 1 << 20
APART = "PLIMSOLL_BENCH_APART"
FORMAT = {
    "ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q"),
}
XFS_MIB_MIN = 320


@contextmanager
def mounted(kind: str, size_mib: int) -> Iterator[Path]:
    """A tmpfs, or ext4 or XFS on a loop device with direct I/O: in the bench's own mount namespace, gone with it."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-fio-", dir="/var/tmp") as folder:
        point, image = Path(folder, "mounted"), Path(folder, "image")
        point.mkdir()
        if kind == "tmpfs":
            _must("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", str(point))
        else:
            with image.open("wb") as file:
                file.truncate(max(size_mib, XFS_MIB_MIN) * MIB)
            _must(*FORMAT[kind], str(image))
            loop = _must("losetup", "--find", "--show", "--direct-io=on", str(image))
            try:
                _must("mount", loop, str(point))
            finally:
                # It goes with the mount.
                _must("losetup", "--detach", loop)
        try:
            yield point
        finally:
            _must("umount", str(point))


def _must(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Fault(f"{argv[0]}: {done.stderr.strip()}", remedy="as root, with a free loop device, or without `direct`")
    return done.stdout.strip()


Pair = Callable[[FilesArm, FilesArm, Reads, bool], tuple[Run, Run]]


def in_turn(ours: FilesArm, theirs: FilesArm, task: Reads, ours_first: bool) -> tuple[Run, Run]:
    """One after the other."""
    if ours_first:
        run = ours.run(task)
        return run, theirs.run(task)
    run = theirs.run(task)
    return ours.run(task), run


def at_the_same_time(ours: FilesArm, theirs: FilesArm, task: Reads, ours_first: bool) -> tuple[Run, Run]:
    """Side by side, and of both what they did while both were at work: fio takes a while to begin."""
    longer = replace(task, seconds=task.seconds + LEAD_S)
    with ThreadPoolExecutor(2) as two:
        started = [two.submit(arm.run, longer) for arm in ((ours, theirs) if ours_first else (theirs, ours))]
        one, other = (each.result() for each in (started if ours_first else reversed(started)))
    assert isinstance(one, TimedRun) and isinstance(other, TimedRun)  # task.latencies
    try:
        return shared(one, other, task.seconds)
    except Apart as error:
        raise Fault(str(error), remedy="longer runs (--seconds), or a machine with less to do") from None


def pairs(ours: FilesArm, theirs: FilesArm, task: Reads, pair: Pair, count: int) -> tuple[list[Run], list[Run]]:
    """Runs of both, each pair in random order; one of each before them is not counted."""
    for arm in (theirs, ours):
        arm.run(replace(task, seconds=min(1.0, task.seconds)))
    found: tuple[list[Run], list[Run]] = ([], [])
    began = time.monotonic()
    for number, ours_first in enumerate(orders(task.seed, count), start=1):
        both = pair(ours, theirs, replace(task, seed=task.seed + number), ours_first)
        for runs, run in zip(found, both, strict=True):
            runs.append(run)
        left = (time.monotonic() - began) / number * (count - number)
        say(f"  pair {number} of {count}; load average {os.getloadavg()[0]:.1f}; about {left:.0f} s left")
    return found


def measure_case(case: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One case with each number of jobs."""
    results = []
    engine, depth = ("io_uring", DEPTH) if case == "io_uring" else ("sync", 1)
    is_direct = case == "direct"
    plain = Reads(
        1, options.seconds, options.seed, options.file_mib * MIB, engine, depth, is_direct, order=options.order
    )
    with mounted(options.on or ON[case], 3 * options.file_mib + 64) as point:
        folders = [point / name for name in ("fio", "plimsoll")]
        for folder in folders:
            folder.mkdir()
        theirs, ours = Fio(folders[0]), Files(folders[1])
        theirs.lay_out(plain)
        ours.lay_out(plain)
        for jobs in options.jobs:
            task, pair = replace(plain, jobs=jobs, latencies=is_direct), at_the_same_time if is_direct else in_turn
            arms: list[tuple[FilesArm, FilesArm, bool]] = [(ours, theirs, True)]
            if options.beside and not is_direct:
                beside = [Files(folders[1], verify=True), Files(folders[1], rows=True)]
                arms += [(arm, theirs, False) for arm in beside]
                arms += [(ours, Fio(folders[0], batched=True), False)] if case == "io_uring" else []
            for mine, peer, is_judged in arms:
                say(f"{task.title}: {mine.name} against {peer.name}")
                runs = pairs(mine, peer, task, pair, options.pairs)
                found, bounds = judged(case, *runs)
                results.append(_result(task, (mine, peer), runs, found, bounds if is_judged else []))
    return results


def _result(
    task: Reads,
    arms: tuple[FilesArm, FilesArm],
    runs: tuple[list[Run], list[Run]],
    found: list[Ratio],
    bounds: list[Bound],
) -> dict[str, Any]:
    def means(of: list[Run]) -> dict[str, float]:
        return {
            "cpu_us": sum(run.cpu_us for run in of) / len(of),
            "operations_per_second": sum(run.tps for run in of) / len(of),
        }

    return {
        "title": task.title,
        "arms": {arm.name: means(of) for arm, of in zip(arms, runs, strict=True)},
        "ratios": [asdict(each) for each in found],
        "bounds": [asdict(each) for each in bounds],
    }


def text_of(result: dict[str, Any]) -> str:
    """One comparison in text."""
    lines = [result["title"]]
    for name, arm in result["arms"].items():
        rate = arm["operations_per_second"]
        lines.append(f"  {name:26}{arm['cpu_us']:8.3f} us of CPU an operation {rate:12,.0f} operations/s")
    return "\n".join([*lines, *ratio_lines(result["ratios"]), *bound_lines(result["bounds"])])


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """Every case that was asked for, alone on the machine as far as Plimsoll goes."""
    Fio.program()
    with StateDir().hold_lock(), interrupts.may_cut():
        return [result for case in options.case for result in measure_case(case, options)]


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--case", action="append", choices=CASES, help="may be repeated; all if left out")
    parser.add_argument("--order", choices=ORDERS, default="random", help="in which the file is read")
    parser.add_argument("--on", choices=["tmpfs", *FORMAT], help="tmpfs, of sync; ext4 on a loop device, of the others")
    parser.add_argument("--jobs", action="append", type=int, help="may be repeated; 1 and 8 if left out")
    parser.add_argument("--pairs", type=int, default=20, help="runs of each arm")
    parser.add_argument("--seconds", type=float, default=3, help="of one run")
    parser.add_argument("--file-mib", type=int, default=256, help="size of the file that is read")
    parser.add_argument(
        "--beside", action="store_true", help="also verified, with a row for each read, and fio in batches"
    )
    parser.add_argument("--seed", type=int, default=None, help="of the order of arms and of the reads")
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    options.case = options.case or list(CASES)
    options.jobs = options.jobs or [1, 8]
    if options.pairs < 3 or options.seconds < 1 or options.file_mib < 1 or min(options.jobs) < 1:
        parser.error("--pairs must be at least 3, --seconds, --file-mib and --jobs at least 1")
    options.seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    return options


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    if APART not in os.environ and os.geteuid() == 0:
        apart = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
        os.execvpe(apart[0], apart, os.environ | {APART: "1"})
    about = {**machine(), "seed": options.seed}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")
    results = measured("against_fio", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(results, int):
        return results
    if options.json:
        print(json.dumps({**about, "results": results}))
    else:
        print("\n".join(text_of(result) for result in results))
    return code_of(bound for result in results for bound in result["bounds"])


if __name__ == "__main__":
    sys.exit(main())
