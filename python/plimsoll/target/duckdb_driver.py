"""The process that holds DuckDB: it performs what it is told, times it, and tells. target/duckdb_server.py runs it.

DuckDB lives in its client's process, and one process at a time may write a database. So this process is the server
under test, and streams are its threads, a connection each: DuckDB lets go of the interpreter's lock while it works.
What is the driver's own of a query's time (turning rows into Python's) is told with it.

One JSON command a line on standard input, JSON lines on standard output, the last of each command with `event` "done"
or "refused". The line `stop` ends a test, `written TABLE` says that all of its rows are in its pipe; the end of input
ends the process, whose data are then worth nothing.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb

Json = dict[str, Any]
Tell = Callable[..., None]
AGAIN_SECONDS = 1.0
LOOK_SECONDS = 0.01
COPY = "format csv, header false, auto_detect false, delimiter '|', quote '', escape ''"
_TAKE = "update refresh_sets set taken = $1 where function = $2 and taken = $1 - 1 returning taken"
_DELETE = "delete from {} using refresh_key where {} = orderkey"


class Refused(Exception):
    """What cannot be done, in words."""


def copy(connection: duckdb.DuckDBPyConnection, table: str, path: str) -> int:
    """Fills a table from a file of lines with `|` between the values; how many rows they are."""
    quoted = path.replace("'", "''")
    return _count(connection, f"copy {table} from '{quoted}' ({COPY})")


def _count(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    return int(connection.execute(sql).fetchall()[0][0])


def refresh(connection: duckdb.DuckDBPyConnection, function: str, refresh_set: Json) -> tuple[int, int]:
    """A refresh function with its set, in one transaction that takes the set, too; its orders and lines.

    Raises Refused where the set was taken before, or the tables do not hold what it needs; nothing is changed then.
    """
    connection.execute("begin transaction")
    try:
        if not connection.execute(_TAKE, [refresh_set["set"], function]).fetchall():
            raise Refused(f"{function}: set {refresh_set['set']} was taken before")
        if function == "RF1":
            lines = copy(connection, "lineitem", refresh_set["lineitem"])
            orders = copy(connection, "orders", refresh_set["orders"])
        else:
            connection.execute("create temporary table refresh_key (orderkey bigint)")
            copy(connection, "refresh_key", refresh_set["refresh_key"])
            lines = _count(connection, _DELETE.format("lineitem", "l_orderkey"))
            orders = _count(connection, _DELETE.format("orders", "o_orderkey"))
            connection.execute("drop table refresh_key")
        if (orders, lines) != (refresh_set["order_count"], refresh_set["line_count"]):
            raise Refused(
                f"{function} of set {refresh_set['set']} found {orders} orders and {lines} lines instead of "
                f"{refresh_set['order_count']} and {refresh_set['line_count']}: the tables are not as the refresh "
                "functions left them"
            )
        connection.execute("commit")
    except BaseException:
        with suppress(duckdb.Error):  # what is reported is the first failure
            connection.execute("rollback")
        raise
    return orders, lines


def verified(connection: duckdb.DuckDBPyConnection, done: Json) -> Json | None:
    """What a refresh function left of its set, beside what it should have; None where that cannot be asked."""
    try:
        orders, lines, prices_wrong = connection.execute(done["verify"]).fetchall()[0]
    except (duckdb.Error, RuntimeError):
        return None
    left = {"orders": orders, "lines": lines, "prices_wrong": prices_wrong}
    return left | {"ok": left == done["left"]}


@dataclass
class UnderWay:
    """What a stream is at; `lock` keeps an interruption from the work after the one that it is meant for."""

    connection: duckdb.DuckDBPyConnection
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_busy: bool = False
    deadline_ns: int | None = None
    is_late: bool = False


@dataclass
class OwnCpu:
    """CPU time of a stream's thread outside of DuckDB's calls, in which the thread does DuckDB's work."""

    user_ns: int = 0
    system_ns: int = 0
    _mark: tuple[int, int] = (0, 0)

    @staticmethod
    def _used() -> tuple[int, int]:
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return round(used.ru_utime * 1e9), round(used.ru_stime * 1e9)

    def begin(self) -> None:
        """From here on it is the driver's."""
        self._mark = self._used()

    def end(self) -> None:
        """Up to here it was."""
        user, system = self._used()
        self.user_ns += user - self._mark[0]
        self.system_ns += system - self._mark[1]


