"""Where the rows of a table come from, over many runs: the run's Parquet copy where it is whole, else the record.

A copy is taken only if it is no older than the tables it was made from and has as many rows: a run that was resumed,
or is still going on, has an old copy or none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.record import MISSING, RecordError, Run, Segment, Trial, open_run, read_table
from plimsoll.record.parquet import file_name, tables_of

PLACE = {"run": "VARCHAR", "trial": "INTEGER", "block": "INTEGER", "treatment": "VARCHAR", "segment": "VARCHAR"}
_SQL_TYPES = {
    **{f"u{size}": name for size, name in ((1, "UTINYINT"), (2, "USMALLINT"), (4, "UINTEGER"), (8, "UBIGINT"))},
    **{f"i{size}": name for size, name in ((1, "TINYINT"), (2, "SMALLINT"), (4, "INTEGER"), (8, "BIGINT"))},
    **{"f4": "FLOAT", "f8": "DOUBLE", "b1": "BOOLEAN"},
}
_GLOB = set("*?[{")
_BATCH_ROWS = 2_000_000


@dataclass
class Source:
    """One table of one run."""

    run: str
    segments: list[tuple[Trial, Segment]]
    parquet: Path | None
    columns: dict[str, str]


@dataclass
class Table:
    """One table over all runs."""

    name: str
    sources: list[Source] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, str]:
        """Names and SQL types: a column that some runs lack is null there."""
        found = dict(PLACE)
        for source in self.sources:
            found |= {name: kind for name, kind in source.columns.items() if name not in found}
        return found

    @property
    def held(self) -> list[Source]:
        """Those that have to be read from the record itself."""
        return [source for source in self.sources if source.parquet is None]


def find_runs(places: Sequence[Path]) -> dict[str, Run]:
    """The runs in these folders, each a run's or one of runs, by the names that a query shows."""
    folders: list[Path] = []
    for place in places:
        if (place / "run.json").is_file():
            folders.append(place)
        elif place.is_dir():
            folders += sorted(path.parent for path in place.glob("*/run.json"))
        else:
            raise RecordError(f"{place}: no such folder; name folders of runs, or a folder that holds some")
    if not folders:
        where = ", ".join(str(place) for place in places)
        raise RecordError(f"{where}: no run in it; name folders of runs, or a folder that holds some")
    found: dict[str, Run] = {}
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        name = folder.name
        found[str(folder) if name in found else name] = open_run(folder)
    return found


def find_tables(runs: dict[str, Run]) -> dict[str, Table]:
    """Every table that these runs have, by name."""
    found: dict[str, Table] = {}
    for name, run in runs.items():
        for table, segments in tables_of(run).items():
            columns: dict[str, str] = {}
            rows = 0
            for _, segment in segments:
                read = read_table(segment.path / f"{table}.npy")
                if read is not None:
                    rows += len(read)
                    columns |= sql_columns(read.dtype)
            copy = _whole_copy(run.path / file_name(table), table, segments, rows)
            found.setdefault(table, Table(table)).sources.append(Source(name, segments, copy, columns))
    return dict(sorted(found.items()))


def sql_columns(dtype: np.dtype[Any]) -> dict[str, str]:
    """The plain columns of a table with their SQL types."""
    kinds = {name: dtype[name].str[1:] for name in dtype.names or ()}
    return {name: _SQL_TYPES[kind] for name, kind in kinds.items() if kind in _SQL_TYPES}


def _whole_copy(path: Path, table: str, segments: list[tuple[Trial, Segment]], rows: int) -> Path | None:
    import polars as pl

    if _GLOB & set(str(path)) or not rows:
        return None
    try:
        made = path.stat().st_mtime_ns
        newest = max((segment.path / f"{table}.npy").stat().st_mtime_ns for _, segment in segments)
        if made < newest or pl.scan_parquet(path, glob=False).select(pl.len()).collect().item() != rows:
            return None
    except (OSError, pl.exceptions.PolarsError):
        return None
    return path


def parts(table: Table) -> Iterator[dict[str, np.ndarray]]:
    """The rows that have to be read from the record, as columns; what could not be read is masked.

    Many segments at once where they are small, since each part costs DuckDB tens of milliseconds.
    """
    batch: list[dict[str, np.ndarray]] = []
    rows = 0
    for columns in _segments(table):
        length = len(columns["run"])
        if batch and (columns.keys() != batch[0].keys() or rows + length > _BATCH_ROWS):
            yield _joined(batch)
            batch, rows = [], 0
        batch.append(columns)
        rows += length
    if batch:
        yield _joined(batch)


def _joined(batch: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.ma.concatenate([one[name] for one in batch]) for name in batch[0]}


def _segments(table: Table) -> Iterator[dict[str, np.ndarray]]:
    for source in table.held:
        for trial, segment in source.segments:
            read = read_table(segment.path / f"{table.name}.npy")
            if read is None or not len(read):
                continue
            place = (source.run, trial.number, trial.block, trial.treatment, segment.name)
            columns: dict[str, np.ndarray] = {}
            columns |= {
                name: np.full(len(read), value, _dtype(value)) for name, value in zip(PLACE, place, strict=True)
            }
            for name in sql_columns(read.dtype):
                values = np.ascontiguousarray(read[name])
                is_signed = values.dtype == np.dtype("<i8")
                columns[name] = np.ma.masked_equal(values, MISSING) if is_signed else values
            yield columns


def _dtype(value: object) -> type:
    return np.int32 if isinstance(value, int) else object
