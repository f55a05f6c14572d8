"""Plants the faults of faults.toml one at a time in a copy of the tree and runs the tests that should see each.

    .plimsoll/venv/bin/python tests/faults/plant.py              every fault, and a table at the end
    .plimsoll/venv/bin/python tests/faults/plant.py --only swap  those whose name, stage or file holds a word

The tests are run without any fault first. A fault is caught only by a test that fails: one that does not compile or
cannot be imported says nothing about the tests and counts as broken. Where the machine lacks what all tests of a fault
need, it is not asked.
Exit codes: 0 enough are caught; 1 more than two of thirty are not, one is broken, or a test fails without any fault; 2
the options are wrong.
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
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from planted import Fault, RustTest, read
from rich.console import Console
from rich.table import Column, Table

ROOT = Path(__file__).resolve().parents[2]
MISSED_OF_THIRTY = 2
SECONDS_MAX = 600
CARGO = ("--release", "--locked", "--target-dir", "target")
# A crate before those that it is built on: planting in one then rebuilds nothing of the others before it.
CRATES = (
    *(
        "agent",
        "probe",
        "load",
        "ring",
        "files",
        "responder",
        "web",
        "workload",
        "target",
        "schedule",
        "record",
        "keys",
    ),
)
NO_BEHAVIOUR = re.compile(r"\b(SyntaxError|IndentationError|ImportError|ModuleNotFoundError|NameError)\b")

Outcome = Literal["caught", "not caught", "broken", "not asked"]


@dataclass
class Ran:
    """What a run of tests amounts to. `broken`: why it says nothing."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    broken: str = ""

    def add(self, other: Ran) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.broken = self.broken or other.broken


@dataclass
class Result:
    """One row of the table."""

    fault: Fault
    outcome: Outcome
    seconds: float
    by: str


class Tree:
    """A copy of the tree, in which tests run as they do in the tree itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder / "python"),
            # A file of the same length, written in the same second, would be taken for the one before.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PLIMSOLL_AGENT": str(folder / "target/release/plimsoll-agent"),
        }

    def fill(self, root: Path) -> None:
        """Copies what git knows or would take, and what is compiled of other people's libraries."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in filter(None, names):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # deleted, and not yet committed
                shutil.copy2(root / name, self.folder / name, follow_symlinks=False)
        (self.folder / ".plimsoll").symlink_to((root / ".plimsoll").resolve())
        built = root / "target/release"
        if built.is_dir():
            ours = shutil.ignore_patterns("*plimsoll*", "incremental", "examples")
            shutil.copytree(built, self.folder / "target/release", symlinks=True, ignore=ours)

    def run(self, command: Sequence[str]) -> tuple[int | None, str]:
        """Exit code (None if it had to be ended) and all that it said."""
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS_MAX, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as ended:
            return None, (ended.output or b"").decode(errors="replace")
        return done.returncode, done.stdout

    @contextlib.contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """The fault is in its file, and afterwards not."""
        path = self.folder / fault.file
        source = path.read_text()
        path.write_text(fault.planted(source))
        try:
            yield
        finally:
            path.write_text(source)  # now newer than what was built with the fault, as it has to be

    def pytest(self, tests: Sequence[str], *options: str) -> Ran:
        """Runs tests of Python."""
        with tempfile.NamedTemporaryFile(suffix=".xml") as report:
            own = ["-p", "no:cacheprovider", f"--junitxml={report.name}"]
            code, said = self.run([sys.executable, "-m", "pytest", *own, *options, *tests])
            if code is None:
                return Ran(failed=[f"{tests[0]}: no end after {SECONDS_MAX} s"])
            if code not in (0, 1):
                return Ran(broken=f"pytest ended with {code}: {said.strip()[-2000:]}")
            return _of_junit(Path(report.name))

    def build(self, command: Sequence[str]) -> str:
        """Has cargo build; what it says if it cannot."""
        code, said = self.run(["cargo", *command])
        return "" if code == 0 else said.strip()[-2000:] or "cargo was ended"

    def cargo_test(self, tests: Sequence[RustTest]) -> Ran:
        """Builds the programs of these tests and runs them; the functions are asked for by name."""
        ran = Ran()
        for package, program in sorted({(test.package, test.program) for test in tests}):
            # As in the default run, where the agent asks for the probes that need BPF.
            chosen = ["test", *CARGO, "--all-features", "--package", package, *program]
            if trouble := self.build([*chosen, "--no-run"]):
                ran.add(Ran(broken=f"does not compile: {trouble}"))
                continue
            wanted = [test.function for test in tests if (test.package, test.program) == (package, program)]
            code, said = self.run(["cargo", *chosen, "--no-fail-fast", "--", *wanted])
            found = Ran(
                passed=re.findall(r"^test (\S+) \.\.\. ok", said, re.MULTILINE),
                failed=re.findall(r"^test (\S+) \.\.\. FAILED", said, re.MULTILINE),
            )
            if code is None or code == 101:  # no end; or a test has failed, or its program was ended by a fault
                found.failed = found.failed or [f"{package}: its tests ended with {code}: {said.strip()[-200:]}"]
            elif code != 0:
                found.broken = f"cargo ended with {code}"
            elif missing := [name for name in wanted if not any(name in ran for ran in found.passed + found.failed)]:
                found.broken = f"{package} has no test {', '.join(missing)}"
            ran.add(found)
        return ran

    def ask(self, fault: Fault) -> Ran:
        """Runs the tests that should see a fault; builds what they need."""
        ran = Ran()
        if fault.rust_tests:
            ran.add(self.cargo_test(fault.rust_tests))
        if fault.python_tests and not ran.failed and not ran.broken:
            trouble = self.build(["build", *CARGO, "--package", "plimsoll-agent"]) if fault.crate else ""
            ran.add(Ran(broken=f"does not compile: {trouble}") if trouble else self.pytest(fault.python_tests, "-x"))
        return ran


