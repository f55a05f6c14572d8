"""The fixture `slow_wal`: a server whose log is on the file system that holds syncs, and what that file system saw."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from breakdown_server import NEEDS, Laboratory, laboratory, server_user
from loop_file_system import call

_PROGRAM = Path(__file__).with_name("breakdown_slow_sync.py")

_ANSWERED_SECONDS_MAX = 120.0  # however busy the machine is


class Sync(NamedTuple):
    """One sync as the file system saw it."""

    pid: int
    came_ns: int
    answered_ns: int

    @property
    def held_ns(self) -> int:
        return self.answered_ns - self.came_ns


@dataclass
class SlowFolder:
    """What stands in for a folder, and where its figures are."""

    delay: Path
    log: Path

    @contextlib.contextmanager
    def delayed(self, seconds: float) -> Iterator[list[Sync]]:
        """Holds each sync for so long; afterwards the list has those that came meanwhile, as they were answered."""
        seen: list[Sync] = []
        self.until(time.monotonic_ns())  # one that came before would be held, too
        began_ns = time.monotonic_ns()
        self.delay.write_text(str(seconds))
        try:
            yield seen
            seen += [sync for sync in self.until(time.monotonic_ns()) if sync.came_ns >= began_ns]
        finally:
            self.delay.write_text("0")

    def until(self, moment_ns: int) -> list[Sync]:
        """Those that came by then, once all of them have been answered and that is written down."""
        deadline = time.monotonic() + _ANSWERED_SECONDS_MAX
        while True:
            lines = [tuple(map(int, line.split())) for line in self.log.read_text().splitlines()]
            came = sum(len(line) == 2 and line[1] <= moment_ns for line in lines)
            answered = [Sync(*line) for line in lines if len(line) == 3 and line[1] <= moment_ns]
            if len(answered) == came:
                return answered
            assert time.monotonic() < deadline, f"{came - len(answered)} syncs are not answered"
            time.sleep(0.005)


@dataclass
class SlowWal:
    lab: Laboratory
    folder: SlowFolder

    @contextlib.contextmanager
    def nobody_else_syncs(self) -> Iterator[None]:
        """The WAL writer would pay for somebody now and then."""
        with self.lab.session() as client:
            row = client.execute("select pid from pg_stat_activity where backend_type = 'walwriter'").fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(row[0], signal.SIGCONT)


@contextlib.contextmanager
def slow_folder(folder: Path) -> Iterator[SlowFolder]:
    """Puts the slow file system in the place of a folder, until the end; its content stays with the source."""
    source, point = folder.with_name("wal-source"), folder.with_name("wal-point")
    made = SlowFolder(folder.with_name("wal-delay"), folder.with_name("wal-syncs"))
    folder.rename(source)
    point.mkdir()
    folder.symlink_to(point)
    made.delay.write_text("0")
    made.log.touch()
    argv = [sys.executable, str(_PROGRAM), *map(str, (source, point, made.delay, made.log))]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"mounted\n"
        yield made
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)  # the end of its input: it unmounts and ends
        process.kill()
        process.wait()
        if point.is_mount():
            call("umount", "--lazy", str(point))


@pytest.fixture(scope="module")
def slow_wal(needs: Callable[..., None]) -> Iterator[SlowWal]:
    """A server that a test may hold up at its syncs."""
    needs(*NEEDS, "fuse")
    with laboratory(server_user(), slow_folder) as lab:
        yield SlowWal(lab, lab.log)
