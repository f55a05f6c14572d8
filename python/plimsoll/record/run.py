"""A run, its trials and their segments, read lazily from a run folder.

Only run.json has to be there; whatever a machine could not give or a crash cut off is None, never 0.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from plimsoll.record.format import MISSING, RecordError, check_format
from plimsoll.record.npy import read_table
from plimsoll.record.summary import ByKind, ErrorEntry, Health, Identity, Probe, Summary, Verification
from plimsoll.record.trial import TrialDocument

if TYPE_CHECKING:
    import numpy as np

Json = dict[str, Any]
ROUND, ROUND_FILE = "round-", "round.json"  # of a soak: how the folder of each begins, and what it says of itself
SERIES = (
    "host",
    "device",
    "group",
    "server",
    "page_cache",
    "buffer_heads",
    "throttle",
    "syscalls",
    "block",
    "block_depth",
    "kernel_log",
    "kernel_memory",
    "slabs",
    "machine_speed",
)


def read_json(path: Path) -> Json | None:
    """The object in a JSON file; None when the file is absent."""
    try:
        value = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as wrong:
        raise RecordError(f"{path}: not valid JSON at line {wrong.lineno}, column {wrong.colno}: {wrong.msg}") from None
    if not isinstance(value, dict):
        raise RecordError(f"{path}: expected an object, found {type(value).__name__}")
    return value


@dataclass(frozen=True)
class Segment:
    """The warm-up or the measured part of a trial, as the agent left it."""

    path: Path
    name: str

    @cached_property
    def summary(self) -> Summary | None:
        """What the load and the probes say; None where the agent was killed before, or while, it wrote."""
        try:
            found = read_json(self.path / "summary.json")
        except RecordError:
            return None  # the agent was killed while it wrote: the tables may still be whole
        if found is not None:
            check_format(self.path / "summary.json", found.get("format"))
        return cast(Summary | None, found)

    # What of the summary is asked for most, empty where the record does not have it.

    @property
    def told(self) -> Summary:
        """The summary."""
        return self.summary or {}

    @property
    def identity(self) -> Identity:
        """What became of the transactions."""
        return self.told.get("identity") or {}

    @property
    def by_kind(self) -> dict[str, ByKind]:
        """The same by kind."""
        return self.told.get("by_kind") or {}

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds; a transaction's `kind` is a place here."""
        return self.told.get("kinds") or []

    @property
    def errors(self) -> list[ErrorEntry]:
        """The ways to fail; a transaction's `error` is a place here, from 1."""
        return self.told.get("errors") or []

    @property
    def health(self) -> Health:
        """What the generator says of itself."""
        return self.told.get("health") or {}

    @property
    def verification(self) -> Verification:
        """Answers that were compared."""
        return self.told.get("verification") or {}

    @property
    def schedule(self) -> Json:
        """The schedule as the agent took it."""
        return self.told.get("schedule") or {}

    @property
    def devices(self) -> list[str]:
        """Names of the devices; `device` of device.npy is a place here."""
        return self.told.get("devices") or []

    @property
    def probes(self) -> dict[str, Probe]:
        """What the probes in the kernel say, by name."""
        return self.told.get("probes") or {}

    @cached_property
    def transactions(self) -> "np.ndarray | None":
        return read_table(self.path / "transactions.npy")

    @cached_property
    def windows(self) -> "np.ndarray | None":
        """One row a window, in their order; None when the segment was not in windows.

        Samples 2k and 2k + 1 of every series (each all rows of one `t_ns`) bound window k; later ones are of a window
        that was cut."""
        return read_table(self.path / "windows.npy")

    @cached_property
    def latency(self) -> "np.ndarray | None":
        return read_table(self.path / "latency.npy")

    @cached_property
    def latency_seconds(self) -> "np.ndarray | None":
        """Latency of done transactions by the second they ended in, and by kind; of all of them, rows kept or not."""
        return read_table(self.path / "latency_seconds.npy")

    @property
    def latency_blocks(self) -> "np.ndarray | None":
        """The same by blocks of seconds, where the segment was thinned. Not kept: a soak has hundreds of them."""
        return read_table(self.path / "latency_blocks.npy")

    @cached_property
    def lag_seconds(self) -> "np.ndarray | None":
        """Lag of started transactions by second."""
        return read_table(self.path / "lag_seconds.npy")

    @cached_property
    def breakdown(self) -> "np.ndarray | None":
        """Where the time of the server's transactions went; None when its backends were not watched."""
        return read_table(self.path / "breakdown.npy")

    @cached_property
    def breakdown_waits(self) -> "np.ndarray | None":
        """The blocked intervals within these, by kind of wait."""
        return read_table(self.path / "breakdown_waits.npy")

    @cached_property
    def stacks(self) -> dict[tuple[str, ...], int] | None:
        """Samples of each stack on the CPUs, its process's role first, its innermost function last; None without."""
        try:
            lines = (self.path / "profile.folded").read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return None
        split = (line.rpartition(" ") for line in lines)
        return {tuple(stack.split(";")): int(count) for stack, _, count in split if stack and count.isdigit()}

    @cached_property
    def syncs(self) -> "np.ndarray | None":
        """Each fsync and fdatasync of the server with its parts; None when they were not watched."""
        return read_table(self.path / "sync.npy")

    @cached_property
    def file_waits(self) -> "np.ndarray | None":
        """Each time that a session of a load on files was off its CPU; None when that was not watched."""
        return read_table(self.path / "file_waits.npy")

    @cached_property
    def queries(self) -> Json | None:
        """Every query and refresh function of a decision-support test, by stream and place; None of other workloads."""
        try:
            return read_json(self.path / "queries.json")
        except RecordError:
            return None  # as with the summary

    def series(self, name: str) -> "np.ndarray | None":
        """One of SERIES; None when it was not taken or holds no row."""
        table = read_table(self.path / f"{name}.npy")
        return None if table is None or len(table) == 0 else table

    def column(self, series: str, column: str) -> "np.ndarray | None":
        """A column as floats with NaN where a sample could not be read; None when it is absent."""
        table = self.series(series)
        if table is None or table.dtype.names is None or column not in table.dtype.names:
            return None
        values = table[column].astype(float)
        values[table[column] == MISSING] = float("nan")
        return values


