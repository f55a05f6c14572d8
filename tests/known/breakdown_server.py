"""A private server for the breakdown's worlds: nothing of its own happens in it, and its log may live elsewhere."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from breakdown_watch import Breakdown

from plimsoll.environment import Journal, StateDir, discover
from plimsoll.environment import server as server_knob
from plimsoll.environment.folders import work_dir
from plimsoll.run.host import HERE
from plimsoll.target import PostgresServer

AroundLog = Callable[[Path], contextlib.AbstractContextManager[Any]]
NEEDS = ("root", "bpf", "postgresql", "server user")
_PREFIX = "plimsoll-breakdown-"
_QUIET: dict[str, bool | int | float | str] = {
    "autovacuum": False,
    "bgwriter_lru_maxpages": 0,
    "checkpoint_timeout": "1d",
    "jit": False,
    "max_connections": 60,
    "max_parallel_workers_per_gather": 0,
    "shared_buffers": "32MB",
    "track_io_timing": True,
    "wal_writer_delay": "10s",
}


@dataclass
class Laboratory:
    """The server, and where it and the probe's tables are."""

    server: PostgresServer
    state: StateDir
    log: Any  # what stands in the place of its log, if anything
    _watches: int = 0

    def watch(self, rows: str = "requests", by_system_call: bool = False) -> Breakdown:
        """Not yet watching."""
        self._watches += 1
        return Breakdown(self.server.data, self.state.root / f"out{self._watches}", rows, by_system_call)

    @contextlib.contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """A client in autocommit mode that never prepares: one simple query a call."""
        with self.server.connection.open("plimsoll") as connection:
            connection.prepare_threshold = None
            yield connection


@contextlib.contextmanager
def laboratory(user: str, around_log: AroundLog = contextlib.nullcontext) -> Iterator[Laboratory]:
    """Starts the server; before, `around_log` may put something in the place of its log. Nothing of it stays."""
    root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=os.environ.get("PLIMSOLL_TEST_DIR", "/var/tmp")))
    root.chmod(0o755)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, root, ignore_errors=True)
        state = StateDir(root).prepare()
        journal = undo.enter_context(Journal.create(state, root.name))
        folder = state.work / "server"
        work_dir.make(state, journal, folder, mode=0o755)
        server_knob.record(journal, folder / "data")
        made = PostgresServer(Path(discover.servers()[-1].bin_dir), folder / "data", folder, user, HERE.start_as)
        made.initdb()
        made.configure(_QUIET, None)
        log = undo.enter_context(around_log(folder / "data/pg_wal"))
        undo.callback(made.abandon)
        made.start()
        made.create_database()
        yield Laboratory(made, state, log)


def server_user() -> str:
    """As the fixture of that name, which lasts for one test only."""
    known = {account.pw_name for account in pwd.getpwall()}
    return next(name for name in ("plimsoll", "postgres", "nobody") if name in known)
