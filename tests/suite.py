"""Every test of Rust and Python, in lanes: what ./test does when set-up is done.

The facts that constrain it: two cores, and three kinds of tests. What computes runs beside anything. What starts
servers or counts exactly mostly waits, and bears company. What a clock judges bears none: marked `alone`, it runs at
the end by itself. Whatever changes a setting of the whole machine is in one lane, where one test follows the other.

A lane's output is shown whole when it ends. Exit codes: 0 all passed; 1 otherwise; 2 the options are wrong; 4 stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import once_more
import touched

CARGO = ("--release", "--locked", "--target-dir", "target")
# Each lane is one process, so a session's file systems and servers are made once in each.
COMPUTED = ("tests/unit", "tests/golden", "tests/faults")
ANALYSIS = ("tests/unit/analysis",)  # half of what is computed, by time
WHOLE_MACHINE = (
    *("tests/flow/test_kill.py", "tests/flow/test_pipeline.py", "tests/flow/test_windows_turning.py"),
    *("tests/known/test_environment_knobs.py", "tests/known/test_environment_undo.py"),
)
# What starts servers or counts, by lanes that are begun in this order, AT_ONCE of them at a time. The order is that of
# how long they take, but that the longest wait most, and so bear most company. What no lane names of a folder is in
# the lane of the folder.
LANES: dict[str, tuple[str, ...]] = {
    "guest": ("tests/guest",),
    "whole machine": WHOLE_MACHINE,
    "decision support: DuckDB, answers": (
        *("tests/flow/test_decision_support_duckdb.py", "tests/flow/test_decision_support_answers.py"),
    ),
    "flow": ("tests/flow",),
    "decision support": (
        *("tests/flow/test_decision_support.py", "tests/flow/test_decision_support_stopped.py"),
        "tests/flow/test_dss_repeat.py",
    ),
    "capacity": ("tests/flow/test_capacity.py",),
    "files": (
        *("tests/flow/test_files_devices.py", "tests/flow/test_files_killed.py", "tests/flow/test_files_refused.py"),
        *("tests/flow/test_files_waits.py", "tests/flow/test_places.py"),
    ),
    "known": ("tests/known",),
    "windows": ("tests/flow/test_windows.py", "tests/flow/test_windows_groups.py"),
    "soak, web, breakdown": (
        *("tests/flow/test_soak.py", "tests/flow/test_web.py", "tests/flow/test_breakdown_verb.py"),
    ),
}
AT_ONCE = 6
ALONE_IN_RUST = "alone::"  # the module of tests that a clock judges
STILL_AT_WORK_SECONDS = 60.0
COMMAND_SECONDS_MAX = 2_400.0  # without --long: three times what the longest takes on a slow machine
NO_TEST_OF_THIS_LANE = 5  # pytest's exit code


@dataclass
class Lane:
    """Commands one after the other, whose output belongs together; one that fails does not end it."""

    name: str
    commands: Sequence[Sequence[str]]
    cache: Path | None = None  # where pytest leaves the names of what failed
    failed: bool = False
    said: str = ""
    seconds: float = 0.0
    seconds_max: float | None = None  # of one of its commands; one that takes longer hangs
    at_work: subprocess.Popen[bytes] | None = None
    ended: bool = False

    def run(self) -> None:
        """To its end."""
        began = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            for command in self.commands:
                if self.ended:
                    break
                self.at_work = subprocess.Popen(
                    command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, process_group=0
                )
                if self.ended:  # meanwhile
                    self.end()
                code = self._waited(self.at_work, out)
                self.failed |= code not in (0, NO_TEST_OF_THIS_LANE if self.cache else 0)
            out.seek(0)
            self.said = out.read()
        self.seconds = time.monotonic() - began

    def _waited(self, command: subprocess.Popen[bytes], out: IO[str]) -> int:
        try:
            return command.wait(self.seconds_max)
        except subprocess.TimeoutExpired:
            out.write(f"\nended, for it had not after {self.seconds_max:.0f} s: what it said last is above\n")
            out.flush()
            for how in (signal.SIGINT, signal.SIGKILL):
                os.killpg(command.pid, how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return command.wait(60)
            return command.wait()

    def end(self) -> None:
        """As Ctrl-C would, all that it has started, so that tests put back what they have changed."""
        self.ended = True
        if self.at_work and self.at_work.poll() is None:
            os.killpg(self.at_work.pid, signal.SIGINT)


def together(lanes: Sequence[Lane], seconds_max: float | None = None) -> None:
    """Runs the lanes, some at the same time, and shows each when it ends; one of its commands may take so long."""
    for lane in lanes:
        lane.seconds_max = seconds_max
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = {lane.name: (lane, pool.submit(lane.run)) for lane in lanes if lane.commands}
        try:
            _shown(begun, began)
        except BaseException:
            for lane, _ in begun.values():
                lane.end()
            raise


def _shown(lanes: dict[str, tuple[Lane, Future[None]]], began: float) -> None:
    told = began
    while lanes:
        time.sleep(0.2)
        for lane, run in list(lanes.values()):
            if run.done():
                run.result()
                del lanes[lane.name]
                told = time.monotonic()
                print(f"\n== {lane.name} ({lane.seconds:.0f} s)\n{lane.said.rstrip()}", flush=True)
        if lanes and time.monotonic() - told > STILL_AT_WORK_SECONDS:
            told = time.monotonic()
            at_work = ", ".join(name for name, (_, run) in lanes.items() if run.running())
            print(f"   {told - began:.0f} s, at work: {at_work}", flush=True)


def pytest_lane(name: str, paths: Sequence[str], marker: str, matrix: str, *without: str) -> Lane:
    """One process of pytest; none where there are no paths."""
    cache = Path(".pytest_cache", name.replace(" ", "-"))
    shutil.rmtree(cache, ignore_errors=True)
    options = ["-m", marker, "--matrix", matrix, "-o", f"cache_dir={cache}", *(f"--ignore={path}" for path in without)]
    return Lane(name, [[sys.executable, "-m", "pytest", *options, *paths]] if paths else [], cache)


def lints() -> tuple[list[list[str]], list[list[str]]]:
    """Of Python and of Rust: formatting, lints, types, imports; and every Rust program built."""
    venv = Path(sys.executable).parent
    python = [
        [str(venv / "ruff"), "check", "--quiet", "."],
        [str(venv / "ruff"), "format", "--quiet", "--check", "."],
        [str(venv / "mypy"), "--no-error-summary", "python/plimsoll"],
        [str(venv / "lint-imports"), "--no-cache"],
    ]
    rust = []
    for name, *options in (("fmt", "--check"), ("clippy", "--quiet", *CARGO, "--all-targets", "--", "-D", "warnings")):
        if subprocess.run(["cargo", name, "--version"], capture_output=True, check=False).returncode == 0:
            rust.append(["cargo", name, *options])
        else:
            print(f"cargo {name} is not installed: not checked", flush=True)
    # Everything but the probes in the kernel builds without clang. Examples are checked by clippy.
    bare = ["cargo", "check", "--quiet", *CARGO, "--package", "plimsoll-agent", "--no-default-features"]
    programs = ["cargo", "test", "--quiet", *CARGO, "--workspace", "--tests", "--no-run"]
    rust += [["env", "CLANG=/nonexistent", *bare], programs]
    return python, rust


def marked_alone() -> list[str]:
    """The files of tests that a clock judges: a process that collects no others is done sooner."""
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if "mark.alone" in path.read_text())


def rust_lane(name: str, packages: Sequence[str], long: bool, *chosen: str) -> Lane:
    """The programs of tests one after the other; in each its tests are threads."""
    where = [option for package in packages for option in ("--package", package)]
    ignored = ["--include-ignored"] if long else []
    command = ["cargo", "test", *CARGO, *where, "--tests", "--no-fail-fast", "--", *chosen, *ignored]
    return Lane(name, [command] if packages else [])


def counts(lanes: Sequence[Lane]) -> str:
    """What the runners say at their ends, added up, in the plainest form."""
    totals = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for lane in lanes:
        ends = re.findall(r"^test result: .*|^(?:\d+ \w+(?:, )?)+ in \d.*", lane.said, re.MULTILINE)
        for count, what in re.findall(r"(\d+) (passed|failed|skipped|error|ignored)", "\n".join(ends)):
            totals[{"error": "failed", "ignored": "skipped"}.get(what, what)] += int(count)
    return ", ".join(f"{count} {what}" for what, count in totals.items())


def main() -> int:
    """The whole of it."""
    asked = argparse.ArgumentParser(prog="./test", description="Sets up, then runs every test of Rust and Python.")
    asked.add_argument("--long", action="store_true", help="the full matrices, planted faults and timed runs besides")
    asked.add_argument("--since", metavar="REV", help="only what the changes since this revision touch")
    options = asked.parse_args()
    # A shell that starts this in the background has Ctrl-C ignored by all that it starts; tests of stops need it.
    # And whoever ends this otherwise must not leave servers behind.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    began = time.monotonic()
    plan = touched.since(options.since) if options.since else touched.everything()
    print(plan.told, flush=True)
    matrix = "full" if options.long or plan.full_matrix else "turn"
    and_not = "" if options.long else " and not long"
    company = f"not alone{and_not}"
    at_most = None if options.long else COMMAND_SECONDS_MAX

    of_python, of_rust = lints()
    computed = pytest_lane("computed", plan.below(COMPUTED), company, matrix, *ANALYSIS)
    computed.commands = [*of_python, *computed.commands]
    analysis = pytest_lane("computed: analysis", plan.below(ANALYSIS), company, matrix)
    first = [computed, analysis, Lane("Rust: lints and build", of_rust if plan.packages else [])]
    together(first, at_most)
    if any(lane.failed for lane in first):
        print("\nFix these first: nothing that starts a server or watches the machine was run.", flush=True)
        return 1
    rust = rust_lane("Rust", plan.packages, options.long, "--skip", ALONE_IN_RUST)
    named = [path for paths in LANES.values() for path in paths]
    watching = [
        pytest_lane(name, plan.below(paths), company, matrix, *(path for path in named if path not in paths))
        for name, paths in LANES.items()
    ]
    together([rust, *watching], at_most)
    alone = pytest_lane("alone", plan.below(marked_alone()), f"alone{and_not}", matrix)
    together([alone], at_most)
    rust_alone = rust_lane("Rust, alone", plan.packages, options.long, ALONE_IN_RUST)
    together([rust_alone], at_most)

    lanes = [computed, analysis, rust, *watching, alone, rust_alone]
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"\n{minutes} min {seconds} s\n{counts(lanes)}", flush=True)
    given = ["--include-ignored"] if options.long else []
    caches = [lane.cache for lane in lanes if lane.cache and lane.failed]
    failed = [lane.said for lane in (rust, rust_alone) if lane.failed]
    # A lane that failed without a word has failed all the same.
    return once_more.judge(caches, "\n".join(failed) if failed else None, *given)


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[1])
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; what was at work has ended", flush=True)
        sys.exit(4)
