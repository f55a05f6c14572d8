"""The group on a real cgroup version 2: limits, who is charged (to the byte), what is put back, at every step.

These run in a guest that does nothing else, so what they count is exact.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plimsoll.environment import Fault, GroupKnob, Journal, Limits, SwapFile, doctor
from plimsoll.environment.groups import cgroups
from plimsoll.environment.memory import page_cache

ROOT = Path("/sys/fs/cgroup")
LIMIT = 16 << 20
SIZE = 2 * LIMIT
HOG = """import mmap, sys, time
data = mmap.mmap(-1, int(sys.argv[1]))
for page in range(0, len(data), 4096):
    data[page] = 1
print('full', flush=True)
time.sleep(60)"""


def _hog(group, size):
    argv = [sys.executable, "-I", "-S", "-c", HOG, str(size)]
    return group.exec_in(argv, stdout=subprocess.PIPE)


def _switched_on():
    return (ROOT / "cgroup.subtree_control").read_text().split()


def test_version_2_is_found_and_put_back_whole(state, run_id):
    before = _switched_on()
    assert "memory" not in before  # nobody has switched it on in this guest: we have to, and off again
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(LIMIT, 0), journal)
        assert group.version == 2 and group.folder == ROOT / "plimsoll" / run_id
        assert group.limits() == Limits(LIMIT, 0, None, None)
        assert "memory" in _switched_on()
        assert set(group.stats()) == {
            "usage_bytes", "swap_bytes", "anon_bytes", "file_bytes", "shmem_bytes", "mapped_bytes", "dirty_bytes",
            "writeback_bytes", "pgfault", "pgmajfault", "limit_hits", "oom_kills",
        }  # fmt: skip
        group.lift()
        assert group.limits() == Limits(None, None, None, None)
    assert _switched_on() == before and not (ROOT / "plimsoll").exists()


def test_the_limit_kills_without_swap_and_swaps_with_it(state, run_id):
    with Journal.create(state, run_id) as journal:
        SwapFile(state, run_id).set(64 << 20, journal)
        tight = GroupKnob(f"{run_id}-tight").make(Limits(LIMIT, 0), journal)
        roomy = GroupKnob(f"{run_id}-roomy").make(Limits(LIMIT, SIZE), journal)
        assert tight.limits().swap_bytes == 0 and roomy.limits().swap_bytes == SIZE

        killed = _hog(tight, SIZE)
        assert killed.communicate(timeout=60)[0] == b""
        assert killed.returncode == -signal.SIGKILL
        assert tight.oom_kills() == 1 and tight.stats()["swap_bytes"] == 0

        swapping = _hog(roomy, SIZE)
        assert swapping.stdout.readline() == b"full\n"
        stats = roomy.stats()
        print(f"of {SIZE} bytes under a limit of {LIMIT}: {stats}")
        assert stats["usage_bytes"] <= LIMIT
        assert SIZE - LIMIT <= stats["swap_bytes"] <= SIZE
        assert roomy.oom_kills() == 0 and stats["limit_hits"] > 0
    assert swapping.wait(10) == -signal.SIGKILL
    swapping.stdout.close()
    assert not (ROOT / "plimsoll").exists() and SwapFile(state, run_id).show()["bytes"] == 0


def test_a_frozen_group_stands_still_and_is_put_back(state, run_id):
    """What it uses of a CPU stays to the tick while it is frozen; put back, it is thawed and gone."""
    spin = [sys.executable, "-I", "-S", "-c", "while True: pass"]

    def used(group):
        return int((group.folder / "cpu.stat").read_text().split()[1])

    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(LIMIT, 0), journal)
        spinning = group.exec_in(spin)
        took = group.freeze()
        assert group.is_frozen() and took > 0
        before = used(group)
        time.sleep(0.5)
        assert used(group) == before
        group.thaw()
        time.sleep(0.5)
        assert not group.is_frozen() and used(group) > before
        group.freeze()
    assert spinning.wait(10) == -signal.SIGKILL and not (ROOT / "plimsoll").exists()


def _read_inside(group, file):
    """(bytes its process had the device read, by the kernel's account of that process)"""
    code = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "def read(): return int(dict(line.split(': ') for line in open('/proc/self/io'))['read_bytes'])\n"
        "before = read()\n"
        "while os.read(fd, 1 << 20): pass\n"
        "print(read() - before)"
    )
    process = group.exec_in([sys.executable, "-I", "-S", "-c", code, str(file)], stdout=subprocess.PIPE)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(text)


