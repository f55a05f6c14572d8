"""Knobs on the real machine: each takes effect, and each is put back to exactly what was found."""

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plimsoll.environment import (
    Fault,
    GroupKnob,
    Journal,
    Limits,
    ReadAhead,
    StateDir,
    SwapFile,
    Sysctl,
    TransparentHugePages,
    doctor,
    fingerprint,
    undo,
)
from plimsoll.environment.memory import huge_page_pool, swap, sysctl
from plimsoll.environment.memory.huge_page_pool import HugePagePool
from plimsoll.environment.scheduler import BaseSlice, Preemption

HOG = """import sys, time
data = bytearray(int(sys.argv[1]))
data[::4096] = b'x' * len(data[::4096])
print('full', flush=True)
time.sleep(30)"""


def _hog(group, size):
    return group.exec_in([sys.executable, "-c", HOG, str(size)], stdout=subprocess.PIPE)


def test_the_limit_kills_without_swap_and_swaps_with_it(needs, state, run_id):
    needs("root", "cgroup memory", "swap")
    with Journal.create(state, run_id) as journal:
        SwapFile(state, run_id).set(128 << 20, journal)
        tight = GroupKnob(f"{run_id}-tight").make(Limits(48 << 20, 0), journal)
        roomy = GroupKnob(f"{run_id}-roomy").make(Limits(48 << 20, 96 << 20), journal)
        assert tight.limits().swap_bytes == 0 and roomy.limits().swap_bytes == 96 << 20

        killed = _hog(tight, 80 << 20)
        assert killed.communicate(timeout=60)[0] == b""
        assert killed.returncode == -signal.SIGKILL
        assert tight.oom_kills() == 1

        swapping = _hog(roomy, 80 << 20)
        assert swapping.stdout.readline() == b"full\n"
        stats = roomy.stats()
        assert stats["swap_bytes"] > 30 << 20 and stats["usage_bytes"] <= 48 << 20
        assert roomy.oom_kills() == 0

        tight.lift()
        assert tight.limits().memory_bytes is None and tight.limits().swap_bytes is None
        free = _hog(tight, 80 << 20)
        assert free.stdout.readline() == b"full\n"
        assert tight.oom_kills() == 1
        assert SwapFile(state, run_id).show()["bytes"] == 128 << 20
    for left in (swapping, free):
        assert left.wait(10) == -signal.SIGKILL
        left.stdout.close()
    assert not tight.folder.exists() and not roomy.folder.exists()
    assert SwapFile(state, run_id).show()["bytes"] == 0 and not list(state.work.iterdir())


def test_a_process_is_inside_as_its_user_on_its_cpus_from_the_start(needs, state, run_id, server_user):
    needs("root", "cgroup memory", "cgroup cpuset", "server user", "two CPUs")
    last = max(os.sched_getaffinity(0))
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(64 << 20, cpus=str(last)), journal)
        script = (
            "id -un; cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status; pwd; echo $HOME; kill -PIPE $$"
        )
        process = group.exec_in(["sh", "-c", script], user=server_user, cwd=state.root, stdout=subprocess.PIPE)
        text = process.communicate(timeout=10)[0].decode()
        assert process.returncode == -signal.SIGPIPE  # not ignored, as Python would have left it
        assert text.splitlines()[0] == server_user
        assert text.count(f"/plimsoll/{run_id}") == len(group.hierarchy.folders(run_id))
        assert f"Cpus_allowed_list:\t{last}\n" in text
        assert text.splitlines()[-2:] == [str(state.root), pwd.getpwnam(server_user).pw_dir]

        with pytest.raises(Fault, match="no such program"):
            group.exec_in(["no-such-program"])
        (state.root / "script").write_text("not executable by its user")
        (state.root / "script").chmod(0o700)
        with pytest.raises(Fault, match=r"script: Permission denied"):
            group.exec_in([str(state.root / "script")], user=server_user)
        with pytest.raises(Fault, match="no-such-user"):
            group.exec_in(["true"], user="no-such-user")
        with pytest.raises(Fault, match="exists already"):
            GroupKnob(run_id).make(Limits(), journal)
        sleeping = group.exec_in(["sleep", "60"])
        assert sleeping.pid in group.pids()
    assert sleeping.wait(5) == -signal.SIGKILL


