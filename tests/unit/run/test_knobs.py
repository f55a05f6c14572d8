"""Knobs: one list decides what is arranged for a trial and in which order, what is in its way, and what is put back."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.environment import (
    Journal,
    Knob,
    Limits,
    ReadAhead,
    Site,
    StateDir,
    SwapFile,
    Sysctl,
    TransparentHugePages,
)
from plimsoll.environment.folders import placed
from plimsoll.environment.groups import cgroups
from plimsoll.environment.groups.group import GroupKnob
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import AVAILABLE, Availability, in_order
from plimsoll.environment.memory.huge_page_pool import HugePagePool
from plimsoll.environment.scheduler import BaseSlice, Preemption
from plimsoll.experiment import Experiment, PlannedTrial, load, plan_trials
from plimsoll.experiment.environment import Environment
from plimsoll.experiment.factors import PATHS
from plimsoll.experiment.paths import ANY
from plimsoll.experiment.places import Nfs, Place
from plimsoll.run.context import RunContext
from plimsoll.run.host import ThisMachine
from plimsoll.run.observer import Silent
from plimsoll.run.planning.documents import resolved
from plimsoll.run.planning.needs import Needs
from plimsoll.run.planning.obstacles import obstacles
from plimsoll.run.sizes import environment_in_bytes
from plimsoll.run.surroundings import knobs
from plimsoll.run.surroundings.arranged import arranged
from plimsoll.run.trial.log import TrialLog

PUT_BACK: list[str] = []


def log_of_a_trial() -> TrialLog:
    """Nothing but its number is asked of the trial."""
    return TrialLog(cast(PlannedTrial, SimpleNamespace(number=1)))


@puts_back("toy", survives_reboot=True)
def _put_back(args: Args) -> str:
    Path(args["path"]).unlink(missing_ok=True)
    PUT_BACK.append(Path(args["path"]).name)
    return f"{args['path']} removed"


class Array(Knob[Path]):
    """A toy: a file for an array of disks."""

    name = "array"
    keys = ("environment.array",)

    def obstacles(self, site: Site) -> Iterator[str]:
        if site.settings.title == "without disks":
            yield "environment.array: there is no disk; buy one"

    def arrange(self, site: Site, journal: Journal) -> Path:
        device = site.state.work / f"{site.name}.array"
        journal.change("toy", device.touch, path=str(device))
        return device


ARRAY = Array()


class Mount(Knob[None]):
    """A toy that needs what another has made."""

    name = "mount"
    keys = ("environment.mount",)
    after = ("array", "files")

    def obstacles(self, site: Site) -> Iterator[str]:
        if site.settings.title == "without disks":
            yield "environment.mount: this kernel has no ext5; leave it out"

    def arrange(self, site: Site, journal: Journal) -> None:
        device = site.made_by(ARRAY)
        assert device.exists() and site.data.is_dir()
        point = device.with_suffix(".mount")
        journal.change("toy", lambda: point.write_text(device.name), path=str(point))


def made(title: str = "x", **environment: Any) -> Experiment:
    workload = {"name": "bank", "scale": 1}
    document: dict[str, Any] = {"name": "x", "title": title, "workload": workload, "measure": {"seconds": 1}}
    return Experiment.model_validate(document | {"environment": environment})


def around(state: StateDir) -> RunContext:
    return RunContext(SimpleNamespace(), state.root / "out", state, Silent())  # type: ignore[arg-type]  # no source


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    monkeypatch.setattr(ThisMachine, "server_user", lambda _: getpass.getuser())


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "KNOBS", in_order((Mount(), *knobs.KNOBS, ARRAY)))
    PUT_BACK.clear()


@pytest.mark.usefixtures("no_groups", "toys")
def test_a_new_knob_is_arranged_after_those_it_depends_on_and_put_back_before_them(state: StateDir) -> None:
    log = log_of_a_trial()
    with arranged(around(state), made(), "toy-0001", log):
        assert (state.work / "toy-0001.mount").read_text() == "toy-0001.array"
        lines = (state.journal / "toy-0001.jsonl").read_text().splitlines()[1:]
        entries = [(entry["kind"], Path(next(iter(entry["args"].values()))).name) for entry in map(json.loads, lines)]
        assert entries == [
            ("work_dir", "toy-0001"),
            ("toy", "toy-0001.array"),
            ("toy", "toy-0001.mount"),
            ("server", "data"),
        ]
        assert json.loads(lines[1])["by"] == __name__
    assert PUT_BACK == ["toy-0001.mount", "toy-0001.array"]
    assert list(state.work.iterdir()) == [] and list(state.journal.iterdir()) == []


@pytest.mark.usefixtures("no_groups", "toys")
def test_a_knob_that_cannot_be_had_puts_those_before_it_back(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Array, "arrange", lambda _self, site, _journal: site.state.work / "lost")
    with pytest.raises(AssertionError), arranged(around(state), made(), "toy-0002", log_of_a_trial()):
        pass
    assert list(state.work.iterdir()) == [] and list(state.journal.iterdir()) == []


@pytest.mark.usefixtures("no_groups", "toys")
def test_a_new_knob_says_its_obstacle_before_anything_is_started(state: StateDir, tmp_path: Path) -> None:
    def said(title: str) -> list[str]:
        file = tmp_path / "experiment.toml"
        file.write_text(
            f'name = "x"\ntitle = "{title}"\nworkload = {{name = "bank", scale = 1}}\nmeasure = {{seconds = 1}}\n'
        )
        source = load(str(file))
        plan = plan_trials(source.experiment, source.treatments, 1)
        return [text for text in obstacles(plan, Needs(), state) if text.startswith("environment.")]

    assert said("a question") == []
    assert said("without disks") == [
        "environment.array: there is no disk; buy one",
        "environment.mount: this kernel has no ext5; leave it out",
    ]
    assert list(state.work.iterdir()) == []


@pytest.mark.usefixtures("no_groups")
def test_the_order_of_a_trial(state: StateDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that an experiment can ask for, in the order that it is done in, with sizes in bytes."""
    done: list[tuple[str, Any]] = []
    for part in (SwapFile, Sysctl, ReadAhead, TransparentHugePages, HugePagePool, Preemption, BaseSlice):
        name = part.__name__
        monkeypatch.setattr(part, "set", lambda _self, value, _, name=name: done.append((name, value)))
    monkeypatch.setattr(GroupKnob, "make", lambda _self, limits, _: done.append(("Group", limits)))
    monkeypatch.setattr(placed, "make", lambda folder, **_: done.append(("files", folder.parent.name)))
    asked = {
        "memory": "64 MiB", "swap": "0.5 x memory", "swappiness": 10, "target_cpus": "0", "read_ahead": "1.9 MiB",
        "transparent_huge_pages": "never", "transparent_huge_pages_defrag": "defer", "huge_pages": "0.5 x memory",
        "preemption": "lazy", "base_slice_us": 700, "sysctl": {"vm.dirty_bytes": "0.25 x memory", "vm.swappiness": 1},
    }  # fmt: skip
    settings = made(**asked)
    settings = settings.model_copy(
        update={"target": settings.target.model_validate({"files": {"wal": str(tmp_path / "log")}})}
    )
    with arranged(around(state), settings, "all-0001", log_of_a_trial()) as place:
        assert place.limits == Limits(64 << 20, 32 << 20, "0", 10) and place.cage is None
    assert done == [
        ("files", "log"),
        ("SwapFile", 32 << 20),
        ("Sysctl", 16 << 20),
        ("Sysctl", 1),
        ("ReadAhead", 1944),
        ("TransparentHugePages", "never"),
        ("TransparentHugePages", "defer"),
        ("HugePagePool", 32 << 20),
        ("Preemption", "lazy"),
        ("BaseSlice", 700),
        ("Group", Limits(64 << 20, 32 << 20, "0", 10)),
    ]


