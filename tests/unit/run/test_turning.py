"""Settings of the whole machine that each turn of a server sets: on a tree of files that stands for the kernel's."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.environment import StateDir, debugfs, kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal import recovery
from plimsoll.environment.memory import huge_pages, sysctl
from plimsoll.experiment import Plan, load, plan_trials
from plimsoll.run.context import RunContext
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.surroundings import knobs
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.windows import turning

TEXT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "bank"
scale = 1
[measure]
seconds = 1
[design]
kind = "windows"
blocks = 1
duplicate = false
[[factors]]
{factor}
"""
SWAPPINESS = """name = "kernel"
levels = [
  {label = "as it is", set = {"workload.clients" = 2}},
  {label = "little", set = {"environment.sysctl.vm.swappiness" = 1}},
  {label = "much", set = {"environment.sysctl.vm.swappiness" = 100, "environment.sysctl.vm.dirty_bytes" = 4096000}},
]"""
PAIR = """name = "kernel"
levels = [
  {label = "as it is", set = {"workload.clients" = 2}},
  {label = "bytes", set = {"environment.sysctl.vm.dirty_bytes" = 4096000}},
  {label = "ratio", set = {"environment.sysctl.vm.dirty_ratio" = 30}},
]"""
SCHEDULER = """name = "scheduler"
levels = [
  {{label = "one", set = {one}}},
  {{label = "other", set = {other}}},
]"""
HUGE_PAGES = 'path = "environment.transparent_huge_pages"\nlevels = ["always", "never", "as found"]'


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/proc/sys as a folder, in which dirty_ratio is in force and dirty_bytes, its partner, is not."""
    root = tmp_path / "sys"
    (root / "vm").mkdir(parents=True)
    for name, value in (("swappiness", 60), ("dirty_bytes", 0), ("dirty_ratio", 20)):
        (root / "vm" / name).write_text(f"{value}\n")
    monkeypatch.setattr(sysctl.Sysctl.__init__, "__defaults__", (root,))

    def write(path: Path, text: str, remedy: str = "") -> None:
        del remedy
        path.write_text(f"{text}\n")
        pair = ["dirty_bytes", "dirty_ratio"]
        if path.name in pair and text != "0":  # writing one clears the other
            pair.remove(path.name)
            path.with_name(pair[0]).write_text("0\n")

    monkeypatch.setattr(kernel_files, "write", write)
    return root / "vm"


def planned(tmp_path: Path, factor: str = SWAPPINESS) -> Plan:
    file = tmp_path / "experiment.toml"
    file.write_text(TEXT.format(factor=factor))
    source = load(str(file))
    return plan_trials(source.experiment, source.treatments, 1)


def around(tmp_path: Path, plan: Plan) -> Any:
    state = StateDir(tmp_path / "state")
    context = RunContext(SimpleNamespace(), tmp_path / "out", state, Silent())  # type: ignore[arg-type]  # no source
    context.at_turns = turning.varied(plan, state)
    return context


def now(kernel: Path) -> tuple[str, str]:
    assert ((kernel / "dirty_bytes").read_text() == "0\n") == ((kernel / "dirty_ratio").read_text() == "20\n")
    return (kernel / "swappiness").read_text().strip(), (kernel / "dirty_bytes").read_text().strip()


def test_each_turn_has_its_own_and_the_end_what_was_found(tmp_path: Path, kernel: Path) -> None:
    plan = planned(tmp_path)
    context = around(tmp_path, plan)
    assert context.at_turns == {"environment.sysctl.vm.swappiness", "environment.sysctl.vm.dirty_bytes"}
    wanted = {"as it is": ("60", "0"), "little": ("1", "0"), "much": ("100", "4096000")}
    with turning.turned(context, plan.trials, []) as turns:
        for trial in (*plan.trials, *reversed(plan.trials), *plan.trials):
            turns.turn(trial)
            assert now(kernel) == wanted[trial.treatment.label.removeprefix("kernel ")]
            of = turns.of(trial)["environment.sysctl.vm.swappiness"]
            assert of == {"60": None, "1": 1, "100": 100}[now(kernel)[0]]
    assert now(kernel) == ("60", "0")
    assert list(context.state.journal.iterdir()) == []


def test_no_trial_arranges_what_turns_set(tmp_path: Path, kernel: Path) -> None:
    plan = planned(tmp_path)
    context = around(tmp_path, plan)
    much = next(trial.treatment.settings for trial in plan.trials if trial.treatment.settings.environment.sysctl)
    site = knobs.site_of(much, context.state, "mine-0001", context.at_turns)
    site.arrange(sysctl.KNOB, SimpleNamespace())  # type: ignore[arg-type]  # a journal is not asked for anything
    assert now(kernel) == ("60", "0")


def test_after_a_kill_between_two_turns_undo_puts_back(tmp_path: Path, kernel: Path) -> None:
    plan = planned(tmp_path)
    context = around(tmp_path, plan)
    last = next(trial for trial in plan.trials if trial.treatment.label == "kernel much")
    child = os.fork()
    if child == 0:
        with turning.turned(context, plan.trials, []) as turns:
            for trial in (*plan.trials, last):
                turns.turn(trial)
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert now(kernel) == ("100", "4096000")
    undone = recovery.undo(context.state)
    assert [(one.ok, one.is_left) for one in undone] == [(True, False)] * 2
    assert now(kernel) == ("60", "0")


def test_one_of_a_pair_for_each_puts_the_other_out_of_force(tmp_path: Path, kernel: Path) -> None:
    plan = planned(tmp_path, PAIR)
    context = around(tmp_path, plan)
    log = TrialLog(plan.trials[0])
    wanted = {"as it is": ("0", "20"), "bytes": ("4096000", "0"), "ratio": ("0", "30")}
    for first in plan.trials:  # whoever comes last, what was found is put back
        with turning.turned(context, plan.trials, [log]) as turns:
            for trial in (*itertools.chain.from_iterable(itertools.permutations(plan.trials)), first):
                turns.turn(trial)
                found = tuple((kernel / name).read_text().strip() for name in ("dirty_bytes", "dirty_ratio"))
                assert found == wanted[trial.treatment.label.removeprefix("kernel ")]
        assert now(kernel) == ("60", "0")
    assert "caveats" not in log.facts


def test_what_others_set_in_between_is_theirs_and_no_turn_writes_over_it(tmp_path: Path, kernel: Path) -> None:
    plan = planned(tmp_path)
    context = around(tmp_path, plan)
    log = TrialLog(plan.trials[0])
    with turning.turned(context, plan.trials, [log]) as turns:
        turns.turn(plan.trials[0])
        turns.turn(plan.trials[1])
        (kernel / "swappiness").write_text("77\n")
        for trial in plan.trials:
            with pytest.raises(TrialFailed, match=r"swappiness was changed by another .* has become 77; it is left"):
                turns.turn(trial)
    assert now(kernel)[0] == "77"
    (said,) = log.facts["caveats"]
    assert "vm.swappiness was 60, was set to" in said and "and has become 77 since" in said
    with turning.turned(context, plan.trials, [log]) as turns:  # the next block finds it so
        for trial in plan.trials:
            turns.turn(trial)
    assert now(kernel)[0] == "77"


def test_what_the_machine_refuses_in_one_turn_is_set_in_the_next(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path)
    context = around(tmp_path, plan)
    trials = {trial.treatment.label.removeprefix("kernel "): trial for trial in plan.trials}
    accepted = kernel_files.write

    def refuse(path: Path, text: str, remedy: str = "") -> None:
        accepted(path, text)  # what was set before a refusal stays
        if text == "100":
            raise Fault("no", remedy=remedy)

    with turning.turned(context, plan.trials, []) as turns:
        turns.turn(trials["little"])
        monkeypatch.setattr(kernel_files, "write", refuse)
        for after, wanted in (("little", ("1", "0")), ("as it is", ("60", "0"))):
            with pytest.raises(Fault, match="no"):
                turns.turn(trials["much"])
            turns.turn(trials[after])
            assert now(kernel) == wanted
    assert now(kernel) == ("60", "0")


@pytest.mark.usefixtures("kernel")
def test_what_turns_do_not_show_is_said(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    with turning.turned(around(tmp_path, plan), plan.trials, []) as turns:
        dirty, swappiness = turns.caveats()
    assert dirty.startswith("environment.sysctl.vm.dirty_bytes was switched for the whole machine at each turn")
    assert dirty.endswith("; dirty pages of all servers count towards it")
    assert swappiness.endswith("during another's turn is done under the other's setting")


def test_what_cannot_be_set_is_refused_before_a_server_is_started(tmp_path: Path, kernel: Path) -> None:
    plan = planned(tmp_path)
    (kernel / "swappiness").unlink()
    context = around(tmp_path, plan)
    with pytest.raises(Fault, match="this kernel does not have it"), turning.turned(context, plan.trials, []):
        pass
    assert list(context.state.journal.iterdir()) == []


def test_huge_pages_take_turns_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "enabled"
    path.write_text("always [madvise] never\n")
    monkeypatch.setattr(huge_pages.TransparentHugePages.__init__, "__defaults__", ("enabled", tmp_path))

    def write(path: Path, value: str) -> None:
        path.write_text(" ".join(f"[{word}]" if word == value else word for word in ("always", "madvise", "never")))

    monkeypatch.setattr(kernel_files, "write", write)
    plan = planned(tmp_path, HUGE_PAGES)
    context = around(tmp_path, plan)
    seen = {}
    with turning.turned(context, plan.trials, []) as turns:
        for trial in plan.trials:
            turns.turn(trial)
            seen[trial.treatment.label] = huge_pages.TransparentHugePages().show()
    assert seen == {f"transparent_huge_pages {name}": name for name in ("always", "never")} | {
        "transparent_huge_pages as found": "madvise"
    }
    assert huge_pages.TransparentHugePages().show() == "madvise"


def test_preemption_and_base_slice_take_turns_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sched").mkdir()
    model, base = tmp_path / "sched/preempt", tmp_path / "sched/base_slice_ns"
    model.write_text("(none) voluntary full lazy\n")
    base.write_text("2800000\n")
    monkeypatch.setattr(debugfs, "folder", lambda: tmp_path)

    def write(path: Path, value: str) -> None:
        words = kernel_files.choices(path.read_text())
        path.write_text(" ".join(f"({word})" if word == value else word for word in words) if len(words) > 1 else value)

    monkeypatch.setattr(kernel_files, "write", write)
    factor = SCHEDULER.format(
        one='{"environment.preemption" = "lazy"}',
        other='{"environment.preemption" = "full", "environment.base_slice_us" = 700}',
    )
    plan = planned(tmp_path, factor)
    seen = {}
    with turning.turned(around(tmp_path, plan), plan.trials, []) as turns:
        for trial in (*plan.trials, *plan.trials):
            turns.turn(trial)
            seen[trial.treatment.label] = (kernel_files.selected(model.read_text()), base.read_text().strip())
    assert seen == {"scheduler one": ("lazy", "2800000"), "scheduler other": ("full", "700000")}
    assert kernel_files.selected(model.read_text()) == "none" and base.read_text() == "2800000"
