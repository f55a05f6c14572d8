"""The verb `breakdown` on servers of every version that can be had: waits have the names that the server gives them.

Programs come from Debian and from the folder that the environment variable PLIMSOLL_TEST_SERVERS names (a folder a
major version; `./test --long` installs some). pgbench and psql are Debian's.
"""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from live_server import LiveServer, live_server

from plimsoll.environment import discover

pytestmark = pytest.mark.long
Json = dict[str, Any]
WATCHED_S = 8
BUCKETS = {"Lock:transactionid": "lock", "Timeout:PgSleep": "other_wait"}


def _servers() -> dict[str, Path]:
    """Programs by major version."""
    found = {one.version: one.bin_dir for one in discover.servers()}
    more = os.environ.get("PLIMSOLL_TEST_SERVERS")
    folders = Path(more).glob("*/bin") if more else []
    return {folder.parent.name: folder for folder in folders if (folder / "postgres").exists()} | found


@pytest.fixture(scope="module", params=["13", "14", "15", "16", "17", "18"])
def server(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[LiveServer]:
    needs("root", "bpf", "postgresql", "server user")
    servers = _servers()
    if request.param not in servers:
        pytest.skip(f"missing capability: PostgreSQL {request.param}")
    known = {account.pw_name for account in pwd.getpwall()}
    user = next(name for name in ("plimsoll", "postgres", "nobody") if name in known)
    with live_server(user, servers[request.param]) as found:
        assert found.client("pgbench", "-i", "-s", "2", "-q").wait(120) == 0
        with found.session() as session:
            session.execute("create table held as select 0 as n")
        yield found


def _named(session: psycopg.Connection) -> set[str]:
    """Wait events of sessions by pg_stat_activity."""
    rows = session.execute(
        "select wait_event_type || ':' || wait_event from pg_stat_activity "
        "where wait_event is not null and backend_type = 'client backend' and pid <> pg_backend_pid()"
    )
    return {str(name) for (name,) in rows}


def _done(session: psycopg.Connection) -> tuple[float, int]:
    """When, and how many transactions of pgbench's there were: each leaves a row."""
    row = session.execute("select count(*) from pgbench_history").fetchone()
    return time.monotonic(), int((row or (0,))[0])


def _watch(server: LiveServer, name: str) -> tuple[Json, set[str], float]:
    """The document; what pg_stat_activity said meanwhile; pgbench's transactions a second."""
    out = server.lab.state / "runs-of-tests" / name
    process = server.start("--pid", str(server.pid), "--for", f"{WATCHED_S}s", "--json", "--out", str(out))
    seen = set()
    with server.session() as session:
        before = _done(session)
        while process.poll() is None:
            seen |= _named(session)
            time.sleep(0.02)
        after = _done(session)
    text, error = process.communicate()
    assert process.returncode == 0, f"{text}\n{error}"
    return json.loads(text)["breakdown"], seen, (after[1] - before[1]) / (after[0] - before[0])


def test_its_waits_have_its_own_names(server: LiveServer) -> None:
    """A loaded server, a lock that lasts all the time and a sleeper; and nothing that is not known to the server."""
    clients = [
        server.client("pgbench", "-n", "-c", "4", "-R", "100", "-T", "120"),
        server.client("psql", "-XAtqc", "select pg_sleep(60)"),
    ]
    try:
        with server.session() as holder:
            holder.execute("begin; update held set n = n + 1")
            clients.append(server.client("psql", "-XAtqc", "update held set n = n + 1"))
            time.sleep(1)
            found, seen, rate = _watch(server, "names")
            holder.execute("rollback")
    finally:
        for client in clients:
            client.terminate()
            client.wait(20)
        with server.session() as session:
            session.execute("select pg_cancel_backend(pid) from pg_stat_activity where query like 'select pg_sleep%'")
    told = {row["event"]: row for row in found["waits"]}
    print(sorted(told), sorted(seen), found["caveats"], found["probe"], sep="\n")
    assert found["probe"]["boundaries"]["waits"] in ("my_wait_event_info", "MyProc")
    # What was looked at and blocked is among what is told, by the same name.
    assert {"Client:ClientRead", *BUCKETS} <= seen & told.keys()
    for event, bucket in BUCKETS.items():
        assert told[event]["bucket"] == bucket
        # pgbench's transactions wait for each other, too.
        assert told[event]["ns"] >= 0.95 * found["watched_ns"]
    syncs = [event for event, row in told.items() if row["bucket"] == "wal_sync"]
    # Spelt otherwise since 17.
    assert [event.lower() for event in syncs] == ["io:walsync"]
    # With those of this test's own looks.
    assert found["transactions_per_second"] > 0.8 * rate > 0
    unnamed = sum(row["ns"] for row in found["buckets"] if row["bucket"] == "unattributed")
    assert unnamed < 0.02 * found["busy_ns"]
