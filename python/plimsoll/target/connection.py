"""Where a server listens, and the few questions asked of it between segments.

Every question goes to another database than the one under test: statistics count by database, so the observer's own
transactions must not be among the ones observed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

APPLICATION = "plimsoll observer"
DURABILITY = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "data_checksums",
    "commit_delay",
    "wal_log_hints",
    "wal_init_zero",
    "synchronous_standby_names",
)
COUNTER_VIEWS = ("pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal")


@dataclass(frozen=True)
class Connection:
    """How to reach a server. A host that begins with / is the folder of a Unix socket."""

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = None
    admin_dbname: str = "postgres"
    schema: str = "plimsoll"

    @classmethod
    def from_dsn(cls, dsn: str) -> Connection:
        """Reads a connection string (URL or key=value). Raises ValueError with what is wrong."""
        try:
            parts = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            raise ValueError(f"target.dsn cannot be read: {str(error).splitlines()[0]}") from None
        user = str(parts.get("user") or "postgres")
        return cls(
            host=str(parts.get("host") or parts.get("hostaddr") or "/var/run/postgresql"),
            port=int(parts.get("port") or 5432),
            user=user,
            dbname=str(parts.get("dbname") or user),
            password=str(parts["password"]) if parts.get("password") else None,
        )

    def as_request(self) -> dict[str, Any]:
        """The agent's `target` object (schema/agent.md)."""
        request = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "admin_dbname": self.admin_dbname,
            "schema": self.schema,
        }
        return {**request, "password": self.password} if self.password else request

    @contextmanager
    def open(self, dbname: str | None = None, timeout: float = 10) -> Iterator[psycopg.Connection]:
        """A connection in autocommit mode, to the administration database unless told otherwise."""
        with psycopg.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=dbname or self.admin_dbname,
            connect_timeout=max(2, int(timeout)),
            application_name=APPLICATION,
            autocommit=True,
        ) as connection:
            yield connection

    def wait_without_clients(self, seconds: float = 5) -> bool:
        """Waits until no client uses the database under test: a backend flushes its statistics as it ends."""
        until = time.monotonic() + seconds
        with self.open() as connection:
            while True:
                row = connection.execute(
                    "select count(*) from pg_stat_activity where datname = %s and backend_type = 'client backend'",
                    [self.dbname],
                ).fetchone()
                if row and row[0] == 0:
                    return True
                if time.monotonic() > until:
                    return False
                time.sleep(0.02)

    def counters(self) -> dict[str, int]:
        """The server's cumulative counters for the database under test; columns the server lacks are absent."""
        found: dict[str, int] = {}
        with self.open() as connection:
            cursor = connection.execute("select * from pg_stat_database where datname = %s", [self.dbname])
            _take(found, cursor)
            for view in COUNTER_VIEWS:
                known = connection.execute("select to_regclass(%s)", [view]).fetchone()
                if known and known[0]:
                    _take(found, connection.execute(sql.SQL("select * from {}").format(sql.Identifier(view))))
        return found

    def describe(self) -> dict[str, Any]:
        """Version, the settings that are not default, and those that decide durability."""
        with self.open() as connection:
            rows = connection.execute(
                "select name, setting, unit, source from pg_settings "
                "where source not in ('default', 'override', 'client') or name = any(%s)",
                [list(DURABILITY)],
            ).fetchall()
            version = connection.info.parameter_status("server_version") or "unknown"
        shown = {name: f"{setting}{'' if unit is None else ' ' + unit}" for name, setting, unit, _ in rows}
        return {
            "version": version,
            "settings": {name: shown[name] for name, _, _, source in rows if source != "default"},
            "durability": {name: shown[name] for name in DURABILITY if name in shown},
        }


def _take(found: dict[str, int], cursor: psycopg.Cursor[Any]) -> None:
    row = cursor.fetchone()
    for column, value in zip(cursor.description or [], row or [], strict=False):
        if value is not None and not isinstance(value, str) and column.name not in {"datid", "numbackends"}:
            try:
                found[column.name] = int(value)
            except (TypeError, ValueError):
                continue  # time stamps are no counters
