"""A run that is killed at every step it takes, and one that leaves a server: after undo nothing of it is there."""

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import killed
from plimsoll.environment import (
    GroupKnob,
    Journal,
    Limits,
    ReadAhead,
    SwapFile,
    Sysctl,
    TransparentHugePages,
    discover,
    server,
    undo,
)
from plimsoll.environment.folders import work_dir
from plimsoll.environment.groups import cgroups, freezer
from plimsoll.environment.memory import shared_memory, swap
from plimsoll.environment.memory.huge_page_pool import HugePagePool
from plimsoll.environment.scheduler import BaseSlice, Preemption

# Not every kernel has them; where they are, they are among what is set and put back.
SCHEDULER = ((Preemption(), ("full", "none", "lazy", "voluntary")), (BaseSlice(), (1511, 1613)))


def _machine(state, run_id):
    hierarchy = cgroups.detect()
    return {
        "sysctl": [Sysctl(f"vm.dirty_background_{unit}").value() for unit in ("bytes", "ratio")],
        "read_ahead": ReadAhead(state.root).show(),
        "huge_pages": TransparentHugePages("shmem_enabled").show(),
        "pool": HugePagePool().show(),
        "scheduler": [part.show() for part, _ in SCHEDULER],
        "swap": [area.path for area in swap.areas() if str(state.root) in area.path],
        "groups": [str(folder) for folder in hierarchy.folders(run_id) if folder.exists()],
        "work": sorted(path.name for path in state.work.iterdir()),
        "journal": sorted(path.name for path in state.journal.iterdir()),
    }


def _run(state, run_id):
    """What a run does."""
    journal = Journal.create(state, run_id)
    folder = state.work / run_id
    work_dir.make(state, journal, folder)
    (folder / "deep").mkdir()
    (folder / "deep/file").write_bytes(b"x" * 100)
    SwapFile(state, run_id).set(1 << 20, journal)
    Sysctl("vm.dirty_background_bytes").set(300 << 20, journal)
    Sysctl("vm.dirty_background_ratio").set(9, journal)
    ReadAhead(state.root).set(256, journal)
    TransparentHugePages("shmem_enabled").set("advise", journal)
    if HugePagePool().available().ok:
        pool = HugePagePool()
        pool.set((pool.free() + 1) * (2 << 20), journal)
    for part, values in SCHEDULER:
        if part.available().ok:
            there = part.choices() if isinstance(part, Preemption) else values
            part.set(next((value for value in values if value in there and value != part.show()), part.show()), journal)
    group = GroupKnob(run_id).make(Limits(64 << 20, 1 << 20), journal)
    group.exec_in(["sleep", "300"])
    group.freeze()
    group.thaw()
    group.freeze()
    journal.put_back_all()


def test_killed_at_every_step_nothing_is_left_after_undo(needs, state, run_id):
    needs("root", "cgroup memory", "freezer", "swap", "sysctl", "transparent huge pages")
    run, look = partial(_run, state, run_id), partial(_machine, state, run_id)
    assert len(killed.at_each_step(run, state, look)) > 40


def test_undo_itself_may_be_killed_at_every_step(needs, state, run_id):
    needs("root", "cgroup memory", "freezer", "swap", "sysctl", "transparent huge pages")
    run, look = partial(_run, state, run_id), partial(_machine, state, run_id)
    assert killed.undo_at_each_step(run, state, look) > 5


