"""The verb `breakdown` on a server that runs its own load, against waits that were planted.

A lock is held for a known time; the syncs of commits are held by a file system that says for how long.

What it is compared with brackets it: the file system's own log from below (a backend waits for it before it notices
and after it has answered), the server's own clock around each sync from above.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from breakdown_server import NEEDS, server_user
from breakdown_slow_wal import slow_folder
from breakdown_watch import MS, Asked, Asking, ask
from live_server import LiveServer, live_server
from live_watched import Watched

pytestmark = pytest.mark.alone

HELD_S, DELAY_S, CLIENTS, TRANSACTIONS = 0.7, 0.02, 2, 40


@pytest.fixture(scope="module")
def server(needs: Callable[..., None]) -> Iterator[LiveServer]:
    """Nobody but commits writes to the log, and not so much that it needs another file."""
    needs(*NEEDS, "fuse")
    settings = {"track_wal_io_timing": True, "checkpoint_timeout": "1d", "wal_writer_delay": "10s"}
    with live_server(server_user(), around_log=slow_folder, settings=settings) as found:
        with found.session() as session:
            session.execute("create table written (n int)")
        yield found


def _waits_for_a_lock(session: psycopg.Connection, pid: int) -> None:
    until = time.monotonic() + 10
    while session.execute(f"select wait_event_type from pg_stat_activity where pid = {pid}").fetchone() != ("Lock",):
        assert time.monotonic() < until, f"{pid} never waits"
        time.sleep(0.005)


def _hold(holder: psycopg.Connection, waiter: psycopg.Connection) -> tuple[Asked, Asked]:
    """A row is held for a known time: what the waiter asked for, and what let it go."""
    holder.execute("begin; update held set n = n + 1")
    asking = Asking(waiter, "update held set n = n + 1")
    _waits_for_a_lock(holder, waiter.info.backend_pid)
    time.sleep(HELD_S)
    released = ask(holder, "commit")
    return asking.answer(), released


def test_a_lock_that_was_held_for_a_known_time(server: LiveServer) -> None:
    """Shorter than the watch: it is told by its name, with its length, and whose lock it was."""
    with server.session() as holder, server.session() as waiter:
        holder.execute("create table held as select 0 as n")
        waiter.execute("select n from held")  # what it needs of the catalogue it has
        with Watched(server, "held", 4) as watched:
            waited, released = _hold(holder, waiter)
    rows, waits = watched.rows()
    mine = rows[(rows["backend_pid"] == waited.pid) & (rows["arrived_ns"] >= waited.sent_ns)]
    (request,) = mine["request"][mine["ended_ns"] <= waited.got_ns].tolist()
    (wait,) = waits[(waits["request"] == request) & (waits["wait"] == watched.named("Lock:transactionid"))]
    # Who is woken may still wait for a CPU when the holder hears that it committed, and no longer once it has answered.
    assert HELD_S * 1e9 <= wait["ns"] <= waited.got_ns - waited.sent_ns
    assert wait["waker_pid"] == released.pid
    shown = {row["bucket"]: row["ns"] for row in watched.found["buckets"]}
    assert shown["lock"] == pytest.approx(int(wait["ns"]), rel=0.02), "no other lock was waited for"
    (told,) = [row for row in watched.found["waits"] if row["event"] == "Lock:transactionid"]
    # More than a second of it, on a machine that is busy, has the waiter's own look for a deadlock in it.
    assert told["bucket"] == "lock" and told["count"] <= 2


def _sync_time_ns(session: psycopg.Connection) -> int:
    """By the server's own clock; sessions tell as they end."""
    until, last = time.monotonic() + 10, -1.0
    while True:
        assert time.monotonic() < until
        (found,) = session.execute("select wal_sync_time::float8 from pg_stat_wal").fetchone() or (0.0,)
        if found == last:
            return int(found * MS)
        last = float(found)
        time.sleep(0.6)


def test_commits_whose_syncs_are_held(server: LiveServer) -> None:
    """Every sync of every commit is within the watch, so that the sums are of the same calls."""
    script = server.lab.state / "insert.sql"
    script.write_text("insert into written values (:client_id);\n")
    script.chmod(0o644)  # the server's user reads it, whatever the umask
    with server.session() as session, Watched(server, "syncs") as watched:
        before = _sync_time_ns(session)
        with server.log.delayed(DELAY_S) as seen:
            load = server.client("pgbench", "-c", str(CLIENTS), "-t", str(TRANSACTIONS), "-n", "-f", str(script))
            assert load.wait(60) == 0
        by_server = _sync_time_ns(session) - before
        # What else syncs is no commit: the server's own processes.
        own = {int(pid) for (pid,) in session.execute("select pid from pg_stat_activity where datname is null")}
    by_file_system = sum(one.held_ns for one in seen if one.pid not in own)
    rows, waits = watched.rows()
    told = int(waits["ns"][waits["wait"] == watched.named("IO:WALSync")].sum())
    print(f"held {by_file_system / MS:.1f} ms, told {told / MS:.1f} ms, by the server {by_server / MS:.1f} ms")
    assert by_file_system > TRANSACTIONS * DELAY_S * 1e9, "syncs were held"
    assert by_file_system * 0.98 <= told <= by_server * 1.02
    shown = {row["bucket"]: row["ns"] for row in watched.found["buckets"]}
    assert shown["wal_sync"] == pytest.approx(told, rel=0.02)
    # Who is held with another's sync waits for the log's lock: together a commit is never faster than the delay.
    waited = shown["wal_sync"] + shown["wal_wait"]
    assert waited >= 0.98 * CLIENTS * TRANSACTIONS * DELAY_S * 1e9 / 2
    named = {row["event"]: row["bucket"] for row in watched.found["waits"]}
    assert named["IO:WALSync"] == "wal_sync"
    assert rows["requests"].sum() >= CLIENTS * TRANSACTIONS
