"""Loads on files through the whole flow, performed by an agent that is a script: what it is asked for in which order,
and what trial.json says of it."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from plimsoll.environment import Fault, Group, StateDir
from plimsoll.environment.groups import cgroups
from plimsoll.experiment import Experiment, Source, Treatment
from plimsoll.record import open_run
from plimsoll.run import agent
from plimsoll.run.host import ThisMachine
from plimsoll.run.observer import Silent
from plimsoll.run.planning import windows
from plimsoll.run.runner import Impossible, Runner
from plimsoll.run.servers import datasets
from plimsoll.run.servers.files.at_work import cut_passes
from plimsoll.run.servers.files.place import LoadPlace
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.surroundings.file_locations import FileLocations

# Every request goes into a file. It makes a file of a page, and says what was read from where.
AGENT = """
import json, os, sys
verb, request = sys.argv[1], json.loads(sys.stdin.readline())
with open({heard!r}, "a") as heard:
    heard.write(json.dumps([verb, request]) + "\\n")
def say(**line):
    print(json.dumps(line), flush=True)
if {failing!r} == verb:
    sys.stderr.write("plimsoll-agent: " + {words!r})
    sys.stderr.flush()
    if {code} < 0:
        os.kill(os.getpid(), -{code})
    sys.exit({code})
if verb == "describe":
    say(kinds=["write"], estimated_bytes=0, facts={{}})
elif verb == "populate":
    os.makedirs(request["target"]["folder"] + "/data")
    with open(request["target"]["folder"] + "/data/file", "wb") as file:
        file.write(bytes(4096))
    say(event="populated", bytes=4096, seconds=0.1)
elif verb == "load":
    whole = dict(planned=10, done=10, failed=0, skipped=0, lost=0)
    summary = dict(
        format=1, workload="x", kinds=["write"], first_index=0, next_index=10, started_ns=1, ended_ns=2_000_000_001,
        ended_by="transactions", identity=whole, by_kind=dict(write=whole), errors=[], health={{}}, verification={{}},
        totals=dict(bytes_read=0, bytes_written=40960), backend_pids=[], devices=[],
    )
    if {failing!r} == "lost":
        whole |= dict(done=9, lost=1)
        summary["errors"] = [dict(sqlstate="XXABN", message={words!r}, count=1)]
    if {failing!r} == "operation":
        summary["errors"] = [dict(sqlstate="EIO", message={words!r}, count=1)]
    with open(request["out"] + "/summary.json", "w") as file:
        json.dump(summary, file)
    say(event="summary", **summary)
elif verb == "check":
    say(event="checked", checks=[dict(name="blocks", expected=1, found=1, ok=True)])
