"""A whole run: plan, data sets, trials in their order, record; stopped and resumed without losing a finished trial.

Each trial changes the machine under a journal of its own and puts it back before the next begins, so a kill at any
point leaves the changes of at most one trial, and those are journalled.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from plimsoll import record
from plimsoll.environment import Fault, machine_settings
from plimsoll.environment.fingerprint import comparable, fingerprint
from plimsoll.environment.journal import recovery
from plimsoll.environment.state import StateDir
from plimsoll.experiment import ExperimentError, Plan, PlannedTrial, Problem, Source, plan_trials
from plimsoll.experiment.reading.source import reload
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run import a_a, datasets, designs
from plimsoll.run.carrier import Carrier
from plimsoll.run.observer import Observer
from plimsoll.run.planning import documents, obstacles
from plimsoll.run.planning.needs import Needs, needs_of
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.servers.registry import kind_of, kinds_of
from plimsoll.run.signals import Stopped
from plimsoll.run.surroundings import knobs
from plimsoll.run.surroundings.file_locations import devices_of, folders_of
from plimsoll.run.trial import series
from plimsoll.run.versions import versions


class Impossible(Exception):
    """The plan cannot be carried out here: every reason at once; nothing was started."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


def undo_leftovers(state: StateDir, observer: Observer) -> None:
    """What an earlier run left. Nothing is measured on a machine that could not be put back."""
    for undone in recovery.undo(state):
        if not undone.ok:
            raise Fault(f"left by run {undone.run_id}, and not put back: {undone.what}", remedy=undone.remedy)
        became = "left as it is since" if undone.is_left else "put back from"
        remedy = f"; {undone.remedy}" if undone.is_left else ""
        observer.event("note", text=f"{became} run {undone.run_id}: {undone.what}{remedy}")


def seed_of(source: Source, given: int | None) -> int:
    """Of a new run: as asked for, as the experiment has it, or drawn."""
    if given is not None:
        return given
    wanted = source.experiment.design.seed
    return wanted if wanted is not None else secrets.randbits(32)


