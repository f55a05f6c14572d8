"""What host and guest tell each other: events by lines, clocks, and a guest that hangs, dies or ends with a fault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Fault, StateDir
from plimsoll.environment.guest import kernel
from plimsoll.environment.guest.machine import GuestFolder
from plimsoll.experiment import load
from plimsoll.run.guest import clocks, inside, messages, planning
from plimsoll.run.guest import runner as of_host
from plimsoll.run.guest.runner import GuestRunner
from plimsoll.run.observer import Silent
from plimsoll.run.planning.needs import Needs
from plimsoll.run.runner import Impossible

FILE = """format = 1
name = "mine"
title = "A question"
environment = { kernel = "guest", guest = { memory = "768 MiB", minutes = 1 } }
design = { blocks = 2, seed = 7 }
target = { server = "files" }
warmup = { until = "none" }
measure = { seconds = 1 }
workload = { name = "files", count = 1, file_size = "4 KiB", mix = [{ operation = "append", bytes = 512 }] }
"""
KERNEL = kernel.GuestKernel(Path("linux.uml"), "6.1", kernel.parse("CONFIG_HZ=100\n"), Path("/nonexistent"), True)


class Heard(Silent):
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def event(self, name: str, **info: Any) -> None:
        self.events.append((name, info))


class FakeGuest:
    """Says its lines one by one, and what its clock shows at once; None: it has gone."""

    def __init__(self, *lines: dict[str, Any] | str | None, code: int = 0) -> None:
        self.lines, self.code, self.told, self.delay = list(lines), code, list[str](), 0

    def said(self, _seconds: float) -> str | None:
        line = self.lines[0] if self.lines else ""
        if line is not None and self.lines:
            del self.lines[0]
        return json.dumps(line) if isinstance(line, dict) else line

    def tell(self, line: str) -> None:
        self.told.append(line)
        if line == messages.CLOCK:
            self.lines.insert(self.delay, {"clock": 1})

    def wait(self, _seconds: float) -> int:
        return self.code


@pytest.fixture
def runner(tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch) -> GuestRunner:
    (tmp_path / "experiment.toml").write_text(FILE)
    monkeypatch.setattr(kernel, "installed", lambda: KERNEL)
    found = GuestRunner(load(str(tmp_path / "experiment.toml")), tmp_path / "out", state, Silent(), ["plimsoll", "run"])
    found.observe(Heard())
    return found


def heard(runner: GuestRunner, *lines: dict[str, Any] | str | None, code: int = 0) -> tuple[Any, FakeGuest]:
    guest = FakeGuest(*lines, code=code)
    return runner._heard(guest, GuestFolder(runner.out)), guest  # type: ignore[arg-type]


def test_events_arrive_as_they_were_told_with_the_trials_of_this_side(runner: GuestRunner) -> None:
    trial = runner.plan.trials[1]
    told = [("trial", {"trial": trial}), ("sample", {"line": {"t_ns": 5, "done": 7}}), ("note", {"text": "µ"})]
    lines = [messages.event_line(name, info) for name, info in told]
    status, guest = heard(runner, *lines, "no JSON", {"beat": 1}, {"end": "finished"})
    assert status == "finished" and guest.told[-1] == messages.DISMISSED
    assert runner.observer.events == told  # type: ignore[attr-defined]
    assert runner.observer.events[0][1]["trial"] is trial  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ({"error": "impossible", "reasons": ["no swap; do"]}, Impossible, "on the guest kernel: no swap; do"),
        ({"error": "fault", "what": "a server", "remedy": "mend it"}, Fault, "on the guest kernel: a server"),
        ({"error": "bug", "what": "Traceback"}, RuntimeError, "on the guest kernel:\nTraceback"),
    ],
)
def test_what_ended_the_run_inside_ends_it_outside(
    runner: GuestRunner, line: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        heard(runner, line)


def test_a_guest_that_has_gone_is_told_with_what_is_kept_and_how_to_go_on(runner: GuestRunner) -> None:
    with pytest.raises(Fault) as fault:
        heard(runner, {"ready": 1}, None, code=-9)
    assert fault.value.what == "the guest kernel was ended by SIGKILL before the run had ended"
    assert "0 of 2 trials have their result" in fault.value.remedy
    assert f"./plimsoll run --resume {runner.out}" in fault.value.remedy


def test_a_guest_that_hangs_is_given_up_by_the_time_that_we_were_awake(
    runner: GuestRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is an hour later, as after a machine that stood still: it counts as two slices."""
    now = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(of_host.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(of_host, "SILENT_SECONDS_MAX", 9.0)
    with pytest.raises(Fault, match="hangs: it has told nothing for 9 s"):
        heard(runner, {"ready": 1}, "", "", {"beat": 1}, "", "", "", "", "", {"end": "finished"})
    monkeypatch.setattr(of_host, "BOOT_SECONDS_MAX", 5.0)
    with pytest.raises(Fault, match="did not start the run within 5 s"):
        heard(runner, "", "", "", {"end": "finished"})


def test_what_is_told_while_a_clock_is_waited_for_is_not_lost(runner: GuestRunner) -> None:
    guest = FakeGuest(
        {"ready": 1}, messages.event_line("note", {"text": "a"}), {"error": "fault", "what": "w", "remedy": "r"}
    )
    guest.delay = 2  # its answer comes after both
    with pytest.raises(Fault, match="on the guest kernel: w"):
        runner._heard(guest, GuestFolder(runner.out))  # type: ignore[arg-type]
    assert runner.observer.events == [("note", {"text": "a"})]  # type: ignore[attr-defined]


def test_a_stop_is_handed_in_once_and_only_when_the_guest_can_hear_it(runner: GuestRunner) -> None:
    runner.interrupts.stopping = True
    status, guest = heard(runner, "", "", {"ready": 1}, "", "", {"end": "stopped"})
    assert status == "stopped" and guest.told.count(messages.STOP) == 1
    assert guest.told.index(messages.STOP) > guest.told.index(messages.CLOCK)


def test_a_guest_that_does_not_stop_is_ended(runner: GuestRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(of_host.time, "monotonic", lambda: float(next(now)))
    runner.interrupts.stopping = True
    status, guest = heard(runner, {"ready": 1}, *[{"beat": 1}] * 200)
    assert status == "stopped" and guest.told.count(messages.STOP) == 1


def test_a_guest_that_boots_for_long_is_not_waited_for_after_a_stop(
    runner: GuestRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(of_host.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(runner, "_limits", lambda: (1800.0, 900.0))  # emulated
    runner.interrupts.stopping = True
    status, guest = heard(runner, *["[    1.000000] still booting"] * 200)
    assert status == "stopped" and messages.STOP not in guest.told
    assert runner.observer.events == [("note", {"text": "the guest has not begun, and is ended"})]  # type: ignore[attr-defined]


def test_a_boot_may_be_silent_for_as_long_as_a_boot_may_take() -> None:
    waited = of_host._Waited(seconds=1000.0, silent=1000.0)
    assert waited.is_hanging(1800.0, 900.0) == ""
    waited.is_ready = True
    assert "told nothing for 900 s" in waited.is_hanging(1800.0, 900.0)
    assert "within 1800 s" in of_host._Waited(seconds=1801.0).is_hanging(1800.0, 900.0)


def test_after_its_minutes_the_run_is_stopped(runner: GuestRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(of_host.time, "monotonic", lambda: float(next(now)))
    status, guest = heard(runner, {"ready": 1}, *[{"beat": 1}] * 40, {"end": "stopped"})
    assert status == "stopped" and messages.STOP in guest.told
    assert ("note", {"text": "environment.guest.minutes = 1 are over: the run is stopped"}) in runner.observer.events  # type: ignore[attr-defined]


def test_of_several_comparisons_the_shortest_counts() -> None:
    times = iter([0, 100, 1000, 1010, 2000, 2300])  # before and after each reading
    answers = iter([1050, 2005, 3150])
    found = clocks.compare(lambda _: next(answers, None), lambda: next(times, 9999))
    assert found == {"host_epoch_ns": 1000, "skew_ns": 1000, "round_trip_ns": 10}
    assert clocks.compare(lambda _: None) is None


def test_the_record_says_what_the_guest_is_and_how_its_clock_went(runner: GuestRunner) -> None:
    runner._open_record()
    document = json.loads((runner.out / "run.json").read_text())
    assert document["guest"] == {
        "kernel": "user-mode-linux", "version": "6.1", "memory_bytes": 768 << 20, "parameters": "", "cpus": 1,
        "hz": 100, "probes_in_the_kernel": False, "boots": [],
    }  # fmt: skip
    assert document["a_a"] is None
    clock = {"host_epoch_ns": 1, "skew_ns": 2, "round_trip_ns": 3}
    runner._clocks = {"start": clock}  # type: ignore[dict-item]
    runner._close_record("failed")
    runner._close_record("stopped")
    document = json.loads((runner.out / "run.json").read_text())
    assert document["status"] == "stopped"
    assert document["guest"]["boots"] == [{"start": clock, "end": None}] * 2


def test_what_stands_in_the_way_is_known_without_a_boot(runner: GuestRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "available", lambda: planning.kernel.Availability(True))
    monkeypatch.setattr(planning.HERE, "has_user", lambda _: False)
    monkeypatch.setattr(planning.HERE, "available_bytes", lambda: 100 << 20)
    monkeypatch.setattr(planning.datasets, "missing_bytes", lambda *_: [100 << 20])
    # More than trials need, and less than the guest's disk may grow to.
    free = {runner.state.work: 3 << 30}
    monkeypatch.setattr(planning.machine, "free_for", lambda folder, _: (free[folder], 64 << 20))
    needs = Needs(memory_bytes=700 << 20, disk_bytes=1 << 30)
    reasons = planning.refusals(runner.plan, needs, runner.state)
    for said in (
        "the user plimsoll does not exist",
        "environment.guest.memory = 768 MiB: 828 MiB are needed",
        "100 MiB are available on the host",
        "a file in /dev/shm, where 64 MiB are free",
        f"of disk are needed in {runner.state.work} (the guest's disk, with the data sets",
    ):
        assert [said in reason for reason in reasons].count(True) == 1, (said, reasons)
    (said,) = [reason for reason in reasons if "guest's disk" in reason]
    whole = (100 << 20) + planning.disk_bytes(needs, 100 << 20)
    assert said.startswith(planning.size.show(whole)) and said.split(", ")[2].startswith("3 GiB are free")
    free[runner.state.work] = whole
    assert not any("guest's disk" in one for one in planning.refusals(runner.plan, needs, runner.state))
    monkeypatch.setattr(kernel, "available", lambda: planning.kernel.Availability(False, "it is not there", "get it"))
    (reason,) = planning.refusals(runner.plan, needs, runner.state)
    assert reason == 'environment.kernel = "guest": it is not there; get it, or set environment.kernel = "host"'


def test_the_plan_names_what_the_guest_has_and_falls_back_from_windows(
    tmp_path: Path, state: StateDir, runner: GuestRunner
) -> None:
    (remark,) = planning.remarks(runner.plan)
    assert "user-mode-linux 6.1 with 768 MiB, which shows mechanism and not speed" in remark
    assert remark.endswith("BPF type information") and "it has no " in remark
    (tmp_path / "experiment.toml").write_text(FILE.replace("blocks = 2", 'kind = "windows", blocks = 2'))
    source = load(str(tmp_path / "experiment.toml"))
    windows = GuestRunner(source, tmp_path / "out", state, Silent(), [])
    assert windows.plan.experiment.design.kind == "full factorial" and windows.fell_back == [planning.WINDOWS]


def test_a_parameter_that_the_kernel_handed_on_stops_the_guests_side_before_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "environ").write_bytes(b"HOME=/\0nosuch=1\0")
    (tmp_path / "cmdline").write_bytes(b"/bin/sh\0/x/init\0")
    found = inside.parameters.unknown
    monkeypatch.setattr(inside.parameters, "unknown", lambda asked: found(asked, tmp_path))
    file = tmp_path / "experiment.toml"
    shutil.copy(Path(__file__).resolve().parents[4] / "experiments/append-log/experiment.toml", file)
    source = load(str(file), sets=['environment.kernel="guest"', "environment.guest.parameters=quiet nosuch=1"])
    asked = {"experiment": source.experiment.model_dump(mode="json"), "file": file.name, "quick": False}
    asked["parameters"] = "quiet nosuch=1"
    (tmp_path / "request.json").write_text(json.dumps(asked))
    with pytest.raises(Impossible) as refused:
        inside._run(tmp_path, None)  # type: ignore[arg-type]
    (reason,) = refused.value.reasons
    assert "does not know nosuch=1" in reason
