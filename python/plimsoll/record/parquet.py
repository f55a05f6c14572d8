"""A finished run as Parquet, for DuckDB, polars and whoever comes with a question over many runs.

Copies only: the `.npy` tables stay the record. Trials of one run may have different columns (a machine that lost a
controller midway), so tables are joined by name and what is absent is null.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from plimsoll.record.format import MISSING
from plimsoll.record.npy import read_table
from plimsoll.record.run import SERIES, Run, Segment, Trial, open_run

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

TRIALS = "trials"
ROWS_A_PART = 1 << 19


def file_name(table: str) -> str:
    """The Parquet file of a table."""
    return f"series_{table}.parquet" if table in SERIES else f"{table}.parquet"


def tables_of(run: Run) -> dict[str, list[tuple[Trial, Segment]]]:
    """Every table of the record by its name, with the segments that have a file of it, in their order."""
    found: dict[str, list[tuple[Trial, Segment]]] = {}
    for trial in run.trials:
        for segment in trial.every_segment:
            for path in sorted(segment.path.glob("*.npy")):
                found.setdefault(path.stem, []).append((trial, segment))
    return dict(sorted(found.items()))


def _frame(trial: Trial, segment: Segment, table: "np.ndarray") -> "pl.DataFrame":
    import numpy as np
    import polars as pl

    names = table.dtype.names or ()
    frame = pl.DataFrame({name: np.ascontiguousarray(table[name]) for name in names})
    signed = [name for name in names if table.dtype[name] == np.dtype("<i8")]
    place = {"trial": trial.number, "block": trial.block, "treatment": trial.treatment, "segment": segment.name}
    return frame.with_columns(
        *(pl.when(pl.col(name) == MISSING).then(None).otherwise(pl.col(name)).alias(name) for name in signed)
    ).select(*(pl.lit(value).alias(key) for key, value in place.items()), pl.all())


def trial_row(trial: Trial) -> dict[str, object]:
    """A trial in one row: its place in the plan, what became of it, its levels and its identity."""
    data = trial.data
    stationary = data.get("stationary") or {}
    summary = trial.measure.told
    checks = data.get("checks")
    row: dict[str, object] = {
        "trial": trial.number,
        "block": trial.block,
        "position": trial.planned.get("position"),
        "treatment": trial.treatment,
        "duplicate": trial.duplicate,
        "status": trial.status,
        "reason": data.get("reason"),
        "stationary": stationary.get("reached"),
        "checks_ok": all(check.get("ok") for check in checks) if checks is not None else None,
        "started_ns": summary.get("started_ns"),
        "ended_ns": summary.get("ended_ns"),
    }
    row |= {f"level.{path}": str(level) for path, level in (trial.planned.get("levels") or {}).items()}
    return row | {f"identity.{key}": count for key, count in (summary.get("identity") or {}).items()}


def _write_table(name: str, segments: list[tuple[Trial, Segment]], target: Path) -> Path | None:
    """One table over all trials, through parts of some rows so that memory holds few of them at a time."""
    import polars as pl

    with TemporaryDirectory(dir=target.parent, prefix=".compact-") as scratch:
        parts: list[Path] = []
        for trial, segment in segments:
            table = read_table(segment.path / f"{name}.npy")
            if table is None or len(table) == 0:
                continue
            for begin in range(0, len(table), ROWS_A_PART):
                part = Path(scratch) / f"{len(parts)}.parquet"
                rows = table[begin : begin + ROWS_A_PART]
                _frame(trial, segment, rows).write_parquet(part, compression="zstd")
                parts.append(part)
        if not parts:
            return None
        whole = Path(scratch) / "whole.parquet"
        scanned = [pl.scan_parquet(part, glob=False) for part in parts]
        pl.concat(scanned, how="diagonal").sink_parquet(whole, compression="zstd")
        whole.replace(target)
    return target


def compact(run_dir: str | Path, out: Path | None = None) -> list[Path]:
    """Writes trials and every table as .parquet, into the run's folder unless told otherwise; returns those written."""
    import polars as pl

    run = open_run(run_dir)
    place, written = out or run.path, []
    if run.trials:
        trials = place / file_name(TRIALS)
        pl.DataFrame([trial_row(trial) for trial in run.trials], infer_schema_length=None).write_parquet(trials)
        written.append(trials)
    for name, segments in tables_of(run).items():
        table = _write_table(name, segments, place / file_name(name))
        if table is not None:
            written.append(table)
    return written
