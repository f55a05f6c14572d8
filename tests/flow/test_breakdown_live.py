"""The verb `breakdown` with the kernel's word, on worlds whose truth is planted: who waits for what is known before.

The machine may be busy with other tests, so that who waits for a CPU is anybody's; what is judged is what is on a CPU
or waits for one together, what blocks, for how long, and whose it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_server import LiveServer, bpf_objects, files_of, live_server

from plimsoll.environment.memory import page_cache
from plimsoll.record import read_table

Json = dict[str, Any]
FIRST_S, COMPLETE_S = 5.0, 2.0
POINTS = 0.05
LOOP = "do $$ begin loop perform count(*) from cold; end loop; end $$"
COLD = "create table if not exists cold as select i, repeat('x', 500) from generate_series(1, 400000) i"
THINKS = "select sum(i) from (select generate_series(1, 2000000000) as i) as made"


@pytest.fixture(scope="module")
def server(needs: Callable[..., None]) -> Iterator[LiveServer]:
    needs("root", "bpf", "postgresql", "server user")
    known = {account.pw_name for account in pwd.getpwall()}
    user = next(name for name in ("plimsoll", "postgres", "nobody") if name in known)
    with live_server(user) as found:
        made = found.client("pgbench", "-i", "-s", "5", "-q")
        assert made.wait(120) == 0
        yield found


def watch(server: LiveServer, name: str, seconds: int = 4) -> tuple[Json, Path]:
    out = server.lab.state / "runs-of-tests" / name
    argv = ("--pid", str(server.pid), "--for", f"{seconds}s", "--json", "--out", str(out))
    process = server.start(*argv)
    text, error = process.communicate(timeout=90)
    assert process.returncode == 0, f"{text}\n{error}"
    return json.loads(text)["breakdown"], out


class Client:
    """A session that is ended with the test."""

    def __init__(self, server: LiveServer, *statements: str) -> None:
        self._process = server.client("psql", "-XAtq", *(word for one in statements for word in ("-c", one)))

    def __enter__(self) -> Client:
        time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture(autouse=True)
def nobody_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a session that was ended leaves at work is cancelled: a sleeper does not see that its client has gone."""
    yield
    lab = request.getfixturevalue("server")
    with lab.session() as session:
        session.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where backend_type = 'client backend' and pid <> pg_backend_pid()"
        )


def shares(found: Json, *buckets: str) -> float:
    return sum(row["share"] or 0.0 for row in found["buckets"] if row["bucket"] in buckets)


def backends(found: Json, *buckets: str) -> float:
    return sum(row["backends"] for row in found["buckets"] if row["bucket"] in buckets)


def query(found: Json, begin: str) -> Json:
    return next(row for row in found["queries"] if row["text"].startswith(begin))


def test_a_sleeper_and_a_thinker(server: LiveServer) -> None:
    """Two queries that last longer than the watch: each has all of its time, exactly, from the first second on."""
    with Client(server, "select pg_sleep(60)"), Client(server, THINKS):
        found, _ = watch(server, "long")
    assert backends(found, "other_wait") == pytest.approx(1.0, abs=0.03)
    assert backends(found, "cpu", "run_queue") == pytest.approx(1.0, abs=0.05)
    sleeper, thinker = query(found, "select pg_sleep"), query(found, "select sum(i)")
    for row, buckets in ((sleeper, {"other_wait"}), (thinker, {"cpu", "run_queue"})):
        assert row["exact_ns"] >= 0.95 * row["busy_ns"] > 0.9 * found["watched_ns"]
        assert sum(row["buckets"].get(name, 0) for name in buckets) >= 0.98 * row["busy_ns"]
    assert ("Timeout:PgSleep", "other_wait") in {(row["event"], row["bucket"]) for row in found["waits"]}
    slowest = found["latency"]["slowest"]
    assert [row["open"] for row in slowest[:2]] == [True, True]
    assert found["latency"]["open"] == 2


