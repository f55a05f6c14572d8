"""One trial of a capacity run as the numbers it is judged by, read from its record.

Latencies come from the histograms by second (every operation, two significant digits), and from the rows where an
earlier agent wrote none. Operations without a timely answer (skipped for lateness, lost, failed) stay in: leaving them
out would make a server look the better the less it answers. The beginning of each segment is left out, while
connections open and the queue finds its level.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from plimsoll.analysis.capacity.conditions import host_busy_share, steal_share
from plimsoll.analysis.statistics.percentile import Cells
from plimsoll.analysis.trial.readings import DONE, FAILED, nothing_to_do, per, seconds_measured
from plimsoll.record import Trial, read_table
from plimsoll.record.summary import Health

SETTLE_SHARE = 0.1
SETTLE_SECONDS_MAX = 3
SATURATION, WARM = "saturation", "warm"


@dataclass(frozen=True)
class Reading:
    """What one trial says. Times in ns, one entry a second in `outstanding`, `busy` and `lag`.

    `rate` is the planned rate per second, None for the closed loop. `busy` counts the connections with an operation
    under way, on the mean of each second; `lag` is the mean lag of what started in it (NaN where nothing did).
    """

    number: int
    role: str
    rate: float | None
    seconds: float
    clients: int
    threads: int
    cells: Cells
    failed: Cells | None
    outstanding: np.ndarray
    busy: np.ndarray
    lag: np.ndarray
    lag_cells: Cells | None
    identity: dict[str, int]
    throughput: float
    load_busy_share: float | None
    host_busy_share: float | None
    steal_share: float | None = None
    conforming: int | None = None  # of the clients; None of a load that does not count them
    received_bytes_per_second: float | None = None

    @property
    def error_share(self) -> float:
        """Failed and lost operations among those that were sent."""
        bad = self.identity["failed"] + self.identity["lost"]
        return bad / max(1, bad + self.identity["done"])


def settle_seconds(seconds: float) -> int:
    """How many seconds at the beginning of a segment are not judged."""
    return min(SETTLE_SECONDS_MAX, max(1, round(seconds * SETTLE_SHARE)))


def read_trial(trial: Trial) -> Reading | None:
    """The reading of a finished trial; None where it has no measured segment to read, or where answers were wrong."""
    place, summary = trial.data.get("capacity") or {}, trial.measure.told
    rate, length = place.get("rate"), seconds_measured(trial.measure)
    if trial.status != "finished" or not place or not summary or not length:
        return None
    if trial.measure.verification.get("wrong"):
        return None
    planned = float(place.get("seconds") or length)
    ended_otherwise = summary.get("ended_by") not in (None, "seconds")
    seconds = max(1, int(min(planned, length) if ended_otherwise else planned))
    told_of = trial.measure.identity
    identity = {
        "done": int(told_of.get("done") or 0),
        "failed": int(told_of.get("failed") or 0),
        "skipped": int(told_of.get("skipped") or 0),
        "lost": int(told_of.get("lost") or 0),
    }
    settle = settle_seconds(seconds) if seconds > 2 else 0
    latency, starts = _latencies(trial, seconds), _lags(trial, seconds)
    if latency is None:
        return None
    late_ns = float(trial.measure.schedule.get("late_limit_ms") or place.get("late_limit_ms") or 0) * 1e6
    late = identity["skipped"] - nothing_to_do(trial.measure)
    unanswered = _spread(late + identity["lost"], latency)
    unknown = np.full(seconds, np.nan)
    lag_sum = unknown if starts is None else _inside(starts, starts.middle * starts.count)
    latency_sum = _inside(latency, latency.middle * latency.count)
    started = unknown if starts is None else _inside(starts, starts.count)
    with np.errstate(invalid="ignore", divide="ignore"):
        lag = np.where(started > 0, lag_sum / started, np.nan)
    # Little's law: operations that ended in a second, each for as long as it was outstanding, per second.
    outstanding = (latency_sum + unanswered * late_ns) / 1e9
    health = trial.measure.health
    threads = int(health.get("threads") or 1)
    return Reading(
        number=trial.number,
        role=str(place.get("role")),
        rate=None if rate is None else float(rate),
        seconds=float(seconds),
        clients=int(place.get("clients") or len(summary.get("backend_pids") or []) or 1),
        threads=threads,
        cells=_cut(latency, unanswered, settle),
        failed=_cut(latency, unanswered + _spread(identity["failed"], latency), settle) if identity["failed"] else None,
        outstanding=outstanding[settle:],
        busy=((latency_sum - lag_sum) / 1e9)[settle:],
        lag=lag[settle:],
        lag_cells=None if starts is None else _cut(starts, np.zeros(seconds), settle),
        identity=identity,
        throughput=identity["done"] / length,
        load_busy_share=_load_busy(health, length, threads),
        host_busy_share=host_busy_share(trial.measure),
        steal_share=steal_share(trial.measure),
        conforming=(summary.get("totals") or {}).get("clients_conforming"),
        received_bytes_per_second=per((summary.get("totals") or {}).get("received_bytes"), length),
    )


def _load_busy(health: Health, seconds: float, threads: int) -> float | None:
    """CPU time of the load threads over the time they had; of the whole agent where the threads alone are not known."""
    user = health.get("load_cpu_user_ns", health.get("cpu_user_ns"))
    system = health.get("load_cpu_system_ns", health.get("cpu_system_ns"))
    return None if user is None or system is None else (user + system) / (seconds * 1e9 * threads)


def _latencies(trial: Trial, seconds: int) -> Cells | None:
    """Planned to end of the done operations, by the second in which they ended."""
    segment = trial.measure
    cells = _histogram(segment.path / "latency_seconds.npy", seconds)
    if cells is not None:
        return cells
    table = segment.transactions
    if table is None or not len(table):
        return None
    done = table[table["outcome"] == DONE]
    return _rows(done["end_ns"], done["end_ns"] - done["planned_ns"], _started(trial, table), seconds)


def _lags(trial: Trial, seconds: int) -> Cells | None:
    """Planned to start of what was sent, by the second in which it started."""
    segment = trial.measure
    cells = _histogram(segment.path / "lag_seconds.npy", seconds)
    if cells is not None:
        return cells
    table = segment.transactions
    if table is None or not len(table):
        return None
    sent = table[table["outcome"] <= FAILED]
    return _rows(sent["start_ns"], sent["start_ns"] - sent["planned_ns"], _started(trial, table), seconds)


def _started(trial: Trial, table: np.ndarray) -> int:
    return int(trial.measure.told.get("started_ns") or table["planned_ns"].min())


def _inside(cells: Cells, weights: np.ndarray) -> np.ndarray:
    """Sums over the seconds of the plan; what ended later, while the queue ran dry, would look like a backlog."""
    return cells.by_second(weights)[: cells.seconds]


def _histogram(path: Any, seconds: int) -> Cells | None:
    """A table of counts by second and range."""
    table = read_table(path)
    if table is None or not len(table):
        return None
    return Cells(
        table["second"].astype(np.int64),
        table["low_ns"].astype(float),
        table["high_ns"].astype(float),
        table["count"].astype(float),
        np.zeros(seconds),
    )


def _rows(times: np.ndarray, values: np.ndarray, started: int, seconds: int) -> Cells:
    second = np.maximum((times.astype(np.int64) - started) // 1_000_000_000, 0)
    exact = np.maximum(values.astype(float), 0.0)
    return Cells(second, exact, exact, np.ones(len(exact)), np.zeros(seconds))


def _spread(count: int, cells: Cells) -> np.ndarray:
    """Operations whose second is not recorded, laid where the fewest ended: that is where they were not answered."""
    if not count:
        return np.zeros(cells.seconds)
    ended = _inside(cells, cells.count)
    missing = np.maximum((ended.sum() + count) / cells.seconds - ended, 0.0)
    return count * missing / missing.sum() if missing.sum() > 0 else np.full(cells.seconds, count / cells.seconds)


def _cut(cells: Cells, beyond: np.ndarray, settle: int) -> Cells:
    """Without the first seconds; what ended after the last one belongs to it."""
    kept = cells.second >= settle
    second = np.minimum(cells.second[kept], cells.seconds - 1)
    return Cells(second - settle, cells.low[kept], cells.high[kept], cells.count[kept], beyond[settle:].astype(float))
