"""The page of a watched server: made from its record alone, and everything from the server escaped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from live_world import QUERIES, SESSIONS, S, backend, line, look, seen

from plimsoll.analysis.watch.live import Picture
from plimsoll.analysis.watch.verdict import analyse_live
from plimsoll.record import RecordError, open_run, writer
from plimsoll.report.watch.page import write_live_report
from plimsoll.run.watch.tables import LiveTables

Json = dict[str, Any]


def events() -> list[Json]:
    """Three seconds: a query that reads its own text as mark-up, a lock, a worker, a checkpointer."""
    found: list[Json] = []
    for second in range(3):
        for tenth in range(1, 10):
            rows = [seen(1, 2, since=0.01), seen(2, 1, "Lock:transactionid", since=second + 0.001)]
            rows.append(seen(3, 2, kind="parallel worker", leader=1))
            one = look(second + tenth / 10, *rows)
            if not found:
                one |= {"queries": QUERIES, "sessions": SESSIONS}
            if tenth == 5:
                lock = {"pid": 2, "blockers": [1], "kind": "transactionid", "mode": "ShareLock", "relation": "<i>a</i>"}
                one |= {"locks": [lock | {"since_ns": None}], "locks_t_ns": one["t_ns"]}
            found.append(one)
        now = {"state": "cpu", "event": None, "bucket": None, "since_ns": 5, "transaction_ns": 10}
        workers = [backend(3, cpu=0.5, what="parallel worker"), backend(4, cpu=0.1, what="checkpointer")]
        locked = backend(2, cpu=0.1, waits={(101, "lock"): 0.8}, transactions=5)
        found.append(line(second + 1, backend(1, cpu=0.9, queue=0.1, now=now), locked, *workers))
    return [*found, look(3.05, seen(1, 2, since=0.01))]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made(tmp_path / "run")


def made(folder: Path) -> Path:
    """The record of those three seconds."""
    server = {"pid": 7, "data_directory": "/data/<u>x</u>", "major": "15", "port": 5432, "owner": "postgres"}
    document = {"id": "run", "kind": "breakdown", "status": "finished", "started_epoch_ns": 1, "plimsoll": None}
    document |= {"command": ["plimsoll", "breakdown", "--dsn", "postgresql://u:geheim@/d"]}
    document |= {"breakdown": {"server": server, "seconds": 3.0, "top": 20, "ended_early": None}}
    writer.create_run(folder, document, {"trials": [{"number": 1, "treatment": "t1"}]})
    writer.write_trial(folder, {"number": 1, "status": "finished"})
    tables = LiveTables(folder / "trials/0001/measure") if (folder / "trials/0001/measure").mkdir() is None else None
    assert tables is not None
    for one in events():
        (tables.line if "processes" in one else tables.look)(one)
    tables.close({99}, {"pid": 99, "user": "u", "sees_all": True, "version": "15.1", "settings": None})
    cost = {"run_ns": 30_000_000, "segment_ns": 3 * S}
    probe = {"status": "on", "reason": None, "buckets": ["cpu_user"], "lost": {"no_room": 3}, "cost": cost}
    summary = {"started_ns": 0, "ended_ns": 3 * S, "probes": {"breakdown": probe}}
    writer.write_json(folder / "trials/0001/measure/summary.json", summary | {"instrument": {"cpus": 2}})
    return folder


def drawn(run: Path) -> str:
    writer.write_json(run / "breakdown.json", analyse_live(open_run(run)))
    return write_live_report(run).read_text()


def test_the_record_gives_the_picture_that_was_shown(run: Path) -> None:
    shown = Picture({99})
    for one in events():
        (shown.line if "processes" in one else shown.look)(one)
    shown.close()
    again = analyse_live(open_run(run))
    for key, value in shown.document(20).items():
        assert again[key] == value, key


def test_everything_of_the_server_is_escaped(run: Path) -> None:
    page = drawn(run)
    for text in ("<script>alert(1)</script>", "<b>till</b>", "<i>a</i>", "<u>x</u>"):
        assert text not in page
        assert text.replace("<", "&lt;").replace(">", "&gt;") in page
    assert page.count("<script") == 1, "that which opens folds, and none of the server's"


def test_no_password_is_in_the_record(run: Path) -> None:
    drawn(run)
    for path in run.rglob("*"):
        if path.is_file():
            assert b"geheim" not in path.read_bytes(), path


def test_the_page_says_what_was_lost_and_what_it_cost(run: Path) -> None:
    page = drawn(run)
    assert "the probe lost events (3 no room): times are lower bounds" in page
    assert "0.50 % of the machine" in page
    found = json.loads((run / "breakdown.json").read_text())
    assert found["cost"]["probe_share"] == pytest.approx(0.005)
    assert found["cost"]["looks_share"] is None


def test_waits_that_are_told_by_system_call_are_said_to_be(run: Path) -> None:
    assert "the server's wait events cannot be read" not in drawn(run)
    path = run / "trials/0001/measure/summary.json"
    summary = json.loads(path.read_text())
    summary["probes"]["breakdown"]["boundaries"] = {"waits": "system_calls"}
    path.write_text(json.dumps(summary))
    assert "waits are named by the system call, and the file, in which a process" in drawn(run)


def test_without_a_session_the_page_says_so(run: Path) -> None:
    path = run / "trials/0001/measure/activity.json"
    names = json.loads(path.read_text())
    path.write_text(json.dumps({**names, "session": {"why": "no socket <here>"}}))
    for name in ("looks", "seen", "locks"):
        table = path.with_name(f"{name}.npy")
        table.write_bytes(table.read_bytes()[: table.read_bytes().index(b"\n") + 1])
    page = drawn(run)
    assert "Not shown: no socket &lt;here&gt;" in page
    assert "name one with --dsn" in page


def test_a_watch_that_was_killed_is_refused_with_the_file(run: Path) -> None:
    (run / "trials/0001/measure/activity.json").unlink()
    with pytest.raises(RecordError, match=r"no activity\.json"):
        analyse_live(open_run(run))
