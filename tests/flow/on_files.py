"""Small loads on files for tests of the flow, at a place that the test has made."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laboratory import Laboratory

_PROGRAM = Path(__file__).resolve().parents[1] / "known" / "failing_files.py"

# Past the page cache, so that every read is asked of the file system.
EXPERIMENT = """
format = 1
name = "on-files"
title = "What becomes of files that fail?"

[target]
server = "files"
files = {{data = "{place}"}}

[workload]
name = "files"
clients = 2
count = 4
file_size = "64 KiB"
direct = true
mix = [
    {{operation = "read", bytes = "4 KiB", weight = 2}},
    {{operation = "append", bytes = 4096}},
]

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

[measure]
seconds = 0.5

[design]
blocks = {blocks}
repeat_share_max = 0  # what is planted is planted in the first attempt
"""


def experiment(laboratory: Laboratory, place: Path, blocks: int) -> str:
    """The path of an experiment with so many trials on this place."""
    path = laboratory.state / "on-files.toml"
    path.write_text(EXPERIMENT.format(place=place, blocks=blocks))
    return str(path)


def place_of(laboratory: Laboratory, name: str) -> Path:
    """An empty folder that the laboratory looks for mounts in."""
    folder = laboratory.state / f"place-{name}"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def trials(out: Path) -> list[dict[str, Any]]:
    """What trial.json says of each."""
    return [json.loads(path.read_text()) for path in sorted(out.glob("trials/*/trial.json"))]


def errors(out: Path, number: int) -> list[dict[str, Any]]:
    """What operations of a trial failed by."""
    summary = json.loads((out / "trials" / f"{number:04}" / "measure" / "summary.json").read_text())
    return list(summary["errors"])


@dataclass
class Failing:
    """A place whose calls fail as `fail` says."""

    place: Path
    failures: Path

    def fail(self, *lines: str) -> None:
        """From now on, `call ERROR` each; without any nothing fails."""
        new = self.failures.with_name("next")
        new.write_text("\n".join(lines))
        new.rename(self.failures)  # at once: it is read at every call


@contextlib.contextmanager
def failing(laboratory: Laboratory) -> Iterator[Failing]:
    """A file system of the tests (tests/known/failing_files.py), which goes when this one does."""
    source, place = place_of(laboratory, "source"), place_of(laboratory, "failing")
    folder = laboratory.state / "said"
    folder.mkdir()
    made = Failing(place, folder / "failures")
    made.fail()
    argv = [sys.executable, str(_PROGRAM), str(source), str(place), str(made.failures)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == "mounted\n"
            yield made
        finally:
            process.stdin.close()
            process.wait(10)
            for left in (source, place, folder):  # another test of the same laboratory may want its own
                shutil.rmtree(left)


@contextlib.contextmanager
def mounted(laboratory: Laboratory, name: str, *options: str) -> Iterator[Path]:
    """A place that `mount` makes with these options."""
    place = place_of(laboratory, name)
    subprocess.run(["mount", *options, str(place)], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True, capture_output=True)


class Run:
    """A run in the background, watched from trial to trial."""

    def __init__(self, laboratory: Laboratory, place: Path, blocks: int, *options: str) -> None:
        self.laboratory, self.place = laboratory, place
        self.out = laboratory.state / f"out-{place.name}"
        argv = ("run", experiment(laboratory, place, blocks), "--no-page", "--out", str(self.out), *options)
        self.front = laboratory.start(*argv)

    def wait_for(self, path: str) -> None:
        """Until there is this file of the record, and a little longer."""
        until = time.monotonic() + 60
        while not (self.out / path).exists():
            assert self.front.poll() is None and time.monotonic() < until, self.ended()
            time.sleep(0.01)
        time.sleep(0.15)

    def in_load(self, number: int) -> None:
        """Until operations of a trial are under way."""
        self.wait_for(f"trials/{number:04}/measure/transactions.npy")

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it has said."""
        out, error = self.front.communicate(timeout=90)
        return self.front.returncode, f"{out}\n{error}"

    def first(self) -> dict[str, bytes]:
        """Every file of the first trial."""
        folder = self.out / "trials" / "0001"
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def left(self) -> list[str]:
        """Whatever is still there, but for the place, which is the test's."""
        found = [one for one in self.laboratory.left_behind() if not (one.startswith("mount") and "/place-" in one)]
        return found + [str(path) for path in self.place.glob("*")]


@contextlib.contextmanager
def watched(laboratory: Laboratory, place: Path, blocks: int, *options: str) -> Iterator[Run]:
    """A run that is ended with the test."""
    run = Run(laboratory, place, blocks, *options)
    try:
        yield run
    finally:
        if run.front.poll() is None:
            run.front.kill()
            run.front.communicate()