@pytest.mark.usefixtures("no_groups")
def test_nothing_is_asked_of_an_experiment_that_asks_for_nothing(state: StateDir) -> None:
    site = knobs.site_of(made(), state, "plan")
    assert [text for knob in knobs.KNOBS for text in knob.obstacles(site)] == []
    assert list(state.work.iterdir()) == []


def test_a_swap_too_small_for_mkswap(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SwapFile, "available", lambda _: AVAILABLE)
    knob = next(knob for knob in knobs.KNOBS if knob.name == "swap")
    assert list(knob.obstacles(knobs.site_of(made(swap=4096), state, "plan"))) == [
        "environment.swap = 4096 bytes is too small; use 0 or at least 40960"
    ]
    monkeypatch.setattr(SwapFile, "available", lambda _: Availability(False, "no", "do"))
    assert list(knob.obstacles(knobs.site_of(made(swap="1 GiB"), state, "plan"))) == ["environment.swap: no; do"]


def test_every_setting_of_the_environment_belongs_to_one_knob() -> None:
    keys = [key for knob in knobs.KNOBS for key in knob.keys]
    changes_nothing = ["environment.load_cpus", "environment.page_cache"]  # of the load; of files that are ours
    # What trials are on, which is there before a knob is turned.
    changes_nothing += ["environment.kernel", "environment.kernels", "environment.boot", "environment.guest"]
    settings = [f"environment.{name}" for name in Environment.model_fields if name != "places"]
    settings += [f"environment.places.{ANY}.{name}" for name in Place.model_fields if name != "nfs"]
    settings += [f"environment.places.{ANY}.nfs.{name}" for name in Nfs.model_fields]
    assert sorted([*keys, *changes_nothing]) == sorted([*settings, "target.files"])
    assert all(key in PATHS.settings | PATHS.tables for key in keys)


