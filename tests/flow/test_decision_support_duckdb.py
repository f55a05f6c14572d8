"""Decision support on DuckDB through the whole pipeline, beside PostgreSQL; and both servers' answers after a pair of
refresh functions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from decision_support_servers import SCHEMA, streams, workload
from laboratory import Laboratory
from live_server import live_server

from plimsoll.analysis import analyse
from plimsoll.analysis.trial.answers import AGREED, differences
from plimsoll.record import open_run
from plimsoll.run import agent
from plimsoll.run.observer import Silent
from plimsoll.run.servers.duckdb import record
from plimsoll.run.servers.duckdb.alone import alone, build_database
from plimsoll.run.servers.duckdb.refresh_sets import RefreshSets
from plimsoll.target import ServerFailed
from plimsoll.target.duckdb_server import DriverEnded, DuckServer

SCALE_FACTOR = 0.01
SEED = 1_122_113_041
ME = (os.geteuid(), os.getegid())
HEAD = """
format = 1
name = "tiny-duckdb"
title = "Which server is faster?"

[workload]
name = "decision_support"
scale_factor = 0.01
query_timeout_seconds = 60
"""
BOTH = """
tests = ["load", "power", "throughput"]
repeats = 2
answers = true

[environment]
memory = "512 MiB"

[warmup]
until = "none"

[design]
blocks = 1

[[factors]]
name = "server"

[[factors.levels]]
label = "PostgreSQL"
[factors.levels.set]
"target.server" = "postgresql"
"target.settings.autovacuum" = false
"target.settings.jit" = false
"target.settings.fsync" = false

[[factors.levels]]
label = "DuckDB"
[factors.levels.set]
"target.server" = "duckdb"
"target.settings.memory_limit" = "0.6 x memory"
"target.settings.threads" = 2
"""
KEPT = """
tests = ["power"]

[target]
server = "duckdb"

[environment]
page_cache = "warm"

[warmup]
until = "none"

[design]
blocks = 2
"""
# One such test takes half a second where CPUs are fast: whoever is to be stopped in the midst of them has some to come.
LONG = """
tests = ["throughput"]
repeats = 4
streams = 10

[target]
server = "duckdb"

[environment]
memory = "512 MiB"

[target.settings]
memory_limit = "300 MiB"

[warmup]
until = "none"

