"""What the server's cache holds: which blocks of which relation, and in which files the relations are.

The constraint: statistics count by database, and what is counted must not be disturbed. So the cache is read from the
administration database, through extension pg_buffercache, and the database under test is asked once, before anything
is measured, how its files are called. An extension is made in a private server only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plimsoll.target.connection import Connection

if TYPE_CHECKING:
    import numpy as np

EXTENSION = "pg_buffercache"
MAIN = 0
_FORKS = {None: MAIN, "fsm": 1, "vm": 2, "init": 3}
_FILE = re.compile(r"(\d+)(?:_(fsm|vm|init))?(?:\.(\d+))?")
_KINDS = {"r": "table", "m": "table", "i": "index"}

Fork = tuple[int, int]  # relfilenode and fork number: what the server calls a file without its segments


@dataclass(frozen=True)
class Relation:
    name: str
    kind: str  # "table", "index", "toast", "other"


@dataclass(frozen=True)
class Layout:
    """How the files of the database under test are called. Valid until something rewrites a relation."""

    database: int  # its oid
    folder: str  # below the data directory
    block_bytes: int
    segment_blocks: int
    relations: Mapping[int, Relation]  # by relfilenode; those of the schema under test


@dataclass(frozen=True)
class Buffers:
    """The blocks in the server's cache."""

    blocks: Mapping[Fork, np.ndarray]  # of the database under test: block numbers in no order
    elsewhere: int  # blocks of other databases, and of the catalogs that belong to none


# A table's toast is named after the table, since its own name is a number; its index is a part of it.
_RELATIONS = """
select pg_relation_filenode(c.oid)::int8, c.relkind::text, c.relname::text, owner.relname::text
from pg_class c
left join pg_index i on i.indexrelid = c.oid
left join pg_class owner on owner.reltoastrelid = coalesce(i.indrelid, c.oid)
where pg_relation_filenode(c.oid) is not null
  and coalesce(owner.relnamespace, c.relnamespace) = (select oid from pg_namespace where nspname = %s)
"""
_DATABASE = """
select (select oid from pg_database where datname = current_database())::int8, pg_relation_filepath('pg_class'),
  current_setting('block_size')::int, (select setting from pg_settings where name = 'segment_size')::int8
"""
# The extension's view keeps all its rows before it gives the first, and above work_mem writes them to a file: both are
# charged to the group under test. The function beneath it gives row by row when it stands in the select list, where its
# result must have a declared type; so it is declared once more, with the columns that the view gives it.
_ROWS = f"""
create or replace function plimsoll_buffers(out bufferid int, out relfilenode oid, out reltablespace oid,
  out reldatabase oid, out relforknumber int2, out relblocknumber int8, out isdirty bool, out usagecount int2,
  out pinning_backends int)
returns setof record as '$libdir/{EXTENSION}', 'pg_buffercache_pages' language c
"""
# One row a fork, its block numbers as packed big-endian integers: 131,072 rows would take longer to fetch than to find.
_BLOCKS = """
select (b).reldatabase::int8, (b).relfilenode::int8, (b).relforknumber::int,
  string_agg(int4send((b).relblocknumber::int), '')
from (select plimsoll_buffers() as b offset 0) as buffers where (b).relfilenode is not null group by 1, 2, 3
"""


def refusal(connection: Connection) -> str | None:
    """Makes the server's cache readable from the administration database of a private server; or why it cannot be."""
    with connection.open() as opened:
        known = opened.execute("select 1 from pg_available_extensions where name = %s", [EXTENSION]).fetchone()
        if known is None:
            return f"this server has no extension {EXTENSION}; it comes with PostgreSQL's contrib modules"
        opened.execute(f"create extension if not exists {EXTENSION}")
        opened.execute(_ROWS)
    return None


def read_layout(connection: Connection) -> Layout:
    """Asks the database under test; it counts as a transaction there, so not while its counters are watched."""
    with connection.open(connection.dbname) as opened:
        row = opened.execute(_DATABASE).fetchone()
        assert row is not None  # a select without a table has one row
        relations = opened.execute(_RELATIONS, [connection.schema]).fetchall()
    database, catalog, block_bytes, segment_blocks = row
    return Layout(
        database=database,
        folder=str(catalog).rpartition("/")[0],
        block_bytes=block_bytes,
        segment_blocks=segment_blocks,
        relations={node: _relation(kind, name, owner) for node, kind, name, owner in relations},
    )


def read_buffers(connection: Connection, database: int) -> Buffers:
    """Reads the server's cache from the administration database."""
    with connection.open() as opened:
        rows = opened.execute(_BLOCKS, binary=True).fetchall()
    return as_buffers(rows, database)


def as_buffers(rows: Iterable[tuple[Any, ...]], database: int) -> Buffers:
    """The answer to _BLOCKS as arrays: (database, relfilenode, fork, packed block numbers)."""
    import numpy as np

    by_fork: dict[Fork, np.ndarray] = {}
    elsewhere = 0
    for owner, node, fork, packed in rows:
        # A block number is unsigned in the server, and the last of them means none.
        blocks = np.frombuffer(packed, ">u4").astype(np.int64)
        if owner == database:
            by_fork[node, fork] = blocks
        else:
            elsewhere += len(blocks)
    return Buffers(by_fork, elsewhere)


def parse_file(name: str) -> tuple[Fork, int] | None:
    """The fork and the segment that a file of a database's folder holds; None when it holds no shared relation."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    return (int(match[1]), _FORKS[match[2]]), int(match[3] or 0)


def _relation(kind: str, name: str, owner: str | None) -> Relation:
    if owner is not None:
        return Relation(f"toast of {owner}", "toast")
    return Relation(name, _KINDS.get(kind, "other"))
