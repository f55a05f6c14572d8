"""Looks at pg_stat_activity from a process of its own: as the server's user where no connection was named.

A process, because a look must not wait until a terminal is drawn, and because a server that trusts its own operating
system user (peer authentication) is asked as that user without anything else of Plimsoll becoming him: after the fork
and before the connection the child gives up every other right for good. It ends when its input closes, or its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import pwd
import random
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TextIO

import psycopg

from plimsoll.target import activity
from plimsoll.target.connection import Connection, as_text, described
from plimsoll.target.query_text import without_values
from plimsoll.target.running import why_no_session

PER_SECOND = 10
LOCKS_SECONDS = 0.5
CONNECT_SECONDS = 3
NAMES_MAX = 50
QUERIES_MAX = 20_000
OTHER_QUERIES = "(all queries beyond the first 20,000 distinct ones)"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Way:
    """How a session may be had: connections to try in turn, and as which user of the system (None: as we are)."""

    connections: list[Connection]
    uid: int | None = None


class ActivitySampler:
    """The child. `lines` gives what it tells until it ends; `stop` ends it."""

    def __init__(self, way: Way, per_second: float = PER_SECOND) -> None:
        from_child, to_parent = os.pipe()
        from_parent, to_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(from_child)
            os.close(to_child)
            _child(way, per_second, from_parent, to_parent)
        os.close(to_parent)
        os.close(from_parent)
        self._input, self._output = to_child, os.fdopen(from_child)
        self.cpu_seconds = 0.0

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it tells, until it ends."""
        for line in self._output:
            if not line.endswith("\n"):
                return
            yield json.loads(line)

    def stop(self) -> None:
        """It ends after the look under way."""
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def finish(self, seconds: float = 2.0) -> None:
        """Ends it, by force if need be; what it used of a CPU is then in `cpu_seconds`."""
        self.stop()
        until = time.monotonic() + seconds
        while True:
            done, _, usage = os.wait4(self.pid, os.WNOHANG)
            if done:
                self.cpu_seconds = usage.ru_utime + usage.ru_stime
                break
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)  # ours, and not waited for yet: the number is still its own
                until += seconds
            time.sleep(0.005)
        self._output.close()


def _child(way: Way, per_second: float, orders: int, answers: int) -> NoReturn:
    """Never returns to the caller's code, whose memory this is a copy of."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        output = os.fdopen(answers, "w")
        if way.uid is not None:
            _become(way.uid)
        # After the change of user, which would undo it. If the parent died before, its end of the pipe is closed.
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _look_on(way, per_second, orders, output)
        code = 0
    except (BrokenPipeError, KeyboardInterrupt):
        code = 0
    except Exception as error:
        # A fault of ours ends the looks and not the watch, which has to know. Its text may hold what a query holds.
        why = f"the process that reads pg_stat_activity failed with {type(error).__name__}{_where(error)}"
        with contextlib.suppress(OSError):
            _tell(output, {"event": "lost", "why": why})
    finally:
        os._exit(code)


def _where(error: Exception) -> str:
    """Its last line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "plimsoll" in Path(frame.filename).parts]
    return f" in {Path(ours[-1].filename).name}, line {ours[-1].lineno}" if ours else ""


def _tell(output: TextIO, line: dict[str, Any]) -> None:
    output.write(json.dumps(line) + "\n")
    output.flush()


def _become(uid: int) -> None:
    """This process is that user from here on and nobody else; nothing of the caller's environment leads its client."""
    account = pwd.getpwuid(uid)
    os.setgroups([])
    os.initgroups(account.pw_name, account.pw_gid)
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(uid, uid, uid)
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    os.environ["HOME"] = "/nonexistent"


def _look_on(way: Way, per_second: float, orders: int, output: TextIO) -> None:
    tell = functools.partial(_tell, output)
    reasons: list[str] = []
    session = _session(way, reasons)
    if session is None:
        tell({"event": "no session", "why": reasons[-1] if reasons else "the server has no Unix socket"})
        return
    try:
        _Looking(session, way, tell).run(per_second, orders)
    except psycopg.Error as error:
        tell({"event": "lost", "why": why_no_session(error)})


def _session(way: Way, reasons: list[str]) -> psycopg.Connection | None:
    for each in way.connections:
        try:
            return open_session(each)
        except psycopg.Error as error:
            reasons.append(f"as user {each.user}: {why_no_session(error)}")
    return None


def open_session(connection: Connection, database: str | None = None) -> psycopg.Connection:
    """A session that reads, holds nothing up, and leaves no trace in a log where it may."""
    session = psycopg.connect(
        host=connection.host,
        port=connection.port,
        user=connection.user,
        password=connection.password,
        dbname=database or connection.dbname,
        connect_timeout=CONNECT_SECONDS,
        application_name=activity.APPLICATION,
        options=activity.OPTIONS,
        autocommit=True,
    )
    as_text(session)
    session.prepare_threshold = 3
    for text in activity.QUIETLY:
        try:
            session.execute(text)  # type: ignore[call-overload]  # one of a few constants
        except psycopg.Error:
            continue  # it may not, or the server has no such setting
    return session