def test_a_file_warmed_outside_is_charged_inside_only_after_eviction_to_the_byte(state, run_id):
    """traps.md 1, counted: what an outsider has read costs the group nothing, and the limit means nothing."""
    small, large = state.work / "half", state.work / "double"
    for file, size in ((small, LIMIT // 2), (large, SIZE)):
        file.write_bytes(os.urandom(size))
        page_cache.warm(file)
        assert page_cache.residency(file).resident_bytes == size
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(LIMIT, 0), journal)
        counted = {}
        for name, file in (("half", small), ("double", large)):
            start = group.stats()["file_bytes"]
            counted[f"{name}, warm"] = (_read_inside(group, file), group.stats()["file_bytes"] - start)
        for name, file in (("half", small), ("double", large)):
            assert page_cache.evict(file).resident_bytes == file.stat().st_size
            assert page_cache.residency(file).resident_bytes == 0
            start = group.stats()["file_bytes"]
            counted[f"{name}, evicted"] = (_read_inside(group, file), group.stats()["file_bytes"] - start)
        again = _read_inside(group, large)
        stats = group.stats()
    print(f"limit {LIMIT}; (bytes read from the device, bytes charged): {counted}; again {again}; {stats}")
    assert counted["half, warm"] == counted["double, warm"] == (0, 0)
    assert counted["half, evicted"] == (LIMIT // 2, LIMIT // 2)
    assert counted["double, evicted"][0] == SIZE
    assert LIMIT // 2 < stats["file_bytes"] <= stats["usage_bytes"] <= LIMIT and stats["limit_hits"] > 0
    assert again > SIZE // 4  # twice the limit cannot stay


def test_killed_at_every_step_of_its_life_the_group_is_gone_after_undo(state, run_id):
    program = Path(__file__).with_name("kill_at_each_step.py")
    done = subprocess.run(
        [sys.executable, program, str(state.root), run_id], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    print(f"killed at each of {done.stdout.strip()} steps")
    assert int(done.stdout) >= 10


def test_a_program_that_forks_without_end_is_ended(state, run_id):
    """Each process ends as soon as it has forked the next: a list of numbers is out of date before it is used."""
    chain = "import os\nwhile True:\n    if os.fork(): os._exit(0)"
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(LIMIT, 0), journal)
        group.exec_in([sys.executable, "-I", "-S", "-c", chain]).wait(10)
        assert group.pids()
    assert not group.folder.exists()


def test_what_version_2_does_not_have_is_said_before_a_group_is_made(state, run_id):
    with Journal.create(state, run_id) as journal:
        with pytest.raises(Fault, match=r"vm\.swappiness instead"):
            GroupKnob(run_id).make(Limits(LIMIT, swappiness=10), journal)
        with pytest.raises(Fault, match="no cpuset controller"):  # this kernel has none
            GroupKnob(run_id).make(Limits(LIMIT, cpus="0"), journal)
        assert journal.entries == [] and not (ROOT / "plimsoll").exists()


def test_doctor_names_the_version_and_changes_nothing(state):
    before = _switched_on()
    checks = {check.name: check for check in doctor.diagnose(state)}
    print("\n".join(f"{check.name}: {check.found}; {check.remedy}" for check in checks.values()))
    assert checks["memory groups"].ok is True
    assert "version 2 at /sys/fs/cgroup" in checks["memory groups"].found
    assert "memory would be switched on" in checks["memory groups"].found
    assert checks["CPU sets"].ok is False and "no cpuset controller" in checks["CPU sets"].found
    assert checks["BPF"].ok is False and "type information" in checks["BPF"].found
    assert _switched_on() == before and [path for path in ROOT.iterdir() if path.is_dir()] == []
    assert isinstance(cgroups.detect(), cgroups.Version2)
