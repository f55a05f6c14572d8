"""What a run will need: time, memory, disk. run/obstacles.py adds every reason that makes it impossible here.

Times are estimates from stated rates; the progress display replaces them by what the first trials took.
"""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from plimsoll.environment.discover import PostgresInstall, servers
from plimsoll.experiment import Experiment, Plan, PlannedTrial, size
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.environment import AS_FOUND, Environment
from plimsoll.experiment.schedule import Constant, Poisson
from plimsoll.experiment.source import memory_of

# Rates seen on a two-core machine with a fast virtual disk; used for estimates only.
BUILD_BYTES_PER_S = 100 * 2**20
CLONE_BYTES_PER_S = 500 * 2**20
TRIAL_OVERHEAD_S = 6.0
TRANSACTION_S = 0.001
CLIENTS_AT_ONCE = 4
LOAD_MEMORY_BYTES = 256 * 2**20
# Guesses, for want of a measurement: what a stream of 22 queries takes at scale factor 1, and the rest of a pass.
STREAM_S_A_SCALE = 60.0
STREAM_S_MIN = 2.0
TRIAL_WRITES_BYTES = 2**30
TRANSACTION_WRITES_BYTES = 5 * 2**10
SERVER_USER = "plimsoll"


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


def host_memory_bytes() -> int:
    """MemTotal."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def host_available_bytes() -> int:
    """MemAvailable."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return host_memory_bytes()


def memory_bytes(experiment: Experiment) -> int:
    """What "memory" means in this treatment's relative sizes: the group's limit, or the host's memory."""
    return memory_of(experiment, host_memory_bytes())


def environment_in_bytes(experiment: Experiment) -> Environment:
    """The environment of this treatment, relative sizes resolved."""
    memory = memory_bytes(experiment)
    table = size.in_bytes(experiment.environment.model_dump(mode="json"), memory)
    if experiment.environment.memory != "unlimited":
        table["memory"] = memory  # which was relative to the host's
    return Environment.model_validate(table)


def data_bytes(experiment: Experiment) -> int:
    """The size of the data set, relative sizes resolved; what a setup file adds is not known."""
    return experiment.workload.estimated_bytes(memory_bytes(experiment), embedded=is_embedded(experiment))


def measured_seconds(experiment: Experiment) -> float:
    """How long the measured segment takes: as asked, or by the rate, or by what a transaction takes about."""
    if isinstance(experiment.workload, DecisionSupport):
        return tests_seconds(experiment.workload)
    if experiment.measure.seconds is not None:
        return experiment.measure.seconds
    transactions = experiment.measure.transactions_of(experiment.workload.clients) or 0
    if isinstance(experiment.schedule, Constant | Poisson):
        return transactions / experiment.schedule.rate
    return TRANSACTION_S * transactions / min(experiment.workload.clients, CLIENTS_AT_ONCE)


def tests_seconds(workload: DecisionSupport) -> float:
    """How long the tests of a decision-support trial take, about: a stream by its scale factor, two at once."""
    stream_s = STREAM_S_MIN + STREAM_S_A_SCALE * workload.scale_factor
    passes: float = ("power" in workload.tests) + workload.explain + (workload.answers_against is not None)
    if "throughput" in workload.tests:
        passes += workload.repeats * max(1.0, workload.streams_run / 2)
    load = workload.estimated_bytes() / BUILD_BYTES_PER_S
    if workload.answers_against == "duckdb":
        passes += 1
        load += workload.estimated_bytes(embedded=True) / BUILD_BYTES_PER_S
    return stream_s * passes + (load if "load" in workload.tests else 0)


def server_user() -> str:
    """Who owns private servers: the dedicated user, or the caller when that is not root."""
    if os.geteuid() == 0:
        return SERVER_USER
    return pwd.getpwuid(os.geteuid()).pw_name


def own(user: str) -> tuple[int, int]:
    """User and group number of the server's user."""
    account = pwd.getpwnam(user)
    return account.pw_uid, account.pw_gid


@functools.cache
def installed() -> tuple[PostgresInstall, ...]:
    """The servers found on this machine; looked for once, since each is asked its version."""
    return tuple(servers())


def choose_server(experiment: Experiment) -> PostgresInstall | None:
    """The newest server of the wanted version."""
    wanted = experiment.target.version
    fitting = [server for server in installed() if wanted in ("any", server.version)]
    return max(fitting, key=lambda server: int(server.version), default=None)


def is_embedded(experiment: Experiment) -> bool:
    """Whether the server lives in its driver's process and has no installation of its own."""
    return experiment.target.server == "duckdb"


def server_version(experiment: Experiment) -> str | None:
    """The version of the server that is run; None where none of the wanted version is installed."""
    if is_embedded(experiment):
        return metadata.version("duckdb")
    install = choose_server(experiment)
    return None if install is None else install.version


def swap_bytes(experiment: Experiment) -> int | None:
    """Swap the group may use; None: as the machine has it."""
    wanted = experiment.environment.swap
    return None if wanted == AS_FOUND else size.parse(wanted, memory_bytes(experiment))


def _beside_bytes(experiment: Experiment) -> int:
    """Of the DuckDB that answers are compared with; it is gone before the next test begins."""
    workload = experiment.workload
    if not isinstance(workload, DecisionSupport) or workload.answers_against != "duckdb":
        return 0
    return workload.estimated_bytes(embedded=True)


def needs_of(
    plan: Plan, trials: list[PlannedTrial], missing_bytes: list[int], *, has_tables: Callable[[PlannedTrial], bool]
) -> Needs:
    """Time, memory and disk of `trials`; `missing_bytes`: sizes of the data sets that have to be built first.

    `has_tables`: of a trial that goes on with tables that are there, and have their room.
    """
    needs = Needs()
    private = not plan.experiment.target.dsn
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
        growing += max((_beside_bytes(one) for one in beginning), default=0)
        needs.disk_bytes = growing + max(swap_bytes(one) or 0 for one in experiments)
        for one in beginning:
            if (place := one.target.files.data) is not None:
                needed = int(data_bytes(one) * 1.2) + writes
                needs.placed_bytes[place] = max(needs.placed_bytes.get(place, 0), needed)
    return needs
