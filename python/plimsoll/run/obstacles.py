"""Every reason that makes a plan impossible here, all at once, before anything is started; each with its remedy.

The knobs themselves are asked, in their order: what they would refuse in the first trial is said now.
"""

from __future__ import annotations

import os
import pwd
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg

from plimsoll.environment import StateDir
from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment.devices import existing
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.environment import Environment
from plimsoll.experiment.target import Target
from plimsoll.run import knobs
from plimsoll.run.existing import schema_in_use
from plimsoll.run.planning import (
    SERVER_USER,
    Needs,
    host_available_bytes,
    installed,
    memory_bytes,
    server_version,
    swap_bytes,
)
from plimsoll.target import Connection

SOCKET_PATH_MAX = 107
SOCKET = "build-0123456789ab/s/.s.PGSQL.65535"  # of a data set that is built: a trial's is shorter
DATA_KEYS = (
    "size", "seed", "scale", "partitions", "partition_method", "unlogged", "fillfactor", "data", "warehouses",
    "foreign_keys",
)  # fmt: skip
CONNECTIONS_BESIDE = 6  # three that only superusers get, and the observer's
DESCRIPTORS_BESIDE = 200
REMARKS_MAX = 3


def obstacles(plan: Plan, needs: Needs, state: StateDir) -> list[str]:
    """Reasons against the plan, each once."""
    found = [*_cpus(plan), *_descriptors(plan)]
    if plan.experiment.target.dsn:
        found += _existing_server(plan)
    else:
        for treatment in plan.treatments:
            found += _private(treatment.settings, state)
        found += _room(needs, state)
    return list(dict.fromkeys(found))


def remarks(plan: Plan) -> list[str]:
    """What the reader of the plan should know, though it stops nothing."""
    found = []
    for treatment in plan.treatments:
        found += [f"{treatment.label}: {text}" for text in treatment.settings.workload.caveats()]
    if len(found) > REMARKS_MAX:
        found = [*found[:REMARKS_MAX], f"and {len(found) - REMARKS_MAX} more treatments likewise"]
    if plan.experiment.target.dsn:
        return [_dsn_remark(plan.experiment.target.dsn, plan.treatments[0].settings), *found]
    for treatment in plan.treatments:
        one = treatment.settings
        buffers = one.target.settings.get("shared_buffers")
        if one.environment.memory == "unlimited" or not size.is_size(buffers):
            continue
        if size.parse(str(buffers), memory_bytes(one)) >= memory_bytes(one) + (swap_bytes(one) or 0):
            found.append(f"{treatment.label}: larger than memory and swap together; an out-of-memory kill is likely")
    return found


def _dsn_remark(dsn: str, settings: Experiment) -> str:
    text = (
        "target.dsn: a schema is made in the database you name and dropped afterwards; memory, swap, CPUs, caches "
        "and settings of the server stay as they are and cannot be varied"
    )
    try:
        used = schema_in_use(Connection.from_dsn(dsn), settings)
    except (ValueError, psycopg.Error):
        return text  # one of the obstacles
    if used is None:
        return text
    return (
        f"target.dsn: the tables in schema {used} are used as they are, and keep what the load does to them; memory, "
        "swap, CPUs, caches and settings of the server stay as they are and cannot be varied"
    )


