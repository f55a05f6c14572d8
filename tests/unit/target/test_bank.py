"""What a user's own set-up SQL can reach on a server that is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg import sql

from plimsoll.target import bank
from plimsoll.target.connection import Connection


class _Server:
    """Notes what a session is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def execute(self, text: sql.Composed | bytes) -> None:
        self.told.append(text.decode() if isinstance(text, bytes) else text.as_string(None))


def test_a_set_up_file_s_bare_names_reach_the_schema_of_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[_Server]:
        yield server

    monkeypatch.setattr(Connection, "open", opened)
    connection = Connection("/tmp", 5432, "u", "theirs", schema="plimsoll_run_0a1b2c")
    bank.run_sql(connection, "drop table if exists account; create table account ()")
    assert server.told == [
        'create schema if not exists "plimsoll_run_0a1b2c"',
        'set search_path to "plimsoll_run_0a1b2c"',
        "drop table if exists account; create table account ()",
    ]