class _Looking:
    """The session's work: looks at random moments of equal stretches of time, so that no rhythm of the load is met."""

    def __init__(self, session: psycopg.Connection, way: Way, tell: Tell) -> None:
        self._session, self._tell = session, tell
        self._connection = next(
            connection
            for connection in way.connections
            if connection.user == session.info.user and connection.dbname == session.info.dbname
        )
        self._about = activity.about(session)
        self._statement = activity.statement(session.info.server_version)
        self._queries: dict[tuple[int | None, str], int] = {}
        self._sessions: dict[tuple[str | None, str | None, str], int] = {}
        self._relations: dict[tuple[int, int], str | None] = {}
        self._locks_at = 0.0
        self._waiting = False

    def run(self, per_second: float, orders: int) -> None:
        """Until the orders' end of the pipe closes."""
        self._tell({"event": "session", **self._about, "settings": self._settings()})
        draw, number, began, period = random.Random(1), 0, time.monotonic(), 1 / per_second
        while True:
            pause = began + (number + draw.random()) * period - time.monotonic()
            if select.select([orders], [], [], max(0.0, pause))[0]:
                self._session.close()
                return
            self._look()
            # A look that was held up leaves out those that were due meanwhile, and then as long again is left free.
            number = max(number + 1, int((time.monotonic() - began) / period))

    def _look(self) -> None:
        began = time.monotonic_ns()
        look = activity.look(self._session, self._statement)
        took = time.monotonic_ns() - began
        at = began + took // 2
        new: dict[str, Any] = {"queries": {}, "sessions": {}}
        rows = []
        for backend in look.seen:
            since = None if backend.since_us is None else at - (look.now_us - backend.since_us) * 1000
            transaction = None if backend.transaction_us is None else at - (look.now_us - backend.transaction_us) * 1000
            place = self._place_of(backend, new)
            where = _placed(self._sessions, (backend.database, backend.user, backend.application), new["sessions"])
            rows.append(
                [
                    backend.pid,
                    backend.kind,
                    backend.state,
                    place,
                    backend.event,
                    backend.leader,
                    since,
                    transaction,
                    where,
                ]
            )
        line = {"event": "look", "t_ns": at, "took_ns": took, "idle": look.idle, "seen": rows}
        line |= {key: value for key, value in new.items() if value}
        waiting = [backend.pid for backend in look.seen if (backend.event or "").startswith("Lock:")]
        now = time.monotonic()
        if (waiting or self._waiting) and now - self._locks_at >= LOCKS_SECONDS:
            self._locks_at, self._waiting = now, bool(waiting)
            line["locks"] = self._locks(waiting, at, look.now_us) if waiting else []
            line["locks_t_ns"] = time.monotonic_ns()
        self._tell(line)

    def _place_of(self, backend: activity.Seen, new: dict[str, Any]) -> int:
        text = without_values(backend.query)
        key = (backend.query_id, "") if backend.query_id is not None else (None, text)
        if key not in self._queries and len(self._queries) >= QUERIES_MAX:
            key, text = (None, OTHER_QUERIES), OTHER_QUERIES
        if key not in self._queries:
            self._queries[key] = len(self._queries)
            cut = len(backend.query) >= activity.QUERY_CHARACTERS
            new["queries"][self._queries[key]] = {"text": text, "query_id": backend.query_id, "cut": cut}
        return self._queries[key]

    def _locks(self, pids: list[int], at: int, now_us: int) -> list[dict[str, Any]]:
        rows = []
        for waiting in activity.locks(self._session, pids, self._session.info.server_version):
            since = None if waiting.since_us is None else at - (now_us - waiting.since_us) * 1000
            rows.append(
                {
                    "pid": waiting.pid,
                    "blockers": waiting.blockers,
                    "kind": waiting.kind,
                    "mode": waiting.mode,
                    "since_ns": since,
                }
                | {"relation": self._relation(waiting)}
            )
        return rows

    def _relation(self, waiting: activity.Waiting) -> str | None:
        """Its name, asked once of its own database; None where it cannot be told."""
        if waiting.relation is None:
            return None
        key = (waiting.database or 0, waiting.relation)
        if key not in self._relations and len(self._relations) < NAMES_MAX:
            self._relations[key] = self._named(waiting)
        return self._relations.get(key)

    def _named(self, waiting: activity.Waiting) -> str | None:
        assert waiting.relation is not None
        try:
            row = self._session.execute("select datname from pg_database where oid = %s", [waiting.database]).fetchone()
            database = str(row[0]) if row else None
            if database is None or database == self._session.info.dbname:
                return activity.relation_names(self._session, [waiting.relation]).get(waiting.relation)
            with open_session(self._connection, database) as there:
                self._tell({"event": "own", "pid": there.info.backend_pid})
                return activity.relation_names(there, [waiting.relation]).get(waiting.relation)
        except psycopg.Error:
            return None

    def _settings(self) -> dict[str, Any] | None:
        """As the record of every run has them."""
        try:
            return described(self._session)
        except psycopg.Error:
            return None


def _placed(known: dict[Any, int], key: Any, new: dict[int, Any]) -> int:
    if key not in known:
        known[key] = len(known)
        new[known[key]] = list(key)
    return known[key]
