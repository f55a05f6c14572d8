"""Double caching against a real server: blocks put into each cache by number come out by number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Journal, StateDir, discover
from plimsoll.environment import server as server_knob
from plimsoll.environment.folders import work_dir
from plimsoll.environment.memory import page_cache
from plimsoll.run.host import HERE
from plimsoll.run.servers.double_caching import Watch
from plimsoll.target import PostgresServer

PAGE, BLOCK = 4096, 8192
BLOCKS = 509  # a prime number of rows, each with a block of its own
IN_SERVER = range(101, 304)
READ_WHOLE = range(211, 400)  # blocks read through the page cache, outside the server
READ_HALF = range(150, 171)  # blocks of which only the second page is read


@pytest.fixture
def server(needs: Callable[..., None], state: StateDir, run_id: str, server_user: str) -> Iterator[PostgresServer]:
    needs("root", "postgresql", "server user")
    with Journal.create(state, run_id) as journal:
        folder = state.work / "caches"
        work_dir.make(state, journal, folder, mode=0o755)
        server_knob.record(journal, folder / "data")
        install = discover.servers()[-1]
        made = PostgresServer(Path(install.bin_dir), folder / "data", folder, server_user, HERE.start_as)
        made.initdb()
        made.configure({"fsync": False, "autovacuum": False, "shared_buffers": "32MB"}, None)
        made.start()
        made.create_database()
        try:
            yield made
        finally:
            made.abandon()


def _fill(server: PostgresServer) -> Path:
    """Makes the known table; gives its file."""
    with server.connection.open("plimsoll") as connection:
        connection.execute("create schema plimsoll")
        connection.execute("create table plimsoll.known (id int, filler char(7000))")
        connection.execute("alter table plimsoll.known alter filler set storage plain")
        connection.execute("insert into plimsoll.known select i, 'x' from generate_series(1, %s) i", [BLOCKS])
        connection.execute("create index known_key on plimsoll.known (id)")
        connection.execute("vacuum plimsoll.known")  # makes the other forks
        row = connection.execute("select pg_relation_filepath('plimsoll.known')").fetchone()
    assert row is not None
    return server.data / str(row[0])


def _read_pages(file: Path, pages: set[int]) -> None:
    """Reads exactly these pages: the advice keeps the kernel from reading ahead."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for page in pages:
            assert len(os.pread(descriptor, PAGE, page * PAGE)) == PAGE
    finally:
        os.close(descriptor)


def _read_resident(watch: Watch, file: Path, pages: set[int]) -> dict[str, Any]:
    """A reading during which exactly these pages were resident: the machine may page out some at any time (DAMON)."""
    for _ in range(10):
        _read_pages(file, pages)
        reading = watch.read()
        assert reading is not None
        if page_cache.resident_bytes(file) == len(pages) * PAGE:
            return reading
    raise AssertionError("the machine pages out what has just been read")


def _read_still(watch: Watch, server: PostgresServer) -> tuple[dict[str, Any], int]:
    """A reading during which no page left or came, and what is resident of the database's files."""
    resident = -1
    for _ in range(10):
        reading = watch.read()
        assert reading is not None and watch.layout is not None
        files = [path for path in (server.data / watch.layout.folder).iterdir() if path.is_file()]
        before, resident = resident, page_cache.residency(*files).resident_bytes
        if before == resident:
            return reading, resident
    raise AssertionError("the machine pages out all the time")


def _row(reading: dict[str, Any], name: str) -> dict[str, int]:
    (found,) = (row for row in reading["relations"] if row["relation"] == name)
    return {key: value for key, value in found.items() if isinstance(value, int)}


def test_known_blocks_are_found_in_each_cache_and_in_both(server: PostgresServer) -> None:
    file = _fill(server)
    server.stop()  # empties the server's cache; its data are on disk
    server.start()
    watch = Watch(server.connection, server.data)
    watch.prepare()
    assert watch.absent is None
    page_cache.evict(file)
    nothing = watch.read()
    assert nothing is not None
    assert _row(nothing, "known") == {
        "bytes": BLOCKS * BLOCK,
        "server_bytes": 0,
        "page_cache_bytes": 0,
        "both_bytes": 0,
    }

    with server.connection.open("plimsoll") as connection:
        argument = [IN_SERVER.start, IN_SERVER.stop - 1]
        connection.execute("select pg_prewarm('plimsoll.known', 'buffer', 'main', %s, %s)", argument)
    page_cache.evict(file)  # what the server read came through the page cache
    in_server = watch.read()
    assert in_server is not None
    assert _row(in_server, "known") == {
        "bytes": BLOCKS * BLOCK,
        "server_bytes": len(IN_SERVER) * BLOCK,
        "page_cache_bytes": 0,
        "both_bytes": 0,
    }

    whole = {page for block in READ_WHOLE for page in (2 * block, 2 * block + 1)}
    half = {2 * block + 1 for block in READ_HALF}
    assert server.connection.wait_without_clients()
    counters = server.connection.counters()
    both = _read_resident(watch, file, whole | half)
    shared = len(set(IN_SERVER) & set(READ_WHOLE)) * BLOCK + len(set(IN_SERVER) & set(READ_HALF)) * PAGE
    assert _row(both, "known") == {
        "bytes": BLOCKS * BLOCK,
        "server_bytes": len(IN_SERVER) * BLOCK,
        "page_cache_bytes": len(READ_WHOLE) * BLOCK + len(READ_HALF) * PAGE,
        "both_bytes": shared,
    }
    # Looking changes nothing that the database under test counts.
    after = server.connection.counters()
    for name in ("xact_commit", "xact_rollback", "blks_read", "blks_hit", "tup_returned", "temp_files"):
        assert after[name] == counters[name], name
    print(f"readings took {[reading['read_ns'] for reading in (nothing, in_server, both)]} ns")


def test_everything_of_the_database_is_in_the_sums(server: PostgresServer) -> None:
    _fill(server)
    server.checkpoint()
    watch = Watch(server.connection, server.data)
    watch.prepare()
    reading, resident = _read_still(watch, server)
    assert watch.layout is not None
    kinds = {row["relation"]: row["kind"] for row in reading["relations"]}
    assert kinds["known"] == "table"
    assert kinds["known_key"] == "index"
    assert kinds["toast of known"] == "toast"
    assert kinds["(catalogs and others)"] == "other"
    assert len(kinds) == 4
    files = [path for path in (server.data / watch.layout.folder).iterdir() if path.is_file()]
    assert reading["total"]["bytes"] == sum(path.stat().st_size for path in files)
    assert reading["total"]["page_cache_bytes"] == resident
    with server.connection.open() as connection:
        row = connection.execute("select count(*) * 8192 from pg_buffercache where relfilenode is not null").fetchone()
    # The question itself brings some catalog blocks.
    used = reading["total"]["server_bytes"] + reading["elsewhere_bytes"]
    assert row is not None and used <= row[0] <= used + 64 * BLOCK
    assert reading["total"]["both_bytes"] <= min(reading["total"]["server_bytes"], reading["total"]["page_cache_bytes"])
