"""The doctor as somebody who may do little, and what it says of a machine that lacks things."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

from fake_machine import WITH_EVERYTHING, FakeMachine

from plimsoll.environment import GroupKnob, StateDir, SwapFile, Sysctl, discover, doctor, smart
from plimsoll.environment.groups import cgroups
from plimsoll.environment.memory import swap
from plimsoll.environment.places import machine


def test_an_unprivileged_look_names_each_missing_part_once_with_its_remedy(needs, state):
    needs("root")  # to become somebody else
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            checks = {check.name: check.as_json() for check in doctor.diagnose(state)}
            able = {
                knob.name: knob.available().ok
                for knob in (GroupKnob("x"), SwapFile(state, "x"), Sysctl("vm.swappiness"))
            }
            os.write(tell, json.dumps([checks, able]).encode())
            os._exit(0)
        finally:
            os._exit(99)
    os.close(tell)
    with os.fdopen(told) as pipe:
        checks, able = json.loads(pipe.read())
    assert os.waitpid(child, 0)[1] == 0
    assert able == {"group": False, "swap": False, "vm.swappiness": False}
    for name in ("privileges", "BPF", "memory groups", "swap file", "state folder"):
        assert checks[name]["ok"] is False and checks[name]["remedy"], checks[name]
    assert checks["server's user"]["ok"] is None
    assert checks["PostgreSQL"]["ok"] is (len(discover.servers()) > 0)


def test_a_machine_that_lacks_things(state, monkeypatch):
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    monkeypatch.setattr(discover, "servers", lambda: [])
    monkeypatch.setattr(swap, "areas", lambda: [swap.SwapArea("/dev/sdb2", 8 << 30, 0, -2)])
    monkeypatch.setattr(doctor.pwd, "getpwnam", lambda name: {}[name])
    checks = {check.name: check for check in doctor.diagnose(state)}
    for name in ("memory groups", "CPU sets", "freezer", "PostgreSQL"):
        assert checks[name].ok is False and checks[name].remedy
    assert checks["other swap"].ok is None and checks["other swap"].found == "/dev/sdb2 (8192 MiB)"
    json.dumps([check.as_json() for check in checks.values()])


def test_a_check_that_breaks_does_not_end_the_others(state, monkeypatch):
    def broken():
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(discover, "servers", broken)
    checks = {check.name: check for check in doctor.diagnose(state)}
    assert checks["postgres"].ok is False and "Input/output error" in checks["postgres"].found
    assert len(checks) >= 18


def test_a_state_folder_that_is_not_there_is_not_made(tmp_path):
    absent = StateDir(tmp_path / "a/b")
    doctor.diagnose(absent)
    assert not (tmp_path / "a").exists()


def test_servers_are_found_in_each_layout_and_listed_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    for folder, version in (
        ("pgsql-9", "9.6.24"),
        ("lib/16/bin", "16.4 (Debian 16.4-1)"),
        ("copy/bin", "16.4 (Debian 16.4-1)"),
    ):
        for program in ("postgres", "initdb"):
            path = tmp_path / folder / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
            path.chmod(0o755)
    (tmp_path / "lib/17/bin").mkdir(parents=True)  # an empty folder is no server
    found = discover.servers([f"{tmp_path}/lib/*/bin", f"{tmp_path}/pgsql-*", f"{tmp_path}/copy/bin"])
    assert [(install.version, install.full_version) for install in found] == [
        ("9", "9.6.24"),
        ("16", "16.4 (Debian 16.4-1)"),
    ]
    assert found[1].bin_dir == Path(tmp_path / "lib/16/bin")


def test_what_a_place_needs_of_a_machine(state, monkeypatch):
    fake = FakeMachine({}, modules=("dm_mod", "loop"))
    fake.missing = {"mkfs.xfs", "mdadm", "dmsetup"}
    monkeypatch.setattr(machine, "HERE", fake)
    checks = {check.name: check for check in doctor.diagnose(state)}
    of_programs, of_layers = checks["programs for places"], checks["layers of places"]
    assert of_programs.ok is False and of_programs.found == "without mkfs.xfs, dmsetup", "mdadm is of no use without md"
    assert of_programs.remedy.startswith("install xfsprogs dmsetup")
    assert of_layers.ok is None and "dm-linear; this kernel (6.12.0-made-up) lacks md RAID, dm-delay" in of_layers.found
    fake.missing, fake.modules = set(), WITH_EVERYTHING
    checks = {check.name: check for check in doctor.diagnose(state)}
    assert checks["programs for places"].ok and checks["layers of places"].ok
    assert "mdadm" in checks["programs for places"].found


def test_what_nfs_needs_of_a_machine(state, monkeypatch):
    fake = FakeMachine({}, modules=("loop", "nfs", "nfsv4"))
    fake.serves_nfs = lambda: ""
    monkeypatch.setattr(machine, "HERE", fake)

    def found():
        return next(check for check in doctor.diagnose(state) if check.name == "NFS")

    assert found().ok is None and "this kernel (6.12.0-made-up) has no NFS server" in found().found
    assert found().found.startswith("client of versions 4;") and "guest" in found().remedy
    fake.modules = (*fake.modules, "nfsv3", "nfsd")
    assert found().ok is True and found().found == "client of versions 3 and 4, server"
    fake.serves_nfs = lambda: "it runs with 8 threads"
    assert found().ok is None and "in use: it runs with 8 threads" in found().found


def test_only_disks_that_say_so_are_healthy(state, monkeypatch):
    told = {"sda": smart.Health(passed=True), "sdb": smart.Health(temperature_c=40), "dm-0": "smartctl: no such thing"}
    monkeypatch.setattr(smart, "tools", lambda: ["smartctl"])
    monkeypatch.setattr(smart, "read", told.get)

    def found(*names):
        below = [SimpleNamespace(walk=lambda: [SimpleNamespace(name=name) for name in names])]
        monkeypatch.setattr(doctor.devices, "devices_of", lambda _: below)
        check = doctor._smart(state)
        return check.ok, check.found

    assert found("sda", "dm-0") == (True, "sda"), "a layer above a disk is none"
    said = "sda: healthy, by its own account; sdb: does not say whether it is healthy"
    assert found("sda", "sdb", "dm-0") == (None, said)
    assert found("dm-0") == (None, "smartctl: no such thing")
    told["sdb"] = smart.Health(passed=False)
    assert found("sda", "sdb")[0] is False
