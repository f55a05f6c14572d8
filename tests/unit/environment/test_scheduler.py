"""Preemption, base slice and the pool of huge pages on trees that stand for the kernel's: set, refused, put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Journal, StateDir, debugfs, kernel_files, scheduler, undo
from plimsoll.environment.fault import Fault
from plimsoll.environment.fingerprint import comparable
from plimsoll.environment.memory import huge_page_pool
from plimsoll.environment.memory.huge_page_pool import HugePagePool
from plimsoll.environment.scheduler import BaseSlice, Preemption
from plimsoll.experiment import Experiment
from plimsoll.run.planning.needs import huge_pages_bytes
from plimsoll.run.surroundings import knobs

PAGE = 2 << 20


def made(**environment: Any) -> Experiment:
    document: dict[str, Any] = {"name": "x", "title": "x", "workload": {"name": "bank", "scale": 1}}
    return Experiment.model_validate(document | {"measure": {"seconds": 1}, "environment": environment})


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """debugfs of Linux 6.18, which marks what is in force by parentheses."""
    (tmp_path / "sched").mkdir()
    (tmp_path / "sched/preempt").write_text("(none) voluntary full lazy\n")
    (tmp_path / "sched/base_slice_ns").write_text("2800000\n")

    def write(path: Path, value: str, **_: str) -> None:
        words = kernel_files.choices(path.read_text())
        assert len(words) == 1 or value in words
        path.write_text(" ".join(f"({word})" if word == value else word for word in words) if len(words) > 1 else value)

    monkeypatch.setattr(kernel_files, "write", write)
    monkeypatch.setattr(debugfs, "folder", lambda: tmp_path)
    return tmp_path


def test_what_is_in_force_is_read_and_put_back(kernel: Path, state: StateDir) -> None:
    journal = Journal.create(state, "run")
    assert Preemption().show() == "none" and Preemption().set("none", journal) is None
    Preemption().set("lazy", journal)
    BaseSlice().set(700, journal)
    assert scheduler.state() == {"preemption": "lazy", "base_slice_ns": 700_000}
    assert [(one.ok, one.is_left) for one in undo(state, force=True)] == [(True, False)] * 2
    assert (kernel / "sched/preempt").read_text() == "(none) voluntary full lazy"
    assert scheduler.state() == {"preemption": "none", "base_slice_ns": 2_800_000}


def test_what_somebody_else_has_chosen_since_is_left(kernel: Path, state: StateDir) -> None:
    journal = Journal.create(state, "run")
    Preemption().set("lazy", journal)
    BaseSlice().set(700, journal)
    kernel_files.write(kernel / "sched/preempt", "full")
    kernel_files.write(kernel / "sched/base_slice_ns", "5")
    told = undo(state, force=True)
    assert [one.is_left for one in told] == [True, True]
    assert "preempt was none, was set to lazy by the run, and has become full since" in told[1].what
    assert told[1].remedy == "to set it back: `echo none > /sys/kernel/debug/sched/preempt`"
    assert (Preemption().show(), BaseSlice().show()) == ("full", 5)


def test_a_model_that_this_kernel_does_not_offer_is_refused_before_anything_is_started(
    kernel: Path, state: StateDir
) -> None:
    """Linux 7.0 has neither none nor voluntary."""
    (kernel / "sched/preempt").write_text("full (lazy)\n")
    site = knobs.site_of(made(preemption="none"), state, "plan")
    said = [text for knob in knobs.KNOBS for text in knob.obstacles(site)]
    assert said == [
        "environment.preemption: /sys/kernel/debug/sched/preempt: 'none' is not a choice; use one of full, lazy"
    ]


def test_a_kernel_that_has_one_model_for_good_says_so(kernel: Path, state: StateDir) -> None:
    for name in ("preempt", "base_slice_ns"):
        (kernel / "sched" / name).unlink()
    site = knobs.site_of(made(preemption="full", base_slice_us=700), state, "plan")
    model, base = (text for knob in knobs.KNOBS for text in knob.obstacles(site))
    assert "cannot change its preemption model while it runs; leave it out, or use a kernel built with" in model
    assert "it came with Linux 6.6" in base
    assert scheduler.state() == {"preemption": None, "base_slice_ns": None}


def test_where_there_is_no_debugfs_it_is_said(monkeypatch: pytest.MonkeyPatch, state: StateDir) -> None:
    def none() -> Path:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(debugfs, "folder", none)
    site = knobs.site_of(made(preemption="full", base_slice_us=700), state, "plan")
    said = [text for knob in knobs.KNOBS for text in knob.obstacles(site)]
    assert said == [
        f"environment.{key}: debugfs cannot be had: Operation not permitted; run as root, outside a container"
        for key in ("preemption", "base_slice_us")
    ]
    assert scheduler.state() == {"preemption": None, "base_slice_ns": None}


def test_a_kernel_that_is_locked_down_says_so(kernel: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root sees the files, and may not open them."""
    opened = Path.open

    def refused(path: Path, *args: Any, **options: Any) -> Any:
        if path.parent == kernel / "sched":
            raise PermissionError(1, "Operation not permitted")
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(kernel_files, "read", lambda path: None if path.parent == kernel / "sched" else "")
    site = knobs.site_of(made(preemption="full", base_slice_us=700), state, "plan")
    said = [text for knob in knobs.KNOBS for text in knob.obstacles(site)]
    assert [text.partition(": may not be opened; a kernel that is locked down")[0] for text in said] == [
        "environment.preemption: /sys/kernel/debug/sched/preempt",
        "environment.base_slice_us: /sys/kernel/debug/sched/base_slice_ns",
    ]


