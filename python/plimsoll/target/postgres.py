"""A private PostgreSQL server: its own cluster, its own user, inside the group under test; a Unix socket, and where the
experiment says so a port of loopback behind a password.

It is never the machine's own cluster, and it never runs as root: a dedicated user owns what it writes, which is the
cluster and the folder of its socket. Its log and its configuration lie in a folder that is ours, since what the
server's user may write, a program of a user's script may have replaced (environment/folders/own_folder.py).
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psycopg
from psycopg import sql

from plimsoll.environment.folders.own_folder import OwnFolder, read_theirs
from plimsoll.experiment import size
from plimsoll.target.connection import Connection
from plimsoll.target.reached_postgres import ReachedPostgres
from plimsoll.target.server import LOG, LOG_TAIL_BYTES, CrashLine, Launch, ServerFailed, Settings

DATABASE = "plimsoll"
LOOPBACK = "127.0.0.1"
SOCKET, CONFIGURATION, RULES = "s", "postgresql.conf", "pg_hba.conf"  # in the server's folder
# Of the cluster's own file. Clusters of earlier versions include a file of settings: those of another trial.
_IDLE = re.compile(r"\s*(#|$|include(_dir|_if_exists)?\b)", re.IGNORECASE)
# A backend that was killed takes all others with it, and the server recovers by itself.
_CRASHED = re.compile(r"\bPANIC: |\(PID \d+\) was terminated by (signal|exception)")
_LOG_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[")  # of log_line_prefix and log_timezone below
PREWARM_SHARE = 0.97  # of the buffers; the rest is for catalogues and new pages


class PostgresServer(ReachedPostgres):
    """One cluster in `data`, run by `user`. `launch(argv, user=...)` starts a process in the group.

    `run_dir`: a folder that the caller owns and nobody else may write, of log and configuration; the socket is in its
    folder `s`.
    """

    def __init__(self, bin_dir: Path, data: Path, run_dir: Path, user: str, launch: Launch, tcp: bool = False) -> None:
        self.bin_dir, self.data, self.run_dir, self.user, self._launch = bin_dir, data, run_dir, user, launch
        self._own = OwnFolder(run_dir)
        port = _free_port() if tcp else 5432
        self.connection = Connection(host=str(run_dir / SOCKET), port=port, user=user, dbname=DATABASE)
        load_connection = self.connection
        if tcp:
            # Anybody on the machine reaches a port of loopback, so it asks for a password, made for this trial.
            load_connection = replace(self.connection, host=LOOPBACK, password=secrets.token_urlsafe(24))
        super().__init__(load_connection)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_on_tcp(self) -> bool:
        """Whether the load comes over TCP."""
        return self.load_connection is not self.connection

    def initdb(self) -> None:
        """Makes the cluster, with checksums. Trust authentication is safe: the socket's folder is closed to others."""
        argv = [str(self.bin_dir / "initdb"), "--pgdata", str(self.data), "--username", self.user]
        argv += ["--data-checksums", "--encoding", "UTF8", "--locale", "C"]
        argv += ["--auth-local", "trust", "--auth-host", "reject", "--no-sync"]
        account = pwd.getpwnam(self.user)
        self.data.mkdir(mode=0o700)  # in a folder of ours, where the server's user makes none
        os.chown(self.data, account.pw_uid, account.pw_gid)
        process = self._launch(argv, user=self.user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, _ = process.communicate()
        if process.returncode:
            raise ServerFailed(f"initdb failed: {output.decode(errors='replace').strip()[-2000:]}")

    def configure(self, settings: Settings, memory: int | None) -> None:
        """Writes the settings; sizes with units or relative to `memory` (bytes) become what the server reads.

        They follow what initdb has set for this machine (locale, time zone), and go into our own folder: nothing is
        written into the cluster, where links may lie. Raises Fault where something odd is in a file's place.
        """
        account = pwd.getpwnam(self.user)
        self._own.make_folder(SOCKET, account.pw_uid, account.pw_gid)
        given = read_theirs(self.data, "postgresql.conf", account.pw_uid).splitlines()
        lines = [
            *(line for line in given if not _IDLE.match(line)),
            f"listen_addresses = '{LOOPBACK if self.is_on_tcp else ''}'",
            f"unix_socket_directories = {_quote(self.connection.host)}",
            "unix_socket_permissions = 0700",
            f"port = {self.connection.port}",
            "logging_collector = off",
            "log_checkpoints = on",
            "log_line_prefix = '%m [%p] '",
            "log_timezone = 'UTC'",
            *(f"{name} = {_quote(_as_setting(value, memory))}" for name, value in sorted(settings.items())),
        ]
        if self.is_on_tcp:
            lines.append(f"hba_file = {_quote(str(self.run_dir / RULES))}")
            rules = f"local all all trust\nhost all all {LOOPBACK}/32 scram-sha-256\n"
            self._own.write(RULES, rules, account.pw_gid)
        self._own.write(CONFIGURATION, "\n".join(lines) + "\n", account.pw_gid)

    def start(self, seconds: float = 60) -> None:
        """Starts the server and waits until it answers. Raises ServerFailed with the end of its log."""
        argv = [str(self.bin_dir / "postgres"), "-D", str(self.data)]
        argv += ["-c", f"config_file={self.run_dir / CONFIGURATION}"]
        with self._own.append(LOG) as log:
            self._process = self._launch(argv, user=self.user, stdout=log, stderr=log)
        until = time.monotonic() + seconds
        while True:
            if self._process.poll() is not None:
                raise ServerFailed(f"the server ended while starting ({self._exit_text()}): {self.log_tail(2000)}")
            try:
                with self.connection.open(timeout=5) as opened:
                    self._set_password(opened)
                    return
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise ServerFailed(f"the server did not answer in {seconds:.0f} s: {error}") from None
                time.sleep(0.05)

    def _set_password(self, opened: psycopg.Connection) -> None:
        if (password := self.load_connection.password) is None:
            return
        # Hashed on our side: a server that logs its statements logs no password.
        known = opened.pgconn.encrypt_password(password.encode(), self.user.encode(), b"scram-sha-256").decode()
        text = sql.SQL("alter role {} password {}").format(sql.Identifier(self.user), sql.Literal(known))
        opened.execute(text)

    def is_running(self) -> bool:
        """Whether the postmaster lives."""
        return self._process is not None and self._process.poll() is None

    def pid(self) -> int | None:
        """The postmaster's process id."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """Stops the server cleanly, its data on disk. Raises ServerFailed when it did not end cleanly."""
        process = self._process
        self._end((signal.SIGINT, 120), (signal.SIGQUIT, 10), (signal.SIGKILL, 10))
        if process is not None and process.returncode != 0:
            raise ServerFailed(f"the server did not stop cleanly: {self.log_tail(2000)}")

    def abandon(self) -> None:
        """Stops a server whose data are thrown away: at once, without the checkpoint that nobody would read."""
        self._end((signal.SIGQUIT, 10), (signal.SIGKILL, 10))

    def _end(self, *ladder: tuple[signal.Signals, float]) -> None:
        if self._process is None:
            return
        for sent, patience in ladder:
            if self._process.poll() is not None:
                break
            self._process.send_signal(sent)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        self._process = None

    def create_database(self) -> None:
        """The database under test, with the extensions that warm and look at the caches where the server has them."""
        with self.connection.open() as connection:
            connection.execute(f'create database "{DATABASE}"')
            # So that psql, pgbench and users' scripts find the tables by their bare names.
            connection.execute(f'alter database "{DATABASE}" set search_path to {self.connection.schema}, public')
        with self.connection.open(DATABASE) as connection:
            for extension in ("pg_prewarm", "pg_buffercache"):
                known = connection.execute("select 1 from pg_available_extensions where name = %s", [extension])
                if known.fetchone():
                    connection.execute(f"create extension if not exists {extension}")

    def checkpoint(self) -> None:
        """Writes everything dirty, so that no earlier work is written during what is measured."""
        with self.connection.open() as connection:
            connection.execute("checkpoint")

    def prewarm(self, schema: str) -> int:
        """Fills both caches: reads everything once through Linux's, then into the server's what it has room for.

        The densest relations go first, since a block that holds more rows is asked for more often; and no more than
        fits, since a cache larger than memory would otherwise swap its own blocks in only to overwrite them. Returns
        the blocks (8 KiB) put into the server's cache. What belongs there in the end, the warm-up decides.
        """
        with self.connection.open(DATABASE) as connection:
            relations = connection.execute(
                "select oid::regclass::text, relpages from pg_class where relnamespace = %s::regnamespace "
                "and relkind in ('r', 'i') and relpages > 0 order by relpages / greatest(reltuples, 1)",
                [schema],
            ).fetchall()
            for name, _ in reversed(relations):
                connection.execute("select pg_prewarm(%s, 'read')", [name])
            setting = connection.execute(
                "select setting::int from pg_settings where name = 'shared_buffers'"
            ).fetchone()
            room = total = int((setting or [0])[0] * PREWARM_SHARE)
            for name, pages in relations:
                if (blocks := min(pages, room)) <= 0:
                    break
                connection.execute("select pg_prewarm(%s, 'buffer', 'main', 0, %s)", [name, blocks - 1])
                room -= blocks
        return total - room

    def log_tail(self, size_max: int = LOG_TAIL_BYTES) -> str:
        """The end of the server's log; empty where there is none."""
        return self._own.tail(LOG, size_max)

    def crashes(self) -> list[CrashLine]:
        return [CrashLine(line, _log_ns(line)) for line in self.log_tail().splitlines() if _CRASHED.search(line)]

    def sizes(self) -> dict[str, int]:
        with self.connection.open(DATABASE) as connection:
            row = connection.execute(
                "select pg_database_size(current_database()), "
                "(select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_all_tables)"
            ).fetchone()
        return {} if row is None else {"database_bytes": int(row[0]), "dead_tuples": int(row[1])}

    def leave_only_data(self) -> None:
        """Removes everything of a stopped server but its cluster."""
        for name in (LOG, CONFIGURATION, RULES):
            (self.run_dir / name).unlink(missing_ok=True)
        shutil.rmtree(self.run_dir / SOCKET, ignore_errors=True)

    def _exit_text(self) -> str:
        code = self._process.returncode if self._process else None
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _log_ns(line: str) -> int | None:
    """When a line of the log was written; None where the experiment's own settings have given it another form."""
    if (found := _LOG_TIME.match(line)) is None:
        return None
    return round(datetime.fromisoformat(f"{found[1]}+00:00").timestamp() * 1000) * 10**6


def _free_port() -> int:
    """A port of loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _as_setting(value: bool | int | float | str, memory: int | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if size.is_size(value):
        return f"{size.parse(str(value), memory) // 1024}kB"
    return str(value)


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
