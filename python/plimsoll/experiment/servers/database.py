"""What an experiment on PostgreSQL may hold: all that the tables allow, but for what other servers alone have."""

from __future__ import annotations

from plimsoll.experiment.measuring import Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload


def check(workload: Workload, target: Target, warmup: Warmup, probes: Probes) -> None:
    """Raises ValueError with what is allowed."""
    del workload, warmup, probes
    if target.files.program is not None:
        raise ValueError(
            'target.files.program is of web servers, and target.server is "postgresql"; allowed: target.files.data, '
            "wal, temp and tablespaces"
        )
