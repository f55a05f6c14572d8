"""What can be had in windows, why not where it cannot, and what servers that are up at once need together."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from plimsoll.cli import show
from plimsoll.environment import StateDir
from plimsoll.environment.groups import cgroups, group_access
from plimsoll.environment.knob import AVAILABLE
from plimsoll.experiment import ExperimentError, Plan, load, plan_trials
from plimsoll.experiment.design import blocks_of
from plimsoll.run.designs import fallen_back
from plimsoll.run.host import ThisMachine
from plimsoll.run.observer import Silent
from plimsoll.run.planning import windows
from plimsoll.run.planning.documents import plan_document
from plimsoll.run.planning.needs import needs_of
from plimsoll.run.runner import Runner

GIB = 2**30
TEXT = """format = 1
name = "mine"
title = "A question"
[environment]
memory = "1 GiB"
swap = "0.5 x memory"
[workload]
name = "{workload}"
{size}
[warmup]
until = "none"
[measure]
{seconds}
[design]
kind = "windows"
blocks = 2
rounds = 10
[[factors]]
{factor}
"""
BUFFERS = 'path = "target.settings.shared_buffers"\nlevels = ["64 MiB", "256 MiB"]'


@pytest.fixture(autouse=True)
def _a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With groups of version 2, in which everything can be frozen, and eight GiB."""
    monkeypatch.setattr(cgroups, "detect", lambda: cgroups.Version2(Path("/nowhere")))
    monkeypatch.setattr(group_access, "available", lambda _: AVAILABLE)
    monkeypatch.setattr(ThisMachine, "available_bytes", lambda _: 8 * GIB)
    monkeypatch.setattr(ThisMachine, "memory_bytes", lambda _: 8 * GIB)
    monkeypatch.setattr(windows.datasets, "missing_bytes", lambda *_: [])


def planned(tmp_path: Path, *sets: str, factor: str = BUFFERS, workload: str = "bank") -> Plan:
    size, seconds = ("scale_factor = 0.01", "") if workload == "decision_support" else ("scale = 1", "seconds = 1")
    file = tmp_path / "experiment.toml"
    file.write_text(TEXT.format(workload=workload, size=size, seconds=seconds, factor=factor))
    source = load(str(file), sets=list(sets))
    return plan_trials(source.experiment, source.treatments, 1)


def why_not(tmp_path: Path, *sets: str, factor: str = BUFFERS, workload: str = "bank") -> list[str]:
    plan = planned(tmp_path, *sets, factor=factor, workload=workload)
    return windows.why_not(plan, StateDir(tmp_path / "state"))


@pytest.mark.parametrize(
    "factor",
    [
        BUFFERS,
        'path = "environment.memory"\nlevels = ["512 MiB", "1 GiB"]',
        'path = "environment.swap"\nlevels = [0, "1 GiB"]',
        'path = "workload.clients"\nlevels = [1, 4]',
        'path = "workload.scale"\nlevels = [1, 2]',
        'path = "probes.breakdown"\nlevels = [true, false]',
        'path = "environment.load_cpus"\nlevels = ["0", "all"]',
        'path = "environment.sysctl.vm.dirty_ratio"\nlevels = [10, 20]',
        'path = "environment.read_ahead"\nlevels = ["128 KiB", "1 MiB"]',
        'path = "environment.read_ahead"\nlevels = ["as found", "1 MiB"]',
        'path = "environment.transparent_huge_pages"\nlevels = ["always", "never"]',
    ],
)
def test_what_each_server_group_or_load_has_for_itself_or_its_turns_can_set(tmp_path: Path, factor: str) -> None:
    assert why_not(tmp_path, factor=factor) == []


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (
            'path = "environment.sysctl.vm.nr_hugepages"\nlevels = [0, 20]',
            "environment.sysctl is varied, and it is set for the whole machine",
        ),
        (  # a time that is longer than a window
            'path = "environment.sysctl.vm.dirty_expire_centisecs"\nlevels = [500, 3000]',
            "environment.sysctl is varied, and it is set for the whole machine",
        ),
        (
            'path = "environment.page_cache"\nlevels = ["cold", "warm"]',
            "environment.page_cache is varied, and a server's files are cold or warm only when it starts",
        ),
        (
            'path = "environment.swap"\nlevels = ["as found", "1 GiB"]',
            'environment.swap is "as found" in some treatments, which could use the swap file of others',
        ),
    ],
)
def test_what_is_one_for_all_of_them(tmp_path: Path, factor: str, said: str) -> None:
    assert why_not(tmp_path, factor=factor) == [said]


