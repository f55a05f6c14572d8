"""Where the parts of a PostgreSQL cluster lie: its log apart from its data, its temporary files in a tablespace."""

from __future__ import annotations

import shutil

from psycopg import sql

from plimsoll.environment.folders.clone import clone_tree
from plimsoll.run.surroundings.file_locations import FileLocations
from plimsoll.target import PostgresServer, ServerFailed

SPACE = "plimsoll_of_"  # the beginning of the names of single relations' tablespaces
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


def move_relations(locations: FileLocations, server: PostgresServer) -> None:
    """Moves the tables and indexes that lie apart into tablespaces there. Raises ServerFailed where one is not there.

    The server copies them through both caches, so it has to be started anew after this.
    """
    schema, dbname = server.load_connection.schema, server.load_connection.dbname
    with server.connection.open(dbname) as connection:
        for relation, folder in locations.spaces.items():
            found = connection.execute(
                "select relkind from pg_class where relname = %s and relnamespace = to_regnamespace(%s)",
                [relation, schema],
            ).fetchone()
            kind = (
                None if found is None else {"r": "table", "i": "index", "m": "materialized view"}.get(_text(found[0]))
            )
            if kind is None:
                what = "no such table or index" if found is None else "it has no files of its own (partitioned?)"
                raise ServerFailed(f"target.files.tablespaces.{relation}: {what} in schema {schema}")
            space = sql.Identifier(f"{SPACE}{relation}")
            connection.execute(sql.SQL("create tablespace {} location {}").format(space, sql.Literal(str(folder))))
            name = sql.Identifier(schema, relation)
            connection.execute(sql.SQL("alter {} {} set tablespace {}").format(sql.SQL(kind), name, space))


def _text(value: object) -> str:
    """Of a "char", which comes as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
