"""What a trial writes down of itself as it goes on: trial.json (schema/record.md)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.experiment import PlannedTrial
from plimsoll.record import writer
from plimsoll.run.observer import Observer


@dataclass
class TrialLog:
    """The keys of trial.json, filled as the trial goes on, so that a failure keeps what was known."""

    trial: PlannedTrial
    facts: dict[str, Any] = field(default_factory=dict)
    log_tail: str | None = None

    @contextmanager
    def phase(self, name: str, observer: Observer) -> Iterator[None]:
        """Times a phase and tells that it began."""
        entry = {"name": name, "start_ns": time.monotonic_ns(), "end_ns": None}
        self.facts.setdefault("phases", []).append(entry)
        observer.event("phase", phase=name)
        try:
            yield
        finally:
            entry["end_ns"] = time.monotonic_ns()

    def caveat(self, text: str) -> None:
        """Something the reader of the result has to know."""
        self.facts.setdefault("caveats", []).append(text)

    def write(self, folder: Path, status: str, reason: str | None = None) -> None:
        """Writes trial.json below the run's `folder`: what is known, with how it ended."""
        trial = self.trial
        document = {
            "number": trial.number,
            "block": trial.block,
            "treatment": trial.treatment.id,
            "duplicate": trial.duplicate,
            "status": status,
            "reason": reason,
            "server_log_tail": self.log_tail if status == "failed" else None,
            "epoch_minus_monotonic_ns": time.time_ns() - time.monotonic_ns(),
            "caveats": [],
            **self.facts,
        }
        writer.write_trial(folder, document)