class Streams:
    """One test: sessions that begin together, each with its work in its order."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, request: Json, tell: Tell) -> None:
        self._sessions: list[list[Json]] = request["sessions"]
        self._sets: dict[str, list[Json]] = request["sets"]
        timeout = request["timeout_seconds"]
        self._timeout_ns = None if timeout is None else round(timeout * 1e9)
        self._tell = tell
        self._under_way = [UnderWay(connection.cursor()) for _ in self._sessions]
        self._own = [OwnCpu() for _ in self._sessions]
        self._wake, self._stopping, self._release = threading.Event(), threading.Event(), threading.Event()
        self._released_ns = 0

    def stop(self) -> None:
        """Cancels what is under way; what has not been begun is skipped."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> Json:
        """The whole test; what is known of it beside its lines."""
        threads = [
            threading.Thread(target=self._carry, args=(place,), name=f"stream-{place}")
            for place in range(len(self._sessions))
        ]
        for thread in threads:
            thread.start()
        self._released_ns = time.monotonic_ns()
        self._release.set()
        while any(thread.is_alive() for thread in threads):
            self._wake.wait(self._patience_seconds())
            self._wake.clear()
            self._interrupt()
        for stream in self._under_way:
            stream.connection.close()
        return {
            "released_ns": self._released_ns,
            "own_cpu_user_ns": sum(own.user_ns for own in self._own),
            "own_cpu_system_ns": sum(own.system_ns for own in self._own),
            "memory_bytes_max": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }

    def _patience_seconds(self) -> float:
        """Until somebody's time may be over: what begins meanwhile has all of its own.

        Never for long: a stream wakes us a moment before its thread ends, and then nobody would wake us again.
        """
        if self._stopping.is_set() or self._timeout_ns is None:
            return AGAIN_SECONDS
        now = time.monotonic_ns()
        deadlines = [stream.deadline_ns for stream in self._under_way if stream.deadline_ns is not None]
        soonest = (min([*deadlines, now + self._timeout_ns]) - now) / 1e9
        return max(LOOK_SECONDS, min(AGAIN_SECONDS, soonest))

    def _interrupt(self) -> None:
        now = time.monotonic_ns()
        for stream in self._under_way:
            with stream.lock:
                is_late = stream.deadline_ns is not None and now >= stream.deadline_ns
                if stream.is_busy and (is_late or self._stopping.is_set()):
                    stream.is_late |= is_late
                    stream.connection.interrupt()

    def _carry(self, place: int) -> None:
        """One session's work, in its own thread."""
        stream, own = self._under_way[place], self._own[place]
        try:
            self._release.wait()
            planned_ns = self._released_ns
            own.begin()
            for work in self._sessions[place]:
                if self._stopping.is_set():
                    self._tell("ended", index=work["index"], status="skipped", planned_ns=planned_ns)
                    continue
                planned_ns = self._perform(stream, own, work, planned_ns)
            own.end()
        finally:
            self._wake.set()

    def _perform(self, stream: UnderWay, own: OwnCpu, work: Json, planned_ns: int) -> int:
        """One piece of work; when it ended."""
        function = work.get("function")
        outcome: Json = {"index": work["index"], "planned_ns": planned_ns, "status": "done"}
        if function is not None:
            outcome["set"] = self._sets[function][0]["set"] if self._sets[function] else None
        self._tell("began", index=work["index"], t_ns=time.monotonic_ns())
        own.end()
        began_ns = self._enter(stream, limited=function is None)
        answered_ns = None
        try:
            if function is None:
                stream.connection.execute(work["sql"])
                answered_ns = time.monotonic_ns()
                outcome["rows"] = len(stream.connection.fetchall())
            else:
                orders, lines = refresh(stream.connection, function, self._sets[function][0])
                outcome |= {"orders": orders, "lines": lines, "rows": orders + lines}
        except (duckdb.Error, RuntimeError, Refused, IndexError) as error:
            outcome |= self._failure(stream, error)
        ended_ns = time.monotonic_ns()
        self._leave(stream)
        if function is not None and outcome["status"] == "done":
            done = self._sets[function].pop(0)  # a set of a function that failed is the next one's
            outcome["verified"] = verified(stream.connection, done)
        own.begin()
        own_ns = ended_ns - answered_ns if answered_ns is not None and outcome["status"] == "done" else None
        self._tell("ended", **outcome, start_ns=began_ns, end_ns=ended_ns, own_ns=own_ns)
        return time.monotonic_ns() if outcome.get("verified") else ended_ns

    def _enter(self, stream: UnderWay, *, limited: bool) -> int:
        with stream.lock:
            began_ns = time.monotonic_ns()
            stream.is_busy, stream.is_late = True, False
            stream.deadline_ns = began_ns + self._timeout_ns if limited and self._timeout_ns is not None else None
        if self._stopping.is_set():
            self._wake.set()  # told between our look and now
        return began_ns

    @staticmethod
    def _leave(stream: UnderWay) -> None:
        with stream.lock:
            stream.is_busy, stream.deadline_ns = False, None

    @staticmethod
    def _failure(stream: UnderWay, error: Exception) -> Json:
        if isinstance(error, IndexError):
            error = Refused("no refresh set is left: load the tables again")
        # Who interrupts a query while Python turns its rows is told otherwise than who interrupts it before.
        status = (
            "timed out" if stream.is_late and isinstance(error, duckdb.InterruptException | RuntimeError) else "failed"
        )
        return {"status": status, "error": str(error).strip(), "error_class": type(error).__name__}


