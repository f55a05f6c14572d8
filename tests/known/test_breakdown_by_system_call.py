"""Waits told by system call and file, as of a server that does not tell its wait events, beside those told by event.

Two probes watch the same requests at once, so that each request has both tellings of the same switches. What only the
wait event tells apart is expected in the bucket that the probe's page names for it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from breakdown_server import Laboratory
from breakdown_slow_wal import SlowWal
from breakdown_watch import MS, US, Asked, Asking, Breakdown, Request, ask

from plimsoll.environment.memory import page_cache

pytestmark = pytest.mark.alone

pytest_plugins = ("breakdown_quiet", "breakdown_slow_wal")

HELD_S, DELAY_S = 0.3, 0.1
COLD = "create table cold as select i, repeat('x', 500) as filler from generate_series(1, 60000) i"
WIDE = b"select repeat('x', 1000) from generate_series(1, 10240)"


@dataclass
class Both:
    """The same requests by event and by call."""

    by_event: Breakdown
    by_call: Breakdown

    def the(self, asked: Asked) -> tuple[Request, Request]:
        return self.by_event.the(asked), self.by_call.the(asked)


@contextlib.contextmanager
def _both(lab: Laboratory, rows: str = "requests") -> Iterator[Both]:
    with lab.watch(rows) as by_event, lab.watch(rows, by_system_call=True) as by_call:
        yield Both(by_event, by_call)
    assert by_event.result["boundaries"]["waits"] == "my_wait_event_info"
    assert by_call.result["boundaries"]["waits"] == "system_calls"


def _same(
    pair: tuple[Request, Request], event: str, bucket: str, call: str, told: str, at_least_s: float = 0.0
) -> None:
    """One wait of a request, by its event in one bucket, by its call in another, for the same time."""
    by_event, by_call = pair
    wait, same = by_event.wait(event), by_call.wait(call)
    print(f"{event}: {wait.ns / MS:.3f} ms; {call}: {same.ns / MS:.3f} ms")
    assert (wait.bucket, same.bucket) == (bucket, told)
    assert wait.ns >= at_least_s * 1e9
    assert abs(wait.ns - same.ns) <= max(wait.ns // 50, 200 * US), (by_event, by_call)
    assert wait.count == same.count


def test_a_sleep_and_a_lock_of_a_row_are_alike(slow_wal: SlowWal) -> None:
    lab = slow_wal.lab
    with lab.session() as holder, lab.session() as waiter:
        holder.execute("create table held as select 0 as n")
        waiter.execute("select n from held")
        with _both(lab) as both:
            slept = ask(holder, f"select pg_sleep({HELD_S})")
            holder.execute("begin")
            holder.execute("update held set n = n + 1")
            asking = Asking(waiter, "update held set n = n + 1")
            time.sleep(HELD_S)
            holder.execute("commit")
            waited = asking.answer()
    call = "system call epoll_wait"
    _same(both.the(slept), "Timeout:PgSleep", "other_wait", call, "other_wait", HELD_S * 0.95)
    _same(both.the(waited), "Lock:transactionid", "lock", call, "other_wait", HELD_S / 2)


def test_syncs_and_the_wait_for_anothers(slow_wal: SlowWal) -> None:
    """Two commit at once: one syncs the log, the other waits for its lock, a light one."""
    lab = slow_wal.lab
    with lab.session() as one, lab.session() as other:
        one.execute("create table written (n int)")
        for session in (one, other):
            session.execute("insert into written values (0)")
        with slow_wal.nobody_else_syncs(), _both(lab) as both, slow_wal.folder.delayed(DELAY_S):
            first = Asking(one, "insert into written values (1)")
            time.sleep(DELAY_S / 2)
            waited = ask(other, "insert into written values (2)")
            synced = first.answer()
    sync = "system call fdatasync (wal)"
    _same(both.the(synced), "IO:WALSync", "wal_sync", sync, "wal_sync", DELAY_S * 0.95)
    _same(both.the(waited), "LWLock:WALWrite", "wal_wait", "system call futex", "lock")


def test_cold_reads_and_who_syncs(quiet: Laboratory) -> None:
    with quiet.session() as client:
        client.execute(COLD)
        client.execute("vacuum (freeze) cold")
        (path,) = client.execute("select pg_relation_filepath('cold')").fetchone() or ("",)
        client.execute("create table other as select i, filler from cold")  # out of the server's cache
        client.execute("checkpoint")
        page_cache.evict(quiet.server.data / path)
        with _both(quiet) as both:
            read = ask(client, "select count(filler) from cold")
            client.execute("create table synced ()")
    syncs = both.by_event.result.get("syncs")
    assert syncs == both.by_call.result.get("syncs") and (syncs is None or syncs["wal"] > 0)
    by_event, by_call = both.the(read)
    assert by_event.blocked_ns("data_read") > 0
    assert abs(by_event.blocked_ns("data_read") - by_call.blocked_ns("data_read")) <= max(
        by_event.blocked_ns("data_read") // 20, 500 * US
    )
    names = {wait.name for wait in by_call.waits if wait.bucket == "data_read"}
    assert names <= {"system call pread64 (data)", "system call fadvise64 (data)"}, names


def test_a_client_that_does_not_read_and_one_that_thinks(quiet: Laboratory) -> None:
    with quiet.session() as client, quiet.session() as thinker:
        pid = ask(client, WIDE.decode()).pid
        with _both(quiet, "transactions") as both:
            connection = client.pgconn
            connection.send_query(WIDE)
            connection.flush()
            time.sleep(HELD_S)
            assert connection.get_result() is not None and connection.get_result() is None
            ask(thinker, "begin")
            time.sleep(HELD_S)
            thought = ask(thinker, "commit").pid
    for backend, event, bucket in (
        (pid, "Client:ClientWrite", "network_send"),
        (thought, "Client:ClientRead", "client"),
    ):
        (by_event,), (by_call,) = both.by_event.of(backend), both.by_call.of(backend)
        _same((by_event, by_call), event, bucket, "system call epoll_wait (client)", bucket, HELD_S * 0.95)
