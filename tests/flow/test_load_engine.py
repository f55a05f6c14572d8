"""Banks, users' scripts and open loops through the whole pipeline, on servers of ours and on one of pgbench -i."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory

from plimsoll.analysis import analyse
from plimsoll.environment import Journal, StateDir, discover
from plimsoll.environment import server as server_knob
from plimsoll.environment.folders import work_dir
from plimsoll.record import Run, open_run
from plimsoll.run.host import HERE
from plimsoll.target import PostgresServer

HEAD = """
format = 1
name = "tiny-bank"
title = "Does everything work?"

[target.settings]
autovacuum = false
fsync = false

[probes]
page_cache = false

[warmup]
until = "none"

[design]
blocks = 1
"""
BANK = '[workload]\nname = "bank"\nscale = 2\nclients = 4\n'


def ran(laboratory: Laboratory, name: str, text: str, *sets: str) -> Run:
    """An experiment of this text, run; each of its trials has finished and agrees with its data."""
    path = laboratory.state / f"{name}.toml"
    path.write_text(HEAD + text)
    argv = [item for one in sets for item in ("--set", one)]
    answer = json.loads(laboratory.call("run", str(path), "--json", "--no-page", "--out", name, *argv))
    assert answer["status"] == "finished"
    run = open_run(Path(answer["run"]))
    for trial in run.trials:
        assert trial.status == "finished", trial.data.get("reason")
        assert all(check["ok"] for check in trial.data["checks"])
        identity = (trial.measure.summary or {})["identity"]
        assert identity["planned"] == sum(identity[key] for key in ("done", "failed", "skipped", "lost"))
        assert identity["done"] > 0
    assert laboratory.left_behind() == []
    return run


def test_a_bank_over_both_transports(laboratory: Laboratory) -> None:
    factor = '[measure]\nseconds = 1\n[[factors]]\npath = "target.transport"\nlevels = ["socket", "tcp"]\n'
    run = ran(laboratory, "bank", BANK + factor)
    verdict = analyse(run)
    assert [trial["commits"]["ok"] for trial in verdict["trials"]] == [True, True]
    assert all(trial.data["checks"] for trial in run.trials)
    log = "".join((trial.path / "server.log").read_text() for trial in run.trials)
    assert "password" not in log


def test_an_open_loop_plans_all_that_is_due(laboratory: Laboratory) -> None:
    select = BANK + 'transaction = "select_only"\n'
    text = select + '[schedule]\nkind = "poisson"\nrate = 300\n[measure]\nseconds = 2\n'
    run = ran(laboratory, "open", text)
    summary = run.trials[0].measure.summary or {}
    assert 300 * 2 * 0.7 < summary["identity"]["planned"] < 300 * 2 * 1.3
    verdict = analyse(run)
    assert verdict["metric"] == "latency_ns_p99"
    assert verdict["trials"][0]["metrics"]["planned_rate_per_second"] == pytest.approx(300)


def test_transactions_per_client_and_a_bound_on_rows(laboratory: Laboratory) -> None:
    measure = "[measure]\ntransactions_per_client = 250\nrows_max = 100\nsample_one_in = 10\n"
    run = ran(laboratory, "bounded", BANK + measure)
    segment = run.trials[0].measure
    assert (segment.summary or {})["identity"]["planned"] == 1000
    assert segment.transactions is not None
    assert segment.latency_seconds is not None
    assert len(segment.transactions) < 400
    assert segment.latency_seconds["count"].sum() == 1000
    assert analyse(run)["trials"][0]["latency_ns"]["all"]["count"] == 1000


SCRIPT = """
\\set aid random(1, 100000 * :scale)
begin;
select abalance from pgbench_accounts where aid = :aid;
insert into seen (aid, mine) values (:aid, :mine);
end;
"""


def test_scripts_with_a_bank_and_a_setup_file(laboratory: Laboratory) -> None:
    (laboratory.state / "look.sql").write_text(SCRIPT)
    (laboratory.state / "setup.sql").write_text("create table seen (aid int, mine int); create index on seen (aid);\n")
    text = '[workload]\nname = "script"\nfiles = [{path = "look.sql"}]\ndata = "bank"\nscale = 1\nsetup = "setup.sql"\n'
    run = ran(laboratory, "script", text + "clients = 2\nvariables = {mine = 7}\n[measure]\ntransactions = 50\n")
    assert (run.trials[0].measure.summary or {})["identity"]["done"] == 50


def test_a_script_that_is_not_supported_is_refused_before_anything_runs(laboratory: Laboratory) -> None:
    (laboratory.state / "bad.sql").write_text("\\shell rm -rf x\nselect 1;\n")
    path = laboratory.state / "bad.toml"
    path.write_text(HEAD + '[workload]\nname = "script"\nfiles = [{path = "bad.sql"}]\n[measure]\nseconds = 1\n')
    process = laboratory.start("run", str(path), "--out", "never")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "shell" in error
    assert not (laboratory.state / "never").exists()


def test_a_statement_that_the_server_refuses_ends_the_run(laboratory: Laboratory) -> None:
    (laboratory.state / "add.sql").write_text("\\set z 1\n\\set k 2\nselect :z + :k;\n")
    path = laboratory.state / "add.toml"
    text = '[workload]\nname = "script"\nfiles = [{path = "add.sql"}]\nmode = "prepared"\n[measure]\nseconds = 1\n'
    path.write_text(HEAD + text)
    process = laboratory.start("run", str(path), "--blocks", "3", "--no-page", "--out", "add")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "add.sql:3: the server says operator is not unique: unknown + unknown" in error
    assert 'set workload.mode = "simple"' in error
    run = open_run(laboratory.state / "add")
    assert [trial.status for trial in run.trials][:2] == ["failed", "not run"]
    assert laboratory.left_behind() == []


@pytest.fixture
def pgbench_database(needs: Callable[..., None]) -> Iterator[tuple[str, PostgresServer]]:
    """A server of somebody else's, with a database that pgbench -i made at scale 2."""
    needs("root", "postgresql", "server user")
    elsewhere = Laboratory()
    state = StateDir(elsewhere.state).prepare()
    install = discover.servers()[-1]
    with Journal.create(state, "existing") as journal:
        folder = state.work / "existing"
        work_dir.make(state, journal, folder, mode=0o755)
        server_knob.record(journal, folder / "data")
        server = PostgresServer(Path(install.bin_dir), folder / "data", folder, "plimsoll", HERE.start_as)
        server.initdb()
        server.configure({"fsync": False, "max_connections": 30}, None)
        server.start()
        server.create_database()
        with server.connection.open("plimsoll") as opened:
            opened.execute("alter database plimsoll reset search_path")
        host = server.connection.host
        argv = [f"{install.bin_dir}/pgbench", "-i", "-q", "-s", "2", "-h", host, "-U", "plimsoll", "plimsoll"]
        subprocess.run(argv, check=True, capture_output=True)
        yield f"postgresql://plimsoll@/plimsoll?host={host}", server
        server.abandon()
    elsewhere.close()


