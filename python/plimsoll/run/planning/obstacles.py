"""Every reason that makes a plan impossible here, all at once, before anything is started; each with its remedy.

The knobs themselves are asked, in their order: what they would refuse in the first trial is said now.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from plimsoll.environment import StateDir
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.devices import existing
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.schedule import Constant, Poisson
from plimsoll.experiment.servers.registry import SERVERS, facts_of
from plimsoll.run.host import HERE
from plimsoll.run.planning.needs import Needs, huge_pages_bytes
from plimsoll.run.planning.pace import pace_of
from plimsoll.run.planning.places import too_small
from plimsoll.run.servers.registry import kind_of, kinds_of

SOCKET_PATH_MAX = 107
SOCKET = "build-0123456789ab/s/.s.PGSQL.65535"  # of a data set that is built: a trial's is shorter
DESCRIPTORS_BESIDE = 200
REMARKS_MAX = 3


def obstacles(plan: Plan, needs: Needs, state: StateDir) -> list[str]:
    """Reasons against the plan, each once."""
    reasons = [*_cpus(plan), *_descriptors(plan)]
    reasons += [reason for treatment in plan.treatments if (reason := unable(treatment.settings))]
    for kind, treatments in kinds_of(plan):
        reasons += kind.obstacles(plan, treatments, state)
    if kind_of(plan.experiment).is_private:
        reasons += [*_room(needs, state), *too_small(plan, state)]
    return list(dict.fromkeys(reasons))


def remarks(plan: Plan) -> list[str]:
    """What the reader of the plan should know, though it stops nothing."""
    of_servers = [text for kind, treatments in kinds_of(plan) for text in kind.remarks(plan, treatments)]
    of_workloads = [
        f"{treatment.label}: {text}" for treatment in plan.treatments for text in treatment.settings.workload.caveats()
    ]
    if len(of_workloads) > REMARKS_MAX:
        left = len(of_workloads) - REMARKS_MAX
        of_workloads = [*of_workloads[:REMARKS_MAX], f"and {left} more treatments likewise"]
    if kind_of(plan.experiment).is_private:
        return [*of_workloads, *of_servers, *_beside_the_limit(plan), *_unknown_time(plan)]
    # What becomes of somebody else's server comes first.
    return [*of_servers, *of_workloads, *_unknown_time(plan)]


def _unknown_time(plan: Plan) -> Iterator[str]:
    """Of scripts that are measured by their transactions, unless a rate says when these are due."""
    settings = plan.experiment
    if isinstance(settings.schedule, Constant | Poisson):
        return
    if settings.workload.is_users_own and settings.measure.transactions_of(settings.workload.clients) is not None:
        each_ms = 1000 * pace_of(settings).transaction_s
        yield (
            f"time: no plan knows how long a transaction of your scripts takes, so {each_ms:g} ms are assumed; once "
            "the first trial is done, the time left is told by what trials took"
        )


def _beside_the_limit(plan: Plan) -> Iterator[str]:
    sizes = {
        huge_pages_bytes(one.settings) for one in plan.treatments if one.settings.environment.memory != "unlimited"
    }
    if largest := max(sizes, default=0):
        yield (
            f"environment.huge_pages: {size.show(largest)} of huge pages do not count against environment.memory: "
            "a server that takes them has so much more, and one that does not leaves them idle"
        )


def unable(settings: Experiment) -> str | None:
    """Why the server cannot perform what trials of the workload are made of; None where it can."""
    workload, target = settings.workload, settings.target
    if target.is_of_somebody_else or workload.made_of in facts_of(target).performs:
        return None  # what somebody else's server is refused, its kind says
    able = " or ".join(f'"{name}"' for name, facts in SERVERS.items() if workload.made_of in facts.performs)
    return f"target.server = {target.server}: it does not run {workload.name}; choose {able or 'another workload'}"


def _room(needs: Needs, state: StateDir) -> Iterator[str]:
    if needs.memory_bytes > HERE.available_bytes():
        yield (
            f"environment.memory: {size.show(needs.memory_bytes)} are needed (the group and the load generator), "
            f"{size.show(HERE.available_bytes())} are available; choose a smaller environment.memory"
        )
    for place, needed in needs.placed_bytes.items():
        if Path(place).is_dir() and needed > (there := shutil.disk_usage(place).free):
            yield f"{place}: {size.show(needed)} are needed there and {size.show(there)} are free"
    free = shutil.disk_usage(existing(state.root)).free
    if needs.disk_bytes > free:
        yield (
            f"{size.show(needs.disk_bytes)} of disk are needed under {state.root}, {size.show(free)} are free; "
            "remove kept data sets (./plimsoll cache remove), or set PLIMSOLL_STATE to another folder"
        )
    path = Path(state.work) / SOCKET
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        yield f"{path}: too long for a socket's path ({SOCKET_PATH_MAX} bytes); set PLIMSOLL_STATE to a shorter path"


def _descriptors(plan: Plan) -> Iterator[str]:
    """The agent needs a file descriptor a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    clients = max(treatment.settings.workload.clients for treatment in plan.treatments)
    if most != resource.RLIM_INFINITY and clients + DESCRIPTORS_BESIDE > most:
        yield (
            f"workload.clients = {clients}: a process may open {most} files here and needs "
            f"{clients + DESCRIPTORS_BESIDE}; raise the hard limit of open files (ulimit -Hn)"
        )


def _cpus(plan: Plan) -> Iterator[str]:
    usable = HERE.cpus()
    for key in ("target_cpus", "load_cpus"):
        for wanted in {getattr(treatment.settings.environment, key) for treatment in plan.treatments}:
            if wanted != "all" and not set(cpu_lists.parse(wanted)) <= set(usable):
                yield f"environment.{key} = {wanted}: the CPUs that may be used here are {cpu_lists.show(usable)}"
