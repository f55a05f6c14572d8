"""What a run is doing, as OpenMetrics text on a loopback port, while it is on: for Prometheus and what reads its form.

Figures are those of the agent's progress lines, a second old at most; a scrape asks nobody and reads no file, so that
watching costs the load next to nothing. Nobody but this machine can reach the port, and it closes with the run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from plimsoll.experiment import PlannedTrial

ADDRESS = "127.0.0.1"
OUTCOMES = ("done", "failed", "skipped", "lost")
PLACE = ("trial", "treatment", "segment")
SEGMENTS = ("warmup", "measure")
SECTOR = 512
Place = tuple[str, str, str]


class RunMetrics(Collector):
    """Listens to a run (run/observer.py), and tells what it heard last."""

    def __init__(self, run: str, experiment: str, trials: int) -> None:
        self._lock = threading.Lock()
        self._about = {"run": run, "experiment": experiment}
        self._planned, self._ended = trials, dict[str, int]()
        self._trial: PlannedTrial | None = None
        self._phase = ""
        self._lines: dict[Place, dict[str, Any]] = {}
        self._rate: float | None = None

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened."""
        with self._lock:
            if name == "trial":
                self._trial, self._phase = info["trial"], ""
            elif name == "phase":
                self._phase, self._rate = str(info["phase"]), None
            elif name == "sample" and self._trial is not None:
                self._hear(info["line"])
            elif name == "turn":
                self._trial = info["trial"]
            elif name == "window":
                self._trial, self._phase = info["trial"], "measure"
                self._hear(info["line"] | {"t_ns": info["line"]["drained_ns"]})
                self._rate = None  # that of one window says little, and the time between two is not the server's
            elif name == "trial_end":
                status = str(info["status"])
                self._ended[status] = self._ended.get(status, 0) + 1
                self._trial, self._phase, self._rate = None, "", None

    def _hear(self, line: dict[str, Any]) -> None:
        assert self._trial is not None
        place = (str(self._trial.number), self._trial.treatment.label, self._phase)
        before = self._lines.get(place)
        self._lines[place] = line
        if before is not None and line["t_ns"] > before["t_ns"]:
            self._rate = (line["done"] - before["done"]) / (line["t_ns"] - before["t_ns"]) * 1e9

    def collect(self) -> Iterator[Metric]:
        """Everything, in prometheus_client's form."""
        with self._lock:
            lines, phase, trial, rate = dict(self._lines), self._phase, self._trial, self._rate
            ended = dict(self._ended)
        yield InfoMetricFamily("plimsoll_run", "The experiment that runs.", self._about)
        planned = GaugeMetricFamily("plimsoll_trials_planned", "Trials to be carried out in this call.")
        planned.add_metric([], self._planned)
        yield planned
        done = CounterMetricFamily("plimsoll_trials", "Trials that ended.", labels=["status"])
        for status, count in sorted(ended.items()):
            done.add_metric([status], count)
        yield done
        now = GaugeMetricFamily("plimsoll_phase", "1 for what is done now.", labels=["trial", "treatment", "phase"])
        if trial is not None and phase:
            now.add_metric([str(trial.number), trial.treatment.label, phase], 1)
        yield now
        yield from _of_load(lines)
        if rate is not None and trial is not None and phase in SEGMENTS:
            speed = GaugeMetricFamily(
                "plimsoll_throughput_per_second", "Transactions done a second, of the last second.", labels=PLACE
            )
            speed.add_metric([str(trial.number), trial.treatment.label, phase], rate)
            yield speed
        yield from _of_machine(lines)


def _of_load(lines: dict[Place, dict[str, Any]]) -> Iterator[Metric]:
    due = CounterMetricFamily("plimsoll_transactions_planned", "Transactions that were due.", labels=PLACE)
    done = CounterMetricFamily(
        "plimsoll_transactions", "Transactions by what became of them.", labels=[*PLACE, "outcome"]
    )
    for place, line in lines.items():
        due.add_metric(place, line["planned"])
        for outcome in OUTCOMES:
            done.add_metric([*place, outcome], line[outcome])
    yield due
    yield done


def _of_machine(lines: dict[Place, dict[str, Any]]) -> Iterator[Metric]:
    """What the lines say of server and machine, where they do: absent is not 0."""
    blocks = CounterMetricFamily(
        "plimsoll_server_blocks", "Blocks that the server found in its cache, or asked for.", labels=[*PLACE, "from"]
    )
    read = CounterMetricFamily("plimsoll_device_read_bytes", "Bytes that the data's devices read.", labels=PLACE)
    swap = GaugeMetricFamily("plimsoll_group_swap_bytes", "Swap of the server's group.", labels=PLACE)
    for place, line in lines.items():
        for key, source in (("blks_hit", "cache"), ("blks_read", "elsewhere")):
            if line.get(key) is not None:
                blocks.add_metric([*place, source], line[key])
        if line.get("read_sectors") is not None:
            read.add_metric(place, line["read_sectors"] * SECTOR)
        if line.get("swap_bytes") is not None:
            swap.add_metric(place, line["swap_bytes"])
    yield from (family for family in (blocks, read, swap) if family.samples)


class Endpoint:
    """Serves a collector's text on the loopback address while its context is open; port 0 chooses a free one."""

    def __init__(self, collector: Collector, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(collector)
        self._server = ThreadingHTTPServer((ADDRESS, port), _handler(registry))
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{ADDRESS}:{self._server.server_address[1]}/metrics"

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(registry: CollectorRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a client that says nothing does not hold the run's end up

        def do_GET(self) -> None:
            if self.path.split("?")[0] not in ("/", "/metrics"):
                self.send_error(404, "there is /metrics")
                return
            body = generate_latest(registry)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the terminal is the run's."""

    return Handler