def test_what_is_machine_wide_and_equal_is_no_obstacle(tmp_path: Path) -> None:
    sets = ["environment.sysctl.vm.dirty_ratio=10", "environment.transparent_huge_pages=never"]
    assert why_not(tmp_path, *sets) == []


def test_other_kinds_of_work_and_of_servers(tmp_path: Path) -> None:
    (tests,) = why_not(tmp_path, workload="decision_support")
    assert tests == "workload decision_support has tests that are measured whole, not transactions"
    clients = 'path = "workload.clients"\nlevels = [1, 2]'
    (existing,) = why_not(tmp_path, "target.dsn=postgresql://localhost/x", factor=clients)
    assert "not Plimsoll's to freeze" in existing


def test_one_server_has_nobody_to_take_turns_with(tmp_path: Path) -> None:
    alone = ["target.settings.shared_buffers=64 MiB"]
    (said,) = why_not(tmp_path, *alone)
    assert said.startswith("there is one server in a block")
    assert why_not(tmp_path, *alone, "design.duplicate=true") == []


def test_a_machine_without_a_freezer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "detect", lambda: cgroups.Version1(Path("/cg/memory"), None))
    (said,) = why_not(tmp_path)
    assert said.startswith("servers cannot be frozen here: cgroup v1: no freezer controller is mounted; `mkdir")
    monkeypatch.setattr(
        cgroups, "detect", lambda: cgroups.Version1(Path("/cg/memory"), None, freezer=Path("/cg/freezer"))
    )
    assert why_not(tmp_path) == []


def test_all_servers_have_to_fit_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path)
    needs = needs_of(plan, plan.trials, [], has_tables=lambda _: False)
    assert needs.memory_bytes == 2 * (GIB + 256 * 2**20)
    one = needs_of(fallen_back(plan), plan.trials, [], has_tables=lambda _: False)
    assert one.memory_bytes == GIB + 256 * 2**20
    assert needs.disk_bytes == 2 * one.disk_bytes
    monkeypatch.setattr(ThisMachine, "available_bytes", lambda _: 2 * GIB)
    (said,) = why_not(tmp_path)
    assert said == (
        "2 servers at once, each with its load, need 2560 MiB of memory and 2 GiB are available; choose a smaller "
        "environment.memory or fewer levels"
    )
    # A server that nobody limits is counted with all that its two caches could hold.
    assert why_not(tmp_path, "environment.memory=unlimited", "environment.swap=as found") == []
    (said,) = why_not(tmp_path, "environment.memory=unlimited", "environment.swap=as found", "workload.scale=100")
    assert said.startswith("2 servers at once")


SIX = 'path = "target.settings.shared_buffers"\nlevels = ["16 MiB", "32 MiB", "64 MiB", "96 MiB", "128 MiB", "192 MiB"]'


