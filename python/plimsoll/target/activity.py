"""What one look at pg_stat_activity asks, by the server's version, and what its rows mean.

The constraint: looks come about ten times a second on a server that has work to do. One statement, no temporary table,
nothing prepared ahead; who blocks whom is asked only for those that wait for a lock, since every such question stops
the lock table for a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

QUERY_CHARACTERS = 200
WAITERS_MAX = 20
APPLICATION = "plimsoll breakdown"
# Whatever goes wrong, the server is not held up by it, and nothing can be written.
OPTIONS = (
    "-c default_transaction_read_only=on -c statement_timeout=5000 -c lock_timeout=1000 "
    "-c idle_in_transaction_session_timeout=10000 -c jit=off"
)
# Ten looks a second would fill a log that logs statements, and be among the statements that are counted; whoever may
# turn that off for himself does.
QUIETLY = (
    "set log_statement = 'none'",
    "set log_min_duration_statement = -1",
    "set log_duration = off",
    "set log_min_duration_sample = -1",
    "set \"pg_stat_statements.track\" = 'none'",
)
_WATCHED = "('client backend', 'parallel worker', 'autovacuum worker')"
_LOCK_COLUMNS = "l.pid, pg_blocking_pids(l.pid), l.locktype, l.mode, coalesce(l.database, h.database)"


class Seen(NamedTuple):
    """One process that was at work, or in a transaction, in a look."""

    pid: int
    kind: str
    state: str
    query_id: int | None
    query: str
    event: str | None
    leader: int | None
    since_us: int | None
    transaction_us: int | None
    database: str | None
    user: str | None
    application: str


@dataclass(frozen=True)
class Look:
    """What one look gives: the server's clock, idle clients, and those that were not idle."""

    now_us: int
    idle: int
    seen: list[Seen]


def statement(version: int) -> str:
    """The look. Columns that a server lacks are null."""
    leader = "leader_pid" if version >= 130000 else "null::int"
    query_id = "query_id" if version >= 140000 else "null::bigint"
    return (
        "select c.now_us, c.idle, a.* from (select (extract(epoch from clock_timestamp()) * 1e6)::bigint as now_us, "
        "(select count(*) from pg_stat_activity where backend_type = 'client backend' and state = 'idle' "
        "and pid <> pg_backend_pid()) as idle) c left join (select pid, backend_type, coalesce(state, ''), "
        f"{query_id} as query_id, coalesce(left(query, {QUERY_CHARACTERS}), ''), "
        f"wait_event_type || ':' || wait_event, {leader} as leader_pid, "
        "(extract(epoch from state_change) * 1e6)::bigint, (extract(epoch from xact_start) * 1e6)::bigint, "
        "datname, usename, coalesce(application_name, '') from pg_stat_activity "
        f"where backend_type in {_WATCHED} and state is distinct from 'idle' and pid <> pg_backend_pid()) a on true"
    )


def look(session: psycopg.Connection, text: str) -> Look:
    """One look. Of the sessions of others a user without the right for it sees no state: they are left out."""
    rows = session.execute(text).fetchall()  # type: ignore[arg-type]  # ours, from `statement`
    return Look(int(rows[0][0]), int(rows[0][1]), [Seen(*row[2:]) for row in rows if row[2] is not None and row[4]])


@dataclass(frozen=True)
class Waiting:
    """A process that waits for a lock, and who is in its way. `relation`: its number, where the lock tells."""

    pid: int
    blockers: list[int]
    kind: str
    mode: str
    database: int | None
    relation: int | None
    since_us: int | None


def locks(session: psycopg.Connection, pids: list[int], version: int) -> list[Waiting]:
    """Of processes that wait for a lock: for which, of what, and for whom.

    Who waits for another's row waits for the end of its transaction, and meanwhile holds the row's own lock, which
    tells the table.
    """
    since = "(extract(epoch from l.waitstart) * 1e6)::bigint" if version >= 140000 else "null::bigint"
    rows = session.execute(
        f"select {_LOCK_COLUMNS}, coalesce(l.relation, h.relation), {since} from pg_locks l left join lateral "
        "(select relation, database from pg_locks where pid = l.pid and granted and locktype = 'tuple' limit 1) h "
        "on l.relation is null where not l.granted and l.pid = any(%s)",  # type: ignore[arg-type]  # as above
        [pids[:WAITERS_MAX]],
    ).fetchall()
    return [Waiting(*row) for row in rows]


def relation_names(session: psycopg.Connection, numbers: list[int]) -> dict[int, str]:
    """Names of relations of the database that the session is in."""
    rows = session.execute(
        "select c.oid::bigint, n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where c.oid = any(%s::oid[])",
        [numbers],
    ).fetchall()
    return {int(oid): name if schema == "public" else f"{schema}.{name}" for oid, schema, name in rows}


def about(session: psycopg.Connection) -> dict[str, Any]:
    """Who the session is, and whether it may see the queries of others."""
    row = session.execute(
        "select pg_backend_pid(), current_user, current_database(), current_setting('is_superuser') = 'on' "
        "or pg_has_role(current_user, 'pg_read_all_stats', 'usage')"
    ).fetchone()
    assert row is not None
    pid, user, database, sees_all = row
    return {
        "pid": int(pid),
        "user": user,
        "database": database,
        "sees_all": bool(sees_all),
        "version": session.info.parameter_status("server_version") or "unknown",
        "version_number": session.info.server_version,
    }