def test_a_query_that_reads_from_the_disk(server: LiveServer) -> None:
    """Its table is put out of the page cache before, and again and again."""
    with server.session() as session:
        session.execute(COLD)
        session.execute("checkpoint")
    files = [path for path in page_cache.files_of(server.server.data / "base") if path.stat().st_size >= 1 << 20]
    code = (
        "import os, sys, time\nuntil = time.monotonic() + 20\nwhile time.monotonic() < until:\n"
        " for path in sys.argv[1:]:\n  fd = os.open(path, os.O_RDONLY)\n"
        "  os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\n  os.close(fd)\n time.sleep(0.05)\n"
    )
    evictor = subprocess.Popen(["python3", "-c", code, *map(str, files)])
    try:
        with Client(server, "set max_parallel_workers_per_gather = 0", LOOP):
            found, _ = watch(server, "cold")
    finally:
        evictor.terminate()
        evictor.wait()
    reads = [row for row in found["waits"] if row["event"] == "IO:DataFileRead" and row["bucket"] == "data_read"]
    assert reads and reads[0]["count"] > 10
    assert backends(found, "data_read", "cpu", "run_queue") == pytest.approx(1.0, abs=0.06)
    row = query(found, "do ?")
    assert row["buckets"].get("data_read", 0) > 0
    assert row["exact_ns"] >= 0.95 * row["busy_ns"]


@pytest.mark.long  # a statement whose workers stay is below
def test_parallel_workers_stand_under_their_leader(server: LiveServer) -> None:
    with server.session() as session:
        session.execute(COLD)
        session.execute("analyze cold")
    parallel = ("set parallel_setup_cost = 0", "set max_parallel_workers_per_gather = 2")
    with Client(server, *parallel, LOOP):
        found, _ = watch(server, "parallel")
    leader = next(row for row in found["backends"] if row["what"] is None and row["query"] == "do ?")
    assert leader["workers"]
    assert leader["busy"] > 1.2, "a leader alone is no more than one"
    assert not {row["pid"] for row in found["backends"]} & set(leader["workers"])


def test_one_parallel_statement_that_is_under_way_all_the_time(server: LiveServer) -> None:
    """A slow analytical query, there before the watch and after it: all of its time is exact, its workers' too."""
    with server.session() as session:
        session.execute(COLD)
        session.execute("analyze cold")
    parallel = ("set parallel_setup_cost = 0", "set max_parallel_workers_per_gather = 2")
    with Client(server, *parallel, "select max(md5(repeat(md5(i::text), 20000))) from cold"):
        found, _ = watch(server, "analytical")
    row = query(found, "select max(md5(")
    (leader,) = [row for row in found["backends"] if row["what"] is None and row["query"]]
    processes = 1 + len(leader["workers"])
    assert processes == 3
    assert row["busy_ns"] == pytest.approx(processes * found["watched_ns"], rel=0.03)
    assert row["exact_ns"] >= 0.97 * row["busy_ns"]
    assert shares(found, "cpu", "run_queue") > 0.9
    (slowest, *_) = found["latency"]["slowest"]
    assert slowest["open"] and slowest["ns"] >= 0.95 * found["watched_ns"]
    assert found["latency"]["open"] == 1


def test_a_planted_lock(server: LiveServer) -> None:
    with server.session() as session:
        session.execute("create table if not exists planted as select 1 as a")
        session.execute("begin; lock table planted in access exclusive mode")
        with Client(server, "select * from planted"):
            began = time.monotonic()
            found, _ = watch(server, "lock", 3)
            waited = time.monotonic() - began + 0.5
        holder = session.info.backend_pid
        session.execute("rollback")
    assert backends(found, "lock") == pytest.approx(1.0, abs=0.03)
    (wait,) = found["lock_waits"]
    assert (wait["blocker"], wait["relation"], wait["kind"]) == (holder, "planted", "relation")
    assert 3e9 < wait["ns"] < (waited + 0.5) * 1e9
    assert found["relations"][0]["relation"] == "planted"
    assert found["clients"]["idle_in_transaction"] == 1
    (event,) = [row for row in found["waits"] if row["bucket"] == "lock"]
    assert event["event"] == "Lock:relation"
    holding = next(row for row in found["backends"] if row["pid"] == holder)
    # What it waits for is known from the first look at it on, which comes late on a busy machine.
    assert holding["client_ns"] > 2 / 3 * found["watched_ns"]


def _counted(out: Path) -> dict[str, float]:
    """Shares of what looks saw busy, by the bucket of the wait event: without the exact sums."""
    folder = out / "trials/0001/measure"
    names = json.loads((folder / "activity.json").read_text())
    seen, waits = read_table(folder / "seen.npy"), read_table(folder / "live_waits.npy")
    assert seen is not None and waits is not None
    bucket_of = {
        names["wait_names"].get(str(event)): names["buckets"][bucket]
        for event, bucket in np.unique(waits[["wait", "bucket"]]).tolist()
    }
    counts: dict[str, int] = {}
    for event, state in seen[["event", "state"]].tolist():
        name = names["events"][event]
        if names["states"][state] != "active" or name == "Client:ClientRead":
            continue
        bucket = "cpu" if name is None else bucket_of.get(name, "cpu")
        counts[bucket] = counts.get(bucket, 0) + 1
    return {bucket: count / sum(counts.values()) for bucket, count in counts.items()}