def test_a_new_group_takes_the_swappiness_of_the_host(needs, state, run_id):
    needs("root", "cgroup memory")
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(64 << 20), journal)
        if group.version == 1:
            assert group.limits().swappiness == int(Sysctl("vm.swappiness").value())
            named = GroupKnob(f"{run_id}-named").make(Limits(64 << 20, swappiness=7), journal)
            assert named.limits().swappiness == 7


def test_no_swap_is_a_level_and_a_swap_file_is_put_back(needs, state, run_id):
    needs("root", "swap")
    knob = SwapFile(state, run_id)
    before = knob.show()
    with Journal.create(state, run_id) as journal:
        assert knob.set(0, journal) is None and knob.show() == before
        entry = knob.set(1 << 20, journal)
        assert knob.show()["bytes"] == 1 << 20 and knob.show()["others"] == before["others"]
        with pytest.raises(Fault, match="exists already"):
            knob.set(1 << 20, journal)
        with pytest.raises(Fault, match="too small"):
            SwapFile(state, f"{run_id}-small").set(4096, journal)
        assert journal.put_back(entry).ok and journal.put_back(entry).ok
        assert knob.show() == before and not knob.path.exists()


def test_swap_in_a_state_folder_behind_a_symbolic_link_is_put_back(needs, state, run_id):
    needs("root", "swap")
    link = state.root / "link"
    real = state.root / "real"
    real.mkdir()
    link.symlink_to(real)
    linked = StateDir(link).prepare()
    before = swap.areas()
    try:
        Journal.create(linked, run_id)
        journal = Journal.load(linked.journal / f"{run_id}.jsonl")
        knob = SwapFile(linked, run_id)
        knob.set(1 << 20, journal)
        assert knob.show()["bytes"] == 1 << 20 and knob.others() == before
        assert [result.ok for result in undo(linked, force=True)] == [True]
        assert swap.areas() == before and not knob.path.exists()
    finally:
        swap._libc.swapoff(os.fsencode(real / "work" / f"{run_id}.swap"))  # one that is on could not be removed


@pytest.mark.parametrize("steps", [["dirty_bytes"], ["dirty_ratio"], ["dirty_ratio", "dirty_bytes", "dirty_ratio"]])
def test_a_pair_of_sysctls_is_put_back_exactly(needs, state, run_id, steps):
    needs("root", "sysctl")
    values = {"dirty_bytes": 512 << 20, "dirty_ratio": 19}
    before = sysctl.all_vm()
    with Journal.create(state, run_id) as journal:
        for name in steps:
            Sysctl(f"vm.{name}").set(values[name], journal)
            assert Sysctl(f"vm.{name}").value() == str(values[name])
    assert sysctl.all_vm() == before


def test_a_pair_found_in_bytes_is_put_back_in_bytes(needs, state, run_id):
    needs("root", "sysctl")
    before = sysctl.all_vm()
    with Journal.create(state, run_id) as outer:
        Sysctl("vm.dirty_bytes").set(600 << 20, outer)
        found = sysctl.all_vm()
        with Journal.create(state, f"{run_id}-inner") as inner:
            Sysctl("vm.dirty_ratio").set(21, inner)
            Sysctl("vm.dirty_bytes").set(700 << 20, inner)
        assert sysctl.all_vm() == found
    assert sysctl.all_vm() == before


def test_a_value_the_kernel_refuses_changes_nothing_and_is_named(needs, state, run_id):
    needs("root", "sysctl")
    before = sysctl.all_vm()
    with Journal.create(state, run_id) as journal, pytest.raises(Fault, match=r"/proc/sys/vm/dirty_ratio: .*'4711'"):
        Sysctl("vm.dirty_ratio").set(4711, journal)
    assert sysctl.all_vm() == before


