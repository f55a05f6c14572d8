"""The whole pipeline on a real PostgreSQL: a hand query, the study's mode, an existing server, failures."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, make_reachable

from plimsoll.analysis import analyse
from plimsoll.environment import Journal, StateDir, discover
from plimsoll.environment import server as server_knob
from plimsoll.environment.folders import work_dir
from plimsoll.experiment import load
from plimsoll.record import open_run
from plimsoll.run.host import HERE
from plimsoll.run.runner import Runner
from plimsoll.target import PostgresServer

NEEDS = ("root", "cgroup memory", "swap", "sysctl", "postgresql", "server user")


class HandQuery:
    """Asks the server by psql, as a person would, just before and after the measured segment."""

    def __init__(self, state: StateDir) -> None:
        self.state, self.found = state, []  # type: ignore[var-annotated]

    def event(self, name: str, **info: Any) -> None:
        """At the start of `measure` and of `check` no client is connected."""
        if name != "phase" or info["phase"] not in ("measure", "check"):
            return
        sockets = list(self.state.work.glob("*/s/.s.PGSQL.5432"))
        assert len(sockets) == 1
        question = "select blks_hit, blks_read, xact_commit from pg_stat_database where datname = 'plimsoll'"
        argv = ["psql", "-h", str(sockets[0].parent), "-U", "plimsoll", "-d", "postgres", "-Atc", question]
        answer = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        self.found.append([int(part) for part in answer.strip().split("|")])


def test_hit_ratio_and_commits_equal_a_hand_query(laboratory: Laboratory) -> None:
    source = load(str(laboratory.experiment), blocks=1)
    state = StateDir(laboratory.state)
    hand = HandQuery(state)
    runner = Runner(source, laboratory.state / "hand", state, hand, ["test"], seed=1)
    assert runner.run() == "finished"
    run = open_run(runner.out)
    verdict = analyse(run)
    assert len(hand.found) == 2 * len(run.trials)
    for trial, judged in zip(run.trials, verdict["trials"], strict=True):
        place = 2 * (trial.number - 1)
        (hit, read, commits), (hit_after, read_after, commits_after) = hand.found[place : place + 2]
        hits, reads = hit_after - hit, read_after - read
        assert judged["metrics"]["database_hit_ratio"] == pytest.approx(hits / (hits + reads), abs=1e-12)
        summary = trial.measure.summary
        assert summary is not None
        done = summary["identity"]["done"]
        assert done > 0
        assert commits_after - commits == done + summary["server_commits_beside"]
        assert judged["commits"]["ok"] is True
        assert all(check["ok"] for check in trial.data["checks"])
        assert trial.data["residency"]["before_trial"]["resident_bytes"] == 0
        caches = trial.data["double_caching"]
        assert caches["absent"] is None
        for reading in (caches["before_measure"], caches["after"]):
            held = reading["total"]
            assert 0 <= held["both_bytes"] <= min(held["server_bytes"], held["page_cache_bytes"])
        # A second of load fills both caches: what the server holds came through the page cache.
        assert caches["after"]["total"]["server_bytes"] > caches["before_measure"]["total"]["server_bytes"]
        assert caches["after"]["total"]["both_bytes"] > 0
    assert laboratory.left_behind() == []


def _stopped(laboratory: Laboratory, when: Callable[[], bool], *argv: str) -> None:
    process = laboratory.start("run", *argv, "--no-page")
    until = time.monotonic() + 60
    while not when():
        assert process.poll() is None and time.monotonic() < until, process.communicate(timeout=120)
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)
    assert process.returncode == 4 and laboratory.left_behind() == [], said


def test_a_run_is_not_gone_on_with_where_the_machine_is_set_otherwise(laboratory: Laboratory) -> None:
    out, setting = laboratory.state / "otherwise", Path("/proc/sys/vm/dirty_expire_centisecs")
    events, machine = out / "events.jsonl", out / "fingerprint.json"
    _stopped(laboratory, (out / "run.json").exists, str(laboratory.experiment), "--out", str(out))
    found = setting.read_text().strip()
    other = str(int(found) + 100)
    setting.write_text(other)
    try:
        process = laboratory.start("run", "--resume", str(out), "--no-page")
        said = process.communicate(timeout=120)
    finally:
        setting.write_text(found)
    assert process.returncode == 3, said
    assert f"vm.dirty_expire_centisecs was {found} and is {other}: begin a new run" in " ".join(said[1].split()), said
    # Swap areas of other lanes come and go: in these tests nothing is refused by them (in_company.py).
    area = {"path": "/of/another/lane", "kind": "file", "size_bytes": 4096, "priority": 1}
    machine.write_text(json.dumps({**json.loads(machine.read_text()), "swap": [area]}))
    assert '"resumed"' not in events.read_text()
    _stopped(laboratory, lambda: '"resumed"' in events.read_text(), "--resume", str(out))


def test_the_studys_mode(laboratory: Laboratory) -> None:
    sets = ["workload.clients=1", "measure.transactions=100", 'workload.draw="study"']
    argv = [item for one in sets for item in ("--set", one)]
    answer = json.loads(
        laboratory.call("run", str(laboratory.experiment), "--blocks", "1", "--json", "--no-page", "--out", "s1", *argv)
    )
    assert answer["status"] == "finished"
    for trial in open_run(Path(answer["run"])).trials:
        summary = trial.measure.summary
        assert summary is not None
        identity = summary["identity"]
        assert identity["planned"] == 100
        assert identity["done"] + identity["skipped"] == 100
        table = trial.measure.transactions
        assert table is not None
        assert len(table) == 100
        # One client in series: each begins when the one before has ended.
        assert (table["planned_ns"][1:] >= table["end_ns"][:-1]).all()


def test_places_of_the_log_are_levels(laboratory: Laboratory) -> None:
    places = [laboratory.state / f"log-{number}" for number in (1, 2)]
    for place in places:
        make_reachable(place)
    given, _, _ = laboratory.experiment.read_text().partition("[[factors]]")
    path = laboratory.state / "places.toml"
    levels = json.dumps([str(place) for place in places])
    path.write_text(f'{given}[[factors]]\npath = "target.files.wal"\nlevels = {levels}\n')
    state, seen = StateDir(laboratory.state), []

    class Watch:
        def event(self, name: str, **info: Any) -> None:
            if name == "phase" and info["phase"] == "check":
                (link,) = state.work.glob("*/data/pg_wal")
                seen.append(str(link.readlink().parents[1]))

    runner = Runner(load(str(path), blocks=1), laboratory.state / "places", state, Watch(), ["test"], seed=1)
    assert runner.run() == "finished"
    trials = open_run(runner.out).trials
    assert [trial.status for trial in trials] == ["finished", "finished"]
    assert seen == [trial.planned["resolved"]["target"]["files"]["wal"] for trial in trials]
    assert sorted(seen) == [str(place) for place in places]
    assert [list(place.iterdir()) for place in places] == [[], []]
    assert laboratory.left_behind() == []


def test_an_existing_server_is_used_and_left_as_it_was(laboratory: Laboratory) -> None:
    elsewhere = Laboratory()
    state = StateDir(elsewhere.state).prepare()
    install = discover.servers()[-1]
    with Journal.create(state, "existing") as journal:
        folder = state.work / "existing"
        work_dir.make(state, journal, folder, mode=0o755)
        server_knob.record(journal, folder / "data")
        server = PostgresServer(Path(install.bin_dir), folder / "data", folder, "plimsoll", HERE.start_as)
        server.initdb()
        server.configure({"fsync": False}, None)
        server.start()
        server.create_database()
        dsn = f"postgresql://plimsoll:s3cr3t-pw@/plimsoll?host={server.connection.host}"
        argv = ["own-server", "--quick", "--blocks", "1", "--set", f"target.dsn={dsn}", "--set", "workload.size=16 MiB"]
        fixed = ["--set", 'warmup.until="none"', "--set", "workload.clients=[1,2]", "--set", "measure.seconds=1"]
        refused = laboratory.call("plan", *argv, "--set", 'environment.memory=["1 GiB","2 GiB"]', code=None)
        laboratory.call("run", *argv, *fixed, "--no-page", "--out", "existing")
        with server.connection.open("plimsoll") as connection:
            rows = connection.execute("select nspname from pg_namespace where nspname like 'plimsoll%'").fetchall()
        server.abandon()
    elsewhere.close()
    assert rows == []
    assert "private" not in refused
    run = open_run(laboratory.state / "existing")
    assert all(trial.status == "finished" for trial in run.trials)
    assert all(check["ok"] for trial in run.trials for check in trial.data["checks"]), [
        t.data["checks"] for t in run.trials
    ]
    assert all("existing server" in trial.data["double_caching"]["absent"] for trial in run.trials)
    for path in run.path.rglob("*"):
        assert not path.is_file() or b"s3cr3t-pw" not in path.read_bytes(), f"{path} holds the password"
    assert laboratory.left_behind() == []


def test_running_out_of_memory_is_a_result(laboratory: Laboratory) -> None:
    sets = ["environment.memory=96 MiB", "environment.swap=0", "workload.size=128 MiB", "warmup.prewarm=true"]
    argv = [item for one in sets for item in ("--set", one)]
    buffers = 'target.settings.shared_buffers=["16 MiB","512 MiB"]'
    laboratory.call(
        "run", str(laboratory.experiment), "--blocks", "1", "--no-page", "--out", "oom", *argv, "--set", buffers
    )
    ends = {trial.data["treatment"]: trial for trial in open_run(laboratory.state / "oom").trials}
    assert ends["t1"].status == "finished"
    assert ends["t2"].status == "failed"
    assert "out-of-memory" in ends["t2"].data["reason"]
    assert ends["t2"].data["group"]["oom_kills"] > 0
    assert laboratory.left_behind() == []


def test_a_plan_that_is_impossible_says_every_reason(laboratory: Laboratory) -> None:
    sets = ["environment.memory=4 TiB", "target.version=99", 'environment.load_cpus="4000"', "workload.size=64 TiB"]
    argv = [item for one in sets for item in ("--set", one)]
    process = laboratory.start("run", str(laboratory.experiment), "--out", "never", *argv)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    for reason in ("target.version = 99", "environment.memory", "disk", "environment.load_cpus = 4000"):
        assert reason in error
    assert not (laboratory.state / "never").exists()
    assert laboratory.left_behind() == []
