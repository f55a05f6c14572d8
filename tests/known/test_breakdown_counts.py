"""Requests counted equal requests sent, exactly, however they are sent; and a record that stays consistent."""

from __future__ import annotations

import os
import select
import signal
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from breakdown_server import Laboratory
from breakdown_watch import ABORTED, MS, QUEUED, Asking, Breakdown, ask

pytestmark = pytest.mark.alone

pytest_plugins = ("breakdown_quiet",)

REQUESTS, SYNCS, A_SYNC = 1009, 101, 7
CONNECTIONS, AT_ONCE = 200, 8


def _simple(client: psycopg.Connection) -> None:
    for _ in range(REQUESTS):
        client.execute("select 1")


def _extended(client: psycopg.Connection) -> None:
    for number in range(REQUESTS):
        client.execute("select %s::int", [number])


def _prepared(client: psycopg.Connection) -> None:
    client.prepare_threshold = 1
    for number in range(REQUESTS - 1):  # the first is preceded by one that prepares
        client.execute("select %s::int", [number], prepare=True)


@pytest.mark.parametrize("send", [_simple, _extended, _prepared])
def test_as_many_as_were_sent(quiet: Laboratory, send: Callable[[psycopg.Connection], None]) -> None:
    with quiet.session() as client, quiet.session() as idle:
        idle_pid, pid = idle.info.backend_pid, client.info.backend_pid
        with quiet.watch() as watch:
            begin = time.monotonic_ns()
            send(client)
            whole = time.monotonic_ns() - begin
    found = watch.of(pid)
    assert len(found) == REQUESTS
    assert watch.of(idle_pid) == [], "the control: nothing was sent"
    assert not any(each.flags & ~QUEUED for each in found)
    assert sum(each.whole_ns for each in found) <= whole


def test_a_pipeline_is_a_request_for_each_sync(quiet: Laboratory) -> None:
    """Seven statements, each a message of its own, before each Sync; leaving the pipeline sends the last Sync."""
    with quiet.session() as client:
        pid = client.info.backend_pid
        with quiet.watch() as watch, client.pipeline() as pipeline:
            for _ in range(SYNCS - 1):
                for number in range(A_SYNC):
                    client.execute("select %s::int", [number])
                pipeline.sync()
    assert len(watch.of(pid)) == SYNCS


def test_messages_that_are_read_at_once_are_a_request_each(quiet: Laboratory) -> None:
    """The server reads up to 8 KiB: all but the first reach it out of its own buffer, without a call of the kernel."""
    text = b"select 1\0"
    message = b"Q" + struct.pack(">I", 4 + len(text)) + text
    with quiet.session() as client:
        pid = ask(client, "select 1").pid
        with quiet.watch() as watch:
            os.write(client.pgconn.socket, message * A_SYNC)
            _read_answers(client.pgconn.socket, A_SYNC)
    found = watch.of(pid)
    assert [bool(each.flags & QUEUED) for each in found] == [False] + [True] * (A_SYNC - 1)


def _read_answers(descriptor: int, count: int) -> None:
    """Each answer ends with ReadyForQuery, idle."""
    found = b""
    while found.count(b"Z\0\0\0\5I") < count:
        assert select.select([descriptor], [], [], 10)[0], "no answer"
        found += os.read(descriptor, 65536)


def test_wakes_that_are_no_requests(quiet: Laboratory) -> None:
    """A notice, a reload and a question from another backend wake one that waits for its client, who sent nothing."""
    with quiet.session() as listener, quiet.session() as client:
        pid = ask(listener, "listen known").pid
        with quiet.watch() as watch:
            for _ in range(A_SYNC):
                client.execute("notify known")
                client.execute(f"select pg_log_backend_memory_contexts({pid})")
                client.execute("select pg_reload_conf()")
                time.sleep(0.01)
            noted = len(list(listener.notifies(timeout=5, stop_after=A_SYNC)))
    assert noted == A_SYNC
    assert watch.of(pid) == []
    assert len(watch.requests) == 3 * A_SYNC


def test_a_message_of_a_megabyte_is_one_request(quiet: Laboratory) -> None:
    """The server reads it bit by bit; until it is whole no request has begun."""
    text = f"select length('{'x' * (1 << 20)}')"
    with quiet.session() as client:
        client.execute(text)
        with quiet.watch() as watch:
            asked = ask(client, text)
    assert asked.rows == [(1 << 20,)]
    assert len(watch.requests) == 1
    assert watch.the(asked).waits == ()


def test_an_answer_of_ten_megabytes_is_one_request(quiet: Laboratory) -> None:
    text = "select repeat('x', 1000) from generate_series(1, 10240)"
    with quiet.session() as client:
        client.execute(text)
        with quiet.watch() as watch:
            asked = ask(client, text)
    assert len(watch.requests) == 1
    assert watch.the(asked).elsewhere_ns("network_send") <= MS


def test_a_killed_backend(quiet: Laboratory) -> None:
    """The server ends every other backend, too; an idle one was in no request, a sleeping one was."""
    with quiet.session() as victim, quiet.session() as asleep, quiet.session() as idle:
        pid, *others = [ask(each, "select 1").pid for each in (victim, asleep, idle)]
        with quiet.watch() as watch:
            # Before the first answer that the probe sees it does not know where a request begins.
            victim.execute("select 1")
            asleep.execute("select 1")
            asking = [Asking(each, "select pg_sleep(20)") for each in (victim, asleep)]
            time.sleep(0.3)
            killed = time.monotonic_ns()
            os.kill(pid, signal.SIGKILL)
            for each in asking:
                with pytest.raises(psycopg.OperationalError):
                    each.answer()
            after = _answers_again(quiet)
    (whole, cut), (whole_too, cut_too) = watch.of(pid), watch.of(others[0])
    assert whole.flags & ABORTED == whole_too.flags & ABORTED == 0
    for each in (cut, cut_too):
        assert each.flags == ABORTED
        assert abs(each.ended_ns - killed) < 200 * MS and each.wait("Timeout:PgSleep").ns >= 250 * MS
    assert watch.of(others[1]) == []
    assert len(watch.of(after)) == 2, "the server's next backend is watched: its start, and its request"
    assert watch.result["request_counts"]["open_at_end"] == 0


def _answers_again(quiet: Laboratory) -> int:
    until = time.monotonic() + 20
    while True:
        try:
            with quiet.session() as client:
                return ask(client, "select 1").pid
        except psycopg.OperationalError:
            assert time.monotonic() < until
            time.sleep(0.02)


def test_a_storm_of_connections(quiet: Laboratory) -> None:
    """Each connection is two requests, its start and its query; its goodbye is none. Nothing is lost or left over."""
    pids: list[int] = []

    def storm() -> None:
        for _ in range(CONNECTIONS // AT_ONCE):
            with quiet.session() as client:
                pids.append(ask(client, "select 1").pid)

    with quiet.watch() as watch:
        threads = [threading.Thread(target=storm) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < until
            time.sleep(0.01)
    assert len(pids) == len(set(pids)) == CONNECTIONS
    _each_was_served_twice(watch, pids)


def _each_was_served_twice(watch: Breakdown, pids: list[int]) -> None:
    assert {pid: len(watch.of(pid)) for pid in pids} == dict.fromkeys(pids, 2)
    counts = watch.result["request_counts"]
    assert (counts["seen"], counts["open_at_end"]) == (2 * len(pids), 0), counts
    assert not any(each.flags & ~QUEUED for each in watch.requests)