def _existing_server(plan: Plan) -> Iterator[str]:
    experiment = plan.experiment
    if why := experiment.workload.private_only:
        yield f"target.dsn: {experiment.workload.name} runs on private servers only: {why}; leave target.dsn out"
        return
    try:
        connection = Connection.from_dsn(experiment.target.dsn or "")
    except ValueError as error:
        yield f"target.dsn: {error}"
        return
    given = [path for factor in experiment.factors for path in factor.paths]
    default = Environment()
    given += [f"environment.{name}" for name, value in experiment.environment if value != getattr(default, name)]
    given += [f"target.settings.{name}" for name in experiment.target.settings]
    given += [f"target.files.{name}" for name in experiment.target.files.given]
    if experiment.target.transport != Target().transport:
        given.append("target.transport")
    for path in dict.fromkeys(given):
        if path.startswith(("environment.", "target.")) and path != "environment.load_cpus":
            yield (
                f"{path} cannot be set or varied on an existing server (target.dsn): nothing of it is configured or "
                "restarted; vary workload.* or leave target.dsn out"
            )
    for factor in experiment.factors:
        fixed = [path for path in factor.paths if path in {f"workload.{key}" for key in DATA_KEYS}]
        if fixed and len(factor.levels) > 1:
            yield f"{fixed[0]} cannot be varied on an existing server: its data are loaded once"
    try:
        room = connection.room()
    except psycopg.Error as error:
        yield f"target.dsn: the server cannot be reached: {str(error).strip().splitlines()[0]}"
        return
    most = max(treatment.settings.workload.clients for treatment in plan.treatments)
    if most > room:
        yield (
            f"workload.clients = {most}: the server has room for {room} more connections (max_connections, less those "
            "in use and reserved); fewer clients, or a larger max_connections there"
        )
    try:
        schema_in_use(connection, plan.treatments[0].settings)
    except ValueError as error:
        yield f"target.dsn: {error}"
    except psycopg.Error as error:
        yield f"target.dsn: its tables cannot be read: {str(error).strip().splitlines()[0]}"


def _private(one: Experiment, state: StateDir) -> Iterator[str]:
    if os.geteuid() == 0 and SERVER_USER not in {account.pw_name for account in pwd.getpwall()}:
        yield f"the user {SERVER_USER} does not exist, and the server never runs as root; ./plimsoll setup creates it"
    if server_version(one) is None:
        versions = ", ".join(server.version for server in installed()) or "none"
        yield (
            f"target.version = {one.target.version}: no such PostgreSQL is installed (found: {versions}); "
            "install its server package, or choose another version"
        )
    allowed = one.target.settings.get("max_connections")
    needed = one.workload.clients + CONNECTIONS_BESIDE
    if isinstance(allowed, int | str) and str(allowed).isdigit() and int(allowed) < needed:
        yield (
            f"target.settings.max_connections = {allowed} is too few for {one.workload.clients} clients; leave it out, "
            f"or set at least {needed}"
        )
    site = knobs.site_of(one, state, "plan")
    for knob in knobs.KNOBS:
        yield from knob.obstacles(site)


def _room(needs: Needs, state: StateDir) -> Iterator[str]:
    if needs.memory_bytes > host_available_bytes():
        yield (
            f"environment.memory: {size.show(needs.memory_bytes)} are needed (the group and the load generator), "
            f"{size.show(host_available_bytes())} are available; choose a smaller environment.memory"
        )
    for place, needed in needs.placed_bytes.items():
        if Path(place).is_dir() and needed > (there := shutil.disk_usage(place).free):
            yield f"target.files.data = {place}: {size.show(needed)} are needed and {size.show(there)} are free there"
    free = shutil.disk_usage(existing(state.root)).free
    if needs.disk_bytes > free:
        yield (
            f"{size.show(needs.disk_bytes)} of disk are needed under {state.root}, {size.show(free)} are free; "
            "./plimsoll cache remove frees kept data sets, PLIMSOLL_STATE names another folder"
        )
    path = Path(state.work) / SOCKET
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        yield f"{path}: too long for a socket's path ({SOCKET_PATH_MAX} bytes); PLIMSOLL_STATE names a shorter folder"


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
    usable = cpu_lists.usable()
    for key in ("target_cpus", "load_cpus"):
        for wanted in {getattr(treatment.settings.environment, key) for treatment in plan.treatments}:
            if wanted != "all" and not set(cpu_lists.parse(wanted)) <= set(usable):
                yield f"environment.{key} = {wanted}: the CPUs that may be used here are {cpu_lists.show(usable)}"
