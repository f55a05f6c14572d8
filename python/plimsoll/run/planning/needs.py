"""What a run will need: time, memory, disk. run/planning/obstacles.py adds every reason that makes it impossible here.

Times are estimates from stated rates; the progress display replaces them by what the first trials took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.experiment import Experiment, Plan, PlannedTrial
from plimsoll.experiment.schedule import Constant, Poisson
from plimsoll.run.servers.registry import kind_of
from plimsoll.run.sizes import data_bytes, memory_bytes, swap_bytes

# Rates seen on a two-core machine with a fast virtual disk; used for estimates only.
BUILD_BYTES_PER_S = 100 * 2**20
CLONE_BYTES_PER_S = 500 * 2**20
TRIAL_OVERHEAD_S = 6.0
TRANSACTION_S = 0.001
CLIENTS_AT_ONCE = 4
LOAD_MEMORY_BYTES = 256 * 2**20
TRIAL_WRITES_BYTES = 2**30
TRANSACTION_WRITES_BYTES = 5 * 2**10


@dataclass
class Needs:
    """What the run takes, and what stands in its way."""

    seconds: float = 0
    build_seconds: float = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    placed_bytes: dict[str, int] = field(default_factory=dict)  # by folder, of data that lies at a place of its own
    impossible: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def measured_seconds(experiment: Experiment) -> float:
    """How long the measured segment takes: as asked, or by the rate, or by what a transaction takes about."""
    if (own := experiment.workload.own_seconds(BUILD_BYTES_PER_S)) is not None:
        return own
    if experiment.measure.seconds is not None:
        return experiment.measure.seconds
    transactions = experiment.measure.transactions_of(experiment.workload.clients) or 0
    if isinstance(experiment.schedule, Constant | Poisson):
        return transactions / experiment.schedule.rate
    return TRANSACTION_S * transactions / min(experiment.workload.clients, CLIENTS_AT_ONCE)


def needs_of(
    plan: Plan, trials: list[PlannedTrial], missing_bytes: list[int], *, has_tables: Callable[[PlannedTrial], bool]
) -> Needs:
    """Time, memory and disk of `trials`; `missing_bytes`: sizes of the data sets that have to be built first.

    `has_tables`: of a trial that goes on with tables that are there, and have their room.
    """
    needs = Needs()
    private = kind_of(plan.experiment).is_private
    for trial in trials:
        settings = trial.treatment.settings
        warmup = settings.warmup
        needs.seconds += 0 if warmup.until == "none" else (warmup.seconds_min + warmup.seconds_max) / 2
        needs.seconds += measured_seconds(settings)
        needs.seconds += TRIAL_OVERHEAD_S + (data_bytes(settings) / CLONE_BYTES_PER_S if private else 0)
    needs.build_seconds = sum(missing_bytes) / BUILD_BYTES_PER_S
    needs.seconds += needs.build_seconds
    if private:
        experiments = [treatment.settings for treatment in plan.treatments]
        limits = [memory_bytes(one) for one in experiments if one.environment.memory != "unlimited"]
        needs.memory_bytes = max(limits, default=0) + LOAD_MEMORY_BYTES
        beginning = [trial.treatment.settings for trial in trials if not has_tables(trial)]
        largest = max((data_bytes(one) for one in beginning if one.target.files.data is None), default=0)
        # The kept data sets, one clone, what a trial writes (WAL and growth), and the swap file.
        most = max(one.measure.transactions_of(one.workload.clients) or 0 for one in experiments)
        writes = TRIAL_WRITES_BYTES + TRANSACTION_WRITES_BYTES * most
        growing = int(sum(missing_bytes) * 1.2) + int(largest * 1.2) + writes
        growing += max((one.workload.bytes_beside() for one in beginning), default=0)
        needs.disk_bytes = growing + max(swap_bytes(one) or 0 for one in experiments)
        for one in beginning:
            if (place := one.target.files.data) is not None:
                needed = int(data_bytes(one) * 1.2) + writes
                needs.placed_bytes[place] = max(needs.placed_bytes.get(place, 0), needed)
    return needs
