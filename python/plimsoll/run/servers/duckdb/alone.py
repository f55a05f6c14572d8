"""A DuckDB outside of any trial: to make a data set, and to answer queries beside another server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plimsoll.run.host import HERE
from plimsoll.run.observer import Observer
from plimsoll.run.servers.duckdb.loading import Loading
from plimsoll.run.servers.duckdb.refresh_sets import RefreshSets
from plimsoll.target.duckdb_server import DuckServer
from plimsoll.target.server import Launch

Json = dict[str, Any]


def alone(folder: Path, owner: tuple[int, int], launch: Launch | None = None) -> DuckServer:
    """A DuckDB with no limits, its database in `folder`, which is the caller's; `launch` as DuckServer takes it."""
    return DuckServer(folder / "data", folder, launch or HERE.start, other_owner(owner))


def other_owner(owner: tuple[int, int]) -> tuple[int, int] | None:
    """Whom the driver is to become; None where it is him already."""
    return None if owner[0] == os.geteuid() else owner


def make_folder(path: Path, owner: tuple[int, int]) -> None:
    """A folder that the server's user owns."""
    path.mkdir(mode=0o700)
    os.chown(path, *owner)


@contextmanager
def filled(server: DuckServer, data: Json, owner: tuple[int, int], observer: Observer) -> Iterator[Json]:
    """A new database with the tables, open until the end; what `populate` would answer.

    Raises ServerFailed or AgentFailed.
    """
    make_folder(server.data, owner)
    make_folder(server.temp, owner)
    try:
        server.start()
        yield Loading(server, data, observer).run(None)
    finally:
        server.abandon()


def build_database(
    server: DuckServer, data: Json, owner: tuple[int, int], observer: Observer
) -> tuple[Json, list[Json]]:
    """Makes a database with the tables and closes it; what `populate` would answer, and what `check` would.

    Raises ServerFailed or AgentFailed.
    """
    with filled(server, data, owner, observer) as result:
        checks = RefreshSets(server, data, owner).check()
        server.stop()
    server.temp.rmdir()
    return result, checks