def _of_junit(report: Path) -> Ran:
    ran = Ran()
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        trouble = next((one for one in case if one.tag in ("failure", "error")), None)
        if trouble is not None:
            ran.failed.append(name)
            if NO_BEHAVIOUR.match(trouble.get("message", "")):
                ran.broken = f"{name}: {trouble.get('message')}"
        elif case.find("skipped") is not None:
            ran.skipped.append(name)
        else:
            ran.passed.append(name)
    return ran


def outcome_of(ran: Ran) -> tuple[Outcome, str]:
    """What the run of the tests says about them, and which saw it or why not."""
    if ran.broken:
        return "broken", ran.broken
    if ran.failed:
        return "caught", ran.failed[0]
    return ("not caught", "") if ran.passed else ("not asked", "the machine lacks what its tests need")


def in_order(faults: Sequence[Fault]) -> list[Fault]:
    """Python first, since it is quick; then crate by crate, each before those that it is built on."""
    return sorted(faults, key=lambda fault: CRATES.index(fault.crate) + 1 if fault.crate else 0)


def clean(tree: Tree, faults: Sequence[Fault]) -> list[str]:
    """The tests of all faults without any; what fails."""
    tests = sorted({test for fault in faults for test in fault.python_tests})
    rust = [test for fault in faults for test in fault.rust_tests]
    ran = tree.cargo_test(list(dict.fromkeys(rust)))
    if any(fault.crate and fault.python_tests for fault in faults):
        ran.broken = ran.broken or tree.build(["build", *CARGO, "--package", "plimsoll-agent"])
    if tests:
        ran.add(tree.pytest(tests))
    return ran.failed + ([ran.broken] if ran.broken else [])


def plant(tree: Tree, faults: Sequence[Fault], console: Console) -> list[Result]:
    """One after the other; a line for each as it ends."""
    results = []
    for fault in in_order(faults):
        began = time.monotonic()
        with tree.with_fault(fault):
            outcome, by = outcome_of(tree.ask(fault))
        results.append(Result(fault, outcome, time.monotonic() - began, by))
        console.print(f"{outcome:10} {results[-1].seconds:5.0f} s  {fault.name}", markup=False, highlight=False)
    return results


def table(results: Sequence[Result]) -> Table:
    """All of them, in the order of the data flow as faults.toml has it."""
    shown = Table("stage", "fault", "", "s", Column("seen by", overflow="fold"))
    for result in results:
        by = result.by.splitlines()[0] if result.by else ", ".join(result.fault.seen_by)
        shown.add_row(result.fault.stage, result.fault.name, result.outcome, f"{result.seconds:.0f}", by)
    return shown


def is_enough(results: Sequence[Result]) -> bool:
    """At most two of thirty are missed, and none is broken."""
    asked = [result for result in results if result.outcome != "not asked"]
    missed = sum(result.outcome == "not caught" for result in asked)
    return not any(result.outcome == "broken" for result in asked) and missed * 30 <= MISSED_OF_THIRTY * len(asked)


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-faults-"))
    folder.chmod(0o755)  # servers' users have to reach what is built in it
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main() -> int:
    """The whole of it."""
    asked = argparse.ArgumentParser(description="Plants faults one at a time: which of them do the tests see?")
    asked.add_argument("--only", metavar="WORD", action="append", help="faults whose name, stage or file holds it")
    asked.add_argument("--in", dest="keep", metavar="FOLDER", type=Path, help="the copy is made here and kept")
    options = asked.parse_args()
    faults = read()
    if options.only:
        words = options.only
        faults = [f for f in faults if any(word in f"{f.name} {f.stage} {f.file}" for word in words)]
        if not faults:
            asked.error("no fault holds any of these words")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left behind
    console = Console(width=None if sys.stdout.isatty() else 160)
    with _folder(options.keep) as folder:
        tree = Tree(folder)
        if not (folder / "Cargo.toml").exists():
            tree.fill(ROOT)
        if failed := clean(tree, faults):
            console.print("These fail without any fault; mend them first:", *failed, sep="\n  ", markup=False)
            return 1
        results = plant(tree, faults, console)
    results.sort(key=lambda result: faults.index(result.fault))
    console.print(table(results))
    for result in results:
        if result.outcome == "broken":
            console.print(f"{result.fault.name} is broken: {result.by}", markup=False)
    counts = {outcome: sum(result.outcome == outcome for result in results) for outcome in ("caught", "not asked")}
    console.print(f"{counts['caught']} of {len(results) - counts['not asked']} faults are caught", highlight=False)
    return 0 if is_enough(results) else 1


if __name__ == "__main__":
    sys.exit(main())