def knob_named(name: str, *after: str) -> Knob[None]:
    return type(name, (Array,), {"name": name, "after": after})()


def test_the_order_is_the_declared_one_as_far_as_dependencies_let_it() -> None:
    declared = [knob_named("export", "mount"), knob_named("b"), knob_named("mount", "mkfs"), knob_named("mkfs", "raid")]
    declared += [knob_named("raid"), knob_named("a")]
    assert [knob.name for knob in in_order(declared)] == ["raid", "mkfs", "mount", "export", "b", "a"]
    assert [knob.name for knob in knobs.KNOBS] == [
        "place_devices", "place_images", "place_loops", "place_arrays", "place_volumes", "place_mapped", "place_queues",
        "place_file_systems", "place_mounts", "place_exports", "place_nfs_mounts", "files", "place_nfs_answers", "swap",
        "sysctl", "read_ahead", "transparent_huge_pages",
        "huge_pages", "preemption", "base_slice", "group",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ([("a", "b"), ("b", "c"), ("c", "b")], "a circle of knobs, each to come after the next: a > b > c > b"),
        ([("a", "a")], "a > a"),
        ([("a",), ("b", "raid")], "the knob b comes after 'raid', which is none of a, b"),
        ([("a",), ("a",)], "two knobs of one name: a, a"),
    ],
)
def test_what_cannot_be_ordered_is_refused(declared: list[tuple[str, ...]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        in_order([knob_named(*one) for one in declared])


def test_what_was_relative_is_in_the_plan_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThisMachine, "memory_bytes", lambda _: 1 << 30)
    wanted = made(memory="0.5 x memory", swap="2 x memory", sysctl={"vm.dirty_bytes": "0.25 x memory", "vm.x": "word"})
    document = resolved(wanted)["environment"]
    assert (document["memory"], document["swap"], document["read_ahead"]) == (1 << 29, 1 << 30, "as found")
    assert document["sysctl"] == {"vm.dirty_bytes": 1 << 27, "vm.x": "word"}
    assert document == environment_in_bytes(wanted).model_dump(mode="json")
