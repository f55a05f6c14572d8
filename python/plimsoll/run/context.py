"""What a trial needs of the run that it belongs to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment.state import StateDir
from plimsoll.experiment import PlannedTrial, Source
from plimsoll.run.host import HERE, Host
from plimsoll.run.observer import Observer
from plimsoll.run.signals import Interrupts


@dataclass
class RunContext:
    """Where a run's record and state lie, the machine that it is on, who follows it, and how it is stopped."""

    source: Source
    out: Path
    state: StateDir
    observer: Observer
    host: Host = field(default=HERE, kw_only=True)
    # Settings of the machine that each turn of a server sets, and no trial arranges (run/windows/turning.py).
    at_turns: frozenset[str] = field(default=frozenset(), kw_only=True)
    interrupts: Interrupts = field(init=False)

    def __post_init__(self) -> None:
        self.interrupts = Interrupts(self.observer)

    def observe(self, observer: Observer) -> None:
        """Tells `observer` from now on."""
        self.observer = self.interrupts.observer = observer

    def trial_name(self, trial: PlannedTrial) -> str:
        """Of a trial's journal, group and work folder: short, since a socket's path may have 107 bytes."""
        return f"{hashlib.sha256(str(self.out).encode()).hexdigest()[:8]}-{trial.number:04d}"
