"""The host's side of a run on a guest kernel: plan, data sets, the guest booted and heard to its end.

The fact that constrains it: from the boot on the record is the guest's to write, and this side only adds what the guest
cannot know: how its clock stood to ours, and how it ended when it did not say so itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.environment import Fault, Journal
from plimsoll.environment.fingerprint import fingerprint
from plimsoll.environment.guest import kernel
from plimsoll.environment.guest.bootable import Bootable, UserModeLinux
from plimsoll.environment.guest.machine import Guest, GuestFolder, how_it_ended
from plimsoll.experiment import Plan, PlannedTrial, plan_trials
from plimsoll.experiment.guest.table import GuestMachine
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run import datasets, designs
from plimsoll.run.carrier import Carrier
from plimsoll.run.guest import clocks, messages, planning
from plimsoll.run.planning import obstacles
from plimsoll.run.planning.needs import Needs, needs_of
from plimsoll.run.runner import Impossible, create_record, new_document, seed_of, undo_leftovers
from plimsoll.run.signals import Stopped

CONSOLE = "guest-console.txt"
# Counted in waits of ours that took no longer than they should: where we stood still, so did the guest.
SLICE_SECONDS = 1.0
BOOT_SECONDS_MAX = 120.0
SILENT_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 180.0
HALT_SECONDS_MAX = 60.0
RESUME = "./plimsoll run --resume"


@dataclass
class GuestRunner(Carrier):
    """One run of one experiment on a guest kernel, into the folder `out`."""

    command: list[str]
    seed: int | None = None
    fell_back: list[str] = field(init=False, default_factory=list)
    _clocks: dict[str, clocks.Comparison | None] = field(init=False, default_factory=dict)
    _boots_before: list[dict[str, Any]] = field(init=False, default_factory=list)  # of this sitting
    _heard_meanwhile: list[str] = field(init=False, default_factory=list)  # while an answer was waited for

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seed = seed_of(self.source, self.seed)
        self.plan: Plan = plan_trials(self.source.experiment, self.source.treatments, self.seed)
        if designs.arrangement_of(self.plan) is not designs.ONE_BY_ONE:
            self.fell_back = [self._windows()]
            self.plan = designs.fallen_back(self.plan)

    # What differs from one kind of guest to another.

    def _windows(self) -> str:
        """Why servers are not up at once."""
        return planning.WINDOWS

    def bootable(self, trial: PlannedTrial) -> Bootable:
        """What the trial is carried out in."""
        del trial  # one guest has them all
        installed = kernel.installed()
        assert installed is not None
        return UserModeLinux(installed)

    def parameters(self, trial: PlannedTrial) -> str:
        """Of its boot, those that the experiment asks for."""
        del trial
        return self.given.parameters

    def boots(self) -> list[list[PlannedTrial]]:
        """The trials that are left, by the guest that has them."""
        return [self.left]

    @property
    def given(self) -> GuestMachine:
        """What each guest is given."""
        return planning.machine_of(self.source.experiment)

    def _limits(self) -> tuple[float, float]:
        """After so many seconds without a first word, and without any, it is given up."""
        return BOOT_SECONDS_MAX, SILENT_SECONDS_MAX

    def needs(self) -> Needs:
        """Time, memory and disk of the trials to come, and all that stands in the way."""
        missing = datasets.missing_bytes(self.plan, self.state)
        needs = needs_of(self.plan, self.left, missing, has_tables=lambda _trial: False)
        needs.remarks = [f"trials instead of windows: {text}" for text in self.fell_back]
        needs.remarks += [*self._remarks(), *obstacles.remarks(self.plan)]
        needs.impossible = self._refusals(needs)
        return needs

    def _remarks(self) -> list[str]:
        return [*planning.remarks(self.plan)]

    def _refusals(self, needs: Needs) -> list[str]:
        return planning.refusals(self.plan, needs, self.state)

    def run(self) -> str:
        """Runs every trial that has no result yet, inside the guest; returns the run's status."""
        with self.state.hold_lock(), self.interrupts.handled():
            undo_leftovers(self.state, self.observer)
            needs = self.needs()
            if needs.impossible:
                raise Impossible(needs.impossible)
            is_new = read_json(self.out / "run.json") is None
            self._open_record()
            self._set_aside_again()
            status = "failed"
            try:
                status = self._booted(needs)
            except Stopped:
                status = "stopped"
            except Impossible:
                if is_new and not self._has_begun():  # the guest's kernel cannot do it, and nothing was started
                    _remove_unbegun(self.out)
                raise
            finally:
                if (self.out / "run.json").exists():
                    with contextlib.suppress(OSError):  # a full disk: what was finished stays readable as it is
                        self._close_record(status)
            return status

    def _has_begun(self) -> bool:
        """Whether a guest has done its part: what a later one refuses takes no result away."""
        return bool(self._boots_before) or any(self.stored(trial) is not None for trial in self.plan.trials)

    def _open_record(self) -> None:
        """run.json as it stands at the start; the guest adds its fingerprint."""
        known = read_json(self.out / "run.json")
        if known is not None:
            writer.write_run(self.out, known | {"status": "running", "ended_epoch_ns": None})
            writer.append_event(self.out, "resumed")
            return
        assert self.seed is not None
        document = new_document(self.source, self.out, self.seed, self.command) | {"guest": self._guest_document()}
        if self.fell_back:
            document["fell_back"] = self.fell_back
        create_record(self.out, document, self.source, self.plan)

    def _guest_document(self) -> dict[str, Any]:
        """The `guest` of run.json (schema/record.md)."""
        one = self.bootable(self.plan.trials[0])
        return {
            "kernel": one.kind,
            "version": one.kernel.version,
            "memory_bytes": self.given.memory_bytes,
            "parameters": self.given.parameters,
            "cpus": one.cpus,
            "hz": one.kernel.hz,
            "probes_in_the_kernel": one.kernel.is_traced,
            "boots": [],
        }

    def _close_record(self, status: str) -> None:
        document = read_json(self.out / "run.json") or {}
        guest = document.get("guest") or self._guest_document()
        guest["boots"] = [*guest["boots"], *self._booted_clocks()]
        ended = {"status": status, "ended_epoch_ns": time.time_ns(), "guest": guest}
        writer.write_run(self.out, document | ended)
        writer.append_event(self.out, "guest_end", status=status)

    def _booted_clocks(self) -> list[dict[str, Any]]:
        """How the clocks stood in each boot of this sitting."""
        return [*self._boots_before, self._boot_document()]

    def _boot_document(self) -> dict[str, Any]:
        return {"start": self._clocks.get("start"), "end": self._clocks.get("end")}

    # --- the guest ----------------------------------------------------------------------------------------------------

    def _booted(self, needs: Needs) -> str:
        with self.interrupts.may_cut():
            built = datasets.build_all(self.plan, self.state, self.observer, self.interrupts)
        kept_bytes, status = sum(dataset.bytes for dataset in built.values()), "finished"
        for number, trials in enumerate(self.boots()):
            if self.interrupts.stopping:
                raise Stopped
            if number:
                self._boots_before.append(self._boot_document())
                self._clocks = {}
            status = self._one_boot(trials, planning.disk_bytes(needs, kept_bytes), sorted(built))
            if status != "finished":
                break
        return status

    def _one_boot(self, trials: list[PlannedTrial], disk_bytes: int, keys: list[str]) -> str:
        """One guest from its making to its end, with those trials."""
        one = self.bootable(trials[0]) if trials else self.bootable(self.plan.trials[0])
        name = f"{hashlib.sha256(str(self.out).encode()).hexdigest()[:8]}-guest"
        place, guest, status = GuestFolder(self.state.work / name), None, "failed"
        with self.interrupts.must_finish():
            journal = Journal.create(self.state, name)
        try:
            place.make(self.state, journal, disk_bytes, self.out)
            one.prepare(place)
            writer.write_json(place.path / "request.json", self._request(keys, one, trials))
            self.observer.event("note", text=f"booting the guest kernel, {one.kind} {one.kernel.version}")
            parameters = self.parameters(trials[0]) if trials else self.given.parameters
            guest = one.boot(place, self.given.memory_bytes, parameters)
            status = self._heard(guest, place)
            return status
        finally:
            with self.interrupts.must_finish():
                if guest is not None:
                    guest.kill()
                if status == "failed":
                    with contextlib.suppress(OSError):
                        writer.write_text(self.out / CONSOLE, place.console())
                journal.put_back_all()

    def _request(self, keys: list[str], one: Bootable, trials: list[PlannedTrial]) -> dict[str, Any]:
        """What the guest's side is to do."""
        of_host = fingerprint([self.state.root])
        return {
            "id": self.out.name,
            "experiment": self.source.experiment.model_dump(mode="json"),
            "file": self.source.path.name,
            "quick": self.source.quick,
            "seed": self.seed,
            "command": self.command,
            "datasets": keys,
            "kept": str(self.state.datasets),
            "kernel": f"guest ({one.kind})",
            "parameters": self.parameters(trials[0]) if trials else self.given.parameters,
            "trials": [trial.number for trial in trials],
            "host": {key: of_host[key] for key in ("machine", "kernel", "mounts", "devices")},
        }

    def _heard(self, guest: Guest, place: GuestFolder) -> str:
        """Passes on what the guest tells, to its end; its status. Raises what it ended with."""
        limit = self.given.minutes
        waited = _Waited()
        while True:
            line = self._heard_meanwhile.pop(0) if self._heard_meanwhile else guest.said(SLICE_SECONDS)
            if line is None:
                raise self._died(guest, place)
            waited.count(is_silent=not line)
            told = messages.parsed(line) if line else None
            if told is not None:
                if "ready" in told:
                    waited.is_ready = True
                    self._clocks["start"] = clocks.compare(lambda seconds: self._time_of(guest, seconds))
                elif "event" in told:
                    name, info = messages.event_of(told, self.plan)
                    self.observer.event(name, **info)
                elif "end" in told or "error" in told:
                    self._clocks["end"] = clocks.compare(lambda seconds: self._time_of(guest, seconds))
                    guest.tell(messages.DISMISSED)
                    guest.wait(HALT_SECONDS_MAX)
                    return _ended(told)
            if limit is not None and waited.seconds > limit * 60 and not self.interrupts.stopping:
                self.observer.event("note", text=f"environment.guest.minutes = {limit:g} are over: the run is stopped")
                self.interrupts.stopping = True
            if self.interrupts.stopping and waited.stopping is None:
                waited.stopping = 0.0  # from here on, for an emulated boot may take half an hour
            if self.interrupts.stopping and waited.is_ready and not waited.is_asked_to_stop:
                waited.is_asked_to_stop = True
                self.observer.event("note", text="stopping: the guest ends its trial and halts")
                guest.tell(messages.STOP)
            if (waited.stopping or 0) > STOP_SECONDS_MAX:
                did = "did not stop when it was asked to" if waited.is_asked_to_stop else "has not begun"
                self.observer.event("note", text=f"the guest {did}, and is ended")
                return "stopped"
            if why := waited.is_hanging(*self._limits()):
                raise Fault(f"the guest kernel {why}", remedy=self._remedy())

    def _time_of(self, guest: Guest, seconds: float) -> int | None:
        guest.tell(messages.CLOCK)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            line = guest.said(until - time.monotonic())
            if line is None:
                return None
            if "clock" in (told := messages.parsed(line) or {}):
                return int(told["clock"])
            if line:
                self._heard_meanwhile.append(line)
        return None

    def _died(self, guest: Guest, place: GuestFolder) -> Fault:
        code = guest.wait(HALT_SECONDS_MAX)
        code = guest.kill() if code is None else code
        how = how_it_ended(code, place.console())
        return Fault(f"the guest kernel {how} before the run had ended", remedy=self._remedy())

    def _remedy(self) -> str:
        done = sum(self.is_done(trial) for trial in self.plan.trials)
        kept = f"{done} of {len(self.plan.trials)} trials have their result, and are kept"
        return f"its console is in {self.out / CONSOLE}; {kept}; go on with: {RESUME} {self.out}"


