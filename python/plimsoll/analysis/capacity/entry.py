"""One trial of a search as capacity.json keeps it; the terminal shows the same as soon as the trial has ended."""

import numpy as np

from plimsoll.analysis.capacity.conditions import conditions
from plimsoll.analysis.capacity.document import BacklogFound, SearchTrial
from plimsoll.analysis.capacity.judge import Judged, as_json, judge
from plimsoll.analysis.capacity.objective import Objective
from plimsoll.analysis.capacity.reading import Reading
from plimsoll.analysis.statistics import percentile as percentiles
from plimsoll.analysis.statistics.queueing import Backlog
from plimsoll.record import Trial

DRAWN = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def trial_entry(trial: Trial, reading: Reading | None, objective: Objective) -> SearchTrial:
    """A trial as capacity.json keeps it; judged where it left something to judge."""
    place = trial.data.get("capacity") or {}
    entry: SearchTrial = {
        "number": trial.number,
        "role": place.get("role"),
        "rate": place.get("rate"),
        "seconds": place.get("seconds"),
        "status": trial.status,
        "reason": trial.data.get("reason"),
        "verdict": None,
        "reasons": [],
        "caveats": trial.data.get("caveats") or [],
        "conditions": conditions(trial) if reading is not None else {},
    }
    if reading is None:
        wrong = trial.measure.verification.get("wrong")
        if wrong:
            entry["reason"] = f"{wrong} answers were wrong: the trial has no result"
        return entry
    judged: Judged | None = None if reading.rate is None else judge([reading], objective)
    entry |= {
        "throughput": reading.throughput,
        "identity": reading.identity,
        "error_share": reading.error_share,
        "mean_ns": percentiles.mean_ns(reading.cells),
        "percentiles": {
            name: as_json(estimate)
            for name, level in DRAWN.items()
            if (estimate := percentiles.percentile(reading.cells, level)) is not None
        },
        "health": {
            "load_busy_share": reading.load_busy_share,
            "busy_connections": mean(reading.busy),
            "lag_ns_mean": mean(reading.lag),
            "threads": reading.threads,
        },
    }
    if judged is not None:
        entry |= {
            "verdict": judged.word,
            "reasons": judged.reasons,
            "disturbed": judged.disturbed,
            "excess": judged.excess,
            "terms": judged.terms,
            "backlog": _backlog_json(judged.backlog),
        }
    return entry


def _backlog_json(grown: Backlog | None) -> BacklogFound | None:
    if grown is None:
        return None
    return {"building": grown.building, "growth": grown.growth, "mean": grown.mean, "p_value": grown.p_value}


def mean(values: np.ndarray) -> float | None:
    """Of the seconds in which it is known."""
    known = values[values == values]
    return float(known.mean()) if len(known) else None
