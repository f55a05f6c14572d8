"""Where a server listens, and the few questions asked of it between segments.

Every question goes to another database than the one under test: statistics count by database, so the observer's own
transactions must not be among the ones observed.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from plimsoll.record.redaction import redact

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
# What PostgreSQL 17 and later call the counters that schema/record.md knows by their names in pg_stat_bgwriter.
RENAMED = {
    ("pg_stat_checkpointer", "num_timed"): "checkpoints_timed",
    ("pg_stat_checkpointer", "num_requested"): "checkpoints_req",
    ("pg_stat_checkpointer", "buffers_written"): "buffers_checkpoint",
}
ALLOWED_KEYS = ("host", "hostaddr", "port", "user", "password", "dbname", "application_name", "connect_timeout")
SOCKET_FOLDER = "/var/run/postgresql"
# Settings whose values may hold credentials or tell where keys are: that they are set is kept, the value is not.
_SECRET_SETTING = re.compile(
    r"conninfo|command|passphrase|password|key_?file|secret|token|^primary_slot_name$", re.IGNORECASE
)
_HIDDEN = "***"


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
        """Reads a connection string (URL or key=value). Raises ValueError with what is wrong.

        A password that it does not hold is looked for where libpq looks: the agent, which has no libpq, needs it too.
        """
        try:
            given = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            raise ValueError(f"target.dsn cannot be read: {_without_values(str(error))}; {_allowed()}") from None
        parts = {key: str(value) for key, value in given.items() if value is not None}
        _check_keys(parts)
        address = parts.get("hostaddr") or parts.get("host") or SOCKET_FOLDER
        port = parts.get("port") or "5432"
        # The values are not repeated: what stands there by mistake may be a part of the password.
        if "," in parts.get("host", "") + parts.get("hostaddr", ""):
            raise ValueError("target.dsn: host names several servers; name one")
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError("target.dsn: port must be one number from 1 to 65535")
        user = parts.get("user") or "postgres"
        dbname = parts.get("dbname") or user
        password = parts.get("password") or stored_password(parts.get("host") or address, int(port), dbname, user)
        return cls(host=address, port=int(port), user=user, dbname=dbname, password=password)

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
            as_text(connection)
            yield connection

    def room(self) -> int:
        """How many more connections an ordinary user gets. Asked of the database under test: another may be closed."""
        with self.open(self.dbname) as connection:
            row = connection.execute(
                "select current_setting('max_connections')::int "
                "- current_setting('superuser_reserved_connections')::int "
                "- coalesce(current_setting('reserved_connections', true)::int, 0) "
                "- (select count(*) from pg_stat_activity where backend_type = 'client backend') + 1"
            ).fetchone()
        return int(row[0]) if row else 0

    def wait_without_clients(self, seconds: float = 5) -> bool:
        """Waits until no client uses the database under test: a backend flushes its statistics as it ends."""
        until = time.monotonic() + seconds
        with self.open() as connection:
            while True:
                row = connection.execute(
                    "select count(*) from pg_stat_activity "
                    "where datname = %s and backend_type = 'client backend' and pid <> pg_backend_pid()",
                    [self.dbname],
                ).fetchone()
                if row and row[0] == 0:
                    return True
                if time.monotonic() > until:
                    return False
                time.sleep(0.02)

    def counters(self) -> dict[str, int]:
        """The server's cumulative counters for the database under test; columns the server lacks are absent."""
        counts: dict[str, int] = {}
        with self.open() as connection:
            if connection.info.server_version < 150000:
                # Before 15 a statistics collector received the counters as messages and served a snapshot up to 500 ms
                # old. No client is connected, so waiting changes nothing but that the snapshot is then a new one.
                time.sleep(1)
            cursor = connection.execute("select * from pg_stat_database where datname = %s", [self.dbname])
            _take(counts, "pg_stat_database", cursor)
            for view in COUNTER_VIEWS:
                known = connection.execute("select to_regclass(%s)", [view]).fetchone()
                if known and known[0]:
                    _take(counts, view, connection.execute(sql.SQL("select * from {}").format(sql.Identifier(view))))
        return counts

    def cache(self) -> dict[str, int]:
        """The server's cache and what is to be read into it, in blocks, and how many were read by now (`read_before`).

        Asked just after its start: the count goes on from before it.
        """
        with self.open() as connection:
            row = connection.execute(
                "select setting::bigint, current_setting('block_size')::bigint, pg_database_size(%s), blks_read "
                "from pg_settings, pg_stat_database where name = 'shared_buffers' and datname = %s",
                [self.dbname, self.dbname],
            ).fetchone()
        if row is None:
            return {}
        blocks, block_bytes, data_bytes, read = map(int, row)
        sizes = {"cache_blocks": blocks, "data_blocks": data_bytes // block_bytes, "read_before": read}
        return sizes | {"block_bytes": block_bytes}

    def describe(self) -> dict[str, Any]:
        """Version, the settings that are not default, and those that decide durability."""
        with self.open() as connection:
            return described(connection)


def described(connection: psycopg.Connection) -> dict[str, Any]:
    """Version and settings of the server at the other end, as trial.json has them."""
    rows = connection.execute(
        "select name, setting, unit, source from pg_settings "
        "where source not in ('default', 'override', 'client') or name = any(%s)",
        [list(DURABILITY)],
    ).fetchall()
    version = connection.info.parameter_status("server_version") or "unknown"
    shown = {name: shown_setting(name, setting, unit) for name, setting, unit, _ in rows}
    return {
        "version": version,
        "settings": {name: shown[name] for name, _, _, source in rows if source not in ("default", "session")},
        "durability": {name: shown[name] for name in DURABILITY if name in shown},
    }


def as_counters(view: str, row: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """The counters among the columns of a statistics view, under the names of schema/record.md."""
    counts: dict[str, int] = {}
    for column, value in row:
        if value is not None and not isinstance(value, str) and column not in {"datid", "numbackends"}:
            try:
                counts[RENAMED.get((view, column), column)] = int(value)
            except (TypeError, ValueError):
                continue  # time stamps are no counters
    return counts


def as_text(connection: psycopg.Connection) -> None:
    """Texts of a database in SQL_ASCII, whose encoding nobody knows, a character a byte: psycopg would give bytes."""
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        connection.execute("set client_encoding = 'LATIN1'")


def shown_setting(name: str, setting: str | None, unit: str | None) -> str:
    """A setting's value as the record keeps it: with its unit, without anything that could let somebody in."""
    if _SECRET_SETTING.search(name):
        return _HIDDEN
    return redact(f"{setting}{'' if unit is None else ' ' + unit}")


def stored_password(host: str, port: int, dbname: str, user: str) -> str | None:
    """The password that libpq would take from the environment: PGPASSWORD, then the password file.

    A file that others may read is ignored, as libpq does. A Unix socket's folder stands in the file as itself or as
    localhost.
    """
    if password := os.environ.get("PGPASSWORD"):
        return password
    path = Path(os.environ.get("PGPASSFILE") or "~/.pgpass")
    try:
        path = path.expanduser()
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) or mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except (OSError, RuntimeError):  # RuntimeError: no home
        return None
    hosts = {host, "localhost"} if host.startswith("/") else {host}
    wanted = (hosts, {str(port)}, {dbname}, {user})
    for line in lines:
        fields = _split(line.rstrip("\r"))
        if line.startswith("#") or len(fields) < 5:
            continue
        if all(raw == "*" or _unescaped(raw) in names for raw, names in zip(fields, wanted, strict=False)):
            return _unescaped(fields[4]) or None
    return None


def _split(line: str) -> list[str]:
    """A password file's line at its colons, but not at those behind a backslash; the escapes are left in."""
    fields = [""]
    for piece in re.findall(r"\\.|.", line):
        if piece == ":":
            fields.append("")
        else:
            fields[-1] += piece
    return fields


def _unescaped(field: str) -> str:
    return re.sub(r"\\(.)", r"\1", field)


def _check_keys(parts: Mapping[str, str]) -> None:
    for key, value in parts.items():
        if key == "sslmode":
            if value not in {"disable", "allow", "prefer"}:
                raise ValueError(f"target.dsn: sslmode={value} is refused: no TLS: use a Unix socket or a tunnel")
        elif key not in ALLOWED_KEYS:
            raise ValueError(f"target.dsn: {key} is refused; {_allowed()}")


def _allowed() -> str:
    return f"allowed: {', '.join(ALLOWED_KEYS)}, and sslmode=disable, allow or prefer"


def _without_values(message: str) -> str:
    """libpq's complaint without what it quotes, which may be a part of the password; an unknown key's name stays."""
    first = (message.splitlines() or [""])[0]
    if re.match(r"invalid (connection option|URI query parameter)", first):
        return first
    return re.sub(r'"[^"]*"', '"..."', redact(first))


def _take(into: dict[str, int], view: str, cursor: psycopg.Cursor[Any]) -> None:
    names = [column.name for column in cursor.description or []]
    into.update(as_counters(view, zip(names, cursor.fetchone() or [], strict=False)))