def with_available(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    monkeypatch.setattr(ThisMachine, "available_bytes", lambda _: int(gib * GIB))


@pytest.mark.parametrize(
    ("gib", "groups"),
    [  # a server and its load take 1.25 GiB
        (8, None),
        (6, [("t1", "t2", "t4", "t6"), ("t1", "t3", "t5")]),
        (4, [("t1", "t2", "t5"), ("t1", "t3", "t6"), ("t1", "t4")]),
        (3, [("t1", "t2"), ("t1", "t3"), ("t1", "t4"), ("t1", "t5"), ("t1", "t6")]),
    ],
)
def test_what_does_not_fit_at_once_is_up_in_as_few_groups_as_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gib: float, groups: list[tuple[str, ...]] | None
) -> None:
    with_available(monkeypatch, gib)
    plan, reasons = windows.arranged(planned(tmp_path, factor=SIX), StateDir(tmp_path / "state"))
    assert reasons == [] and plan.experiment.design.kind == "windows"
    if groups is None:
        assert plan.groups is None and plan == planned(tmp_path, factor=SIX)
        return
    assert plan.groups is not None and list(plan.groups.members) == groups and plan.groups.reference == "t1"
    assert plan.groups.why == (
        f"6 servers at once, each with its load, need 7.5 GiB of memory and {gib:g} GiB are available"
    )
    needs = needs_of(plan, plan.trials, [], has_tables=lambda _: False)
    largest = max(map(len, groups))
    assert needs.memory_bytes == largest * (GIB + 256 * 2**20) <= gib * GIB < (largest + 1) * (GIB + 256 * 2**20)
    whole = planned(tmp_path, factor=SIX)
    more = needs.seconds / needs_of(whole, whole.trials, [], has_tables=lambda _: False).seconds
    assert more == pytest.approx(len(plan.trials) / len(whole.trials)), "the reference takes its time in each group"
    assert len(plan.trials) == 2 * (6 + len(groups) - 1)


def test_a_group_has_room_for_its_duplicate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_available(monkeypatch, 4)
    plan, _ = windows.arranged(planned(tmp_path, "design.duplicate=true", factor=SIX), StateDir(tmp_path / "state"))
    assert plan.groups is not None and {len(members) for members in plan.groups.members} == {2}
    assert {len(block) for block in blocks_of(plan.trials)} == {3}
    with_available(monkeypatch, 3)
    (said,) = why_not(tmp_path, "design.duplicate=true", factor=SIX)
    assert said.startswith(
        "7 servers at once, each with its load, need 8.8 GiB of memory and 3 GiB are available; choose"
    )


def test_the_reference_is_what_takes_least_and_large_treatments_are_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_available(monkeypatch, 6.5)
    factor = 'path = "environment.memory"\nlevels = ["4 GiB", "1 GiB", "512 MiB", "2 GiB"]'
    plan, _ = windows.arranged(planned(tmp_path, factor=factor), StateDir(tmp_path / "state"))
    assert plan.groups is not None and plan.groups.reference == "t3"
    assert plan.groups.members == (("t1", "t3"), ("t2", "t3", "t4"))


