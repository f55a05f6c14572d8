"""What a watched server is doing, as OpenMetrics text while `breakdown` is on: its time by bucket and wait event.

Figures are the sums of the agent's lines since the watch began, a second old at most. Counters grow by what was
watched: where a budget leaves only slices of time, they are to be set against the seconds watched, not the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from plimsoll.analysis.watch.live import Picture

Json = dict[str, Any]
NS = 1e-9


class LiveMetrics(Collector):
    """Listens to a watch (run/watch/watch.py), and tells what it heard last."""

    def __init__(self, run: str, pid: int, data: str) -> None:
        self._lock = threading.Lock()
        self._about = {"run": run, "pid": str(pid), "data_directory": data}
        self._last: Json | None = None

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened."""
        if name == "picture":
            last = _heard(info["picture"])
            with self._lock:
                self._last = last

    def collect(self) -> Iterator[Metric]:
        """Everything, in prometheus_client's form; only what is watched before the first line."""
        with self._lock:
            last = self._last
        yield InfoMetricFamily("plimsoll_breakdown", "The server that is watched.", self._about)
        if last is None:
            return
        for name, about, value in (
            ("plimsoll_watched_seconds", "Seconds that were watched.", last["watched_ns"] * NS),
            ("plimsoll_server_transactions", "Transactions that ended.", last["transactions"]),
            ("plimsoll_server_requests", "Requests that were answered.", last["requests"]),
        ):
            family = CounterMetricFamily(name, about)
            family.add_metric([], value)
            yield family
        clients = GaugeMetricFamily("plimsoll_server_clients", "Clients by what they do now.", labels=["state"])
        for state, count in last["clients"].items():
            if count is not None:
                clients.add_metric([state], count)
        yield clients
        spent = CounterMetricFamily(
            "plimsoll_backend_seconds", "Time of all backends inside transactions, by bucket.", labels=["bucket"]
        )
        for bucket, ns in last["buckets"].items():
            spent.add_metric([bucket], ns * NS)
        yield spent
        yield from _of_waits(last["waits"])


def _of_waits(waits: dict[tuple[str, str], tuple[int, int]]) -> Iterator[Metric]:
    labels = ["event", "bucket"]
    times = CounterMetricFamily("plimsoll_waits", "Waits by the server's name of them.", labels=labels)
    spent = CounterMetricFamily("plimsoll_wait_seconds", "Time in these waits.", labels=labels)
    for place, (count, ns) in sorted(waits.items()):
        times.add_metric(place, count)
        spent.add_metric(place, ns * NS)
    yield times
    yield spent


def _heard(picture: Picture) -> Json:
    """A copy: the picture goes on, and is asked for by another thread."""
    whole = picture.whole
    return {
        "watched_ns": picture.lasted_ns,
        "transactions": whole.transactions,
        "requests": whole.requests,
        "clients": picture.clients(),
        "buckets": dict(whole.buckets),
        "waits": {place: (count, ns) for place, (count, ns) in whole.events.items()},
    }
