"""A load line from the command line: a whole search on a private server, stops, and everything that is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, in_this_process

from plimsoll.environment import Journal, StateDir, discover
from plimsoll.environment import server as server_knob
from plimsoll.environment.folders import work_dir
from plimsoll.record import open_run
from plimsoll.run.host import HERE
from plimsoll.target import PostgresServer

Json = dict[str, Any]
PASSWORD = "s3cr3t-pw"
NEEDS = ("postgresql", "server user", "root")
SHORT = ("--set", "warmup.seconds_min=1", "--set", "warmup.seconds_max=3")
SMALL = ("--clients", "2", "wpi_orders", "--set", "workload.size=48 MiB", *SHORT)


def decisive(verdict: Json) -> list[str]:
    """What the trials said that have a say: none from which the hypervisor took CPU time while it did not hold."""
    told = [trial for trial in verdict["trials"] if not trial.get("disturbed")]
    return [trial["verdict"] for trial in told if trial["verdict"] in ("holds", "breaks")]


def test_a_search_ends_in_a_line_a_record_and_a_page(laboratory: Laboratory) -> None:
    # So long that only a queue that grows breaks it, and of the middle, which a neighbour's second leaves where it is:
    # eight seconds a rate tell nothing of a tail with a stall in it, nor of one of transactions that take a hundred
    # times as long as most.
    small = ("--clients", "2", "bank", "--set", "workload.scale=4", *SHORT)
    argv = ("capacity", *small, "--slo", "p50 <= 200ms", "--minutes", "0.8", "--quick", "--seed", "7", "--out", "one")
    began = time.monotonic()
    said = laboratory.call(*argv)
    assert time.monotonic() - began < 160
    assert laboratory.left_behind() == []
    folder = laboratory.state / "one"
    run = open_run(folder)
    assert run.data["kind"] == "capacity"
    assert run.data["status"] == "finished"
    verdict = json.loads((folder / "capacity.json").read_text())
    # On a machine that others disturb most trials may say nothing; what two of them decide has to be told.
    decided = decisive(verdict)
    if len(decided) > 1 or verdict["line"]["status"] != "cannot tell":
        # "below": beside other tests the lowest rate that there was time for may be more than it carries.
        assert verdict["line"]["status"] in ("found", "at least", "below"), said
        if verdict["line"]["status"] != "below":
            assert verdict["line"]["rate"] > 0
            assert "bank tpcb_like, scale 4, 2 connections carries" in said
    assert all(check["ok"] for check in verdict["checks"])
    page = (folder / "report" / "index.html").read_text()
    assert 'data-figure="latency-against-rate"' in page
    for trial in run.trials:
        summary = trial.measure.summary
        assert summary is not None
        identity = summary["identity"]
        assert identity["planned"] == sum(identity[key] for key in ("done", "failed", "skipped", "lost"))
        wanted = "closed" if trial.data["capacity"]["rate"] is None else "poisson"
        assert summary["schedule"]["kind"] == wanted
    assert [trial.number for trial in run.trials] == list(range(1, len(run.trials) + 1))
    again = json.loads(laboratory.call("report", "one", "--json"))
    assert again["line"] == verdict["line"]
    compared = json.loads(laboratory.call("compare", "one", "one", "--json"))
    assert compared["ratio"] == (None if verdict["line"]["rate"] is None else 1)
    laboratory.call("run", "--resume", "one", code=2)


@pytest.mark.long
@pytest.mark.parametrize(("what", "operation"), [("append-log", "append"), ("files", "read")])
def test_the_load_line_of_files_is_found(laboratory: Laboratory, what: str, operation: str) -> None:
    """Of durable appends, and of 4 KiB random reads past the page cache."""
    _on_files(laboratory, what, operation, "1.5")


def test_a_search_on_files_leaves_a_record_and_a_page(laboratory: Laboratory) -> None:
    """As short as a search can be: its closed loop and one rate, which seldom make a line."""
    _on_files(laboratory, "append-log", "append", "0.5")


def _on_files(laboratory: Laboratory, what: str, operation: str, minutes: str) -> None:
    folder = laboratory.state / f"files-{operation}-{minutes}"
    argv = ("--slo", "p50 <= 200ms", "--minutes", minutes, "--quick", "--seed", "7", "--out", str(folder))
    said = laboratory.call("capacity", what, "--clients", "4", *argv)
    assert laboratory.left_behind() == []
    run, verdict = open_run(folder), json.loads((folder / "capacity.json").read_text())
    assert run.data["status"] == "finished"
    assert verdict["clients_called"] == "sessions" and verdict["closed_loop"]["throughput"] > 0
    assert [check["name"] for check in verdict["checks"]] == ["names", "lengths", "blocks", "bytes"]
    assert all(check["ok"] for check in verdict["checks"])
    assert len(run.trials) > 1, said
    for trial in run.trials:
        summary = trial.measure.summary
        assert summary is not None and set(summary["by_kind"]) == {operation}
        assert summary["identity"]["failed"] == summary["identity"]["lost"] == 0
        assert summary["schedule"]["kind"] == ("closed" if trial.data["capacity"]["rate"] is None else "poisson")
    # As above: what two of them decide has to be told.
    decided = decisive(verdict)
    if len(decided) > 1 or verdict["line"]["status"] != "cannot tell":
        assert verdict["line"]["status"] in ("found", "at least", "below"), said
        assert verdict["line"]["status"] == "below" or verdict["line"]["rate"] > 0
        assert f"files ({operation} 1)" in said and "4 sessions" in said
    assert "connection" not in said
    assert 'data-figure="latency-against-rate"' in (folder / "report" / "index.html").read_text()


@contextmanager
def existing() -> Iterator[PostgresServer]:
    """A server that somebody else runs: no part of the laboratory knows of it."""
    elsewhere = Laboratory()
    state = StateDir(elsewhere.state).prepare()
    with Journal.create(state, "existing") as journal:
        folder = state.work / "existing"
        work_dir.make(state, journal, folder, mode=0o755)
        server_knob.record(journal, folder / "data")
        bin_dir = Path(discover.servers()[-1].bin_dir)
        server = PostgresServer(bin_dir, folder / "data", folder, "plimsoll", HERE.start_as)
        server.initdb()
        server.configure({"fsync": False}, None)
        server.start()
        server.create_database()
        try:
            yield server
        finally:
            server.abandon()
    elsewhere.close()


def dsn_of(server: PostgresServer) -> str:
    return f"postgresql://plimsoll:{PASSWORD}@/plimsoll?host={server.connection.host}"


def has_no_password(folder: Path) -> bool:
    return not any(path.is_file() and PASSWORD.encode() in path.read_bytes() for path in folder.rglob("*"))


def test_an_existing_server_is_used_and_left_as_it_was(laboratory: Laboratory) -> None:
    with existing() as server:
        argv = ("--slo", "p95 <= 50ms", "--minutes", "0.5", "--dsn", dsn_of(server), "--out", "existing")
        laboratory.call("capacity", *SMALL, *argv)
        with server.connection.open("plimsoll") as connection:
            rows = connection.execute("select nspname from pg_namespace where nspname like 'plimsoll%'").fetchall()
    assert rows == []
    run = open_run(laboratory.state / "existing")
    assert all(trial.status == "finished" for trial in run.trials)
    # Half a minute may be too short for a line: a search of its own is asked for one above.
    verdict = json.loads((run.path / "capacity.json").read_text())
    assert verdict["checks"]
    assert all(check["ok"] for check in verdict["checks"])
    assert has_no_password(run.path)
    assert laboratory.left_behind() == []


def test_tables_that_pgbench_made_are_used_and_kept(laboratory: Laboratory) -> None:
    argv = ("bank", "--clients", "2", "--set", "warmup.seconds_min=1", "--set", "warmup.seconds_max=3")
    argv += ("--slo", "p95 <= 50ms", "--minutes", "0.5")
    with existing() as server:
        pgbench = [str(server.bin_dir / "pgbench"), "-i", "-q", "-s", "1", "-h", server.connection.host]
        pgbench += ["-p", str(server.connection.port), "-U", "plimsoll", "plimsoll"]
        subprocess.run(pgbench, check=True, capture_output=True)
        given = ("--dsn", dsn_of(server))
        refused = laboratory.start(
            "capacity", *argv, *given, "--out", "refused"
        )  # the scale is 20 unless told otherwise
        _, error = refused.communicate(timeout=60)
        laboratory.call("capacity", *argv, *given, "--set", "workload.scale=1", "--out", "pgbench")
        with server.connection.open("plimsoll") as connection:
            history = connection.execute("select count(*) from public.pgbench_history").fetchone()
            accounts = connection.execute("select count(*) from public.pgbench_accounts").fetchone()
            schemas = connection.execute("select nspname from pg_namespace where nspname like 'plimsoll%'").fetchall()
    assert refused.returncode in (1, 3)
    assert "set workload.scale=1, or name a database without them" in error
    assert PASSWORD not in error
    assert accounts == (100_000,)
    assert schemas == []
    run = open_run(laboratory.state / "pgbench")
    verdict = json.loads((run.path / "capacity.json").read_text())
    assert verdict["subject"] == "bank tpcb_like, scale 1, 2 connections"
    assert verdict["closed_loop"]["throughput"] > 0
    # Every transaction done in the closed loop and after it left its row, those of the warm-up beside them.
    assert history is not None
    assert history[0] >= sum(trial["identity"]["done"] for trial in verdict["trials"] if "identity" in trial)
    assert any("the tables in schema public were there before" in caveat for caveat in verdict["caveats"])
    assert has_no_password(run.path)
    assert laboratory.left_behind() == []


def test_a_stop_keeps_what_finished_and_puts_back(laboratory: Laboratory) -> None:
    process = laboratory.start("capacity", *SMALL, "--slo", "p95 <= 50ms", "--minutes", "1", "--out", "stopped")
    out = laboratory.state / "stopped"
    until = time.monotonic() + 120
    while not (out / "trials" / "0002" / "measure").is_dir() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    said, error = process.communicate(timeout=60)
    assert process.returncode == 4, said + error
    assert laboratory.left_behind() == []
    run = open_run(out)
    assert run.data["status"] == "stopped"
    assert [trial.status for trial in run.trials] == ["finished", "stopped"]
    assert json.loads((out / "capacity.json").read_text())["closed_loop"]["throughput"] > 0
    assert (out / "report" / "index.html").is_file()


def test_a_kill_leaves_finished_trials_and_undo_puts_back(laboratory: Laboratory) -> None:
    process = laboratory.start("capacity", *SMALL, "--slo", "p95 <= 50ms", "--minutes", "1", "--out", "killed")
    out = laboratory.state / "killed"
    until = time.monotonic() + 120
    while not (out / "trials" / "0002" / "measure").is_dir() and time.monotonic() < until:
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=60)
    laboratory.call("undo")
    assert laboratory.left_behind() == []
    assert open_run(out).trials[0].status == "finished"
    verdict = json.loads(laboratory.call("report", "killed", "--json"))
    assert verdict["closed_loop"]["throughput"] > 0


REFUSED = [
    (["bank"], "--slo"),
    (["bank", "--slo", "p99 < 20ms"], "upper limit"),
    (["bank", "--slo", "errors <= 1%"], "names no percentile"),
    (["bank", "--slo", "p99 <= 20ms", "--minutes", "0"], "--minutes: 0 is out of range"),
    (["bank", "--slo", "p99 <= 20ms", "--minutes", "nan"], "--minutes"),
    (["bank", "--slo", "fast", "--minutes", "0", "--arrivals", "often", "--clients", "0"], "--arrivals: 'often'"),
    (["bank", "--slo", "p99 <= 20ms", "--clients", "100000"], "1 to 10000"),
    (["bank", "--slo", "p99 <= 20ms", "--seed", "-1"], "--seed"),
    (["bank", "--slo", "p99 <= 20ms", "--set", "workload.scales=3"], "workload.scales: there is no such key"),
    (["bank", "--slo", "p99 <= 20ms", "--set", "workload.transaction=read"], "workload.transaction"),
    (["bank", "--slo", "p99 <= 20ms", "--dsn", "nonsense"], "target.dsn"),
    (
        ["bank", "--slo", "p99 <= 20ms", "--dsn", "host=/tmp", "--set", "target.settings.work_mem=4MB"],
        "never configured",
    ),
    (["script", "--slo", "p99 <= 20ms"], "scripts need an experiment file"),
    (["banc", "--slo", "p99 <= 20ms"], "bank, order_entry, wpi_orders, "),
    (["./nowhere.toml", "--slo", "p99 <= 20ms"], "no such file"),
    (["buffer-cache", "--slo", "p99 <= 20ms"], "levels, but a load line is measured for one treatment"),
    (["bank", "--slo", "p99 <= 20ms", "--out", "/dev/null/nothing"], "--out"),
]


@pytest.mark.parametrize(("argv", "told"), REFUSED, ids=[" ".join(argv) for argv, _ in REFUSED])
def test_what_is_wrong_is_said_and_nothing_is_started(argv: list[str], told: str, tmp_path: Path) -> None:
    done = in_this_process(["capacity", *argv], tmp_path / "state", tmp_path)
    assert done.returncode in ((2, 3) if "nonsense" in argv else (2,)), done.stdout + done.stderr
    assert told in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ([] if done.returncode == 2 else ["state"])