def refused(laboratory: Laboratory, name: str, *sets: str) -> str:
    argv = [item for one in sets for item in ("--set", one)]
    process = laboratory.start("run", str(laboratory.state / f"{name}.toml"), "--out", "never", *argv)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    return error


def test_what_pgbench_made_is_used_as_it_is(laboratory: Laboratory, pgbench_database: Any) -> None:
    dsn, server = pgbench_database
    text = BANK + "[measure]\ntransactions = 200\n"
    (laboratory.state / "theirs.toml").write_text(
        HEAD.replace("[target.settings]\nautovacuum = false\nfsync = false\n", "") + text
    )
    argv = [
        "run",
        str(laboratory.state / "theirs.toml"),
        "--json",
        "--no-page",
        "--out",
        "theirs",
        "--set",
        f"target.dsn={dsn}",
        "--set",
        "design.repeat_share_max=0",  # what a trial did from which the hypervisor took CPU time stays in their tables
    ]
    run = open_run(Path(json.loads(laboratory.call(*argv))["run"]))
    assert (run.trials[0].measure.summary or {})["identity"]["done"] == 200
    assert any("were there before" in caveat for caveat in run.trials[0].data["caveats"])
    with server.connection.open("plimsoll") as opened:
        history = opened.execute("select count(*) from public.pgbench_history").fetchone()
        schemas = opened.execute("select count(*) from pg_namespace where nspname like 'plimsoll_%'").fetchone()
    assert history == (200,)
    assert schemas == (0,)
    assert "have scale 2" in refused(laboratory, "theirs", f"target.dsn={dsn}", "workload.scale=3")
    assert "has room for" in refused(laboratory, "theirs", f"target.dsn={dsn}", "workload.clients=40")
    assert laboratory.left_behind() == []


def test_our_tables_are_found_by_pgbench(laboratory: Laboratory) -> None:
    """The other way round: pgbench runs on a data set that we made."""
    state = StateDir(laboratory.state)
    ran(laboratory, "ours", BANK + "[measure]\nseconds = 1\n")
    kept = next(path for path in state.datasets.glob("bank-2-*"))
    install = discover.servers()[-1]
    uid, gid = HERE.account("plimsoll")
    with Journal.create(state, "clone") as journal:
        folder = state.work / "clone"
        work_dir.make(state, journal, folder, mode=0o755)
        server_knob.record(journal, folder / "data")
        subprocess.run(["cp", "-a", str(kept / "data"), str(folder / "data")], check=True)
        subprocess.run(["chown", "-R", f"{uid}:{gid}", str(folder / "data")], check=True)
        server = PostgresServer(Path(install.bin_dir), folder / "data", folder, "plimsoll", HERE.start_as)
        server.configure({"fsync": False}, None)
        server.start()
        host = server.connection.host
        argv = [f"{install.bin_dir}/pgbench", "-h", host, "-U", "plimsoll", "-t", "20", "-c", "2", "plimsoll"]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        server.abandon()
    assert "scaling factor: 2" in done.stdout
    assert "processed: 40/40" in done.stdout
