"""Where the parts of a PostgreSQL cluster lie: its log apart from its data, its temporary files in a tablespace."""

from __future__ import annotations

import shutil

from psycopg import sql

from plimsoll.environment.folders.clone import clone_tree
from plimsoll.run.surroundings.file_locations import FileLocations
from plimsoll.target import PostgresServer

TEMP_SPACE = "plimsoll_temp"  # the tablespace of temporary files
WAL = "pg_wal"


def move_wal(locations: FileLocations, owner: tuple[int, int]) -> None:
    """Moves the log of a stopped cluster to its own place, around the page cache, and leaves a link."""
    if locations.wal is None:
        return
    inside, outside = locations.data / "data" / WAL, locations.wal / WAL
    clone_tree(inside, outside, uid=owner[0], gid=owner[1])
    shutil.rmtree(inside)
    inside.symlink_to(outside)


def temp_settings(locations: FileLocations) -> dict[str, bool | int | float | str]:
    """What the server is told of its temporary files."""
    return {} if locations.temp is None else {"temp_tablespaces": TEMP_SPACE}


def make_temp_space(locations: FileLocations, server: PostgresServer) -> None:
    """The tablespace of temporary files, where there is to be one and is none yet."""
    if locations.temp is None:
        return
    with server.connection.open() as connection:
        if not connection.execute("select 1 from pg_tablespace where spcname = %s", [TEMP_SPACE]).fetchone():
            text = sql.SQL("create tablespace {} location {}")
            connection.execute(text.format(sql.Identifier(TEMP_SPACE), sql.Literal(str(locations.temp))))
