"""The run of a soak: one trial, carried through kills and reboots to the end of its time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from plimsoll.analysis.soak.kind import KIND
from plimsoll.environment.journal.journal import Journal
from plimsoll.environment.state import StateDir
from plimsoll.environment.units import Unit, is_going_down
from plimsoll.experiment import Source
from plimsoll.quantities import elapsed
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run.observer import Observer
from plimsoll.run.planning.needs import Needs
from plimsoll.run.runner import Runner, stored_source
from plimsoll.run.soak.carry import carry
from plimsoll.run.trial.series import FILE

Json = dict[str, Any]
# Of the user's surroundings, what a unit needs to find the same state folder and the same programs.
VARIABLES: Final = ("PLIMSOLL_STATE", "PLIMSOLL_AGENT", "PATH", "PYTHONPATH", "LANG")


@dataclass
class SoakRunner(Runner):
    """`has_unit`: whether a systemd unit goes on with it after a reboot."""

    repeats_spoilt: ClassVar[bool] = False  # its rounds tell
    has_unit: bool = field(default=False, kw_only=True)
    _unit_journal: Journal | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.source.experiment.soak is not None  # run/soak/source.py has set it
        self.soak = self.source.experiment.soak
        if (known := read_json(self.out / "run.json")) is not None:
            self.has_unit = bool((known.get(KIND) or {}).get("unit"))

    @property
    def spent_s(self) -> float:
        """Of its time, by what stands in the record."""
        state = read_json(writer.trial_folder(self.out, 1) / FILE) or {}
        return float(state.get("spent_s") or 0.0)

    def needs(self) -> Needs:
        """The time is given, and so is the most that the record takes."""
        needs = super().needs()
        needs.seconds = needs.build_seconds + max(0.0, self.soak.seconds - self.spent_s)
        needs.remarks.append(
            f"the record takes at most {self.soak.record_max}; the data grow by what the load adds in {self._left()}"
        )
        if self.has_unit and (why := self.unit().why_not()) is not None:
            needs.impossible.append(f"--unit: {why}")
        return needs

    def _left(self) -> str:
        return elapsed(max(0.0, self.soak.seconds - self.spent_s))

    def _open_record(self) -> Json:
        document = super()._open_record()
        document |= {"kind": KIND, KIND: self.soak.model_dump(mode="json") | {"unit": self.has_unit}}
        writer.write_run(self.out, document)
        return document

    def _trials(self) -> None:
        if not self.left:
            return
        self._install_unit()
        with self._servers() as server_of:
            for trial in self.left:
                self.one(trial, lambda log: carry(self, log, server_of(log)))

    # --- after a reboot -----------------------------------------------------------------------------------------------

    def run(self) -> str:
        was_there = self.has_unit and self.unit().path.exists()
        try:
            return super().run()
        except BaseException:  # refused, say, with the unit taken over or written anew before it
            if not was_there and not (self.interrupts.is_stopping() and is_going_down()):
                self._put_back_unit()
            raise

    def _put_back_unit(self) -> None:
        """As it was found: a soak that is refused and had no unit waiting for a boot leaves none."""
        if self._unit_journal is None or not self._unit_journal.path.exists():
            return
        for undone in [one for one in self._unit_journal.put_back_each() if not one.ok]:
            self.observer.event("note", text=f"NOT put back: {undone.what}; {undone.remedy}")

    def unit(self) -> Unit:
        """What goes on with this run once the machine is up again."""
        return Unit(
            name=f"plimsoll-soak-{self.trial_name(self.plan.trials[0])}.service",
            description=f"Plimsoll goes on with the soak {self.out}",
            command=resume_command(self.out),
            folder=Path.cwd(),
            environment={name: os.environ[name] for name in VARIABLES if name in os.environ},
        )

    def _take_over(self) -> None:
        if (self.out / "run.json").exists():  # a new one installs it when nothing stands in its way
            self._install_unit()

    def _install_unit(self) -> None:
        if not self.has_unit or self._unit_journal is not None:
            return
        name = f"{self.trial_name(self.plan.trials[0])}-unit-{time.time_ns()}"
        self._unit_journal = Journal.create(self.state, name)
        self.unit().install(self._unit_journal, self.state)

    def _left_to_its_successor(self) -> Collection[str]:
        if self._unit_journal is not None and self.interrupts.is_stopping() and is_going_down():
            self.observer.event("note", text="the machine is going down: the soak goes on when it is up again")
            return (self._unit_journal.run_id,)
        return ()


def resume_command(out: Path) -> list[str]:
    """What goes on with a soak, by absolute paths; it draws no page for a terminal that is not there."""
    return [sys.executable, "-P", "-m", "plimsoll", "soak", "--resume", str(out)]


def resumed(out: Path, state: StateDir, observer: Observer, command: Sequence[str]) -> SoakRunner:
    """Of a soak that was stopped: the same experiment, seed and plan."""
    source, seed = stored_source(out)
    return SoakRunner(source, out, state, observer, list(command), seed)


def new(
    source: Source, out: Path, state: StateDir, observer: Observer, command: Sequence[str], seed: int | None,
    *, has_unit: bool,
) -> SoakRunner:  # fmt: skip
    """Of a new one."""
    return SoakRunner(source, out, state, observer, list(command), seed, has_unit=has_unit)