@contextlib.contextmanager
def commits_counted(server: LiveServer) -> Iterator[list[tuple[int, int]]]:
    """(by the monotonic clock, commits of the database so far), five times a second."""
    counts: list[tuple[int, int]] = []
    stop = threading.Event()

    def count() -> None:
        with server.session() as session:
            while not stop.wait(0.2):
                row = session.execute("select xact_commit from pg_stat_database where datname = 'postgres'").fetchone()
                counts.append((time.monotonic_ns(), int((row or (0,))[0])))

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join()


def test_pgbench_against_pg_stat_activity(server: LiveServer) -> None:
    """A load that came by itself. pg_stat_activity counts the wait for a CPU after a wait as the wait, and the probe as
    the wait for a CPU: a bucket's share there lies between the probe's and that with all of the run queue."""
    load = server.client("pgbench", "-c", "4", "-T", "60", "-R", "500")
    try:
        time.sleep(1)
        with commits_counted(server) as counts:
            found, out = watch(server, "pgbench", 12)
    finally:
        load.terminate()
        load.wait(20)
    # On a busy machine pgbench has fallen behind while the watch begins: only what was counted during it is compared.
    summary = json.loads((out / "trials" / "0001" / "measure" / "summary.json").read_text())
    window = np.array([summary["started_ns"], summary["ended_ns"]])
    commits = np.diff(np.interp(window, *np.array(counts).T))[0]
    rate = commits / np.diff(window)[0] * 1e9
    assert found["transactions_per_second"] == pytest.approx(rate - 15, rel=0.25)
    counted, queued = _counted(out), shares(found, "run_queue")
    looks = sum(row["looks"] for row in found["queries"])
    # Several backends wait for the same sync at the same look, so that looks tell less than as many that know nothing
    # of each other: four standard deviations, not two.
    slack = POINTS + 4 * (0.25 / looks) ** 0.5
    print(found["buckets"], counted, looks)
    for bucket in ("lock", "wal_sync", "wal_wait", "data_read"):
        assert shares(found, bucket) - slack <= counted.get(bucket, 0.0) <= shares(found, bucket) + queued + slack, (
            bucket
        )
    assert sum(row["share"] or 0 for row in found["buckets"]) == pytest.approx(1.0)
    texts = " ".join(row["text"] for row in found["queries"])
    assert "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?" in texts
    assert found["latency"]["count"] == pytest.approx(found["transactions"], abs=12)


def _timed(server: LiveServer, name: str) -> tuple[float, float]:
    """Seconds from the call to its first picture, and from the end of the time asked for to that of the call."""
    out = server.lab.state / "runs-of-tests" / name
    began = time.monotonic()
    process = server.start("--pid", str(server.pid), "--for", "4s", "--out", str(out))
    assert process.stdout is not None
    while "transactions/s" not in (line := process.stdout.readline()):
        assert line, process.communicate()
    first = time.monotonic() - began
    text, error = process.communicate(timeout=60)
    ended = time.monotonic_ns()
    assert process.returncode == 0, error
    summary = json.loads((out / "trials/0001/measure/summary.json").read_text())
    complete = (ended - summary["started_ns"]) / 1e9 - 4
    print(f"first picture after {first:.2f} s, complete {complete:.2f} s after the end\n{text}")
    return first, complete


@pytest.mark.alone
def test_first_picture_and_end_are_in_time_and_nothing_stays(server: LiveServer) -> None:
    """A machine that is busy with something else may hold one of three up."""
    load = server.client("pgbench", "-c", "2", "-T", "60", "-R", "100")
    before, files = bpf_objects(), files_of(server.server.data)
    try:
        time.sleep(1)
        for number in range(3):
            first, complete = _timed(server, f"in-time-{number}")
            if first < FIRST_S and complete < COMPLETE_S:
                break
        assert (first < FIRST_S, complete < COMPLETE_S) == (True, True), (first, complete)
    finally:
        load.terminate()
        load.wait(20)
    until = time.monotonic() + 10
    while (left := bpf_objects() - before) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
    assert files_of(server.server.data) == files
    with server.session() as session:
        found = session.execute("select count(*) from pg_stat_activity where application_name like 'plimsoll b%'")
        assert (found.fetchone() or (-1,))[0] == 0
    assert not server.lab.processes("plimsoll-agent")
    assert not [pid for pid in server.lab.processes("python3") if pid != os.getpid()]
