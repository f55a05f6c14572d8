"""What a run will need and every reason that makes it impossible here, all at once, before anything is started.

Times are estimates from stated rates; the progress display replaces them by what the first trials took.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.discover import PostgresInstall, servers
from plimsoll.environment.group import GroupKnob
from plimsoll.environment.state import StateDir
from plimsoll.environment.swap import SwapFile
from plimsoll.experiment import Experiment, Plan, PlannedTrial, size
from plimsoll.experiment.source import memory_of
from plimsoll.target import Connection

# Rates seen on a two-core machine with a fast virtual disk; used for estimates only.
BUILD_BYTES_PER_S = 25 * 2**20
CLONE_BYTES_PER_S = 500 * 2**20
TRIAL_OVERHEAD_S = 4.0
LOAD_MEMORY_BYTES = 256 * 2**20
SERVER_USER = "plimsoll"


@dataclass
class Needs:
    """What the run takes, and what stands in its way."""

    seconds: float = 0
    build_seconds: float = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    datasets_bytes: list[int] = field(default_factory=list)
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


def data_bytes(experiment: Experiment) -> int:
    """The size of the data set, relative sizes resolved."""
    return size.parse(experiment.workload.size, memory_bytes(experiment))


def server_user() -> str:
    """Who owns private servers: the dedicated user, or the caller when that is not root."""
    if os.geteuid() == 0:
        return SERVER_USER
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def choose_server(experiment: Experiment, found: list[PostgresInstall]) -> PostgresInstall | None:
    """The newest server of the wanted version."""
    wanted = experiment.target.version
    fitting = [server for server in found if wanted in ("any", server.version)]
    return max(fitting, key=lambda server: int(server.version), default=None)


def needs_of(plan: Plan, trials: list[PlannedTrial], state: StateDir, kept: set[int]) -> Needs:
    """Time, memory and disk of `trials`, with every reason against them; `kept`: sizes of data sets at hand."""
    needs = Needs()
    experiment = plan.experiment
    for trial in trials:
        settings = trial.treatment.settings
        warmup = settings.warmup
        needs.seconds += 0 if warmup.until == "none" else (warmup.seconds_min + warmup.seconds_max) / 2
        needs.seconds += settings.measure.seconds or 0.005 * (settings.measure.transactions or 0)
        needs.seconds += TRIAL_OVERHEAD_S
        if not experiment.target.dsn:
            needs.seconds += data_bytes(settings) / CLONE_BYTES_PER_S
    needs.datasets_bytes = sorted({data_bytes(treatment.settings) for treatment in plan.treatments})
    to_build = sum(one for one in needs.datasets_bytes if one not in kept)
    needs.build_seconds = to_build / BUILD_BYTES_PER_S
    needs.seconds += needs.build_seconds
    if experiment.target.dsn:
        _check_dsn(plan, needs)
    else:
        _check_private(plan, state, needs, to_build)
    _check_cpus(plan, needs)
    return needs


def _check_dsn(plan: Plan, needs: Needs) -> None:
    try:
        connection = Connection.from_dsn(plan.experiment.target.dsn or "")
    except ValueError as error:
        needs.impossible.append(str(error))
        return
    for factor in plan.experiment.factors:
        if factor.path.startswith(("environment.", "target.")) and factor.path != "environment.load_cpus":
            needs.impossible.append(
                f"{factor.path} cannot be varied on an existing server (target.dsn): nothing of it is configured or "
                "restarted; vary workload.* or leave target.dsn out"
            )
        elif factor.path in ("workload.size", "workload.seed") and len(factor.levels) > 1:
            needs.impossible.append(f"{factor.path} cannot be varied on an existing server: its data are loaded once")
    needs.remarks.append(
        f"target.dsn: schema {connection.schema} is made in database {connection.dbname} and dropped afterwards; "
        "memory, swap, CPUs, caches and settings of the server stay as they are and cannot be varied"
    )
    try:
        with connection.open(connection.dbname) as opened:
            row = opened.execute("select 1 from pg_namespace where nspname = %s", [connection.schema]).fetchone()
            if row:
                needs.impossible.append(
                    f"database {connection.dbname} already has a schema {connection.schema}, and it is not known to be "
                    f'ours; drop it ("drop schema {connection.schema} cascade") or name another database'
                )
    except Exception as error:  # whatever the driver raises, the user's remedy is the same
        needs.impossible.append(f"target.dsn: the server cannot be reached: {str(error).strip().splitlines()[0]}")


def _check_private(plan: Plan, state: StateDir, needs: Needs, to_build: int) -> None:
    experiments = [treatment.settings for treatment in plan.treatments]
    host = host_memory_bytes()
    limits = [memory_of(one, host) for one in experiments if one.environment.memory != "unlimited"]
    swaps = [size.parse(one.environment.swap) for one in experiments if one.environment.swap != "as found"]
    if os.geteuid() == 0:
        import pwd

        try:
            pwd.getpwnam(SERVER_USER)
        except KeyError:
            needs.impossible.append(
                f"the user {SERVER_USER} does not exist, and the server never runs as root; ./plimsoll setup makes it"
            )
    found = servers()
    for one in experiments:
        if choose_server(one, found) is None:
            versions = ", ".join(server.version for server in found) or "none"
            needs.impossible.append(
                f"target.version = {one.target.version}: no such PostgreSQL is installed (found: {versions}); "
                "install its server package, or choose another version"
            )
            break
    if limits or any(one.environment.target_cpus != "all" for one in experiments):
        possible = GroupKnob("plan").available()
        if not possible.ok:
            needs.impossible.append(f"a memory limit needs control groups: {possible.reason}; {possible.remedy}")
    if any(swaps):
        possible = SwapFile(state, "plan").available()
        if not possible.ok:
            needs.impossible.append(f"a swap file cannot be made: {possible.reason}; {possible.remedy}")
    needs.memory_bytes = (max(limits) if limits else 0) + LOAD_MEMORY_BYTES
    if needs.memory_bytes > host_available_bytes():
        needs.impossible.append(
            f"environment.memory: {size.show(needs.memory_bytes)} are needed (the group and the load generator), "
            f"{size.show(host_available_bytes())} are available; choose a smaller environment.memory"
        )
    largest = max(needs.datasets_bytes)
    # The kept data set, its clone, what the trial writes (WAL and growth), and the swap file.
    needs.disk_bytes = int(to_build * 1.2) + int(largest * 1.2) + 2**30 + (max(swaps) if swaps else 0)
    free = shutil.disk_usage(_existing(state.root)).free
    if needs.disk_bytes > free:
        needs.impossible.append(
            f"{size.show(needs.disk_bytes)} of disk are needed under {state.root}, {size.show(free)} are free; "
            "./plimsoll cache remove frees kept data sets, PLIMSOLL_STATE names another folder"
        )
    for treatment in plan.treatments:
        one = treatment.settings
        buffers = one.target.settings.get("shared_buffers")
        if one.environment.memory != "unlimited" and buffers is not None and size.is_size(buffers):
            room = memory_of(one, host) + (
                0 if one.environment.swap == "as found" else size.parse(one.environment.swap)
            )
            if size.parse(str(buffers), memory_of(one, host)) >= room:
                needs.remarks.append(
                    f"{treatment.label}: larger than memory and swap together; an out-of-memory kill is a likely result"
                )


def _check_cpus(plan: Plan, needs: Needs) -> None:
    usable = cpu_lists.usable()
    for key in ("target_cpus", "load_cpus"):
        for wanted in {getattr(treatment.settings.environment, key) for treatment in plan.treatments}:
            if wanted != "all" and not set(cpu_lists.parse(wanted)) <= set(usable):
                needs.impossible.append(
                    f"environment.{key} = {wanted}: this machine lets us use CPUs {cpu_lists.show(usable)}"
                )


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