def test_disk_that_does_not_suffice_makes_groups_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planned(tmp_path, factor=SIX)
    needed = needs_of(whole, whole.trials, [], has_tables=lambda _: False).disk_bytes
    monkeypatch.setattr(windows.shutil, "disk_usage", lambda _: SimpleNamespace(free=needed * 4 // 6))
    plan, reasons = windows.arranged(whole, StateDir(tmp_path / "state"))
    assert reasons == [] and plan.groups is not None and "of disk" in plan.groups.why
    assert plan.groups.members == (("t1", "t2", "t4", "t6"), ("t1", "t3", "t5"))


def test_a_plan_in_groups_says_so_and_a_run_keeps_its_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def runner() -> Runner:
        planned(tmp_path, factor=SIX)  # writes the file
        source = load(str(tmp_path / "experiment.toml"))
        return Runner(source, tmp_path / "run", StateDir(tmp_path / "state"), Silent(), [], 1)

    with_available(monkeypatch, 4)
    monkeypatch.setattr("plimsoll.run.runner.fingerprint", lambda *_, **__: {})
    first = runner()
    assert first.fell_back == [] and first.plan.groups is not None
    needs = first.needs()
    (remark,) = [text for text in needs.remarks if text.startswith("windows in groups")]
    assert "6 servers at once, each with its load, need 7.5 GiB" in remark
    assert not any(text.startswith("environment.memory") for text in needs.impossible)
    document = plan_document(first.plan)
    assert document["groups"] == first.plan.groups.document() and document["blocks"] == 2
    assert {trial["block"]: trial["group"] for trial in document["trials"]} == {
        trial.block: trial.group for trial in first.plan.trials
    }
    show.plan(first.plan, needs)
    said = " ".join(capsys.readouterr().out.split())
    assert "In windows: up to 3 servers of a block are up at once" in said
    assert "so each block has one of 3 groups, which share shared_buffers 16 MiB:" in said
    assert "group 2: shared_buffers 64 MiB, shared_buffers 192 MiB" in said
    assert "All groups once, in random order, are a replicate; there are 2." in said
    first._open_record()
    with_available(monkeypatch, 8)
    assert runner().plan == first.plan, "what a run began as it goes on as"
    with_available(monkeypatch, 3)
    assert runner().plan == first.plan
    assert any(text.startswith("environment.memory: 3840 MiB are needed") for text in runner().needs().impossible)


def test_windows_take_the_time_of_their_rounds(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    seconds = needs_of(plan, plan.trials, [], has_tables=lambda _: False).seconds
    one_by_one = needs_of(fallen_back(plan), plan.trials, [], has_tables=lambda _: False).seconds
    assert seconds - one_by_one == pytest.approx(4 * (10 * 1.1 - 1))
    budget = planned(tmp_path, "design.minutes=0.5")
    assert needs_of(budget, budget.trials, [], has_tables=lambda _: False).seconds == 30 < seconds


def test_a_plan_that_falls_back_says_so_and_a_run_stays_what_it_began_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runner() -> Runner:
        planned(tmp_path)  # writes the file
        return Runner(
            load(str(tmp_path / "experiment.toml")), tmp_path / "run", StateDir(tmp_path / "state"), Silent(), [], 1
        )

    assert runner().fell_back == [] and runner().plan.experiment.design.kind == "windows"
    monkeypatch.setattr(ThisMachine, "available_bytes", lambda _: 2 * GIB)
    fell = runner()
    (remark,) = [text for text in fell.needs().remarks if text.startswith("trials instead")]
    assert remark == f"trials instead of windows: {fell.fell_back[0]}" and "2 servers at once" in remark
    assert plan_document(fell.plan)["kind"] == "full factorial"
    assert [trial.treatment.id for trial in fell.plan.trials] == [t.treatment.id for t in planned(tmp_path).trials]
    monkeypatch.setattr("plimsoll.run.runner.fingerprint", lambda *_, **__: {})
    assert fell._open_record()["fell_back"] == fell.fell_back
    monkeypatch.setattr(ThisMachine, "available_bytes", lambda _: 8 * GIB)
    assert runner().fell_back == fell.fell_back
    (fell.out / "run.json").unlink()
    began = runner()
    assert "fell_back" not in began._open_record()
    monkeypatch.setattr(ThisMachine, "available_bytes", lambda _: 2 * GIB)
    assert runner().fell_back == []
    assert any(text.startswith("environment.memory: 2560 MiB are needed") for text in runner().needs().impossible)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("design.lead_in_seconds=0.8", "lead_in_seconds = 0.8 is more than half of window_seconds = 1"),
        ("design.window_seconds=0.01", "window_seconds"),
        ("design.rounds=0", "rounds"),
        ("design.minutes=0", "minutes"),
        ("design.stop=soon", "stop"),
    ],
)
def test_wrong_keys_are_refused(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        planned(tmp_path, given)
    assert said in str(caught.value)


def test_images_are_had_by_each_server_and_a_device_by_one(tmp_path: Path) -> None:
    lies = 'target.files.data="disk"'
    assert why_not(tmp_path, lies, 'environment.places.disk.image="200 MiB"') == []
    devices = ['environment.places.disk.devices=["/dev/sdx"]', 'environment.places.disk.erase=["/dev/sdx"]']
    assert why_not(tmp_path, lies, *devices) == [
        "environment.places.disk is on devices of yours, and a device holds the files of one server at a time"
    ]
