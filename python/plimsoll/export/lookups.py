"""The documents of a record as rows: its run, trials, treatments, verdict and the names behind its numbers.

Numbers in the tables of a record are indexes into lists of its summaries; `names` spells them out, one row a number, so
that a query joins instead of guessing.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from plimsoll.analysis.comparing.unbounded import reading
from plimsoll.record import Run, Segment, Trial
from plimsoll.record.parquet import trial_row
from plimsoll.record.run import read_json

Json = dict[str, Any]
OUTCOMES = ("done", "failed", "skipped", "lost")
Rows = Iterator[Json]


def runs(run: Run) -> Rows:
    """One row: what was run, and on what."""
    data, fingerprint = run.data, run.fingerprint
    yield {
        "path": str(run.path),
        "id": data.get("id"),
        "experiment": data.get("experiment"),
        "title": data.get("title"),
        "kind": data.get("kind"),
        "status": data.get("status"),
        "quick": data.get("quick"),
        "seed": data.get("seed"),
        "started_epoch_ns": data.get("started_epoch_ns"),
        "ended_epoch_ns": data.get("ended_epoch_ns"),
        "kernel": _inside(fingerprint, "kernel", "release"),
        "cpu_model": _inside(fingerprint, "machine", "cpu_model"),
        "memory_kib": _inside(fingerprint, "machine", "memory_kib"),
        "fingerprint": json.dumps(fingerprint) if fingerprint else None,
    }


def _inside(document: Json, part: str, key: str) -> Any:
    table = document.get(part)
    return table.get(key) if isinstance(table, dict) else None


def trials(run: Run) -> Rows:
    """A row a trial, as in trials.parquet."""
    yield from (trial_row(trial) for trial in run.trials)


def treatments(run: Run) -> Rows:
    """A row a treatment and factor."""
    for name, treatment in (run.plan.get("treatments") or {}).items():
        for path, level in (treatment.get("levels") or {"": None}).items():
            yield {
                "treatment": name,
                "label": treatment.get("label"),
                "factor": path,
                "level": None if level is None else str(level),
            }


def metrics(run: Run) -> Rows:
    """The verdict's metrics of each treatment: means over blocks with their intervals."""
    verdict = read_json(run.path / "verdict.json") or {}
    units = verdict.get("metrics") or {}
    for name, treatment in (verdict.get("treatments") or {}).items():
        for metric, mean in (treatment.get("metrics") or {}).items():
            if mean is not None:
                place = {"treatment": name, "label": treatment.get("label"), "metric": metric}
                interval = {key: mean.get(key) for key in ("value", "low", "high", "blocks", "unbounded")}
                yield place | interval | {"unit": (units.get(metric) or {}).get("unit")}


def trial_metrics(run: Run) -> Rows:
    """The verdict's metrics of each trial."""
    verdict = read_json(run.path / "verdict.json") or {}
    for trial in verdict.get("trials") or []:
        place = {"trial": trial.get("number"), "block": trial.get("block"), "treatment": trial.get("treatment")}
        for metric in trial.get("metrics") or {}:
            value, is_beyond = reading(trial, metric)
            if value is not None:
                named = {"metric": metric, "value": float(value), "unbounded": is_beyond}
                yield place | {"admitted": trial.get("admitted")} | named


def names(run: Run) -> Rows:
    """What numbers mean: `of` is the column, with its table before it where tables differ (page_cache.class)."""
    for trial in run.trials:
        for segment in trial.segments:
            yield from _names(trial, segment)


def _names(trial: Trial, segment: Segment) -> Rows:
    summary = segment.summary
    if summary is None:
        return
    place = {"trial": trial.number, "segment": segment.name}
    lists: list[tuple[str, Any]] = [("kind", summary.get("kinds")), ("outcome", OUTCOMES)]
    lists.append(("device", summary.get("devices")))
    for probe, entry in (summary.get("probes") or {}).items():
        lists += [("bucket", entry.get("buckets")), (f"{probe}.class", entry.get("classes"))]
        lists.append((f"{probe}.device", entry.get("devices")))
        for wait, name in (entry.get("wait_names") or {}).items():
            yield place | {"of": "wait", "number": int(wait), "name": str(name)}
    for column, values in lists:
        for number, name in enumerate(values or ()):
            yield place | {"of": column, "number": number, "name": str(name)}


# What is known of each column without any row: a lookup is a table even where nothing fills it.
COLUMNS: dict[str, dict[str, str]] = {
    "runs": dict.fromkeys(
        ("path", "id", "experiment", "title", "kind", "status", "kernel", "cpu_model", "fingerprint"), "VARCHAR"
    )
    | {"quick": "BOOLEAN"}
    | dict.fromkeys(("seed", "started_epoch_ns", "ended_epoch_ns", "memory_kib"), "BIGINT"),
    "trials": dict.fromkeys(("treatment", "status", "reason"), "VARCHAR")
    | dict.fromkeys(("duplicate", "stationary", "checks_ok"), "BOOLEAN")
    | dict.fromkeys(("trial", "block", "position", "started_ns", "ended_ns"), "BIGINT"),
    "treatments": dict.fromkeys(("treatment", "label", "factor", "level"), "VARCHAR"),
    "metrics": dict.fromkeys(("treatment", "label", "metric", "unit"), "VARCHAR")
    | dict.fromkeys(("value", "low", "high"), "DOUBLE")
    | dict.fromkeys(("blocks", "unbounded"), "BIGINT"),
    "trial_metrics": dict.fromkeys(("treatment", "metric"), "VARCHAR")
    | dict.fromkeys(("trial", "block"), "BIGINT")
    | {"admitted": "BOOLEAN", "value": "DOUBLE", "unbounded": "BOOLEAN"},
    "names": {"trial": "BIGINT", "segment": "VARCHAR", "of": "VARCHAR", "number": "BIGINT", "name": "VARCHAR"},
}
LOOKUPS: dict[str, Callable[[Run], Rows]] = {
    "runs": runs,
    "trials": trials,
    "treatments": treatments,
    "metrics": metrics,
    "trial_metrics": trial_metrics,
    "names": names,
}
