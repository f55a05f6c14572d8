"""What a run will need: time, memory, disk. run/planning/obstacles.py adds every reason that makes it impossible here.

Times are estimates from stated rates; the progress display replaces them by what the first trials took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.experiment import Experiment, Plan, PlannedTrial, size
from plimsoll.experiment.environment import AS_FOUND
from plimsoll.experiment.schedule import Constant, Poisson
from plimsoll.run.planning.pace import HOST, Pace, around_s, pace_of
from plimsoll.run.planning.places import folder_of, image_bytes
from plimsoll.run.planning.shape import shape_of
from plimsoll.run.servers.registry import kind_of
from plimsoll.run.sizes import data_bytes, memory_bytes, swap_bytes

# Rates seen on a two-core machine with a fast virtual disk; used for estimates only.
BUILD_BYTES_PER_S = 100 * 2**20
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


def measured_seconds(experiment: Experiment, pace: Pace = HOST) -> float:
    """How long the measured segment takes: as asked, or by the rate, or by what a transaction takes about."""
    if (own := experiment.workload.own_seconds(BUILD_BYTES_PER_S)) is not None:
        return own
    if experiment.measure.seconds is not None:
        return experiment.measure.seconds
    transactions = experiment.measure.transactions_of(experiment.workload.clients) or 0
    if isinstance(experiment.schedule, Constant | Poisson):
        return transactions / experiment.schedule.rate
    return pace.transaction_s * transactions / min(experiment.workload.clients, pace.clients_at_once)


def needs_of(
    plan: Plan, trials: list[PlannedTrial], missing_bytes: list[int], *, has_tables: Callable[[PlannedTrial], bool]
) -> Needs:
    """Time, memory and disk of `trials`; `missing_bytes`: sizes of the data sets that have to be built first.

    `has_tables`: of a trial that goes on with tables that are there, and have their room.
    """
    needs = Needs()
    shape = shape_of(plan.experiment.design.kind)
    private, pace = kind_of(plan.experiment).is_private, pace_of(plan.experiment)
    for trial in trials:
        settings = trial.treatment.settings
        warmup = settings.warmup
        needs.seconds += 0 if warmup.until == "none" else (warmup.seconds_min + warmup.seconds_max) / 2
        own = shape.measured_seconds(plan.experiment)
        needs.seconds += measured_seconds(settings, pace) if own is None else own
        needs.seconds += around_s(settings, pace, is_private=private)
    if (most := shape.seconds_max(plan.experiment)) is not None:
        needs.seconds = min(needs.seconds, most)
    needs.build_seconds = sum(missing_bytes) / BUILD_BYTES_PER_S
    needs.seconds += needs.build_seconds + (pace.boot_s if trials else 0)
    if private:
        # A search for the load line plans its trials as it goes on.
        one_of_each = [PlannedTrial(0, 1, 1, treatment, False) for treatment in plan.treatments]
        for each in shape.at_once(plan.trials or one_of_each):
            servers = [trial.treatment.settings for trial in each]
            needed = sum(server_memory_bytes(server) + huge_pages_bytes(server) for server in servers)
            needs.memory_bytes = max(needs.memory_bytes, needed + LOAD_MEMORY_BYTES * len(each))
        for each in shape.at_once(trials if plan.trials else one_of_each):
            _make_room(needs, each, sum(missing_bytes), has_tables)
    return needs


def server_memory_bytes(settings: Experiment) -> int:
    """What the group of a server may take; 0 where there is no limit, which is no promise."""
    return 0 if settings.environment.memory == "unlimited" else memory_bytes(settings)


def huge_pages_bytes(settings: Experiment) -> int:
    """What is taken from the machine for explicit huge pages, which count against no group's limit."""
    wanted = settings.environment.huge_pages
    return 0 if wanted == AS_FOUND else size.parse(wanted, memory_bytes(settings))


def _make_room(
    needs: Needs, together: list[PlannedTrial], missing_bytes: int, has_tables: Callable[[PlannedTrial], bool]
) -> None:
    """The disk that servers need which are up at once: clones, what trials write (WAL and growth), and swap files."""
    disk, placed = int(missing_bytes * 1.2), dict[str, int]()
    for trial in together:
        settings = trial.treatment.settings
        transactions = settings.measure.transactions_of(settings.workload.clients) or 0
        if (writes := settings.workload.written_bytes()) is None:
            writes = TRIAL_WRITES_BYTES + TRANSACTION_WRITES_BYTES * transactions
        disk += writes + (swap_bytes(settings) or 0)
        for folder, images in image_bytes(settings).items():
            if folder is None:
                disk += images
            else:
                placed[folder] = placed.get(folder, 0) + images
        if has_tables(trial):
            continue
        disk += settings.workload.bytes_beside()
        clone = int(data_bytes(settings) * 1.2)
        if (place := settings.target.files.data) is None:
            disk += clone
        elif (folder := folder_of(settings, place)) is not None:
            placed[folder] = placed.get(folder, 0) + clone + writes
    needs.disk_bytes = max(needs.disk_bytes, disk)
    for place, needed in placed.items():
        needs.placed_bytes[place] = max(needs.placed_bytes.get(place, 0), needed)
