"""Known waits land in their bucket of the breakdown, and nowhere else: locks, sleep, reads, a client that idles."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from breakdown_server import Laboratory
from breakdown_truth import Meter, slow_reads
from breakdown_watch import MS, OWN_READ, Asked, Asking, ask, lands

from plimsoll.environment.memory import page_cache

pytestmark = pytest.mark.alone

pytest_plugins = ("breakdown_quiet",)

HELD_S = 0.5
BLOCKS, TABLE_BLOCKS = 101, 1009  # prime numbers
READS_PER_SECOND = 50
MAP_BLOCKS = 8
ELSEWHERE_NS = MS  # blocked in other buckets, in a request that has to do with one


def _wait_until_it_waits(watcher: psycopg.Connection, pid: int, event: str) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        found = watcher.execute(f"select wait_event from pg_stat_activity where pid = {pid}").fetchone()
        if found == (event,):
            return
        time.sleep(0.005)
    raise AssertionError(f"{pid} never waits for {event}")


def _held(found_ns: int, waited: Asked, released: Asked) -> int:
    """The nearest time that may be true: it is let go between the sending of the word and the answer."""
    return min(max(found_ns, released.sent_ns - waited.sent_ns), released.got_ns - waited.sent_ns)


@pytest.mark.parametrize(
    ("hold", "want", "let_go", "event"),
    [
        ("update held set n = n + 1", "update held set n = n + 1", "commit", "transactionid"),
        ("select pg_advisory_lock(7)", "select pg_advisory_lock(7)", "select pg_advisory_unlock(7)", "advisory"),
    ],
    ids=["row", "advisory"],
)
def test_a_lock_held_for_a_known_time(quiet: Laboratory, hold: str, want: str, let_go: str, event: str) -> None:
    with quiet.session() as holder, quiet.session() as waiter:
        holder.execute("drop table if exists held")
        holder.execute("create table held (n int)")
        holder.execute("insert into held values (0)")
        waiter.execute("select n from held")  # what it needs of the catalogue it has
        with quiet.watch() as watch:
            holder.execute("begin")
            holder.execute(hold)
            asking = Asking(waiter, want)
            _wait_until_it_waits(holder, waiter.info.backend_pid, event)
            time.sleep(HELD_S)
            released = ask(holder, let_go)
            holder.execute("commit")
            waited = asking.answer()
    request = watch.the(waited)
    wait = request.wait(f"Lock:{event}")
    lands(request, wait.ns, _held(wait.ns, waited, released), "lock", elsewhere_ns=20 * MS)
    # What the update writes when it has the lock is its own: its commit is synced.
    assert request.elsewhere_ns("lock", "wal_sync", "wal_write") <= ELSEWHERE_NS
    assert (wait.bucket, wait.count, wait.waker_pid) == ("lock", 1, released.pid)
    assert watch.the(released).blocked_ns("lock") <= ELSEWHERE_NS, "the holder waits for nobody"


def test_a_lock_longer_than_the_deadlock_check_is_two_waits(quiet: Laboratory) -> None:
    """The waiter's own timer wakes it after a second: nobody's wake-up, and still one lock."""
    with quiet.session() as holder, quiet.session() as waiter, quiet.watch() as watch:
        holder.execute("select pg_advisory_lock(7)")
        asking = Asking(waiter, "select pg_advisory_lock(7)")
        time.sleep(1.3)
        released = ask(holder, "select pg_advisory_unlock(7)")
        waited = asking.answer()
    request = watch.the(waited)
    wait = request.wait("Lock:advisory")
    lands(request, wait.ns, _held(wait.ns, waited, released), "lock", elsewhere_ns=ELSEWHERE_NS)
    assert (wait.count, wait.waker_pid) == (2, released.pid)


def test_a_sleep_of_known_length(quiet: Laboratory) -> None:
    with quiet.session() as client:
        text = "select clock_timestamp(), pg_sleep(0.293), clock_timestamp()"
        ask(client, text)
        with quiet.watch() as watch:
            slept, awake = ask(client, text), ask(client, "select 1")
    ((begin, _, end),) = slept.rows
    request = watch.the(slept)
    truth = round((end - begin).total_seconds() * 1e9)
    lands(request, request.blocked_ns("other_wait"), truth, "other_wait", elsewhere_ns=ELSEWHERE_NS)
    assert request.wait("Timeout:PgSleep").ns == request.blocked_ns("other_wait")
    assert watch.the(awake).waits == (), "the control: nothing to wait for"


def _plant(quiet: Laboratory) -> None:
    """A table of one row a page, cold in both caches."""
    with quiet.session() as client:
        client.execute("drop table if exists cold")
        client.execute("create table cold (id int, filler char(7000))")
        client.execute("alter table cold alter filler set storage plain")
        client.execute(f"insert into cold select i, 'x' from generate_series(1, {TABLE_BLOCKS}) i")
        client.execute("vacuum (freeze, analyze) cold")
        (path,) = client.execute("select pg_relation_filepath('cold')").fetchone() or ("",)
    quiet.server.stop()
    page_cache.evict(quiet.server.data / path)
    quiet.server.start()


def _fetch(blocks: list[int]) -> str:
    """Reads a row of each by its place: no scan, so nothing is read ahead."""
    places = ",".join(f'"({block},1)"' for block in blocks)
    return f"select count(*) from cold join unnest('{{{places}}}'::tid[]) as at(place) on cold.ctid = at.place"


def _read_bytes(pid: int) -> int:
    return int(dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())["read_bytes"])


def test_cold_reads_of_a_prime_number_of_blocks(needs: Callable[..., None], quiet: Laboratory, run_id: str) -> None:
    needs("blkio throttling")
    _plant(quiet)
    chosen = random.Random(7).sample(range(1, TABLE_BLOCKS, 2), BLOCKS)  # no two are neighbours
    timed = "explain (analyze, buffers, timing off, format json) " + _fetch(chosen)
    with quiet.session() as client, quiet.watch() as watch:
        client.execute("set enable_hashjoin = off; set enable_mergejoin = off")
        pid = ask(client, _fetch([0])).pid
        with slow_reads(run_id, pid, quiet.server.data, READS_PER_SECOND):
            before, meter = _read_bytes(pid), Meter(pid)
            cold = ask(client, timed)
            spent, device = meter.read(), _read_bytes(pid) - before
            warm = ask(client, timed)
    plan = cold.rows[0][0][0]["Plan"]
    assert plan["Shared Read Blocks"] == BLOCKS, plan
    # Where the file's blocks lie is read from the device, too, once the cache has lost it: a few blocks of 4 KiB.
    assert BLOCKS * 8192 <= device <= BLOCKS * 8192 + MAP_BLOCKS * 4096, device
    request = watch.the(cold)
    reads = [wait for wait in request.waits if wait.name == "IO:DataFileRead"]
    (wait,) = (one for one in reads if one.cause == OWN_READ)
    # Seldom, where a hypervisor takes the CPU just then, one was on its way when it was waited for.
    waited = sum(one.ns for one in reads)
    assert sum(one.count for one in reads if one is not wait) <= MAP_BLOCKS
    reading = round(plan["I/O Read Time"] * MS)  # by the server's own clock around each read
    # That clock runs on while a backend that has its block waits for a CPU, and while it copies.
    least = reading - spent.run_queue_ns - spent.cpu_ns - spent.vague_ns
    lands(request, waited, min(max(waited, least), reading), "data_read", elsewhere_ns=ELSEWHERE_NS)
    assert waited <= reading
    assert (wait.bucket, wait.cause, wait.waker_pid) == ("data_read", OWN_READ, 0)
    # A read that is there at once is no wait.
    assert BLOCKS // 20 < wait.count <= BLOCKS and spent.waited_about(wait.count)
    assert watch.the(warm).waits == (), "the control: the same blocks from the server's cache"


def test_a_client_that_does_not_read(quiet: Laboratory) -> None:
    """10 MB of answer, more than a socket holds: one request, and what it waits is for the client."""
    text = b"select repeat('x', 1000) from generate_series(1, 10240)"
    with quiet.session() as client:
        pid = ask(client, text.decode()).pid
        with quiet.watch() as watch:
            connection, meter = client.pgconn, Meter(pid)
            connection.send_query(text)
            connection.flush()
            time.sleep(HELD_S)
            result = connection.get_result()
            assert result is not None and result.ntuples == 10240
            assert connection.get_result() is None
            spent = meter.read()
    (request,) = watch.of(pid)
    assert request.flags == 0
    wait = request.wait("Client:ClientWrite")
    truth = spent.blocked_truth(wait.ns, request.ended_ns - request.arrived_ns)
    lands(request, wait.ns, truth, "network_send", elsewhere_ns=ELSEWHERE_NS)
    assert wait.bucket == "network_send" and wait.ns >= HELD_S * 0.98e9