class Driver:
    """The process: commands one after the other; `stop` while one is under way."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._streams: Streams | None = None
        self._pipes: dict[str, list[int]] = {}
        self._lock = threading.Lock()
        self._commands: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        # No look ahead: a line is to be heard when it is there.
        for line in iter(sys.stdin.readline, ""):
            if line.strip() == "stop":
                if (streams := self._streams) is not None:
                    streams.stop()
            elif line.startswith("written "):
                self._close_end(line.split()[1], 1)
            else:
                self._commands.put(line)
        os._exit(0)

    def tell(self, event: str, **about: Any) -> None:
        """One line, whole, whoever else tells something."""
        text = json.dumps({"event": event, **about}) + "\n"
        with self._lock:
            sys.stdout.write(text)
            sys.stdout.flush()

    def serve(self) -> None:
        """Until it is told to close."""
        while True:
            command = json.loads(self._commands.get())
            try:
                answer = getattr(self, f"_{command.pop('do')}")(**command)
            except (duckdb.Error, OSError, Refused) as error:
                self.tell("refused", error=str(error).strip())
                continue
            self.tell("done", **answer)
            if self._connection is None:
                return

    @property
    def _open_one(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise Refused("no database is open")
        return self._connection

    def _open(
        self, path: str, settings: dict[str, str | bool | int | float | list[str]], owner: list[int] | None
    ) -> Json:
        if owner is not None:
            _become(*owner)
        self._connection = duckdb.connect(path, config=dict(settings))
        return {"version": duckdb.__version__, "pid": os.getpid()}

    def _ask(self, statements: list[str]) -> Json:
        rows: list[Any] = []
        for sql in statements:
            rows = self._open_one.execute(sql).fetchall()
        return {"rows": [[_plain(value) for value in row] for row in rows]}

    def _make_pipes(self, tables: list[str]) -> Json:
        """A pipe for the rows of each table; the paths of their writing ends.

        They have no names: a pipe that has one would make DuckDB wait at its opening for a writer who may have come and
        gone.
        """
        self._pipes = {table: list(os.pipe()) for table in tables}
        return {"paths": {table: f"/proc/{os.getpid()}/fd/{ends[1]}" for table, ends in self._pipes.items()}}

    def _copy(self, table: str) -> Json:
        try:
            return {"rows": copy(self._open_one, table, f"/dev/fd/{self._pipes[table][0]}")}
        finally:
            self._close_end(table, 0)
            self._close_end(table, 1)

    def _close_end(self, table: str, end: int) -> None:
        with self._lock:
            descriptor, self._pipes[table][end] = self._pipes[table][end], -1
        if descriptor >= 0:
            os.close(descriptor)

    def _test(self, **request: Any) -> Json:
        self._streams = Streams(self._open_one, request, self.tell)
        try:
            return self._streams.run()
        finally:
            self._streams = None

    def _close(self) -> Json:
        self._open_one.close()
        self._connection = None
        return {}


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _become(uid: int, gid: int) -> None:
    """This process is that user from here on. Everything was imported before: he may not be allowed to read it."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Driver().serve()
    os._exit(0)  # the thread that waits for input holds what an ordinary end would want
