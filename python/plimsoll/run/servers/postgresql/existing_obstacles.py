"""Why a plan cannot be run on a server that somebody else runs, and what its reader has to know of that."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from plimsoll.experiment import Experiment, Plan
from plimsoll.experiment.environment import Environment
from plimsoll.experiment.target import Target
from plimsoll.run.servers.postgresql.schema import schema_in_use
from plimsoll.target import Connection

DATA_KEYS = (
    "size", "seed", "scale", "partitions", "partition_method", "unlogged", "fillfactor", "data", "warehouses",
    "foreign_keys",
)  # fmt: skip


def remark_of(dsn: str, settings: Experiment) -> str:
    """What becomes of the server and its tables."""
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


def obstacles_of(plan: Plan) -> Iterator[str]:
    """What of the plan cannot be had on it, each with its remedy; the server itself is asked last."""
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