def _shared_memory_left(state) -> set[str]:
    """Of what the server had mapped while it lived (others on the machine may have servers too)."""
    had = json.loads((state.root / "segments").read_text())
    assert had["system_v"] and had["files"]
    segments = {int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    return {str(shmid) for shmid in had["system_v"] if shmid in segments} | {
        name for name in had["files"] if Path(name).exists()
    }


def _serve(state, run_id, user, *, in_group):
    """A run that makes a cluster and starts its server, and is killed when it answers."""
    install = discover.servers()[-1]
    journal = Journal.create(state, run_id)
    account = pwd.getpwnam(user)
    folder = state.work / run_id
    work_dir.make(state, journal, folder, uid=account.pw_uid, gid=account.pw_gid, mode=0o755)
    data = folder / "data"
    group = GroupKnob(run_id).make(Limits(256 << 20), journal)
    made = group.exec_in(
        [str(install.bin_dir / "initdb"), "-D", str(data), "-N", "-A", "trust"], user=user, stdout=subprocess.DEVNULL
    )
    assert made.wait() == 0
    server.record(journal, data, group.folders)
    with (folder / "log").open("wb") as log:
        arguments = ["-D", str(data), "-k", str(folder), "-c", "listen_addresses="]
        program = str(install.bin_dir / "postgres")
        if in_group:
            group.exec_in([program, *arguments], user=user, stdout=log, stderr=log)
        else:
            subprocess.Popen(
                [program, *arguments], user=user, group=account.pw_gid, stdout=log, stderr=log, start_new_session=True
            )
    for _ in range(500):
        if (data / "postmaster.pid").exists() and "ready" in (data / "postmaster.pid").read_text():
            return data
        time.sleep(0.02)
    raise AssertionError((folder / "log").read_text())


def _left_by_a_killed_run(state, run_id, user, *, in_group, and_then=None):
    child = os.fork()
    if child == 0:
        try:
            data = _serve(state, run_id, user, in_group=in_group)
            had = shared_memory.mapped_by(server.processes_of(data))
            (state.root / "segments").write_text(json.dumps({"system_v": [*had.system_v], "files": [*had.files]}))
            if and_then is not None:
                and_then(data)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(99)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    return state.work / run_id / "data"


def test_a_server_left_running_is_stopped_with_its_shared_memory(needs, state, run_id, server_user):
    needs("root", "cgroup memory", "postgresql", "server user")
    before = _machine(state, run_id)
    data = _left_by_a_killed_run(state, run_id, server_user, in_group=False)
    assert len(server.processes_of(data)) > 3 and _shared_memory_left(state)
    results = undo(state)
    assert all(result.ok for result in results), results
    assert f"server in {data} stopped" in [result.what for result in results]
    assert server.processes_of(data) == [] and _shared_memory_left(state) == set()
    assert _machine(state, run_id) == before


def test_a_server_that_stands_still_is_stopped_at_once(needs, state, run_id, server_user):
    """No signal ends what is frozen: it is thawed before it is asked, and not after half a minute of asking."""
    needs("root", "cgroup memory", "freezer", "postgresql", "server user")
    before = _machine(state, run_id)

    def freeze(_):
        hierarchy = cgroups.detect()
        freezer.freeze(hierarchy.folders(run_id))

    data = _left_by_a_killed_run(state, run_id, server_user, in_group=True, and_then=freeze)
    assert freezer.is_frozen(cgroups.detect().folders(run_id))
    started = time.monotonic()
    results = undo(state)
    seconds = time.monotonic() - started
    assert all(result.ok for result in results), results
    assert server.processes_of(data) == [] and _shared_memory_left(state) == set()
    assert _machine(state, run_id) == before
    assert seconds < 10, f"{seconds:.1f} s"


def test_a_server_that_was_killed_too_leaves_no_shared_memory(needs, state, run_id, server_user):
    needs("root", "cgroup memory", "postgresql", "server user")
    before = _machine(state, run_id)

    def kill_server(data):
        os.kill(int((data / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    data = _left_by_a_killed_run(state, run_id, server_user, in_group=True, and_then=kill_server)
    assert _shared_memory_left(state)
    results = undo(state)
    assert all(result.ok for result in results), results
    assert server.processes_of(data) == [] and _shared_memory_left(state) == set()
    assert _machine(state, run_id) == before


@pytest.mark.parametrize(
    ("whose", "is_removed"),
    [("ours", True), ("of another user", False), ("older", False), ("of a maker who lives", False)],
)
def test_a_segment_of_a_server_that_was_killed_early(needs, state, server_user, whose, is_removed):
    """Its number is not in postmaster.pid yet; by its maker, user and time it is known, and others' by them are not."""
    needs("root", "server user")
    uid = pwd.getpwnam(server_user).pw_uid
    data = state.work / "data"
    data.mkdir()
    os.chown(data, uid, -1)
    told, tell = os.pipe()
    program = (
        "import ctypes, os, sys, time; os.setuid(int(sys.argv[1]));"
        "print(ctypes.CDLL(None).shmget(0, 4096, 0o1600), flush=True); time.sleep(float(sys.argv[2]))"
    )
    user, seconds = (0 if whose == "of another user" else uid), (60 if whose == "of a maker who lives" else 0)
    maker = subprocess.Popen([sys.executable, "-I", "-c", program, str(user), str(seconds)], stdout=tell)
    os.close(tell)
    with os.fdopen(told) as said:
        shmid = int(said.readline())
    if not seconds:
        maker.wait()
    started = int(time.time()) + (100 if whose == "older" else 0)
    (data / "postmaster.pid").write_text(f"{maker.pid}\n{data}\n{started}\n5432\n/tmp\n")
    try:
        assert not server.stop(data)
        assert (shmid in {segment["shmid"] for segment in shared_memory._segments()}) != is_removed
    finally:
        maker.kill()
        maker.wait()
        shared_memory._libc.shmctl(shmid, 0, None)


def test_killing_the_group_removes_the_shared_memory_of_a_server_in_it(needs, state, run_id, server_user):
    needs("root", "cgroup memory", "postgresql", "server user")
    data = _left_by_a_killed_run(state, run_id, server_user, in_group=True)
    journal = Journal.load(state.journal / f"{run_id}.jsonl")
    (group,) = [entry for entry in journal.entries if entry.kind == "group"]
    assert journal.put_back(group).ok
    assert server.processes_of(data) == [] and _shared_memory_left(state) == set()
    undo(state)


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.1, 0.25])
def test_a_cluster_that_was_being_made_is_gone(needs, state, run_id, server_user, seconds):
    needs("root", "postgresql", "server user")
    account = pwd.getpwnam(server_user)
    data = state.work / run_id / "data"
    child = os.fork()
    if child == 0:
        try:
            journal = Journal.create(state, run_id)
            work_dir.make(state, journal, data.parent, uid=account.pw_uid, gid=account.pw_gid)
            server.record(journal, data)
            program = str(discover.servers()[-1].bin_dir / "initdb")
            rights = {"user": account.pw_uid, "group": account.pw_gid}
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.Popen([program, "-D", str(data), "-N"], start_new_session=True, cwd="/", **rights, **quiet)
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(99)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    results = undo(state)
    assert all(result.ok for result in results), results
    time.sleep(0.05)
    assert server.processes_of(data) == [] and not list(state.work.iterdir())


def test_the_shell_between_initdb_and_its_server_is_ended(needs, state, server_user):
    """It knows the folder by its environment alone, and would become a server after undo had looked."""
    data = state.work / "data"
    needs("root", "server user")
    uid = pwd.getpwnam(server_user).pw_uid
    data.mkdir()
    os.chown(data, uid, -1)
    argv = ["/bin/sh", "-c", "sleep 60; exit 0"]
    ours, of_another_folder, of_root = (
        subprocess.Popen(
            argv, env={"PATH": os.environ["PATH"], "PGDATA": str(folder)}, user=user, start_new_session=True
        )
        for folder, user in ((data, uid), (data.with_name("data2"), uid), (data, 0))
    )
    try:
        time.sleep(0.2)
        assert server.processes_of(data) == [ours.pid]
        server.stop(data)
        assert ours.wait(5) == -signal.SIGKILL
        assert of_another_folder.poll() is None and of_root.poll() is None
    finally:
        for process in (ours, of_another_folder, of_root):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_somebody_elses_process_in_the_data_folder_is_not_touched(state, run_id):
    data = state.work / "data"
    data.mkdir()
    other = subprocess.Popen(["sleep", "60"], cwd=data)
    try:
        (data / "postmaster.pid").write_text(f"{other.pid}\n{data}\n0\n5432\n{data}\n\n  1 2\nready\n")
        with Journal.create(state, run_id) as journal:
            server.record(journal, data)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert server.processes_of(data) == []
