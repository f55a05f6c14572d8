#!/usr/bin/env python3
"""The load of file_serving beside dbench 4.0 with dbench's own load file: ratios in pairs in random order.

    .plimsoll/venv/bin/python benches/against_dbench.py --help

Exit codes: 0 every bound holds; 1 a bound is broken; 2 the request is wrong; 3 it cannot be measured here; 4 cannot
tell, or stopped. benches/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from laboratory import code_of, machine, measured, say
from overhead.judge import orders
from peers import judge
from tables import bound_lines, ratio_lines

from plimsoll.environment import Fault, StateDir
from plimsoll.run import agent
from plimsoll.run.signals import Interrupts

NAME = "against-dbench"
LOAD_FILE = Path("/usr/share/dbench/client.txt")
CLIENTS = (1, 4, 16)
# Beyond it dbench has a warm-up (a fifth of the time), whose operations it does not count and whose CPU time it takes.
SECONDS_MAX = 4
THROUGHPUT_BOUND = 0.97
CPU_BOUND = 1.0
_OPERATION = re.compile(r"^ (\w+) +(\d+) +[\d.]+ +[\d.]+$", re.MULTILINE)
_THROUGHPUT = re.compile(r"^Throughput ([\d.]+) MB/sec", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One run of one side, from the start of its process to its end."""

    operations: int
    seconds: float
    cpu_s: float
    mb_per_s: float  # by the side's own count; dbench's is that of its last full second
    load_s: (
        float  # of the CPU time, that from the first operation on; of dbench, which reads its file meanwhile, all of it
    )

    @property
    def cpu_us(self) -> float:
        """CPU time an operation, of the process and its children."""
        return 1e6 * self.cpu_s / self.operations

    @property
    def load_us(self) -> float:
        """The same without what is paid once, before the first operation."""
        return 1e6 * self.load_s / self.operations

    @property
    def operations_per_s(self) -> float:
        """Lines of the load file a second, of all clients."""
        return self.operations / self.seconds


@dataclass(frozen=True)
class Place:
    """A folder to load, and what file system it is on."""

    folder: Path
    file_system: str


def dbench(folder: Path, clients: int, seconds: int) -> Run:
    """By its table of operations. Its clients are processes, which it waits for."""
    argv = ["dbench", "-c", str(LOAD_FILE), "-t", str(seconds), "-D", str(folder), str(clients)]
    code, output, cpu_s = _ended(argv)
    counts = [int(count) for _, count in _OPERATION.findall(output)]
    throughput = _THROUGHPUT.search(output)
    if code or not counts or throughput is None:
        raise Fault(f"dbench: {output.strip()[-500:]}", remedy="run it by hand; its version may not be known here")
    return Run(sum(counts), seconds, cpu_s, float(throughput[1]), cpu_s)


def plimsoll(folder: Path, clients: int, options: argparse.Namespace) -> Run:
    """By its summary. The folder is laid out before and dropped after, which is not measured."""
    script = {"loadfile": str(LOAD_FILE)}
    request = {
        "target": {"kind": "files", "folder": str(folder)},
        "workload": {
            "name": "file_serving",
            "seed": options.seed,
            "script": script,
            "descriptor_tables": "own" if options.own_tables else "shared",
        },
    }
    _agent("populate", request)
    with tempfile.TemporaryDirectory() as out:
        summary, cpu_s = _agent(
            "load", {**request, "clients": clients, "stop": {"seconds": options.seconds}, "out": out}
        )
    _agent("drop", request)
    identity, totals = summary["identity"], summary["totals"]
    if identity["done"] != identity["planned"] or summary["verification"]["wrong"]:
        raise Fault(f"plimsoll: {identity}, {summary['errors']}", remedy="see the first error")
    lasted_s = (summary["ended_ns"] - summary["started_ns"]) / 1e9
    moved = totals["bytes_read"] + totals["bytes_written"]
    load_s = (summary["health"]["cpu_user_ns"] + summary["health"]["cpu_system_ns"]) / 1e9
    return Run(identity["done"], lasted_s, cpu_s, moved / lasted_s / 1e6, load_s)


