"""Where groups cannot be made, on a real version 2: what is said is true, and the command it names helps.

A container is made as container programs make one: a group, a namespace of groups, and one of mounts.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path("/sys/fs/cgroup")
ASK = """import json, sys
from plimsoll.environment import GroupKnob, StateDir, doctor
able = GroupKnob("x").available()
check = doctor._cgroup(StateDir())
print(json.dumps([able.ok, able.reason, able.remedy, check.ok, check.found]))"""
# Enters the group, then has its namespaces; what follows sees the group as the top of the tree.
CONTAINER = """echo $$ >{group}/cgroup.procs || exit 1
exec unshare --cgroup --mount sh -ec '
    umount /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    {script}'"""
SWITCH_ON = "echo +memory >/sys/fs/cgroup/cgroup.subtree_control"


@pytest.fixture
def group():
    """One that is given the memory controller, as a container's is; empty and gone afterwards."""
    on = (ROOT / "cgroup.subtree_control").read_text().split()
    (ROOT / "cgroup.subtree_control").write_text("+memory")
    made = ROOT / "container"
    made.mkdir()
    yield made
    for folder in sorted(made.rglob("*"), reverse=True):
        if folder.is_dir():
            folder.rmdir()
    made.rmdir()
    if "memory" not in on:
        (ROOT / "cgroup.subtree_control").write_text("-memory")


def _inside(group, script):
    done = subprocess.run(
        ["sh", "-c", CONTAINER.format(group=group, script=script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _asked(tmp_path):
    program = tmp_path / "ask.py"
    program.write_text(ASK)
    return f"{shlex.quote(sys.executable)} {program}"


def _command(remedy):
    return remedy.split("`")[1]


def test_a_container_s_group_with_processes_in_it(group, tmp_path):
    """No group passes a controller on while it holds processes itself; only the machine's root may."""
    ask = _asked(tmp_path)
    before, *_ = _inside(group, ask)
    ok, reason, remedy, checked, found = json.loads(before)
    print(reason, remedy)
    assert (ok, checked) == (False, False) and reason == found and "with processes in it" in reason
    assert _inside(group, f"{SWITCH_ON} || echo refused") == ["refused"]
    after, switched = _inside(group, f"{_command(remedy)} || true; {ask}; {SWITCH_ON} && echo done")
    assert json.loads(after)[0] is True and json.loads(after)[3] is True, after
    assert switched == "done"


def test_a_tree_that_is_mounted_read_only(group, tmp_path):
    ask = _asked(tmp_path)
    read_only = "mount -o remount,bind,ro /sys/fs/cgroup"
    before, *_ = _inside(group, f"{read_only}; {ask}")
    ok, reason, remedy, checked, found = json.loads(before)
    print(reason, remedy)
    assert (ok, checked) == (False, False) and "read-only" in reason and reason == found
    alone = "mkdir /sys/fs/cgroup/init; echo $$ >/sys/fs/cgroup/init/cgroup.procs"
    after, *_ = _inside(group, f"{alone}; {read_only}; {_command(remedy)}; {ask}")
    assert json.loads(after)[0] is True, after


def test_a_group_that_is_not_given_the_controller(group, tmp_path):
    (group / "service").mkdir()  # its parent passes nothing on
    before, *_ = _inside(group / "service", _asked(tmp_path))
    ok, reason, remedy, checked, _ = json.loads(before)
    assert (ok, checked) == (False, False) and "not given the memory controller" in reason and "Delegate" in remedy
