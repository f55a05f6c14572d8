"""pgbench's tables: whether a database that somebody else made has them."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from plimsoll.experiment.workloads.bank import ACCOUNTS_PER_BRANCH
from plimsoll.target.connection import Connection

TELLERS_PER_BRANCH = 10


@dataclass(frozen=True)
class PgbenchTables:
    """pgbench's tables in a database that was there before us."""

    schema: str
    scale: int
    accounts: int


def find(connection: Connection) -> PgbenchTables | None:
    """The tables that `pgbench -i` made, where this user's search path finds them; None when there are none."""
    with connection.open(connection.dbname) as opened:
        row = opened.execute(
            "select nspname from pg_class join pg_namespace n on n.oid = relnamespace "
            "where relname = 'pgbench_branches' and relkind in ('r', 'p') and pg_table_is_visible(pg_class.oid)"
        ).fetchone()
        if row is None:
            return None
        schema = str(row[0])

        def number(question: sql.SQL, table: str) -> int:
            row = opened.execute(question.format(sql.Identifier(schema, table))).fetchone()
            return int(row[0] or 0) if row else 0

        return PgbenchTables(
            schema,
            scale=number(sql.SQL("select count(*) from {}"), "pgbench_branches"),
            accounts=number(sql.SQL("select max(aid) from {}"), "pgbench_accounts"),
        )


def unfit(tables: PgbenchTables, scale: int) -> str | None:
    """Why tables that were found cannot be used as they are; None when they can."""
    if tables.scale != scale:
        return (
            f"the tables of pgbench in schema {tables.schema} have scale {tables.scale}, and workload.scale is "
            f"{scale}; set workload.scale={tables.scale}, or name a database without them"
        )
    if tables.accounts != scale * ACCOUNTS_PER_BRANCH:
        return (
            f"pgbench_accounts in schema {tables.schema} ends at {tables.accounts:,}, not at "
            f"{scale * ACCOUNTS_PER_BRANCH:,} as pgbench -i at scale {scale} makes it; recreate it with pgbench -i"
        )
    return None


def current_schema(connection: Connection) -> str:
    """The schema in which this user's unqualified names are found first."""
    with connection.open(connection.dbname) as opened:
        row = opened.execute("select coalesce(current_schema(), 'public')").fetchone()
    return str(row[0]) if row else "public"


def run_sql(connection: Connection, text: str) -> None:
    """Runs a file of SQL statements in the connection's schema, which is made where there is none.

    One simple query, so one transaction unless the file begins and commits its own; psql's own commands are not known.
    Bare names reach that schema alone, as they do when the agent runs the load: on a server that is somebody's, a file
    that begins with `drop table if exists account` must not find theirs in `public`.
    """
    with connection.open(connection.dbname, timeout=60) as opened:
        name = sql.Identifier(connection.schema)
        opened.execute(sql.SQL("create schema if not exists {}").format(name))
        opened.execute(sql.SQL("set search_path to {}").format(name))
        if text.strip():
            opened.execute(text.encode())
