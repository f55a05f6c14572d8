"""The driver of DuckDB by itself: what it tells of streams, what it refuses, how it is stopped and ended."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.target import ServerFailed
from plimsoll.target.duckdb_server import DriverEnded, DuckServer, as_setting

Json = dict[str, Any]
REPEATS = 7
LONG = "select count(*) from range(1000000000000) t(i) where i % 7 = 3"
TABLES = (
    "create table orders (o_orderkey bigint, o_comment varchar)",
    "create table lineitem (l_orderkey bigint, l_linenumber integer)",
    "create table refresh_sets (function char(3), taken integer)",
    "insert into orders values (1, 'a'), (2, 'b')",
    "insert into lineitem values (1, 1), (1, 2), (2, 1)",
    "insert into refresh_sets values ('RF1', 0), ('RF2', 0)",
)


def launch(argv: list[str], **streams: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, start_new_session=True, **streams)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DuckServer]:
    (tmp_path / "data").mkdir()
    made = DuckServer(tmp_path / "data", tmp_path, launch, None)
    made.configure({"threads": 2, "memory_limit": "0.5 x memory"}, 2**30)
    made.start()
    yield made
    made.abandon()


def test_no_code_comes_from_the_folder_that_the_driver_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    (tmp_path / "data").mkdir()
    for name in ("duckdb", "queue"):
        (strange / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.chdir(strange)
    monkeypatch.setenv("PYTHONPATH", str(strange))
    server = DuckServer(tmp_path / "data", tmp_path, launch, None)
    try:
        server.start()
        assert server.ask("select 42") == [[42]]
    finally:
        server.abandon()
    assert not (tmp_path / "ran").exists()


def perform(server: DuckServer, sessions: list[list[Json]], timeout: float | None = None, **sets: list[Json]) -> Json:
    """The lines of a test: {index: what it became}, and under "done" the last one."""
    wanted = {"RF1": [], "RF2": []} | sets
    server.begin("test", sessions=sessions, sets=wanted, timeout_seconds=timeout)
    found: Json = {}
    while "done" not in found:
        line = server.hear(30)
        assert line is not None, "nothing was told for half a minute"
        if line["event"] == "done":
            found["done"] = line
        elif line["event"] == "ended":
            found[line["index"]] = line
    return found


def asks(*statements: str, first: int = 0) -> list[Json]:
    return [{"index": first + place, "sql": sql} for place, sql in enumerate(statements)]


def test_sessions_run_side_by_side_and_their_work_in_its_order(server: DuckServer) -> None:
    slow = "select count(*) from range(40000000) t(i) where i % 7 = 3"
    found = perform(server, [asks(slow, "select 1"), asks(slow, "select * from range(5)", first=2)])
    assert [found[index]["status"] for index in range(4)] == ["done"] * 4
    assert [found[index]["rows"] for index in range(4)] == [1, 1, 1, 5]
    for first, second in ((0, 1), (2, 3)):
        assert found[first]["end_ns"] == found[second]["planned_ns"] <= found[second]["start_ns"]
    released = found["done"]["released_ns"]
    assert found[0]["planned_ns"] == found[2]["planned_ns"] == released
    assert max(found[0]["start_ns"], found[2]["start_ns"]) < min(found[0]["end_ns"], found[2]["end_ns"])
    for index in range(4):
        assert 0 <= found[index]["own_ns"] <= found[index]["end_ns"] - found[index]["start_ns"]


def test_what_the_driver_does_itself_is_told(server: DuckServer) -> None:
    """Turning many rows into Python's is the driver's; adding as many up is not."""
    rows = "select i, i * 2 from range(300000) t(i)"
    # Of one that takes a millisecond most may be a wait for a CPU: so several, and the one in the middle.
    found = perform(server, [asks(*(REPEATS * [rows, f"select sum(i) from ({rows}) t(i, j)"]))])
    ends = [found[index] for index in range(2 * REPEATS)]
    shares = [end["own_ns"] / (end["end_ns"] - end["start_ns"]) for end in ends]
    assert ends[0]["rows"] == 300_000
    assert statistics.median(shares[0::2]) > 0.5 > statistics.median(shares[1::2])


def test_a_query_that_fails_or_takes_too_long_ends_alone(server: DuckServer) -> None:
    began = time.monotonic()
    found = perform(server, [asks("select nothing", LONG, "select 2"), asks("select 3", first=3)], timeout=0.3)
    assert time.monotonic() - began < 20
    assert [found[index]["status"] for index in range(4)] == ["failed", "timed out", "done", "done"]
    assert "nothing" in found[0]["error"] and found[0]["error_class"] == "BinderException"
    assert found[1]["end_ns"] - found[1]["start_ns"] >= 300_000_000
    assert server.ask("select 4") == [[4]]


def test_stop_cancels_what_is_under_way_and_skips_the_rest(server: DuckServer) -> None:
    threading.Timer(0.3, server.tell, args=["stop"]).start()
    found = perform(server, [asks(LONG, "select 1"), asks(LONG, "select 1", first=2)])
    assert [found[index]["status"] for index in range(4)] == ["failed", "skipped", "failed", "skipped"]
    assert perform(server, [asks("select 1")])[0]["status"] == "done"


def files(folder: Path, **texts: str) -> dict[str, str]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: str(folder / name) for name in texts}


def test_refresh_functions_take_their_set_in_their_transaction(server: DuckServer, tmp_path: Path) -> None:
    server.ask(*TABLES)
    new = files(tmp_path, orders="9|c\n", lineitem="9|1\n9|2\n")
    old = files(tmp_path, refresh_key="1\n")
    verify = "select count(*), 0, 0 from orders where o_orderkey = {}"
    left = {"orders": 1, "lines": 0, "prices_wrong": 0}
    counts = {"order_count": 1, "line_count": 2, "left": left}
    first = {"set": 1, **new, **counts, "verify": verify.format(9)}
    gone = {"set": 1, **old, **counts, "verify": verify.format(1)}
    pair = [{"index": 0, "function": "RF1"}, {"index": 1, "function": "RF2"}]
    found = perform(server, [pair], RF1=[first], RF2=[gone])
    assert [(found[at]["status"], found[at]["set"], found[at]["orders"], found[at]["lines"]) for at in (0, 1)] == [
        ("done", 1, 1, 2)
    ] * 2
    assert server.ask("select o_orderkey from orders order by 1") == [[2], [9]]
    assert found[0]["verified"] == left | {"ok": True}
    assert found[1]["verified"] == left | {"orders": 0, "ok": False}  # as if RF2 were to leave an order
    assert found[1]["planned_ns"] >= found[0]["end_ns"]
    assert server.ask("select count(*) from lineitem") == [[3]]

    # The same set again, and one that meets other rows than it should: refused, and nothing is changed.
    again = perform(server, [pair], RF1=[first], RF2=[gone | {"set": 2}])
    assert [again[at]["status"] for at in (0, 1)] == ["failed", "failed"]
    assert "set 1 was taken before" in again[0]["error"] and "0 orders and 0 lines" in again[1]["error"]
    assert server.ask("select function, taken from refresh_sets order by 1") == [["RF1", 1], ["RF2", 1]]
    assert server.ask("select count(*) from lineitem") == [[3]]


def test_a_set_of_a_function_that_failed_is_the_next_ones(server: DuckServer, tmp_path: Path) -> None:
    server.ask(*TABLES)
    paths = files(tmp_path, orders="9|c\n")
    one = {"set": 1, **paths, "lineitem": str(tmp_path / "late"), "order_count": 1, "line_count": 1}
    one |= {"verify": "select nothing", "left": {}}
    works = [{"index": 0, "function": "RF1"}, {"index": 1, "function": "RF1"}, {"index": 2, "function": "RF1"}]
    threading.Timer(0.2, (tmp_path / "late").write_text, args=["9|1\n"]).start()
    wait = "select count(*) from range(200000000) t(i) where i % 7 = 3"
    found = perform(server, [[works[0], {"index": 3, "sql": wait}, *works[1:]]], RF1=[one])
    assert [found[at]["status"] for at in (0, 1, 2)] == ["failed", "done", "failed"]
    assert found[0]["set"] == found[1]["set"] == 1
    assert found[1]["verified"] is None  # it could not be asked, which undoes nothing
    assert (found[2]["set"], found[2]["error"]) == (None, "no refresh set is left: load the tables again")


def test_what_is_refused_is_told_in_the_servers_words(server: DuckServer) -> None:
    with pytest.raises(ServerFailed, match="nobody"):
        server.ask("select * from nobody")
    assert server.ask("select 1") == [[1]]
    told = server.describe()
    assert told["version"].startswith("DuckDB ")
    assert told["settings"]["memory_limit"] == "524288KiB"


def test_a_driver_that_was_killed_says_so(server: DuckServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(DriverEnded, match="signal 9"):
        server.ask("select 1")


def test_the_driver_ends_with_its_input(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    made = DuckServer(tmp_path / "data", tmp_path, launch, None)
    made.start()
    made.begin("ask", statements=[LONG])
    made.abandon()
    assert not Path(f"/proc/{made.pid}").exists()


def test_a_database_that_was_closed_is_there_again(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for expected in (None, [[3]]):
        made = DuckServer(tmp_path / "data", tmp_path, launch, None)
        made.start()
        if expected is None:
            made.ask(*TABLES)
            made.stop()
            assert [path.name for path in made.data.iterdir()] == ["plimsoll.duckdb"]
        else:
            assert made.ask("select count(*) from lineitem") == expected
            made.abandon()


def test_settings_are_written_as_duckdb_reads_them() -> None:
    assert as_setting(True, None) == "true"
    assert as_setting(4, None) == "4"
    assert as_setting("0.5 x memory", 2**30) == "524288KiB"
    assert as_setting("zstd", None) == "zstd"
