"""A transaction block is one row of the breakdown, its client's pauses among its waits; and what ends a block."""

from __future__ import annotations

import time

import psycopg
import pytest
from breakdown_server import Laboratory
from breakdown_watch import ABORTED, MS, QUEUED, Request, ask, lands

pytestmark = pytest.mark.alone

pytest_plugins = ("breakdown_quiet",)

PAUSE_S = 0.211
SLEEP_S = 0.107
ELSEWHERE_NS = 2 * MS  # the sync of a commit that changed nothing is none


def _block(client: psycopg.Connection, last: str) -> tuple[int, int]:
    """Four requests and two pauses of the client; what it sent first and got last."""
    first = ask(client, "begin")
    time.sleep(PAUSE_S)
    ask(client, f"select pg_sleep({SLEEP_S})")
    ask(client, "select 1")
    time.sleep(PAUSE_S)
    return first.sent_ns, ask(client, last).got_ns


def _one_row(found: list[Request], sent_ns: int, got_ns: int) -> Request:
    (row,) = found
    assert (row.requests, row.flags & ~QUEUED) == (4, 0)
    assert sent_ns <= row.arrived_ns and row.ended_ns <= got_ns
    return row


@pytest.mark.parametrize("last", ["commit", "rollback"])
def test_a_block_is_one_row_with_the_pauses_of_its_client(quiet: Laboratory, last: str) -> None:
    with quiet.session() as client:
        pid = ask(client, "select 1").pid
        with quiet.watch("transactions") as watch:
            sent_ns, got_ns = _block(client, last)
    row = _one_row(watch.of(pid), sent_ns, got_ns)
    # What the answers and the next messages take on their way is waiting for the client, too.
    truth = got_ns - sent_ns - row.cpu_ns - row.run_queue_ns - row.blocked_ns("other_wait")
    lands(row, row.blocked_ns("client"), truth, "client", "other_wait", elsewhere_ns=ELSEWHERE_NS)
    assert row.wait("Client:ClientRead").ns >= 2 * PAUSE_S * 1e9
    assert abs(row.wait("Timeout:PgSleep").ns - SLEEP_S * 1e9) < 10 * MS
    # Between four requests; where no pause was, a backend that is kept from a CPU finds the next one there.
    assert row.wait("Client:ClientRead").count in (2, 3)


def test_a_failed_block_ends_with_its_rollback(quiet: Laboratory) -> None:
    with quiet.session() as client:
        pid = ask(client, "select 1").pid
        with quiet.watch("transactions") as watch:
            ask(client, "begin")
            for _ in range(2):
                with pytest.raises(psycopg.Error):
                    client.execute("select 1 / 0")
            ask(client, "rollback")
            ask(client, "select 1")
    rows = watch.of(pid)
    assert [row.requests for row in rows] == [4, 1]


def test_a_client_that_leaves_within_a_block(quiet: Laboratory) -> None:
    """Its requests were answered, and are counted; the server rolls back, and the row says that it did not end."""
    with quiet.watch("transactions") as watch, quiet.session() as client:
        pid = ask(client, "begin").pid
        ask(client, "select 1")
        client.close()
    rows = watch.of(pid)
    assert [(row.requests, row.flags & ABORTED) for row in rows] == [(1, 0), (2, ABORTED)], "its start, and the block"
