"""A server as an administrator has one, and what is left on the machine: for the verb `breakdown`.

Its sessions come by its socket and are asked who they are by the operating system (peer), as Debian sets servers up.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from laboratory import Laboratory, make_reachable

from plimsoll.environment import discover
from plimsoll.run.host import HERE
from plimsoll.target import PostgresServer

Settings = Mapping[str, bool | int | float | str]
AroundLog = Callable[[Path], contextlib.AbstractContextManager[Any]]
SETTINGS: Settings = {"autovacuum": False, "shared_buffers": "32MB", "jit": False}
_BPF = {"x86_64": 321, "aarch64": 280}
_NEXT = {"program": 11, "map": 12}
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class LiveServer:
    """The server, and a laboratory to call the verb in."""

    lab: Laboratory
    server: PostgresServer
    bin_dir: Path  # of the clients
    log: Any = None  # what stands in the place of its log, if anything

    @property
    def pid(self) -> int:
        """Of its first process."""
        found = self.server.pid()
        assert found is not None
        return found

    @property
    def dsn(self) -> str:
        """For root, whom the server does not know, by a password."""
        return f"host=127.0.0.1 port={self.server.load_connection.port} user=asker dbname=postgres"

    @contextlib.contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """The server's own user by his password, in autocommit mode."""
        with self.server.load_connection.open() as connection:
            connection.prepare_threshold = None
            yield connection

    def client(self, program: str, *argv: str, user: str | None = None) -> subprocess.Popen[bytes]:
        """psql or pgbench, as the server's user."""
        one = self.server.connection
        place = ["-h", one.host, "-p", str(one.port), "-U", user or one.user]
        command = [str(self.bin_dir / program), *place, *argv, "postgres"]
        return HERE.start_as(command, user=self.server.user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, *argv: str, agent: Path | None = None, **more: str) -> subprocess.Popen[str]:
        """The verb, not waited for."""
        environment = {**self.lab.environment, "COLUMNS": "80", **more}
        if agent is not None:
            environment["PLIMSOLL_AGENT"] = str(agent)
        return subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "breakdown", *argv],
            env=environment,
            cwd=self.lab.state,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextlib.contextmanager
def live_server(
    user: str,
    of_server: Path | None = None,
    around_log: AroundLog = contextlib.nullcontext,
    settings: Settings | None = None,
) -> Iterator[LiveServer]:
    """Started; nothing of it stays. `of_server`: the programs of another version; `around_log` may put something in the
    place of its log before it starts."""
    lab = Laboratory()
    with contextlib.ExitStack() as undo:
        undo.callback(lab.close)
        bin_dir = Path(discover.servers()[-1].bin_dir)
        folder = lab.state / "server"
        make_reachable(folder)
        made = PostgresServer(of_server or bin_dir, folder / "data", folder, user, HERE.start_as, tcp=True)
        made.initdb()
        made.configure({**SETTINGS, **(settings or {})}, None)
        log = undo.enter_context(around_log(folder / "data/pg_wal"))
        undo.callback(made.abandon)
        made.start()
        with made.connection.open() as session:
            session.execute("create role asker login password 'not to be seen'")
            session.execute("grant pg_read_all_stats to asker")
        hba = folder / "pg_hba.conf"
        hba.write_text(hba.read_text().replace("local all all trust", "local all all peer"))
        os.kill(made.pid() or 0, 1)
        yield LiveServer(lab, made, bin_dir, log)


def bpf_objects() -> set[tuple[str, int]]:
    """Every program and map in the kernel, by its number."""
    found = set()
    for kind, command in _NEXT.items():
        number = 0
        while True:
            buffer = ctypes.create_string_buffer(struct.pack("=II", number, 0).ljust(128, b"\0"), 128)
            if _libc.syscall(_BPF[platform.machine()], command, buffer, 128) < 0:
                break
            number = struct.unpack_from("=I", buffer.raw, 4)[0]
            found.add((kind, number))
    return found


def files_of(data: Path) -> dict[str, Any]:
    """The files of a server's folder that nothing of its own work adds or takes away."""
    kept = [path for path in data.rglob("*") if path.parent.name not in ("pg_wal", "pg_stat_tmp", "pgsql_tmp")]
    return {str(path): path.stat().st_mode for path in kept if "base" not in path.relative_to(data).parts}
