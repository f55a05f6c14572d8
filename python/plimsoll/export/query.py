"""Questions in SQL over the tables of many runs, answered by DuckDB in memory.

Read-only: one SELECT, no file but the runs' Parquet copies can be opened, none can be written, no extension is loaded.
DuckDB lets a SELECT carry a COPY or take one from a text, so what may run is decided on its plan and not on its words.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from plimsoll.export import ExportError
from plimsoll.export.lookups import COLUMNS, LOOKUPS
from plimsoll.export.sources import Table, find_tables, parts
from plimsoll.record import Run

Json = dict[str, Any]
_HELD = "held"
_RESERVED = {"group"}


@dataclass(frozen=True)
class Answer:
    """Names and types of the columns, and the rows."""

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


def ask(runs: dict[str, Run], sql: str) -> Answer:
    """The answer to one SELECT. Raises ExportError with what is wrong."""
    tables = find_tables(runs)
    try:
        base = _connect(runs, tables)
        for name in sorted(_tables_of(_plan(base, sql))):
            _fill(base, runs, tables, name)
        done = base.execute(sql)
        described = done.description or []
        return Answer([str(one[0]) for one in described], [str(one[1]) for one in described], done.fetchall())
    except duckdb.Error as error:
        raise ExportError(_message(error, tables)) from None


def what_there_is(runs: dict[str, Run]) -> dict[str, dict[str, str]]:
    """Every table with its columns and their types."""
    found = {name: {"run": "VARCHAR"} | _lookup_columns(name, runs) for name in LOOKUPS}
    return found | {name: table.columns for name, table in find_tables(runs).items()}


def _connect(runs: dict[str, Run], tables: dict[str, Table]) -> duckdb.DuckDBPyConnection:
    """A database with a view a table; what the record itself must give is empty until it is asked for."""
    base = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
    base.execute(f"SET autoload_known_extensions = false; SET temp_directory = ''; CREATE SCHEMA {_HELD}")
    for name in LOOKUPS:
        _create(base, name, {"run": "VARCHAR"} | _lookup_columns(name, runs))
        base.execute(f"CREATE VIEW {_name(name)} AS SELECT * FROM {_HELD}.{_name(name)}")
    for name, table in tables.items():
        _create(base, name, table.columns)
        copies = [
            f"SELECT {_text(source.run)} AS run, * FROM read_parquet({_text(str(source.parquet))})"
            for source in table.sources
            if source.parquet is not None
        ]
        union = " UNION ALL BY NAME ".join([f"SELECT * FROM {_HELD}.{_name(name)}", *copies])
        base.execute(f"CREATE VIEW {_name(name)} AS {union}")
    allowed = [source.parquet for table in tables.values() for source in table.sources if source.parquet is not None]
    base.execute(f"SET allowed_paths = [{', '.join(_text(str(path)) for path in allowed)}]")
    base.execute("SET enable_external_access = false")
    return base


def _create(base: duckdb.DuckDBPyConnection, name: str, columns: dict[str, str]) -> None:
    base.execute(f"CREATE TABLE {_HELD}.{_name(name)} ({', '.join(f'{_name(c)} {t}' for c, t in columns.items())})")


def _fill(base: duckdb.DuckDBPyConnection, runs: dict[str, Run], tables: dict[str, Table], name: str) -> None:
    if name in LOOKUPS:
        columns = {"run": "VARCHAR"} | _lookup_columns(name, runs)
        rows = [{"run": label} | row for label, run in runs.items() for row in LOOKUPS[name](run)]
        if rows:
            lists = [[row.get(column) for row in rows] for column in columns]
            wanted = ", ".join(f"unnest(${place}::{kind}[])" for place, kind in enumerate(columns.values(), 1))
            base.execute(f"INSERT INTO {_HELD}.{_name(name)} SELECT {wanted}", lists)
    elif name in tables:
        for columns_of in parts(tables[name]):
            base.register("arriving", columns_of)
            base.execute(f"INSERT INTO {_HELD}.{_name(name)} BY NAME SELECT * FROM arriving")
            base.unregister("arriving")


def _lookup_columns(name: str, runs: dict[str, Run]) -> dict[str, str]:
    """The columns of a lookup; of trials also the levels and counts that some runs have."""
    found = dict(COLUMNS[name])
    if name == "trials":
        for row in (row for run in runs.values() for row in LOOKUPS[name](run)):
            found |= {c: "BIGINT" if c.startswith("identity.") else "VARCHAR" for c in row if c not in found}
    return found


def _plan(base: duckdb.DuckDBPyConnection, sql: str) -> list[Json]:
    """The steps that a SELECT would take, nothing left out; refuses what is none, or would write."""
    statements = base.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ExportError("only one SELECT (or FROM, WITH, DESCRIBE, SUMMARIZE) is accepted: records are read-only")
    base.execute("PRAGMA disable_optimizer")
    plan = json.loads(base.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])
    base.execute("PRAGMA enable_optimizer; SET lock_configuration = true")
    steps = list(_steps(plan))
    if any("COPY" in step["name"].upper() for step in steps):
        raise ExportError("this query would write a file, but records are read-only; --json prints its result")
    return steps


def _steps(plan: list[Json]) -> Iterator[Json]:
    for step in plan:
        yield step
        yield from _steps(step.get("children") or [])


def _tables_of(steps: list[Json]) -> set[str]:
    """The tables that these steps read from what is held in memory."""
    read = (str((step.get("extra_info") or {}).get("Table", "")) for step in steps)
    return {name.rsplit(".", 1)[-1].strip('"') for name in read if f".{_HELD}." in name}


def _message(error: duckdb.Error, tables: dict[str, Table]) -> str:
    said = str(error).split("\n\nLINE ", 1)[0].strip()
    if isinstance(error, duckdb.CatalogException) and "Table" in said:
        first = said.split("\n", 1)[0].removeprefix("Catalog Error: ")
        there = ", ".join(_name(name) if name in _RESERVED else name for name in sorted([*LOOKUPS, *tables]))
        return f"{first}\n  available: {there}"
    if isinstance(error, duckdb.ParserException) and any(f'"{word}"' in said for word in _RESERVED):
        return said + '\n  what to do: group is a word of SQL; write "group" in double quotes for the table'
    if "pytz" in said:
        return "times with a time zone cannot be shown; cast them: ::TIMESTAMP or ::VARCHAR"
    return said


def _name(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _text(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"