def test_fingerprints_differ_in_a_model_that_both_tell(kernel: Path) -> None:
    del kernel
    lazy, full = ({"kernel": {"preemption": name}} for name in ("lazy", "full"))
    assert comparable(lazy, full) == [{"key": "kernel.preemption", "a": "lazy", "b": "full"}]
    assert comparable(lazy, {"kernel": {}}) == comparable({}, full) == []  # not as root, or of an earlier version


class Pool:
    """A pool of which others have a part. `gathered`: how many pages the kernel can put together at most."""

    def __init__(self, folder: Path, pages: int, free: int, promised: int, gathered: int = 1000) -> None:
        self.folder, self.gathered = folder / "hugepages-2048kB", gathered
        self.folder.mkdir()
        for name, value in (("nr", pages), ("free", free), ("resv", promised), ("surplus", 0)):
            (self.folder / f"{name}_hugepages").write_text(f"{value}\n")

    def write(self, path: Path, value: str, **_: str) -> None:
        if path.name != "nr_hugepages":
            return
        now, free, surplus = (self.read(name) for name in ("nr", "free", "surplus"))
        pages = min(int(value), self.gathered) - (now - surplus)  # more, or fewer
        given_up = min(max(-pages, 0), free)  # what somebody has becomes surplus and stays
        (self.folder / "nr_hugepages").write_text(f"{now + (pages if pages > 0 else -given_up)}\n")
        (self.folder / "free_hugepages").write_text(f"{free + (pages if pages > 0 else -given_up)}\n")
        (self.folder / "surplus_hugepages").write_text(f"{surplus + max(-pages, 0) - given_up}\n")

    def read(self, name: str) -> int:
        return int((self.folder / f"{name}_hugepages").read_text())

    @property
    def pages(self) -> int:
        return self.read("nr") - self.read("surplus")


@pytest.fixture
def with_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(huge_page_pool, "default_kib", lambda: 2048)

    def make(*given: int) -> tuple[Pool, HugePagePool]:
        pool = Pool(tmp_path, *given)
        monkeypatch.setattr(kernel_files, "write", pool.write)
        return pool, HugePagePool(tmp_path)

    return make


def test_the_pool_grows_by_what_is_lacking_and_no_page_of_others_counts(with_pool: Any, state: StateDir) -> None:
    pool, knob = with_pool(10, 6, 4)
    journal = Journal.create(state, "run")
    assert knob.free() == 2 and knob.set(2 * PAGE, journal) is None
    knob.set(4 * PAGE + 1, journal)
    assert pool.pages == 13 and knob.free() == 5
    journal.put_back_all()
    assert pool.pages == 10


def test_servers_that_are_up_at_once_each_get_theirs_and_undo_takes_them_in_the_reverse(
    with_pool: Any, state: StateDir
) -> None:
    pool, knob = with_pool(0, 0, 0)
    for name in ("one", "two"):
        knob.set(3 * PAGE, Journal.create(state, name))
        (pool.folder / "free_hugepages").write_text("0\n")  # its server has taken them
    assert pool.pages == 6
    assert [(one.ok, one.is_left) for one in undo(state, force=True)] == [(True, False)] * 2
    assert pool.pages == 0 and pool.read("surplus") == 6, "their processes have not ended yet"


def test_a_pool_that_could_not_be_filled_is_refused_and_put_back(with_pool: Any, state: StateDir) -> None:
    pool, knob = with_pool(2, 0, 0, 5)
    journal = Journal.create(state, "run")
    with pytest.raises(Fault, match="9 pages of 2048 KiB were asked for and 5 could be had") as said:
        knob.set(7 * PAGE, journal)
    assert "ask for less" in said.value.remedy
    journal.put_back_all()
    assert pool.pages == 2


def test_a_pool_that_somebody_else_has_changed_is_left(with_pool: Any, state: StateDir) -> None:
    pool, knob = with_pool(2, 0, 0)
    journal = Journal.create(state, "run")
    knob.set(3 * PAGE, journal)
    pool.write(pool.folder / "nr_hugepages", "40")
    (left,) = journal.put_back_all()
    assert left.is_left and "was 2, was set to 5 by the run, and has become 40 since" in left.what
    assert pool.pages == 40


def test_huge_pages_are_memory_beside_the_groups_limit() -> None:
    assert huge_pages_bytes(made(memory="64 MiB", huge_pages="0.25 x memory")) == 16 << 20
    assert huge_pages_bytes(made()) == 0
