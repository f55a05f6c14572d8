"""The schema that a run makes on a server of somebody else's, and drops; or the one that it uses as it is."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
from psycopg import sql

from plimsoll.environment import Fault
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.experiment import Experiment
from plimsoll.run.requests import data_request
from plimsoll.target import Connection, bank
from plimsoll.target.connection import stored_password

_OURS = re.compile(r"plimsoll_[a-z0-9_]{1,40}_[0-9a-f]{6}")


def schema_name(run: str) -> str:
    """A name for a run's schema that nobody else has: undo knows no more than the name, and drops what bears it."""
    short = re.sub(r"[^a-z0-9]+", "_", run.lower())[:40].strip("_") or "run"
    return f"plimsoll_{short}_{secrets.token_hex(3)}"


@puts_back("schema", survives_reboot=True)
def _drop(args: Args) -> str:
    """The name was made for one run. The password, never journalled, is PGPASSWORD's or the password file's."""
    connection = Connection(**args["connection"])
    password = stored_password(connection.host, connection.port, connection.dbname, connection.user)
    connection = replace(connection, password=password)
    remedy = (
        f'as its owner: "drop schema {connection.schema} cascade"; PGPASSWORD or ~/.pgpass may give undo the password'
    )
    what = f"schema {connection.schema} in database {connection.dbname} on {connection.host}"
    try:
        with connection.open(connection.dbname) as opened:
            row = opened.execute("select 1 from pg_namespace where nspname = %s", [connection.schema]).fetchone()
            if row is None:
                return f"schema {connection.schema} was not there"
            if not _OURS.fullmatch(connection.schema):
                raise Fault(f"{what}: not a name made for one run, so it may belong to somebody else", remedy=remedy)
            opened.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(connection.schema)))
    except psycopg.Error as error:
        raise Fault(f"{what}: {error}", remedy=remedy) from None
    return f"schema {connection.schema} dropped"


@contextmanager
def password_for_put_back(password: str | None) -> Iterator[None]:
    """PGPASSWORD for as long as it lasts: putting back knows only the journal, and a password never goes in there."""
    before = os.environ.get("PGPASSWORD")
    if password:
        os.environ["PGPASSWORD"] = password
    try:
        yield
    finally:
        if before is not None:
            os.environ["PGPASSWORD"] = before
        else:
            os.environ.pop("PGPASSWORD", None)


def schema_in_use(connection: Connection, settings: Experiment) -> str | None:
    """The schema that is used as it is; None where the run makes its own. Raises ValueError when it cannot be used."""
    scale = settings.workload.pgbench_scale()
    if scale is not None and (tables := bank.find(connection)) is not None:
        if (reason := bank.unfit(tables, scale)) is not None:
            raise ValueError(reason)
        if settings.workload.setup_sql() is not None:
            raise ValueError(
                f"schema {tables.schema} has the tables of pgbench already, and workload.setup is run only on data "
                "that the run makes; leave workload.setup out, or name a database without them"
            )
        return tables.schema
    if data_request(settings) is None and settings.workload.setup_sql() is None:
        return bank.current_schema(connection)
    return None