@dataclass(frozen=True)
class Trial:
    """One execution of one treatment: its place in the plan and what it left."""

    path: Path
    planned: Json

    @cached_property
    def data(self) -> TrialDocument:
        """trial.json; empty when the trial never got so far as to write one."""
        return cast(TrialDocument, read_json(self.path / "trial.json") or {})

    def _either(self, key: Literal["number", "block", "treatment", "duplicate"]) -> Any:
        value = self.data.get(key)
        return self.planned.get(key) if value is None else value

    @property
    def number(self) -> int:
        return int(self._either("number") or int(self.path.name))

    @property
    def block(self) -> int:
        return int(self._either("block") or 1)

    @property
    def treatment(self) -> str:
        return str(self._either("treatment") or "?")

    @property
    def duplicate(self) -> bool:
        return bool(self._either("duplicate"))

    @property
    def status(self) -> str:
        """finished, failed, stopped, or "not run" for a trial of the plan without a record."""
        return str(self.data.get("status") or ("not run" if not self.data else "unknown"))

    @cached_property
    def measure(self) -> Segment:
        """What was measured; of several tests the one whose readings stand for the trial."""
        name = str(self.data.get("measured_segment") or "measure")
        return Segment(self.path / name, name)

    @cached_property
    def tests(self) -> list[tuple[str, Segment]]:
        """The tests of a decision-support trial in their order: ("power", "throughput" or "plans", what it left)."""
        entries = self.data.get("tests") or []
        return [(str(one["test"]), Segment(self.path / one["segment"], str(one["segment"]))) for one in entries]

    @cached_property
    def passes(self) -> list[tuple[Json, Segment]]:
        """The phases over files of a trial in their order: the entry of trial.json, and what the phase left."""
        entries = self.data.get("passes") or []
        return [(one, Segment(self.path / one["segment"], str(one["segment"]))) for one in entries]

    @cached_property
    def rounds(self) -> "list[Round]":
        """The rounds of a soak that came to their end, in their order."""
        found = sorted(path.parent.name for path in self.path.glob(f"{ROUND}*/{ROUND_FILE}"))
        return [Round(self.path, self.planned, name) for name in found if name.removeprefix(ROUND).isdigit()]

    @cached_property
    def warmup(self) -> Segment:
        return Segment(self.path / "warmup", "warmup")

    @property
    def segments(self) -> tuple[Segment, ...]:
        later = [segment for _, segment in (*self.tests, *self.passes)]
        others = (segment for segment in later if segment.name != self.measure.name)
        return (self.warmup, self.measure, *others)

    @property
    def every_segment(self) -> tuple[Segment, ...]:
        """With all rounds of a soak, of which `segments` has the first alone."""
        return (*self.segments, *(one.measure for one in self.rounds if one.measure.name != self.measure.name))


@dataclass(frozen=True)
class Round(Trial):
    """A round of a soak, read as a trial of its own: its readings stand in a file of its own, with the keys of
    trial.json."""

    name: str

    @cached_property
    def data(self) -> TrialDocument:
        """round.json."""
        return cast(TrialDocument, read_json(self.path / self.name / ROUND_FILE) or {})

    @cached_property
    def rounds(self) -> "list[Round]":
        """It has none."""
        return []

    @property
    def place(self) -> int:
        """Its number, from 1."""
        return int(self.name.removeprefix(ROUND))


@dataclass(frozen=True)
class Run:
    """One run folder."""

    path: Path
    data: Json

    @cached_property
    def plan(self) -> Json:
        return read_json(self.path / "plan.json") or {}

    @cached_property
    def experiment(self) -> Json:
        return read_json(self.path / "experiment.json") or {}

    @cached_property
    def fingerprint(self) -> Json:
        return read_json(self.path / "fingerprint.json") or {}

    @cached_property
    def promised(self) -> Json | None:
        """What a run of raw_storage found of the same storages; None where none was named (`report --promised`)."""
        return read_json(self.path / "promised.json")

    @cached_property
    def trials(self) -> list[Trial]:
        """Every trial of the plan or on disk, in execution order."""
        planned = {int(entry["number"]): entry for entry in self.plan.get("trials", []) if "number" in entry}
        folder = self.path / "trials"
        found = {int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()} if folder.is_dir() else set()
        return [Trial(folder / f"{number:04d}", planned.get(number, {})) for number in sorted(planned.keys() | found)]

    def events(self) -> Iterator[Json]:
        """The events; a last line cut short by a crash is left out."""
        try:
            lines = (self.path / "events.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event


def open_run(path: str | Path) -> Run:
    """The run in a folder; refuses a folder that is none and a format newer than known."""
    folder = Path(path)
    data = read_json(folder / "run.json")
    if data is None:
        raise RecordError(f"{folder}: no run.json, so this is not a run folder; give the folder `plimsoll run` named")
    check_format(folder / "run.json", data.get("format"))
    return Run(folder, data)
