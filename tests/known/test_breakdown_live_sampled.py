"""The verb `breakdown` on a server that stock pgbench loads, against pg_stat_activity, looked at 100 times a second.

What is compared, and what stays different, stands in test_breakdown_against_activity.py: there the load is the agent's
and a row a request, here it is anybody's and a row a transaction, so that less is known of whose wait a wait for a CPU
followed. So an event's share may lie anywhere between the time blocked in it and that with all of the run queue of the
transactions that waited so; the long form, on a machine that does nothing else, is judged by the likeliest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from activity_sampler import Sampler
from activity_shares import CLIENT_READ, HEAD, Share, off, outside, shares
from breakdown_server import NEEDS, server_user
from live_server import LiveServer, live_server
from live_watched import Watched

pytestmark = pytest.mark.alone

Json = dict[str, Any]
CLIENTS, SCALE = 4, 10
PART = 0.25  # of what it can do at most
CLOSED_S, SHORT_S, LONG_S = 3, 12, 120
BOUND, BOUND_SHORT = 0.02, 0.03
BIN_NS, BIN_SHORT_NS = 5_000_000_000, 500_000_000


@pytest.fixture(scope="module")
def server(needs: Callable[..., None]) -> Iterator[LiveServer]:
    needs(*NEEDS, "two CPUs")
    settings = {"wal_level": "minimal", "max_wal_senders": 0, "max_wal_size": "4GB", "checkpoint_timeout": "1d"}
    with live_server(server_user(), settings=settings) as found:
        assert found.client("pgbench", "-i", "-s", str(SCALE), "-q").wait(120) == 0
        yield found


def _pids(session: psycopg.Connection) -> list[int]:
    """pgbench's sessions, when all of them are there."""
    until = time.monotonic() + 10
    while True:
        found = session.execute("select pid from pg_stat_activity where application_name = 'pgbench'").fetchall()
        if len(found) == CLIENTS:
            return [int(pid) for (pid,) in found]
        assert time.monotonic() < until
        time.sleep(0.05)


def _most(server: LiveServer) -> float:
    """Transactions a second that it can do."""
    with server.session() as session:
        count = "select xact_commit from pg_stat_database where datname = 'postgres'"
        before = session.execute(count).fetchone()
        assert server.client("pgbench", "-n", "-c", str(CLIENTS), "-T", str(CLOSED_S)).wait(60) == 0
        after = session.execute(count).fetchone()
    assert before and after
    return float(after[0] - before[0]) / CLOSED_S


def _measure(server: LiveServer, seconds: int, bin_ns: int) -> tuple[list[Share], float]:
    """Every event's, and the share of the time in which looks say nothing."""
    rate = _most(server) * PART
    load = server.client("pgbench", "-n", "-c", str(CLIENTS), "-R", f"{rate:.0f}", "-T", str(seconds + 30))
    try:
        with server.session() as session, server.session() as stopper:
            pids = _pids(session)
            with (
                Sampler(session, stopper, "postgres") as sampler,
                Watched(server, f"sampled-{seconds}", seconds) as watched,
            ):
                pass
    finally:
        load.terminate()
        load.wait(20)
    rows, waits = watched.rows()
    mine = rows[np.isin(rows["backend_pid"], pids)]
    summary: Json = json.loads((watched.folder / "summary.json").read_text()) | {"backend_pids": pids}
    found = shares(mine, waits[np.isin(waits["request"], mine["request"])], summary, sampler.samples, bin_ns)
    print(f"{rate:.0f} transactions a second asked for; {len(sampler.samples)} looks", HEAD, *found, sep="\n")
    return found, sampler.unseen()


def test_a_short_while(server: LiveServer) -> None:
    found, unseen = _measure(server, SHORT_S, BIN_SHORT_NS)
    assert max(share.binomial for share in found) < 0.01
    assert outside(found, BOUND_SHORT + unseen) == []


@pytest.mark.long
def test_two_minutes(server: LiveServer) -> None:
    found, _ = _measure(server, LONG_S, BIN_NS)
    (client,) = (share for share in found if share.event == CLIENT_READ)
    assert client.probe > 0.5, "not below half load: something else keeps the machine busy"
    assert off(found, BOUND) == []