"""
RAW = {"name": "raw_storage", "size": "16 KiB", "phases": ["putc", "write", "seeks"], "seekers": 2}
MIX = {"name": "files", "count": 1, "file_size": 4096, "clients": 2, "mix": [{"operation": "read", "bytes": 4096}]}
Make = Callable[..., Runner]


@pytest.fixture
def runner(tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    monkeypatch.setattr(ThisMachine, "server_user", lambda _: getpass.getuser())
    datasets._described.cache_clear()

    def make(workload: dict[str, Any], failing: tuple[str, str, int] = ("", "", 0), **tables: Any) -> Runner:
        script = tmp_path / "agent.py"
        verb, words, code = failing
        script.write_text(AGENT.format(heard=str(tmp_path / "heard"), failing=verb, words=words, code=code))
        program = tmp_path / "agent"
        program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} $1\n")
        program.chmod(0o755)
        monkeypatch.setattr(agent, "PROGRAM", program)
        document: dict[str, Any] = {"name": "x", "title": "x", "workload": workload, "warmup": {"until": "none"}}
        document |= {"target": {"server": "files"}, "design": {"blocks": 1}, "probes": {"breakdown": False}} | tables
        settings = Experiment.model_validate(document)
        source = Source(tmp_path / "experiment.toml", settings, [Treatment("t1", {}, settings)], quick=False)
        return Runner(source, tmp_path / "run", state, Silent(), [], 1)

    yield make
    assert list(state.work.iterdir()) == [] and list(state.journal.iterdir()) == []


def heard(tmp_path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [tuple(json.loads(line)) for line in (tmp_path / "heard").read_text().splitlines()]


def trial(tmp_path: Path) -> dict[str, Any]:
    (one,) = open_run(tmp_path / "run").trials
    return json.loads((one.path / "trial.json").read_text())  # type: ignore[no-any-return]


def test_each_phase_is_a_load_with_readings_of_its_own(runner: Make, tmp_path: Path) -> None:
    assert runner(RAW).run() == "finished"
    asked = heard(tmp_path)
    assert [verb for verb, _ in asked] == ["describe", "populate", *["load"] * 3, "check"]
    loads = [request for verb, request in asked if verb == "load"]
    assert [one["workload"]["phase"] for one in loads] == ["putc", "write", "seeks"]
    assert [one["clients"] for one in loads] == [1, 1, 2]
    assert [one["stop"] for one in loads] == [{}, {}, {}]
    targets = [request["target"] for _, request in asked if "target" in request]
    assert {one["kind"] for one in targets} == {"files"} and len({one["folder"] for one in targets}) == 1
    assert len(asked[-1][1]["segments"]) == 3, "the check knows of every phase"
    found = trial(tmp_path)
    assert [(one["pass"], one["segment"]) for one in found["passes"]] == [(name, name) for name in RAW["phases"]]
    assert found["measured_segment"] == "putc" and found["checks"][0]["name"] == "blocks"
    for one in found["passes"]:
        assert one["residency"]["before"]["total_bytes"] == 4096
        before, after = one["host_cpu_ticks"]["before"], one["host_cpu_ticks"]["after"]
        assert len(before) == 8 and sum(after) >= sum(before) > 0
        assert set(one["device_counters"]) == {"before", "after"}
    assert found["cpus"]["load"] == found["cpus"]["target"]
    assert found["server"]["settings"]["file system"] and found["double_caching"]["absent"]
    assert found["residency"]["before_trial"]["resident_bytes"] == 0 or "memory itself" in str(found["caveats"])


def test_a_mix_is_a_load_of_transactions(runner: Make, tmp_path: Path) -> None:
    assert runner(MIX, measure={"seconds": 1}, probes={"sync": True, "syscalls": True}).run() == "finished"
    (load,) = [request for verb, request in heard(tmp_path) if verb == "load"]
    assert load["clients"] == 2 and load["threads"] == 1 and load["stop"] == {"seconds": 1.0}
    probes = load["probes"]
    assert probes["sync"] == {} and probes["syscalls"] == {"counted": "slices"} and probes["breakdown"] is None
    assert set(probes["page_cache"]) == {"scratch"}
    assert probes["file_waits"] == {} and not any("io_uring" in caveat for caveat in trial(tmp_path)["caveats"])


def test_operations_of_a_ring_have_no_thread_of_their_own(runner: Make, tmp_path: Path) -> None:
    ring = {"name": "files", "engine": "io_uring", "count": 1, "file_size": 4096}
    ring["mix"] = [{"operation": "read", "bytes": 4096}]
    assert runner(ring, measure={"seconds": 1}, probes={"breakdown": True}).run() == "finished"
    (load,) = [request for verb, request in heard(tmp_path) if verb == "load"]
    assert load["probes"]["file_waits"] is None
    assert any("engine io_uring" in caveat and "sync" in caveat for caveat in trial(tmp_path)["caveats"])


@pytest.mark.parametrize("verb", ["populate", "load"])
def test_what_the_file_system_refuses_fails_the_trial_in_its_words(runner: Make, tmp_path: Path, verb: str) -> None:
    words = "data/0000: No space left on device (os error 28)"
    assert runner(RAW, failing=(verb, words, agent.EXIT_UNREACHABLE)).run() == "finished"
    found = trial(tmp_path)
    assert found["status"] == "failed" and words in found["reason"]
    assert "/data; free space there, or ask for fewer or smaller files" in found["reason"], "where, and what to do"


def test_a_phase_that_the_kernel_has_ended_fails_the_trial_and_no_other_phase_is_begun(
    runner: Make, tmp_path: Path
) -> None:
    words = "file.0000: write: Input/output error (os error 5)"
    assert runner(RAW, failing=("operation", words, 0)).run() == "finished"
    found = trial(tmp_path)
    assert found["status"] == "failed" and [verb for verb, _ in heard(tmp_path)].count("load") == 1
    assert found["reason"].startswith(f"the phase putc did not complete: {words}, in /")
    assert found["reason"].endswith("; its device or file server fails: see dmesg, or name another folder")


def test_a_phase_with_an_operation_that_was_never_answered_fails_the_trial(runner: Make, tmp_path: Path) -> None:
    words = "no completion within the grace period after the segment"
    assert runner(RAW, failing=("lost", words, 0)).run() == "finished"
    found = trial(tmp_path)
    assert found["status"] == "failed" and [verb for verb, _ in heard(tmp_path)].count("load") == 1
    assert found["reason"].startswith(f"the phase putc did not complete: {words}, in /")


def test_a_page_that_cannot_be_had_fails_the_trial(runner: Make, tmp_path: Path) -> None:
    passes = {"name": "sequential_io", "file_size": "64 KiB", "engine": "mmap", "passes": ["write"]}
    assert runner(passes, failing=("load", "", -signal.SIGBUS)).run() == "finished"
    found = trial(tmp_path)
    assert found["status"] == "failed" and "(SIGBUS); free space there where the disk is full" in found["reason"]


def test_a_record_that_cannot_be_written_ends_the_run(runner: Make) -> None:
    failing = ("load", "transactions.npy: No space left on device", agent.EXIT_RECORD)
    with pytest.raises(Fault, match="could not be recorded"):
        runner(RAW, failing=failing).run()


def test_the_folder_that_is_named_is_left_as_it_was(runner: Make, tmp_path: Path) -> None:
    place = tmp_path / "mnt"
    place.mkdir()
    place.chmod(0o755)
    (place / "thesis").write_text("mine")
    run = runner(RAW, target={"server": "files", "files": {"data": str(place)}})
    needs = run.needs()
    assert [text for text in needs.impossible if "no such folder" in text or "read-only" in text] == []
    if needs.impossible:
        pytest.skip(f"missing capability: a temporary folder that the server's user can reach: {needs.impossible}")
    assert run.run() == "finished"
    folders = {request["target"]["folder"] for verb, request in heard(tmp_path) if verb == "load"}
    assert all(Path(one).is_relative_to(place) for one in folders)
    assert [one.name for one in place.iterdir()] == ["thesis"]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"target": {"server": "files", "files": {"data": "/no/such/place"}}}, "no such folder"),
        ({"environment": {"load_cpus": "0"}}, "environment.load_cpus: on files the load is itself"),
    ],
)
def test_what_stands_in_the_way_is_said_before_the_first_trial(runner: Make, tables: dict[str, Any], said: str) -> None:
    with pytest.raises(Impossible, match=said):
        runner(RAW, **tables).run()


def test_what_the_agent_refuses_is_said_before_the_first_trial(runner: Make) -> None:
    failing = ("describe", "workload.file_bytes: 16384 is wrong", agent.EXIT_BAD_REQUEST)
    with pytest.raises(Impossible, match="file_bytes: 16384 is wrong"):
        runner(RAW, failing=failing).run()


@pytest.mark.parametrize(
    ("forbids", "user", "is_forbidden"), [(0, 1, False), (1, 0, False), (1, 1, True), (2, 0, True)]
)
def test_an_io_uring_that_is_forbidden_is_said_before_the_first_trial(
    runner: Make, monkeypatch: pytest.MonkeyPatch, forbids: int, user: int, is_forbidden: bool
) -> None:
    read = ThisMachine.read
    wanted = "/proc/sys/kernel/io_uring_disabled"
    monkeypatch.setattr(ThisMachine, "read", lambda self, path: str(forbids) if path == wanted else read(self, path))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    ring = MIX | {"engine": "io_uring"}
    said = [text for text in runner(ring, measure={"seconds": 1}).needs().impossible if "io_uring" in text]
    assert bool(said) == is_forbidden and all("sysctl kernel.io_uring_disabled=0" in text for text in said)
    assert not [text for text in runner(MIX, measure={"seconds": 1}).needs().impossible if "io_uring" in text]


def test_passes_that_the_time_has_cut_off_are_told_of(tmp_path: Path) -> None:
    document: dict[str, Any] = {"name": "x", "title": "x", "target": {"server": "files"}, "warmup": {"until": "none"}}
    document |= {"workload": {"name": "file_serving", "clients": 3, "passes": 4}, "measure": {"seconds": 9}}
    settings, summary = Experiment.model_validate(document), tmp_path / "summary.json"
    summary.write_text(json.dumps({"ended_by": "told", "totals": {"passes_begun": 12}}))
    assert cut_passes(settings, [summary]) is None
    summary.write_text(json.dumps({"ended_by": "seconds", "totals": {"passes_begun": 7}}))
    assert "measure.seconds ended the load in its passes: 7 of 12 were begun" in str(cut_passes(settings, [summary]))
    endless = Experiment.model_validate(document | {"workload": {"name": "file_serving"}, "warmup": {}})
    assert cut_passes(endless, [summary]) is None


def test_windows_cannot_be_had_of_files(runner: Make) -> None:
    made = runner(MIX, measure={"seconds": 1}, design={"kind": "windows", "blocks": 2, "duplicate": True})
    assert any("inside the group that would be frozen" in why for why in made.fell_back)
    assert windows.why_not(made.plan, made.state)


class _Group:
    """Notes which programs are started inside of it, and on which CPUs."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, list[int] | None]] = []

    def exec_in(self, argv: list[str], *, cpus: list[int] | None = None, **streams: Any) -> subprocess.Popen[bytes]:
        self.entered.append((argv[1], cpus))
        return subprocess.Popen([sys.executable, "-c", "print(input())"], **streams)


@pytest.mark.parametrize(("wanted", "cpus"), [("0", [0]), ("all", None)])
def test_the_load_is_inside_the_group_that_is_limited(tmp_path: Path, wanted: str, cpus: list[int] | None) -> None:
    """Else its memory has no limit: pages are charged to whoever touches them."""
    document: dict[str, Any] = {"name": "x", "title": "x", "workload": RAW, "warmup": {"until": "none"}}
    document |= {"target": {"server": "files"}, "environment": {"target_cpus": wanted}}
    settings, group = Experiment.model_validate(document), _Group()
    owner, locations = (os.getuid(), os.getgid()), FileLocations.together(tmp_path)
    given = PrivatePlace([], cast("Group", group), set(range(8)), locations=locations, owner=owner, limits=None)
    place = LoadPlace.of(given, settings)
    assert agent.call("load", {"clients": 3}, cpus=place.load_cpus, host=place.host) == {"clients": 3}
    assert group.entered == [("load", cpus)]