@dataclass
class Runner(Carrier):
    """One run of one experiment into the folder `out`."""

    repeats_spoilt: ClassVar[bool] = True  # trials that time would mend (trial/repeat.py)
    command: list[str]
    seed: int | None = None
    fell_back: list[str] = field(init=False, default_factory=list)  # why its design is not carried out as asked for

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seed = seed_of(self.source, self.seed)
        plan = plan_trials(self.source.experiment, self.source.treatments, self.seed)
        known, planned = (read_json(self.out / f"{name}.json") for name in ("run", "plan"))
        if known is None:
            self.plan, self.fell_back = designs.arranged(plan, self.state)
        else:
            self.plan, self.fell_back = designs.as_begun(plan, known, planned or {})

    def needs(self) -> Needs:
        """Time, memory and disk of the trials to come, and all that stands in the way."""
        missing = datasets.missing_bytes(self.plan, self.state)
        needs = needs_of(self.plan, self.left, missing, has_tables=self._has_tables)
        needs.remarks = [f"trials instead of windows: {text}" for text in self.fell_back]
        if self.plan.groups:
            needs.remarks.append(f"windows in groups of treatments, not of all at once: {self.plan.groups.why}")
        needs.remarks += [f"left out on this machine: {text}" for text in self.source.left_out]
        needs.remarks += obstacles.remarks(self.plan)
        needs.impossible = obstacles.obstacles(self.plan, needs, self.state) + datasets.refusals(self.plan)
        return needs

    def _has_tables(self, trial: PlannedTrial) -> bool:
        """A series that was interrupted goes on with its own."""
        return series.goes_on(writer.trial_folder(self.out, trial.number))

    def run(self) -> str:
        """Runs every trial that has no result yet; returns the run's status. Raises Impossible before the first."""
        with self.state.hold_lock(), self.interrupts.handled():
            self._take_over()
            undo_leftovers(self.state, self.observer)
            needs = self.needs()
            if needs.impossible:
                raise Impossible(needs.impossible)
            with self._settings_of_the_machine():
                return self._recorded()

    def _settings_of_the_machine(self) -> contextlib.AbstractContextManager[object]:
        """Where trials change them: no run of another state folder does so meanwhile."""
        if not knobs.change_the_machine(self.plan, self.state):
            return contextlib.nullcontext()

        def told(text: str) -> None:
            self.observer.event("note", text=text)

        return machine_settings.ours(self.state, told, self.interrupts.is_stopping)

    def _recorded(self) -> str:
        document = self._open_record()
        self._set_aside_again()
        status = "failed"
        try:
            with self.interrupts.may_cut():
                self._trials()
            status = "finished"
        except Stopped:
            status = "stopped"
        finally:
            # We hold the lock, so a journal that is still there is ours: cut short between two steps.
            undone_all = recovery.undo(self.state, force=True, but_for=self._left_to_its_successor())
            failures = [undone for undone in undone_all if not undone.ok]
            for undone in failures:
                text = f"NOT put back: {undone.what}; {undone.remedy}"
                writer.append_event(self.out, "not_put_back", what=undone.what)
                self.observer.event("note", text=text)
            with contextlib.suppress(OSError):  # a full disk: what was finished stays readable as it is
                writer.write_run(self.out, document | {"status": status, "ended_epoch_ns": time.time_ns()})
                writer.append_event(self.out, "run_end", status=status)
        return status

    def _take_over(self) -> None:
        """What is to outlive the process that made it, before the rest of what that has left is put back."""

    def _left_to_its_successor(self) -> Collection[str]:
        """Ids of journals that are not put back at the end, since the run goes on after a reboot."""
        return ()

    def _trials(self) -> None:
        if not self.left:
            return
        with self._servers() as server_of:
            designs.arrangement_of(self.plan).carry_out(self, server_of)

    @contextlib.contextmanager
    def _servers(self) -> Iterator[ServerOfTrial]:
        """For as long as the run lasts: what gives each trial the server that its treatment names."""
        built = datasets.build_all(self.plan, self.state, self.observer, self.interrupts)
        with contextlib.ExitStack() as stack:
            of_kind = {
                kind: stack.enter_context(kind.of_run(self, treatments[0].settings, built))
                for kind, treatments in kinds_of(self.plan)
            }
            yield lambda log: of_kind[kind_of(log.trial.treatment.settings)](log)

    def _open_record(self) -> dict[str, Any]:
        """run.json as it stands at the start; a run that goes on keeps its own."""
        known = read_json(self.out / "run.json")
        if known is not None:
            self._refuse_another_machine()
            known |= {"status": "running", "ended_epoch_ns": None}
            writer.write_run(self.out, known)
            writer.append_event(self.out, "resumed")
            return known
        assert self.seed is not None
        document = new_document(self.source, self.out, self.seed, self.command) | {"a_a": a_a.newest(self.state)}
        if self.fell_back:
            document["fell_back"] = self.fell_back
        self.out.mkdir(parents=True, exist_ok=True)
        writer.write_json(self.out / "fingerprint.json", self.fingerprint())
        create_record(self.out, document, self.source, self.plan)
        return document

    def _places(self) -> list[Path]:
        """Folders whose file systems matter: the state folder, and where files of the server lie apart."""
        given = [folders_of(treatment.settings) for treatment in self.plan.treatments]
        return [self.state.root, *(Path(place) for place in dict.fromkeys(itertools.chain(*given)))]

    def fingerprint(self) -> dict[str, Any]:
        """What the run is measured on."""
        blocks = [devices_of(treatment.settings) for treatment in self.plan.treatments]
        named = dict.fromkeys(itertools.chain(*blocks))
        return fingerprint(self._places(), blocks=[Path(path) for path in named])

    def _refuse_another_machine(self) -> None:
        """A record is of one machine in one state; what was measured on another is not compared with it."""
        differences = comparable(read_json(self.out / "fingerprint.json") or {}, self.fingerprint())
        if differences:
            raise Impossible(
                [
                    f"{difference['key']} was {difference['a']} and is {difference['b']}: begin a new run"
                    for difference in differences
                ]
            )


def new_document(source: Source, out: Path, seed: int, command: list[str]) -> dict[str, Any]:
    """run.json of a run that begins."""
    experiment = source.experiment
    document = {
        "id": out.name,
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "status": "running",
        "started_epoch_ns": time.time_ns(),
        "ended_epoch_ns": None,
        "seed": seed,
        "command": command,
        "plimsoll": versions(),
        "quick": source.quick,
        "file": source.path.name,
        "a_a": None,
    }
    if source.left_out:
        document["left_out"] = list(source.left_out)
    return document


def create_record(out: Path, document: dict[str, Any], source: Source, plan: Plan) -> None:
    """The folder of a run that begins, with its plan and its experiment."""
    experiment = source.experiment
    dumped = experiment.model_dump(mode="json")
    if experiment.target.dsn:
        dumped["target"]["dsn"] = record.redact(experiment.target.dsn)
    writer.create_run(out, document, documents.plan_document(plan), dumped)


def stored_source(out: Path) -> tuple[Source, int]:
    """The experiment of a run that was stopped, and its seed, as its record holds them."""
    stored, document = read_json(out / "experiment.json"), read_json(out / "run.json")
    if stored is None or document is None:
        raise ExperimentError(
            [Problem(str(out), "--resume", "not the folder of a run", "a folder that a run has made")]
        )
    source = reload(stored, Path(document["file"]), bool(document["quick"]))
    if why := kind_of(source.experiment).why_not_resumed:
        raise ExperimentError([Problem(str(out), "--resume", why, "a new run")])
    return source, int(document["seed"])