def test_read_ahead_and_huge_pages_are_set_and_put_back(needs, state, run_id):
    needs("root", "transparent huge pages")
    read_ahead, pages = ReadAhead(state.root), TransparentHugePages("shmem_enabled")
    before = (read_ahead.show(), pages.show())
    if not before[0]:
        needs("root")  # a file system without a device: only the huge pages are tried
    with Journal.create(state, run_id) as journal:
        if before[0]:
            read_ahead.set(64, journal)
            assert set(read_ahead.show().values()) == {64}
            with pytest.raises(Fault, match="whole number of pages"):
                read_ahead.set(3, journal)
        other = "never" if before[1] != "never" else "advise"
        pages.set(other, journal)
        assert pages.show() == other
        with pytest.raises(Fault, match="use one of"):
            pages.set("sometimes", journal)
    assert (read_ahead.show(), pages.show()) == before


def test_the_doctor_looks_and_changes_nothing(state):
    before = fingerprint.fingerprint([state.root])
    started = time.monotonic()
    checks = doctor.diagnose(state)
    assert time.monotonic() - started < 3
    assert len({check.name for check in checks}) == len(checks) >= 18
    for check in checks:
        assert check.found and (check.ok is not False or check.remedy), check
        assert "could not be examined" not in check.found
    assert fingerprint.comparable(before, fingerprint.fingerprint([state.root])) == []
    assert not list(state.work.iterdir())


def test_the_fingerprint_can_be_stored_and_read_back(state):
    import json

    found = fingerprint.fingerprint([state.root, state.work])
    assert json.loads(json.dumps(found)) == found
    for part in ("machine", "kernel", "mounts", "vm", "versions", "damon"):
        assert found[part], part
    assert found["machine"]["memory_kib"] > 0 and found["kernel"]["boot_parameters"] is not None


def test_every_preemption_model_of_this_kernel_is_set_and_what_was_found_put_back(needs, state, run_id):
    """debugfs may be mounted nowhere, and nobody sees that we have it."""
    needs("root", "preemption model")
    knob, mounts = Preemption(), Path("/proc/self/mounts").read_text()
    found = knob.show()
    assert found in knob.choices()
    with Journal.create(state, run_id) as journal:
        for model in (*knob.choices(), found):
            knob.set(model, journal)
            assert Preemption().show() == fingerprint.fingerprint([])["kernel"]["preemption"] == model
        knob.set(next(model for model in knob.choices() if model != found), journal)
        with pytest.raises(Fault, match="'none of them' is not a choice"):
            knob.set("none of them", journal)
    assert knob.show() == found and Path("/proc/self/mounts").read_text() == mounts


def test_a_base_slice_is_set_and_what_was_found_put_back(needs, state, run_id):
    needs("root", "base slice")
    knob = BaseSlice()
    found = knob.show_ns()
    with Journal.create(state, run_id) as journal:
        knob.set(1511, journal)
        assert fingerprint.fingerprint([])["kernel"]["base_slice_ns"] == 1_511_000
    assert knob.show_ns() == found


def test_a_program_maps_what_the_pool_of_huge_pages_was_given(needs, state, run_id):
    needs("root", "huge pages")
    pool = HugePagePool()
    found, page = pool.show(), (huge_page_pool.default_kib() or 0) << 10
    maps = """import mmap, sys
data = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x40000)
data[0] = 1
print("mapped", flush=True)
sys.stdin.read()"""
    ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with Journal.create(state, run_id) as journal:
        assert pool.set((pool.free() + 3) * page, journal) is not None
        assert pool.show() == found + 3 and pool.set(pool.free() * page, journal) is None
        program = subprocess.Popen([sys.executable, "-c", maps, str(3 * page)], **ends)
        assert program.stdout.readline() == b"mapped\n"
    # Its pages are no part of the pool any more, and are the kernel's again when it ends.
    assert pool.show() == found
    program.communicate()
    assert program.returncode == 0 and pool.show() == found
