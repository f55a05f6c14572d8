"""Known waits for the write-ahead log land in their bucket of the breakdown, by a file system that holds up syncs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psycopg
import pytest
from breakdown_watch import MS, Asking, ask, lands

pytestmark = pytest.mark.alone

if TYPE_CHECKING:
    from breakdown_slow_wal import SlowWal

pytest_plugins = ("breakdown_slow_wal",)

INSERT = "insert into known values (1)"
ELSEWHERE_NS = MS
WRITE_NS = 20 * MS  # the log is written through the tests' file system, too
QUICK_NS = 20 * MS  # a sync that is not held up


def _prepare(*clients: psycopg.Connection) -> list[int]:
    clients[0].execute("create table if not exists known (n int)")
    return [ask(client, INSERT).pid for client in clients]


def _wait_until_they_wait(watcher: psycopg.Connection, event: str, pids: list[int]) -> None:
    until, among = time.monotonic() + 10, f"wait_event = '{event}' and pid = any(array{pids})"
    while watcher.execute(f"select count(*) from pg_stat_activity where {among}").fetchone() != (len(pids),):
        assert time.monotonic() < until, f"{pids} never wait for {event}"
        time.sleep(0.002)


def test_a_sync_held_for_a_known_time(slow_wal: SlowWal) -> None:
    with slow_wal.lab.session() as client, slow_wal.lab.watch() as watch, slow_wal.nobody_else_syncs():
        (pid,) = _prepare(client)
        with slow_wal.folder.delayed(0.293) as seen:
            asked = ask(client, INSERT)
        with slow_wal.folder.delayed(0) as quick:
            control = ask(client, INSERT)
        read_only = ask(client, "select count(*) from known")
    (sync,) = seen
    assert sync.pid == pid and sync.held_ns >= 293 * MS
    request = watch.the(asked)
    wait = request.wait("IO:WALSync")
    lands(request, wait.ns, sync.held_ns, "wal_sync", "wal_write", elsewhere_ns=ELSEWHERE_NS)
    assert (wait.bucket, wait.count, wait.waker_pid) == ("wal_sync", 1, 0), "the tests' file system is not the server's"
    assert request.blocked_ns("wal_write") <= WRITE_NS
    assert [each.pid for each in quick] == [pid] and watch.the(control).blocked_ns("wal_sync") < QUICK_NS
    assert watch.the(read_only).waits == ()


def test_a_group_commit_with_a_known_payer(slow_wal: SlowWal) -> None:
    """One syncs; two come meanwhile: both wait for it, one of them pays the next sync, and the other waits for that."""
    lab = slow_wal.lab
    with lab.session() as first, lab.session() as second, lab.session() as third, lab.session() as watcher:
        pids = _prepare(first, second, third)
        with slow_wal.nobody_else_syncs(), lab.watch() as watch, slow_wal.folder.delayed(0.311) as seen:
            asking = [Asking(first, INSERT)]
            _wait_until_they_wait(watcher, "WALSync", pids[:1])
            asking += [Asking(client, INSERT) for client in (second, third)]
            _wait_until_they_wait(watcher, "WALWrite", pids[1:])
            asked = {answer.pid: answer for answer in (each.answer() for each in asking)}
    opening, closing = seen
    assert opening.pid == pids[0] and closing.pid in pids[1:]
    (rider,) = set(pids) - {opening.pid, closing.pid}

    request = watch.the(asked[opening.pid])
    lands(request, request.blocked_ns("wal_sync"), opening.held_ns, "wal_sync", "wal_write", elsewhere_ns=ELSEWHERE_NS)
    assert request.blocked_ns("wal_wait") == 0 and request.blocked_ns("wal_write") <= WRITE_NS

    request = watch.the(asked[closing.pid])
    named = ("wal_sync", "wal_wait", "wal_write")
    lands(request, request.blocked_ns("wal_sync"), closing.held_ns, *named, elsewhere_ns=ELSEWHERE_NS)
    wait = request.wait("LWLock:WALWrite")
    truth = opening.answered_ns - request.arrived_ns
    lands(request, wait.ns, truth, *named, elsewhere_ns=ELSEWHERE_NS)
    assert (wait.bucket, wait.waker_pid) == ("wal_wait", opening.pid)
    assert request.blocked_ns("wal_write") <= WRITE_NS

    request = watch.the(asked[rider])
    wait = request.wait("LWLock:WALWrite")
    lands(request, wait.ns, closing.answered_ns - request.arrived_ns, "wal_wait", elsewhere_ns=ELSEWHERE_NS)
    assert (wait.bucket, wait.waker_pid) == ("wal_wait", closing.pid)
    assert request.blocked_ns("wal_sync") == 0