[design]
blocks = 1
"""


def by_name(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(checks, key=lambda check: check["name"])


def test_three_tests_on_two_servers(laboratory: Laboratory) -> None:
    path = laboratory.state / "both.toml"
    path.write_text(HEAD + BOTH)
    answer = json.loads(laboratory.call("run", str(path), "--json", "--out", "both", seconds=600))
    assert answer["status"] == "finished"
    run = open_run(Path(answer["run"]))
    servers = {trial.planned["levels"]["server"]: trial for trial in run.trials}
    assert sorted(servers) == ["DuckDB", "PostgreSQL"]
    for trial in run.trials:
        assert trial.status == "finished", trial.data.get("reason")
        assert trial.data["checks"] and all(check["ok"] for check in trial.data["checks"])
    # Both servers were asked the same, in the same places, and had as many rows to answer.
    duck, postgres = servers["DuckDB"], servers["PostgreSQL"]
    assert by_name(duck.data["checks"]) == by_name(postgres.data["checks"])
    for (_, one), (_, other) in zip(duck.tests, postgres.tests, strict=True):
        keys = ("index", "stream", "connection", "place", "name", "title", "parameters", "set", "rows", "status")
        first, second = ((segment.queries or {})["queries"] for segment in (one, other))
        if one.name == "power":  # in the other tests a query may come before or after a refresh function
            assert [{key: row[key] for key in keys} for row in first] == [
                {key: row[key] for key in keys} for row in second
            ]
        assert [row["name"] for row in first] == [row["name"] for row in second]
        assert (one.summary or {}).keys() <= (other.summary or {}).keys()
        for series in ("host", "group"):
            found = one.series(series)
            assert found is not None and found.dtype == other.series(series).dtype
        rows, others = one.transactions, other.transactions
        assert rows is not None and others is not None and rows.dtype == others.dtype
        pairs = [row["verified"]["ok"] for row in first if row["name"].startswith("RF")]
        assert len(pairs) in (2, 4) and all(pairs)
        assert (one.summary or {})["verification"] == {"checked": len(pairs), "wrong": 0, "examples": []}
        own = [row["own_ns"] for row in first if row["name"].startswith("Q")]
        assert all(value is not None and value >= 0 for value in own)
    assert duck.data["server"]["version"].startswith("DuckDB ")
    assert duck.data["group"]["limit_bytes"] == 512 * 2**20
    held = duck.measure.series("group")
    assert held is not None and held["anon_bytes"].max() > 20 * 2**20  # it does live in the group

    verdict = analyse(run)
    assert [trial["admitted"] for trial in verdict["trials"]] == [True, True], verdict["exclusions"]
    for one in verdict["decision_support"]["trials"]:
        assert all(figure["value"] > 0 for figure in one["figures"].values()), one["figures"]
        assert len(one["runs"]) == 2
    page = Path(answer["report"]).read_text()
    assert "the driver&#39;s own part" in page or "the driver's own part" in page
    assert laboratory.left_behind() == []


def test_a_kept_database_serves_every_trial(laboratory: Laboratory) -> None:
    path = laboratory.state / "kept.toml"
    path.write_text(HEAD + KEPT)
    answer = json.loads(laboratory.call("run", str(path), "--json", "--no-page", "--out", "kept"))
    assert answer["status"] == "finished"
    trials = open_run(Path(answer["run"])).trials
    assert [trial.status for trial in trials] == ["finished", "finished"], [
        trial.data.get("reason") for trial in trials
    ]
    # Each on a clone of its own: both take the first sets.
    for trial in trials:
        taken = [row["set"] for row in (trial.measure.queries or {})["queries"] if row["set"] is not None]
        assert taken == [1, 1]
        assert all(check["ok"] for check in trial.data["checks"])
        assert trial.data["residency"]["before_measure"]["resident_bytes"] > 0
    (kept,) = json.loads(laboratory.call("cache", "show", "--json"))
    assert kept["key"].startswith("decision_support-sf0.01-duckdb")
    assert laboratory.left_behind() == []


def begun(out: Path, front: subprocess.Popen[str]) -> None:
    """Waits until the driver is at work in a throughput test."""
    until = time.monotonic() + 120
    while not (out / "trials/0001/throughput-1/host.npy").exists():
        assert front.poll() is None and time.monotonic() < until, front.communicate()
        time.sleep(0.05)
    time.sleep(0.2)


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL])
def test_a_run_that_is_stopped_or_killed_is_gone_on_with(laboratory: Laboratory, how: signal.Signals) -> None:
    path = laboratory.state / "long.toml"
    path.write_text(HEAD + LONG)
    out = laboratory.state / f"long-{how}"
    front = laboratory.start("run", str(path), "--json", "--no-page", "--out", out.name)
    begun(out, front)
    front.send_signal(how)
    front.communicate(timeout=120)
    assert front.returncode != 0
    if how == signal.SIGINT:
        assert laboratory.left_behind() == []
        stopped = json.loads((out / "trials/0001/trial.json").read_text())
        assert stopped["status"] == "stopped"
    else:
        until = time.monotonic() + 30
        while laboratory.processes() and time.monotonic() < until:
            time.sleep(0.1)
        assert laboratory.processes() == []  # the driver and the agents end with the front
        assert all(trial.status != "finished" for trial in open_run(out).trials)
    answer = json.loads(laboratory.call("run", "--resume", str(out), "--json", "--no-page", seconds=600))
    assert answer["status"] == "finished"
    (trial,) = open_run(out).trials
    assert trial.status == "finished" and all(check["ok"] for check in trial.data["checks"])
    assert laboratory.left_behind() == []


def test_a_driver_that_is_killed_fails_its_trial_alone(laboratory: Laboratory) -> None:
    path = laboratory.state / "killed.toml"
    path.write_text(HEAD + LONG.replace("blocks = 1", "blocks = 2"))
    out = laboratory.state / "killed"
    front = laboratory.start("run", str(path), "--json", "--no-page", "--out", "killed")
    begun(out, front)
    (driver,) = [pid for pid in laboratory.processes() if b"duckdb_driver" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(driver, signal.SIGKILL)
    front.communicate(timeout=300)
    first, second = open_run(out).trials
    assert first.status == "failed" and "signal 9" in first.data["reason"]
    assert second.status == "finished"
    assert laboratory.left_behind() == []


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DuckServer]:
    """A database with the tables, opened anew after it was built."""
    folder = tmp_path / "duck"
    folder.mkdir()
    made = alone(folder, ME)
    built, checks = build_database(made, workload(SCALE_FACTOR), ME, Silent())
    assert all(check["ok"] for check in checks) and built["tables"]["lineitem"] == 60_175
    assert [phase["phase"] for phase in built["phases"]] == ["tables", "rows", "analyze", "checkpoint"]
    assert sum(work["bytes"] for work in built["work"]) > 9_000_000
    made.temp.mkdir()
    made.configure({"threads": 2}, None)
    made.start()
    yield made
    made.abandon()


def refreshed(server: DuckServer) -> RefreshSets:
    """One pair of refresh functions, and what holds the sets."""
    sets = RefreshSets(server, workload(SCALE_FACTOR), ME)
    request = {"sessions": [[{"index": 0, "function": "RF1"}, {"index": 1, "function": "RF2"}]]}
    server.begin("test", **request, sets=sets.prepare({"RF1": 1, "RF2": 1}), timeout_seconds=None)
    while (line := server.hear(60)) is not None and line["event"] != "done":
        assert line.get("status", "done") == "done", line
    assert line is not None
    return sets


def test_both_servers_agree_before_and_after_a_pair(
    database: DuckServer, needs: Callable[..., None], server_user: str
) -> None:
    needs("root", "postgresql", "server user")
    queries = streams(SCALE_FACTOR, 0, 1, seed=SEED)
    with live_server(server_user, settings={"shared_buffers": "128MB"}) as live, live.session() as session:
        target = live.server.load_connection.as_request() | {"dbname": session.info.dbname, "schema": SCHEMA}
        request = {"target": target, "workload": workload(SCALE_FACTOR)}
        agent.call("populate", request)
        session.execute(f"set search_path to {SCHEMA}")

        def agree() -> None:
            for query in queries:
                found = [tuple(row) for row in database.ask(query["sql"])]
                expected = [tuple(plain(value) for value in row) for row in session.execute(query["sql"]).fetchall()]
                assert not differences(query["query"], expected, found, AGREED), query

        agree()
        lines_before = database.ask("select count(*), sum(l_orderkey) from lineitem")
        agent.call("refresh", request)
        sets = refreshed(database)
        agree()
        asked = "select count(*), sum(l_orderkey), sum(l_extendedprice), min(l_shipdate) from lineitem"
        (mine,), (others,) = database.ask(asked), session.execute(asked).fetchall()
        assert [str(value) for value in mine] == [str(value) for value in others]
        assert database.ask("select count(*), sum(l_orderkey) from lineitem") != lines_before
        theirs = agent.call("check", request | {"segments": []})["checks"]
        assert by_name(sets.check()) == by_name(theirs)


def plain(value: Any) -> Any:
    """As the driver hands it on."""
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def test_broken_tables_are_told(database: DuckServer) -> None:
    sets = refreshed(database)
    assert all(check["ok"] for check in sets.check())
    database.ask("update orders set o_totalprice = o_totalprice + 0.01 where o_orderkey = 100")
    (broken,) = [check for check in sets.check() if not check["ok"]]
    assert broken["name"].startswith("orders whose o_totalprice") and broken["found"] == "1"


def test_a_generator_or_a_driver_that_ends_early_leaves_nobody_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "duck"
    folder.mkdir()
    with pytest.raises(agent.AgentFailed, match="scale_factor"):
        build_database(alone(folder, ME), workload(0.001), ME, Silent())

    class Killing(Silent):
        def event(self, _name: str, **info: Any) -> None:
            if info.get("line", {}).get("phase") == "rows":
                made.kill()

    other = tmp_path / "other"
    other.mkdir()
    made = alone(other, ME)
    with pytest.raises(DriverEnded, match="signal 9"):
        build_database(made, workload(SCALE_FACTOR), ME, Killing())


def test_a_table_that_cannot_be_filled_fails_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server refuses rows of another shape; whoever writes them is ended."""
    from plimsoll.run.servers.duckdb import loading

    known = loading.describe(workload(SCALE_FACTOR))
    narrow = [sql.replace("l_comment varchar(44) NOT NULL", "l_comment integer NOT NULL") for sql in known["ddl"]]
    assert narrow != known["ddl"]
    monkeypatch.setattr(loading, "describe", lambda _data: known | {"ddl": narrow})
    folder = tmp_path / "duck"
    folder.mkdir()
    with pytest.raises(ServerFailed, match="l_comment"):
        build_database(alone(folder, ME), workload(SCALE_FACTOR), ME, Silent())


def test_the_work_is_the_agents(database: DuckServer) -> None:
    """What the agent's `plan` tells, in the shape that the driver and the record know."""
    del database
    asked = {"test": "throughput", "streams": 2, "refresh": True}
    works = agent.call("plan", {"workload": workload(SCALE_FACTOR, seed=SEED), "work": asked})["work"]
    assert record.sets_needed(works) == {"RF1": 2, "RF2": 2}
    assert [len(session) for session in record.sessions_of(works)] == [22, 22, 4]
    assert [work["name"] for work in works[:3]] == ["Q21", "Q3", "Q18"]
    assert len(works) == 48 and works[0]["sql"] == streams(SCALE_FACTOR, 1, seed=SEED)[0]["sql"]
