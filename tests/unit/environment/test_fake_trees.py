"""Knobs on trees that this machine does not have: cgroup v2, stacked devices' mounts, sysctl pairs, CPU lists."""

import errno
import os
from pathlib import Path

import pytest

from plimsoll.environment import Fault, GroupKnob, Journal, Limits, Sysctl, cpus, devices, fingerprint
from plimsoll.environment.groups import cgroups, freezer, group
from plimsoll.environment.memory import damon
from plimsoll.environment.memory.page_cache import Residency, unexplained_loss


def _fake_v2(root: Path, controllers="cpuset cpu io memory pids", on="cpu pids") -> cgroups.Version2:
    """A folder that behaves like cgroup2: making a group makes its files."""
    (root / "cgroup.controllers").write_text(controllers)
    (root / "cgroup.subtree_control").write_text(on)

    def make(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for name in ("cgroup.controllers", "cgroup.procs", "cpuset.cpus"):
            (folder / name).touch()
        (folder / "cgroup.subtree_control").touch()
        for name in ("memory.max", "memory.swap.max"):
            (folder / name).write_text("max")
        (folder / "memory.current").write_text("4096")
        (folder / "memory.swap.current").write_text("8192")
        (folder / "memory.stat").write_text(
            "anon 1\nfile 2\nshmem 3\nfile_mapped 4\nfile_dirty 5\nfile_writeback 6\npgfault 7\npgmajfault 8\n"
        )
        (folder / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 10\noom_group_kill 0\n")

    return cgroups.Version2(root, make)


@pytest.fixture
def overwriting(monkeypatch):
    """In a real tree a write replaces the value whatever its length; in a plain file it would leave the old tail."""
    from plimsoll.environment import kernel_files

    def write(path, value, **_):
        assert path.exists(), path
        if path.name == "cgroup.subtree_control" and value[0] in "+-":
            words = set(path.read_text().split())
            path.write_text(" ".join(sorted(words | {value[1:]} if value[0] == "+" else words - {value[1:]})))
        else:
            path.write_text(value)
        written.append((str(path), value))

    written = []
    monkeypatch.setattr(kernel_files, "write", write)
    return written


def test_version_2_limits_and_counters(state, tmp_path, overwriting, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tree = _fake_v2(tmp_path)
    journal = Journal.create(state, "run")
    made = GroupKnob("run", tree).make(Limits(1 << 28, 1 << 20, "0"), journal)
    folder = tmp_path / "plimsoll/run"
    assert made.for_agent() == {"version": 2, "path": str(folder)}
    assert (folder / "memory.max").read_text() == str(1 << 28)
    assert (folder / "memory.swap.max").read_text() == str(1 << 20)
    assert made.limits() == Limits(1 << 28, 1 << 20, "0", None)
    made.lift()
    assert made.limits() == Limits(None, None, "0", None)
    # The controllers are passed on from the top down, and only then to the parent, before the leaf is used.
    assert [entry for entry in overwriting if "subtree_control" in entry[0]] == [
        (str(tmp_path / "cgroup.subtree_control"), "+memory"),
        (str(tmp_path / "cgroup.subtree_control"), "+cpuset"),
        (str(tmp_path / "plimsoll/cgroup.subtree_control"), "+memory"),
        (str(tmp_path / "plimsoll/cgroup.subtree_control"), "+cpuset"),
    ]
    assert made.stats() == {
        "usage_bytes": 4096, "swap_bytes": 8192, "anon_bytes": 1, "file_bytes": 2, "shmem_bytes": 3, "mapped_bytes": 4,
        "dirty_bytes": 5, "writeback_bytes": 6, "pgfault": 7, "pgmajfault": 8, "limit_hits": 9, "oom_kills": 10,
    }  # fmt: skip
    assert made.entry.args["switched_on"] == [
        [str(tmp_path / "cgroup.subtree_control"), name] for name in ("memory", "cpuset")
    ]

    monkeypatch.setattr(group, "remove_folder", _remove)
    overwriting.clear()
    journal.put_back_all()
    assert not (tmp_path / "plimsoll").exists()
    assert [value for _, value in overwriting] == ["-memory", "-cpuset"]


def _remove(folder):
    """As rmdir does in a real tree, whose files are no obstacle."""
    if any(path.is_dir() for path in folder.iterdir()):
        raise OSError(errno.ENOTEMPTY, "not empty")
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


@pytest.mark.usefixtures("overwriting")
@pytest.mark.parametrize("order", [("one", "other"), ("other", "one")])
def test_version_2_the_last_group_that_goes_switches_controllers_off(needs, state, tmp_path, monkeypatch, order):
    """The one that switched them on may go before the other, which still needs them."""
    needs("root")
    monkeypatch.setattr(group, "remove_folder", _remove)
    tree, control = _fake_v2(tmp_path, on="cpu pids"), tmp_path / "cgroup.subtree_control"
    journals = {name: Journal.create(state, name) for name in ("one", "other")}
    for name, journal in journals.items():
        GroupKnob(name, tree).make(Limits(1 << 28), journal)
    for name, on in zip(order, ("cpu cpuset memory pids", "cpu pids"), strict=True):
        assert [undone.is_left for undone in journals[name].put_back_all()] == [False]
        assert control.read_text() == on
    assert not (tmp_path / "plimsoll").exists()


@pytest.mark.usefixtures("overwriting")
def test_version_2_a_controller_that_others_use_since_is_left_on(state, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(group, "remove_folder", _remove)
    tree = _fake_v2(tmp_path, on="cpu pids")
    journal = Journal.create(state, "run")
    GroupKnob("run", tree).make(Limits(1 << 28), journal)
    tree.make_folder(tmp_path / "theirs")
    (tmp_path / "theirs/memory.max").write_text("4096")
    (undone,) = journal.put_back_all()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "cpu memory pids"
    assert undone.is_left and f"has memory, which {tmp_path}/theirs has come to use" in undone.what
    assert f"echo -memory > {tmp_path}/cgroup.subtree_control" in undone.remedy


@pytest.mark.usefixtures("overwriting")
def test_version_2_no_limit_and_what_it_lacks(state, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tree = _fake_v2(tmp_path, on="memory cpuset")
    journal = Journal.create(state, "run")
    made = GroupKnob("run", tree).make(Limits(None, 0), journal)
    assert made.entry.args["switched_on"] == []
    assert made.limits() == Limits(None, 0, None, None)
    with pytest.raises(Fault, match=r"vm\.swappiness instead"):
        GroupKnob("other", tree).make(Limits(1 << 28, swappiness=10), journal)


def test_version_2_ends_a_group_in_one_stroke(tmp_path, monkeypatch):
    """What forks while a list of its processes is walked is not in that list."""
    (tmp_path / "cgroup.kill").touch()
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    signalled = []
    monkeypatch.setattr(group.processes, "signal_if", lambda pid, *_: signalled.append(pid))

    def write(path, value):
        assert (path, value) == (tmp_path / "cgroup.kill", "1")
        (tmp_path / "cgroup.procs").write_text("")

    monkeypatch.setattr(group.kernel_files, "write", write)
    monkeypatch.setattr(group, "_KILL_SECONDS", 0.5)
    group._kill_all([tmp_path])
    assert signalled == []
    # Version 1 has no such file: each process by its number.
    (tmp_path / "cgroup.kill").unlink()
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    with pytest.raises(Fault, match="did not end"):
        group._kill_all([tmp_path])
    assert set(signalled) == {os.getpid()}


def test_the_hierarchy_with_the_memory_controller_is_taken(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("hugetlb")
    hybrid = (
        "30 1 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n"
        "31 1 0:31 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
        f"32 1 0:32 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    )
    found = cgroups.detect(hybrid)
    assert isinstance(found, cgroups.Version1) and (found.memory, found.cpuset) == (
        Path("/cg/memory"),
        Path("/cg/cpuset"),
    )
    (tmp_path / "cgroup.controllers").write_text("cpuset memory")
    assert isinstance(cgroups.detect(f"32 1 0:32 / {tmp_path} rw - cgroup2 cgroup2 rw\n"), cgroups.Version2)
    assert cgroups.detect("32 1 0:32 / /x rw - cgroup2 cgroup2 rw\n") is None


def test_mounts_with_spaces_and_options_of_both_halves():
    line = "27 1 254:0 /sub /mnt/a\\040b rw,noatime shared:1 - btrfs /dev/sda1 rw,ssd,subvol=/sub"
    (mount,) = devices.mounts(line)
    assert (mount.point, mount.source, mount.root) == ("/mnt/a b", "/dev/sda1", "/sub")
    assert mount.options == ["rw", "noatime", "ssd", "subvol=/sub"]


@pytest.mark.parametrize(
    ("text", "numbers", "short"),
    [
        ("0-3,8", [0, 1, 2, 3, 8], "0-3,8"),
        ("1,0,1", [0, 1], "0-1"),
        ("5", [5], "5"),
        ("", [], ""),
        ("0-0, 2", [0, 2], "0,2"),
    ],
)
def test_cpu_lists(text, numbers, short):
    assert cpus.parse(text) == numbers
    assert cpus.show(numbers) == short


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-1", "0;1", "0--2"])
def test_bad_cpu_lists(text):
    with pytest.raises(Fault, match="not a number or a range"):
        cpus.parse(text)


def test_a_cpu_that_is_not_there_is_named():
    with pytest.raises(Fault, match="9999 is not online; choose among"):
        cpus.check("0,9999")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kernel.panic", "not a vm"),
        ("vm.no_such_thing", "does not have it"),
        ("vm.drop_caches", "an action"),
        ("vm.../x", "not a vm"),
    ],
)
def test_sysctls_that_are_refused(state, name, reason):
    able = Sysctl(name).available()
    assert not able.ok and reason in able.reason and able.remedy
    with pytest.raises(Fault):
        Sysctl(name).set(1, Journal.create(state, "run"))


def test_unexplained_loss():
    full, less = Residency(1000, 2000), Residency(600, 2000)
    assert unexplained_loss(full, less, reclaimed_bytes=0) == 400
    assert unexplained_loss(full, less, reclaimed_bytes=300) == 100
    assert unexplained_loss(full, less, reclaimed_bytes=400) == 0
    assert unexplained_loss(full, less, reclaimed_bytes=100, dropped_bytes=300) == 0
    assert unexplained_loss(full, Residency(995, 2000), reclaimed_bytes=0) == 0  # within 1 %
    assert unexplained_loss(less, full, reclaimed_bytes=0) == 0  # growth is no loss


def test_damon_schemes_in_words(tmp_path):
    scheme = tmp_path / "kdamonds/0/contexts/0/schemes/0"
    scheme.mkdir(parents=True)
    (scheme / "action").write_text("pageout\n")
    (tmp_path / "kdamonds/0/state").write_text("on\n")
    module = tmp_path / "module/damon_reclaim/parameters"
    module.mkdir(parents=True)
    (module / "enabled").write_text("Y\n")
    found = damon.state(tmp_path / "kdamonds", tmp_path / "module")
    assert damon.active_schemes(found) == ["kdamond 0: pageout", "damon_reclaim"]
    (tmp_path / "kdamonds/0/state").write_text("off\n")
    (module / "enabled").write_text("N\n")
    assert damon.active_schemes(damon.state(tmp_path / "kdamonds", tmp_path / "module")) == []


def test_runs_that_differ_in_a_checked_key_are_told_apart():
    base = {
        "machine": {"cpu_model": "x", "memory_kib": 1000000},
        "devices": [{"name": "vda", "read_ahead_kib": 128, "size_sectors": 5, "under": [{"scheduler": "none"}]}],
        "vm": {"vm.swappiness": "60"},
        "versions": {"psql": "15"},
    }
    assert fingerprint.comparable(base, base) == []
    other = {
        "machine": {"cpu_model": "x", "memory_kib": 1000500},
        "devices": [{"name": "vda", "read_ahead_kib": 256, "size_sectors": 6, "under": [{"scheduler": "bfq"}]}],
        "vm": {},
        "versions": {"psql": "16"},
    }
    assert fingerprint.comparable(base, other) == [
        {"key": "devices.0.read_ahead_kib", "a": 128, "b": 256},
        {"key": "devices.0.under.0.scheduler", "a": "none", "b": "bfq"},
        {"key": "vm", "a": None, "b": {}},
        {"key": "vm.swappiness", "a": "60", "b": None},
    ]


def test_what_the_kernel_sets_by_its_free_memory_at_each_boot_may_differ_a_little():
    # Of two boots of one guest with 1 GiB.
    first = {"vm": {"vm.min_free_kbytes": "4016", "vm.user_reserve_kbytes": "31444", "vm.admin_reserve_kbytes": "8192"}}
    again = {"vm": {"vm.min_free_kbytes": "4026", "vm.user_reserve_kbytes": "31600", "vm.admin_reserve_kbytes": "8192"}}
    assert fingerprint.comparable(first, again) == []
    somebody_has_set_it = {"vm": again["vm"] | {"vm.min_free_kbytes": "8192"}}
    assert fingerprint.comparable(first, somebody_has_set_it) == [
        {"key": "vm.min_free_kbytes", "a": "4016", "b": "8192"}
    ]
    assert fingerprint.comparable(first, {"vm": again["vm"] | {"vm.min_free_kbytes": "?"}}) != []
    lacks_it = {"vm": {key: value for key, value in again["vm"].items() if "min_free" not in key}}
    assert fingerprint.comparable(first, lacks_it) == [{"key": "vm.min_free_kbytes", "a": "4016", "b": None}]


def test_a_setting_is_told_by_its_own_name():
    one, other = ({"vm": {"vm.dirty_writeback_centisecs": value}} for value in ("400", "500"))
    (difference,) = fingerprint.comparable(one, other)
    assert difference == {"key": "vm.dirty_writeback_centisecs", "a": "400", "b": "500"}
    (difference,) = fingerprint.comparable({"kernels": {"new": one}}, {"kernels": {"new": other}})
    assert difference["key"] == "kernels.new.vm.dirty_writeback_centisecs"


def test_a_run_on_a_guest_kernel_is_of_its_host_and_kernel():
    host = {
        "machine": {"cpu_model": "x", "memory_kib": 1000000, "cpu_microcode": "0x1"},
        "kernel": {"release": "6.18", "boot_parameters": "quiet"},
        "mounts": [{"path": "/a", "source": "/dev/vda", "point": "/", "fs": "ext4", "options": ["rw"]}],
        "devices": [{"name": "vda", "read_ahead_kib": 128}],
    }
    base = {"kernel": {"release": "6.1", "kind": "guest (user-mode-linux)"}, "host": host}
    # What lies under an image that the host caches may change; likewise what decides nothing of a machine.
    like = host | {
        "machine": {"cpu_model": "x", "memory_kib": 1000500, "cpu_microcode": "0x2"},
        "mounts": [{"path": "/b", "source": "/dev/vdb", "point": "/b", "fs": "ext4", "options": ["rw"]}],
        "devices": [{"name": "vda", "read_ahead_kib": 256}],
    }
    assert fingerprint.comparable(base, base | {"host": like}) == []
    other = host | {"kernel": {"release": "6.19"}, "mounts": [host["mounts"][0] | {"fs": "xfs"}]}
    assert fingerprint.comparable(base, {"kernel": {"release": "6.1"}, "host": other}) == [
        {"key": "host.kernel.release", "a": "6.18", "b": "6.19"},
        {"key": "host.mounts.0.fs", "a": "ext4", "b": "xfs"},
        {"key": "kernel.kind", "a": "guest (user-mode-linux)", "b": None},
    ]


FILES = {1: ("freezer.state", "FROZEN", "THAWED"), 2: ("cgroup.freeze", "1", "0")}


@pytest.mark.parametrize("version", FILES)
def test_a_group_is_frozen_when_all_in_it_stands(tmp_path, monkeypatch, version):
    switch, frozen, thawed = FILES[version]
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/cgroup.procs").touch()
    place = tmp_path / "group"
    place.mkdir()
    (place / switch).write_text(thawed)
    (place / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    folders, waits = [tmp_path / "memory", place], []

    def wait(_):
        waits.append(freezer.is_frozen(folders))
        if version == 1:
            (place / switch).write_text("FREEZING" if len(waits) < 3 else frozen)
        elif len(waits) == 3:
            (place / "cgroup.events").write_text("populated 1\nfrozen 1\n")

    def write(path, value):
        path.write_text("FREEZING" if value == "FROZEN" else value)

    monkeypatch.setattr(freezer.kernel_files, "write", write)
    monkeypatch.setattr(freezer.time, "sleep", wait)
    assert not freezer.is_frozen(folders)
    assert freezer.freeze(folders) > 0
    assert waits == [True] * 3 and freezer.is_frozen(folders)
    freezer.thaw(folders)
    assert (place / switch).read_text() == thawed and not freezer.is_frozen(folders)
    freezer.thaw([tmp_path / "gone"])
    with pytest.raises(Fault, match="no freezer"):
        freezer.freeze(folders[:1])


@pytest.mark.parametrize("version", FILES)
def test_what_does_not_come_to_a_stand_goes_on(tmp_path, monkeypatch, version):
    switch, _, thawed = FILES[version]
    (tmp_path / switch).write_text(thawed)
    (tmp_path / "cgroup.events").write_text("frozen 0\n")
    told = []
    monkeypatch.setattr(freezer, "FREEZE_SECONDS_MAX", 0.01)
    monkeypatch.setattr(freezer.kernel_files, "write", lambda path, value: told.append((path.name, value)))
    with pytest.raises(freezer.NotFrozen, match="not frozen in"):
        freezer.freeze([tmp_path])
    assert told[-1] == (switch, thawed) and len(told) == 2


def test_what_ends_a_group_thaws_it_first(tmp_path, monkeypatch):
    """A process that version 1 has frozen does not die of SIGKILL; one that was just forked may be frozen later."""
    (tmp_path / "freezer.state").write_text("FROZEN")
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    done = []
    monkeypatch.setattr(group.kernel_files, "write", lambda path, value: done.append((path.name, value)))

    def kill(*_):
        done.append("killed")
        if done.count("killed") == 2:
            (tmp_path / "cgroup.procs").write_text("")

    monkeypatch.setattr(group.processes, "signal_if", kill)
    group._kill_all([tmp_path])
    thawed = ("freezer.state", "THAWED")
    assert done == [thawed, "killed", thawed, "killed", thawed]