def _agent(verb: str, request: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The last line of a verb, and the CPU time of its process."""
    code, output, cpu_s = _ended([str(agent.PROGRAM), verb], json.dumps(request) + "\n")
    lines = output.splitlines()
    if code:
        raise Fault(f"the agent's {verb}: {lines[-1:]}", remedy="run it by hand with the same request")
    return json.loads(lines[-1]), cpu_s


def _ended(argv: list[str], told: str = "") -> tuple[int, str, float]:
    """The exit code, what was said, and the CPU time of the process and of those it waited for."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(told)
        process.stdin.flush()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        process.stdin.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, usage.ru_utime + usage.ru_stime


def pairs(place: Place, clients: int, options: argparse.Namespace) -> tuple[list[Run], list[Run]]:
    """Runs of both, each pair in random order; one of each before them is not counted."""
    found: tuple[list[Run], list[Run]] = ([], [])
    _both(place, clients, options, True)
    for number, ours_first in enumerate(orders(options.seed, options.pairs), start=1):
        for runs, run in zip(found, _both(place, clients, options, ours_first), strict=True):
            runs.append(run)
        ours, theirs = found[0][-1], found[1][-1]
        said = f"{ours.operations_per_s:,.0f} and {theirs.operations_per_s:,.0f} operations/s"
        say(f"  pair {number} of {options.pairs}: {said}; load average {os.getloadavg()[0]:.1f}")
    return found


def _both(place: Place, clients: int, options: argparse.Namespace, ours_first: bool) -> tuple[Run, Run]:
    """One run of each, ours given first, each in a folder of its own that is gone afterwards."""
    runs: dict[bool, Run] = {}
    for mine in (ours_first, not ours_first):
        with _folder(place.folder) as folder:
            run = plimsoll(folder, clients, options) if mine else None
            runs[mine] = run or dbench(folder, clients, options.seconds)
    return runs[True], runs[False]


@contextmanager
def _folder(below: Path) -> Iterator[Path]:
    """An empty folder; what was written is on its device before and after, so that neither side waits for the other."""
    folder = Path(tempfile.mkdtemp(prefix=f"{NAME}-", dir=below))
    os.sync()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.sync()


def measure(place: Place, clients: int, options: argparse.Namespace) -> dict[str, Any]:
    """Both sides with so many clients, judged."""
    say(f"{place.file_system} at {place.folder}, {clients} clients")
    ours, theirs = pairs(place, clients, options)

    def ratio(what: str, key: str) -> judge.Ratio:
        return judge.ratio(what, *([float(getattr(run, key)) for run in runs] for runs in (ours, theirs)))

    throughput, cpu = ratio("operations a second", "operations_per_s"), ratio("CPU an operation", "cpu_us")
    beside = [ratio("CPU without the start", "load_us"), ratio("MB/s, by each side's count", "mb_per_s")]
    bounds = [judge.at_least(throughput, THROUGHPUT_BOUND), judge.at_most(cpu, CPU_BOUND)]
    return {
        "title": f"{place.file_system}, {clients} clients",
        "arms": {"plimsoll": _means(ours), "dbench": _means(theirs)},
        "ratios": [asdict(each) for each in (throughput, cpu, *beside)],
        "bounds": [asdict(bound) for bound in bounds],
    }


def _means(runs: list[Run]) -> dict[str, float]:
    def mean(key: str) -> float:
        return float(sum(getattr(run, key) for run in runs) / len(runs))

    return {key: mean(key) for key in ("operations_per_s", "cpu_us", "mb_per_s")}


def text_of(result: dict[str, Any]) -> str:
    """One comparison in text."""
    lines = [result["title"]]
    for name, arm in result["arms"].items():
        figures = f"{arm['operations_per_s']:12,.0f} operations/s {arm['cpu_us']:8.2f} us of CPU an operation"
        lines.append(f"  {name:10}{figures} {arm['mb_per_s']:10,.0f} MB/s")
    return "\n".join([*lines, *ratio_lines(result["ratios"]), *bound_lines(result["bounds"])])


def places(folders: list[Path]) -> list[Place]:
    """The folders with their file systems, of the mount that is nearest above each."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = []
    for folder in folders:
        above = [mount for mount in mounts if folder.is_relative_to(mount[1])]
        found.append(Place(folder, max(above, key=lambda mount: len(mount[1]))[2]))
    return found


def measure_all(options: argparse.Namespace, interrupts: Interrupts) -> list[dict[str, Any]]:
    """On every place with every number of clients."""
    if shutil.which("dbench") is None or not LOAD_FILE.exists():
        raise Fault("there is no dbench with a load file", remedy="install the package dbench")
    state = StateDir()
    results = []
    with state.hold_lock(), interrupts.may_cut():
        for place in places(options.folder or [Path("/dev/shm"), state.work]):
            for clients in options.clients:
                results.append(measure(place, clients, options))
                if not options.json:
                    print(text_of(results[-1]), flush=True)
    return results


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--folder",
        action="append",
        type=lambda text: Path(text).resolve(),
        help="below which both work; may be repeated; /dev/shm and the state folder if left out",
    )
    parser.add_argument("--clients", action="append", type=int, help="may be repeated; 1, 4 and 16 if left out")
    parser.add_argument("--pairs", type=int, default=20, help="runs of each side")
    parser.add_argument("--seconds", type=int, default=SECONDS_MAX, help=f"of one run, at most {SECONDS_MAX}")
    parser.add_argument("--seed", type=int, default=None, help="of the order of sides and of the bytes written")
    parser.add_argument(
        "--own-tables", action="store_true", help="each of our clients has a table of descriptors, as dbench's have"
    )
    parser.add_argument("--json", action="store_true", help="everything, on standard output")
    options = parser.parse_args(argv)
    options.clients = options.clients or list(CLIENTS)
    if options.pairs < 3 or not 2 <= options.seconds <= SECONDS_MAX:
        reason = "dbench tells no rate of a first second, and beyond these it warms up"
        parser.error(f"--pairs must be at least 3, --seconds from 2 to {SECONDS_MAX}: {reason}")
    for folder in options.folder or []:
        if not folder.is_dir():
            parser.error(f"--folder {folder}: no folder")
    options.seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    return options


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, and says by the exit code whether every bound holds."""
    options = parse(argv)
    about = {**machine(), "seed": options.seed, "own_tables": options.own_tables}
    say(f"seed {options.seed}, kernel {about['kernel']}, {about['cpus']} CPUs, load average {os.getloadavg()[0]:.1f}")

    results = measured("against_dbench", lambda interrupts: measure_all(options, interrupts), as_json=options.json)
    if isinstance(results, int):
        return results
    if options.json:
        print(json.dumps({**about, "results": results}))
    return code_of(bound for result in results for bound in result["bounds"])


if __name__ == "__main__":
    sys.exit(main())
