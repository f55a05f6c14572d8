"""Why groups cannot be made: each reason with the one command that helps, on mounts that this machine need not have."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from plimsoll.environment import GroupKnob, Limits, Site, doctor
from plimsoll.environment.groups import cgroups, group_access, group_limits
from plimsoll.experiment.environment import Environment


@pytest.fixture(autouse=True)
def as_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def tree(tmp_path):
    """The top of a version 2 that has the memory controller and passes nothing on: the machine's own root."""
    made = tmp_path / "tree"
    made.mkdir()
    (made / "cgroup.controllers").write_text("cpu memory")
    (made / "cgroup.subtree_control").write_text("")
    (made / "cgroup.procs").write_text("1\n17\n")
    return made


def _mounted(tree, options="rw"):
    return f"33 1 0:33 / {tree} {options},relatime - cgroup2 cgroup2 rw\n"


def _asked(tree, options="rw"):
    return group_access.available(cgroups.detect(_mounted(tree, options)), _mounted(tree, options))


def test_the_machines_root_may_hold_processes(tree):
    assert _asked(tree).ok


def test_a_containers_group_that_holds_processes_passes_nothing_on(tree):
    (tree / "cgroup.type").write_text("domain")  # which the machine's own root does not have
    able = _asked(tree)
    assert not able.ok and "with processes in it" in able.reason
    assert f"xargs -rn1 <{tree}/cgroup.procs >{tree}/init/cgroup.procs" in able.remedy
    (tree / "cgroup.procs").write_text("")
    assert _asked(tree).ok
    (tree / "cgroup.procs").write_text("1\n")
    (tree / "cgroup.subtree_control").write_text("cpu memory")  # somebody has done it already
    assert _asked(tree).ok


def test_a_read_only_tree(tree):
    able = _asked(tree, "ro")
    assert not able.ok and "mounted read-only" in able.reason and f"`mount -o remount,bind,rw {tree}`" in able.remedy


@pytest.mark.parametrize(
    ("controllers", "mounted", "reason", "remedy"),
    [
        ("memory 0 1 0", True, "switched off", "cgroup_enable=memory"),
        ("memory 4 1 1", True, "bound to cgroup v1 and not mounted", "mount -t cgroup -o memory"),
        ("memory 4 1 1", False, "bound to cgroup v1 and not mounted", "mount -t cgroup -o memory"),
        ("memory 0 1 1", False, "no control groups are mounted", "mount -t cgroup2"),
        ("", False, "no control groups are mounted", "mount -t cgroup2"),  # kernels that list version 1 only
        ("", True, "has no memory controller", "CONFIG_MEMCG"),
    ],
)
def test_no_hierarchy_has_the_controller(tree, tmp_path, controllers, mounted, reason, remedy):
    (tmp_path / "cgroups").write_text(f"#subsys_name\thierarchy\tnum_cgroups\tenabled\n{controllers}\n")
    (tree / "cgroup.controllers").write_text("hugetlb")
    mountinfo = _mounted(tree) if mounted else ""
    assert cgroups.detect(mountinfo) is None
    able = group_access.available(None, mountinfo, tmp_path)
    assert not able.ok and reason in able.reason and remedy in able.remedy


def test_a_service_that_is_not_given_the_controller(tree, tmp_path):
    (tree / "cgroup.type").write_text("domain")
    able = group_access.available(None, _mounted(tree), tmp_path)
    assert not able.ok and "not given the memory controller" in able.reason and "Delegate=yes" in able.remedy


def _keys_in_the_way(**wanted):
    settings = SimpleNamespace(environment=Environment.model_validate(wanted))
    site = Site(settings, None, "plan", Path("/nowhere"))
    return [text.split(":")[0] for text in group_limits.KNOB.obstacles(site)]


def test_what_a_version_lacks_is_an_obstacle_before_anything_starts(tree, monkeypatch):
    """It was found in the first trial, after the data set had been built."""
    monkeypatch.setattr(cgroups, "detect", lambda: cgroups.Version2(tree))
    monkeypatch.setattr(group_access, "available", lambda _: group_access.AVAILABLE)
    wanted = {"memory": 64 << 20, "target_cpus": "0", "swappiness": 10}
    assert _keys_in_the_way(**wanted) == ["environment.target_cpus", "environment.swappiness"]
    monkeypatch.setattr(cgroups, "detect", lambda: cgroups.Version1(tree, None))
    # Swap is not accounted.
    assert _keys_in_the_way(**wanted, swap=0) == ["environment.memory", "environment.target_cpus"]
    assert "set environment.memory too" in _keys_in_the_way(swap=0)[0]
    assert GroupKnob("x").available(Limits(swappiness=101)).reason == "memory.swappiness: cgroup v1 allows 0 to 100"


def test_doctor_has_the_same_reason_and_makes_no_group(tree, state, monkeypatch):
    (tree / "cgroup.controllers").write_text("memory")
    monkeypatch.setattr(cgroups, "detect", lambda: cgroups.Version2(tree))
    check = doctor._cgroup(state)
    assert check.ok is True and "memory would be switched on for as long as a run lasts" in check.found
    assert "no cpuset controller" in doctor._cpuset(state).found
    monkeypatch.setattr(group_access, "available", lambda _: group_access.Availability(False, "why", "what helps"))
    before = sorted(tree.iterdir())
    check = doctor._cgroup(state)
    assert (check.ok, check.found, check.remedy) == (False, "why", "what helps")
    assert sorted(tree.iterdir()) == before


def test_doctor_in_a_container_that_sees_the_trees_read_only(needs):
    """On this machine's own tree, whatever its version: a bind over it in a namespace of mounts."""
    needs("root", "cgroup memory")
    root = cgroups.detect().folders("x")[0].parent.parent
    program = "from plimsoll.environment import doctor; print(doctor._cgroup(None).remedy)"
    ask = shlex.join([sys.executable, "-c", program])
    bind = f"mount --make-rprivate /sys; mount --bind {root} {root}; mount -o remount,bind,ro {root}"
    script = f"{bind}; {ask}; mount -o remount,bind,rw {root}; {ask}"
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "unchanged", "sh", "-ec", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(doctor.__file__).parents[2])},
    )
    assert done.stdout.splitlines() == [
        f"`mount -o remount,bind,rw {root}`, or start the container with --privileged",
        "",
    ]