@dataclass
class _Waited:
    """How long the guest was waited for, in seconds in which we were awake."""

    seconds: float = 0.0
    silent: float = 0.0
    stopping: float | None = None
    is_asked_to_stop: bool = False
    is_ready: bool = False
    _at: float = field(default_factory=lambda: time.monotonic())

    def count(self, *, is_silent: bool) -> None:
        """One wait for a line has ended."""
        now = time.monotonic()
        passed, self._at = min(now - self._at, 2 * SLICE_SECONDS), now
        self.seconds += passed
        self.silent = self.silent + passed if is_silent else 0.0
        if self.stopping is not None:
            self.stopping += passed

    def is_hanging(self, boot_max: float, silent_max: float) -> str:
        """Why it is given up; empty while it is not."""
        if not self.is_ready:  # what its kernel prints goes elsewhere
            return f"did not start the run within {boot_max:.0f} s" if self.seconds > boot_max else ""
        return f"hangs: it has told nothing for {silent_max:.0f} s" if self.silent > silent_max else ""


def _ended(told: dict[str, Any]) -> str:
    """The status that the guest ended with. Raises what it ended with instead."""
    if "end" in told:
        return str(told["end"])
    if told["error"] == "impossible":
        raise Impossible([f"on the guest kernel: {reason}" for reason in told["reasons"]])
    if told["error"] == "fault":
        raise Fault(f"on the guest kernel: {told['what']}", remedy=told["remedy"])
    raise RuntimeError(f"on the guest kernel:\n{told['what']}")


def _remove_unbegun(out: Path) -> None:
    """The folder of a run that was not begun: what we have made in it, and nothing else."""
    for name in ("run.json", "plan.json", "experiment.json", "fingerprint.json", "events.jsonl", CONSOLE):
        (out / name).unlink(missing_ok=True)
    for folder in (out / "trials", out):
        with contextlib.suppress(OSError):
            folder.rmdir()
