"""Every reason that makes a plan impossible here, all at once, before anything is started; each with its remedy.

The knobs themselves are asked: what they would refuse in the first trial is said now.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg

from plimsoll.environment import GroupKnob, ReadAhead, StateDir, SwapFile, Sysctl, TransparentHugePages
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.devices import existing
from plimsoll.environment.knob import Availability
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.model import AS_FOUND, Environment
from plimsoll.run.planning import (
    SERVER_USER,
    Needs,
    choose_server,
    host_available_bytes,
    installed,
    memory_bytes,
    swap_bytes,
)
from plimsoll.target import Connection

SOCKET_PATH_MAX = 107
SOCKET = "12345678-0001/.s.PGSQL.5432"
SWAP_MIN_BYTES = 10 * os.sysconf("SC_PAGE_SIZE")


def obstacles(plan: Plan, needs: Needs, state: StateDir) -> list[str]:
    """Reasons against the plan, each once."""
    found = list(_cpus(plan))
    if plan.experiment.target.dsn:
        found += _existing_server(plan)
    else:
        for treatment in plan.treatments:
            found += _private(treatment.settings, state)
        found += _room(needs, state)
    return list(dict.fromkeys(found))


def remarks(plan: Plan) -> list[str]:
    """What the reader of the plan should know, though it stops nothing."""
    if plan.experiment.target.dsn:
        return [
            "target.dsn: a schema is made in the database you name and dropped afterwards; memory, swap, CPUs, caches "
            "and settings of the server stay as they are and cannot be varied"
        ]
    found = []
    for treatment in plan.treatments:
        one = treatment.settings
        buffers = one.target.settings.get("shared_buffers")
        if one.environment.memory == "unlimited" or not size.is_size(buffers):
            continue
        if size.parse(str(buffers), memory_bytes(one)) >= memory_bytes(one) + (swap_bytes(one) or 0):
            found.append(f"{treatment.label}: larger than memory and swap together; an out-of-memory kill is likely")
    return found


def _existing_server(plan: Plan) -> Iterator[str]:
    experiment = plan.experiment
    try:
        connection = Connection.from_dsn(experiment.target.dsn or "")
    except ValueError as error:
        yield f"target.dsn: {error}"
        return
    given = [path for factor in experiment.factors for path in factor.paths]
    default = Environment()
    given += [f"environment.{name}" for name, value in experiment.environment if value != getattr(default, name)]
    given += [f"target.settings.{name}" for name in experiment.target.settings]
    for path in dict.fromkeys(given):
        if path.startswith(("environment.", "target.")) and path != "environment.load_cpus":
            yield (
                f"{path} cannot be set or varied on an existing server (target.dsn): nothing of it is configured or "
                "restarted; vary workload.* or leave target.dsn out"
            )
    for factor in experiment.factors:
        fixed = [path for path in factor.paths if path in ("workload.size", "workload.seed")]
        if fixed and len(factor.levels) > 1:
            yield f"{fixed[0]} cannot be varied on an existing server: its data are loaded once"
    try:
        with connection.open(connection.dbname):
            pass
    except psycopg.Error as error:
        yield f"target.dsn: the server cannot be reached: {str(error).strip().splitlines()[0]}"


def _private(one: Experiment, state: StateDir) -> Iterator[str]:
    if os.geteuid() == 0 and SERVER_USER not in {account.pw_name for account in pwd.getpwall()}:
        yield f"the user {SERVER_USER} does not exist, and the server never runs as root; ./plimsoll setup makes it"
    if choose_server(one) is None:
        versions = ", ".join(server.version for server in installed()) or "none"
        yield (
            f"target.version = {one.target.version}: no such PostgreSQL is installed (found: {versions}); "
            "install its server package, or choose another version"
        )
    wanted = one.environment
    swap = swap_bytes(one)
    if wanted.memory != "unlimited":
        yield from _refusal("environment.memory", GroupKnob("plan").available())
    elif swap == 0:
        yield "environment.swap = 0 keeps a group from swapping, and there is none; set environment.memory too"
    if wanted.target_cpus != "all":
        yield from _refusal("environment.target_cpus", GroupKnob("plan").available())
    if swap:
        yield from _refusal("environment.swap", SwapFile(state, "plan").available())
        if swap < SWAP_MIN_BYTES:
            yield f"environment.swap = {swap} bytes is too small; use 0 or at least {SWAP_MIN_BYTES}"
    for name in wanted.sysctl:
        yield from _refusal(f"environment.sysctl.{name}", Sysctl(name).available())
    if wanted.read_ahead != AS_FOUND:
        yield from _refusal("environment.read_ahead", ReadAhead(existing(state.root)).available())
    if wanted.transparent_huge_pages != AS_FOUND:
        yield from _refusal("environment.transparent_huge_pages", TransparentHugePages().available())


def _refusal(key: str, answer: Availability) -> Iterator[str]:
    if not answer.ok:
        yield f"{key}: {answer.reason}; {answer.remedy}"


def _room(needs: Needs, state: StateDir) -> Iterator[str]:
    if needs.memory_bytes > host_available_bytes():
        yield (
            f"environment.memory: {size.show(needs.memory_bytes)} are needed (the group and the load generator), "
            f"{size.show(host_available_bytes())} are available; choose a smaller environment.memory"
        )
    free = shutil.disk_usage(existing(state.root)).free
    if needs.disk_bytes > free:
        yield (
            f"{size.show(needs.disk_bytes)} of disk are needed under {state.root}, {size.show(free)} are free; "
            "./plimsoll cache remove frees kept data sets, PLIMSOLL_STATE names another folder"
        )
    path = Path(state.work) / SOCKET
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        yield f"{path}: too long for a socket's path ({SOCKET_PATH_MAX} bytes); PLIMSOLL_STATE names a shorter folder"


def _cpus(plan: Plan) -> Iterator[str]:
    usable = cpu_lists.usable()
    for key in ("target_cpus", "load_cpus"):
        for wanted in {getattr(treatment.settings.environment, key) for treatment in plan.treatments}:
            if wanted != "all" and not set(cpu_lists.parse(wanted)) <= set(usable):
                yield f"environment.{key} = {wanted}: this machine lets us use CPUs {cpu_lists.show(usable)}"
