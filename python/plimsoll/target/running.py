"""Which server a process number or a connection means: one that runs on this machine, started by anyone.

Only looked at, never touched. The constraint: a file postmaster.pid proves nothing by itself, for its number may be
somebody else's by now; a server is where a process works in a data folder whose file names that very process.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

import psycopg

from plimsoll.environment import processes
from plimsoll.environment.fault import Fault
from plimsoll.target.connection import Connection

START_APART_SECONDS = 3.0
LISTED_MAX = 5
_PROGRAMS = ("postgres", "postmaster")
_PID, _STARTED, _PORT, _SOCKETS = 0, 2, 3, 4  # lines of postmaster.pid


class NotFound(Fault):
    """What was named is no server of PostgreSQL here: the request is wrong."""


class Elsewhere(Fault):
    """The server runs where it cannot be watched from: another host or a container."""


@dataclass(frozen=True)
class RunningServer:
    """A server as its data folder and its first process tell."""

    pid: int
    data: Path
    major: str
    uid: int
    port: int | None
    socket_folder: str | None
    started_epoch: int | None

    @property
    def owner(self) -> str:
        """The operating system's name of who owns it, or the number where it has none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)


def by_pid(pid: int) -> RunningServer:
    """The server that a process belongs to. Raises NotFound with what stands there instead."""
    if processes.start_ticks(pid) is None:
        raise NotFound(f"--pid {pid}: there is no such process", remedy=_advice())
    at: int | None = pid
    while at is not None and at > 1:
        if (server := _server_at(at)) is not None:
            return server
        at = _parent(at)
    name = Path(processes.link(pid, "exe") or "").name or "a process of the kernel"
    if name in _PROGRAMS:
        what = f"--pid {pid}: runs {name}, but belongs to no running server (it is starting, ending, or alone)"
        raise NotFound(what, remedy=f"try again in a moment; {_advice()}")
    raise NotFound(f"--pid {pid}: is not a PostgreSQL process but {name}", remedy=_advice())


def by_connection(connection: Connection) -> RunningServer:
    """The server that answers a connection, if it runs here. Raises Elsewhere, or psycopg.Error if none answers."""
    with connection.open(connection.dbname) as opened:
        row = opened.execute(
            "select pg_backend_pid(), extract(epoch from pg_postmaster_start_time())::float8"
        ).fetchone()
        assert row is not None
        return _checked(connection, int(row[0]), float(row[1]))


def _checked(connection: Connection, backend: int, started: float) -> RunningServer:
    """The server of a backend here, if it is the one that began when the answering one did."""
    try:
        server = by_pid(backend)
    except NotFound:
        server = None
    if server is None or server.started_epoch is None or abs(server.started_epoch - started) > START_APART_SECONDS:
        where = connection.host if connection.host.startswith("/") else f"{connection.host}, port {connection.port}"
        raise Elsewhere(
            f"--dsn: the server at {where} does not run on this machine, or runs in a container of its own",
            remedy="run plimsoll breakdown on the host that it runs on, or name its process there with --pid",
        )
    return server


def all_running() -> list[RunningServer]:
    """Every server on this machine that may be looked at, by process number."""
    names = set(_PROGRAMS)
    pids = [pid for pid in processes.all_pids() if Path(processes.link(pid, "exe") or "").name in names]
    return [server for pid in sorted(pids) if (server := _server_at(pid)) is not None]


def _advice() -> str:
    servers = all_running()
    if not servers:
        return "no PostgreSQL server that you may inspect runs here; start it, or run this on its host"
    listed = ", ".join(f"--pid {server.pid} ({server.data})" for server in servers[:LISTED_MAX])
    return f"running here: {listed}{' and more' if len(servers) > LISTED_MAX else ''}"


def nothing_named() -> Fault:
    """What to say where neither a process nor a connection was given."""
    return NotFound("breakdown: names no server", remedy=f"--pid of one of its processes, or --dsn; {_advice()}")


def _server_at(pid: int) -> RunningServer | None:
    """The server whose first process this is."""
    folder = processes.link(pid, "cwd")
    if folder is None:
        return None
    data = Path(folder)
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
        major = (data / "PG_VERSION").read_text(errors="replace").strip()
        uid = data.stat().st_uid
    except OSError:
        return None
    if _number(lines, _PID) != pid:
        return None
    sockets = lines[_SOCKETS].strip() if len(lines) > _SOCKETS else ""
    if sockets and not sockets.startswith("/"):
        sockets = os.path.normpath(data / sockets)
    return RunningServer(pid, data, major, uid, _number(lines, _PORT), sockets or None, _number(lines, _STARTED))


def _number(lines: list[str], place: int) -> int | None:
    text = lines[place].strip() if len(lines) > place else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


def sockets_of(server: RunningServer) -> list[Connection]:
    """How its owner may reach it without a password: by its socket, under his own name and the usual ones."""
    if server.socket_folder is None or server.port is None:
        return []
    users = list(dict.fromkeys([server.owner, "postgres"]))
    return [
        Connection(host=server.socket_folder, port=server.port, user=user, dbname=database)
        for user in users
        for database in ("postgres", "template1")
    ]


def why_no_session(error: psycopg.Error) -> str:
    """The server's or libpq's reason in one line, without what it quotes of the connection."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("connection failed: ") if lines else type(error).__name__
