"""What a run tells on its port: read by another's parser, counted against what happened, gone when the run is."""

import re
import runpy
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from plimsoll.analysis.watch.live import Picture
from plimsoll.cli import execute
from plimsoll.experiment import ExperimentError
from plimsoll.run.observer import Several
from plimsoll.run.watch.metrics import LiveMetrics
from plimsoll.run.watch.openmetrics import Endpoint, RunMetrics

_LIVE = runpy.run_path(str(Path(__file__).parents[2] / "flow" / "live_world.py"))
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def trial(number: int, label: str) -> Any:
    return SimpleNamespace(number=number, treatment=SimpleNamespace(label=label))


def line(second: int, done: int, **more: int) -> dict[str, Any]:
    counts = {"planned": done + 10, "done": done, "failed": 3, "skipped": 5, "lost": 2}
    return {"event": "progress", "t_ns": second * 10**9, **counts, **more}


def scrape(url: str) -> Samples:
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    assert text.endswith("# EOF\n")
    families = list(text_string_to_metric_families(text))
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def at(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


@pytest.fixture
def metrics() -> RunMetrics:
    return RunMetrics('a "run"\n', "bank", 4)


def test_what_happened_is_told(metrics: RunMetrics) -> None:
    hostile = 'label "x"\\\nnext'
    with Endpoint(metrics, 0) as endpoint:
        metrics.event("trial", trial=trial(1, hostile))
        metrics.event("phase", phase="measure")
        metrics.event("sample", line=line(1, 100, blks_hit=7, blks_read=3, read_sectors=4, swap_bytes=9))
        metrics.event("sample", line=line(3, 500, blks_hit=8, blks_read=3, read_sectors=6, swap_bytes=1))
        found = scrape(endpoint.url)
    place = {"trial": "1", "treatment": hostile, "segment": "measure"}
    for outcome, count in (("done", 500), ("failed", 3), ("skipped", 5), ("lost", 2)):
        assert found[at("plimsoll_transactions_total", outcome=outcome, **place)] == count
    assert found[at("plimsoll_transactions_planned_total", **place)] == 510
    assert found[at("plimsoll_throughput_per_second", **place)] == 200
    assert found[at("plimsoll_server_blocks_total", **place, **{"from": "cache"})] == 8
    assert found[at("plimsoll_device_read_bytes_total", **place)] == 6 * 512
    assert found[at("plimsoll_group_swap_bytes", **place)] == 1
    assert found[at("plimsoll_phase", trial="1", treatment=hostile, phase="measure")] == 1
    assert found[at("plimsoll_trials_planned")] == 4
    assert found[at("plimsoll_run_info", run='a "run"\n', experiment="bank")] == 1


def test_a_trial_that_ended_keeps_its_counts_and_has_no_rate(metrics: RunMetrics) -> None:
    with Endpoint(metrics, 0) as endpoint:
        for number in (1, 2):
            metrics.event("trial", trial=trial(number, "A"))
            for phase in ("warmup", "measure"):
                metrics.event("phase", phase=phase)
                metrics.event("sample", line=line(1, 10 * number))
                metrics.event("sample", line=line(2, 20 * number))
            metrics.event("trial_end", trial=trial(number, "A"), status="finished", reason=None)
        found = scrape(endpoint.url)
    counted = {dict(labels)["trial"]: value for (name, labels), value in found.items()
               if name == "plimsoll_transactions_total" and dict(labels)["outcome"] == "done"
               and dict(labels)["segment"] == "measure"}  # fmt: skip
    assert counted == {"1": 20, "2": 40}
    assert found[at("plimsoll_trials_total", status="finished")] == 2
    assert not [name for name, _ in found if name in ("plimsoll_throughput_per_second", "plimsoll_phase")]


def test_what_a_machine_cannot_tell_is_absent(metrics: RunMetrics) -> None:
    metrics.event("sample", line=line(1, 5))  # before any trial: a data set is built
    metrics.event("trial", trial=trial(1, "A"))
    metrics.event("phase", phase="warmup")
    metrics.event("sample", line=line(1, 5))
    with Endpoint(metrics, 0) as endpoint:
        names = {name for name, _ in scrape(endpoint.url)}
    assert "plimsoll_transactions_total" in names
    assert not [name for name in names if name.startswith(("plimsoll_server", "plimsoll_device", "plimsoll_group"))]


def test_the_port_is_loopback_s_and_closes(metrics: RunMetrics) -> None:
    with Endpoint(metrics, 0) as endpoint:
        address, port = endpoint._server.server_address[:2]
        assert address == "127.0.0.1"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(endpoint.url + "/other", timeout=10)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_a_port_in_use_starts_nothing() -> None:
    runner: Any = SimpleNamespace(
        out=SimpleNamespace(name="r"), source=SimpleNamespace(experiment=SimpleNamespace(name="bank"))
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for port, said in ((taken.getsockname()[1], "in use"), (99999, "not a port number"), (-1, "not a port number")):
            with pytest.raises(ExperimentError, match=said), ExitStack() as stack:
                execute._told_on(runner, 1, port, stack)


def test_the_page_names_every_metric(metrics: RunMetrics) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/metrics.md").read_text()
    metrics.event("trial", trial=trial(1, "A"))
    metrics.event("phase", phase="measure")
    for second in (1, 2):
        metrics.event("sample", line=line(second, second, blks_hit=7, blks_read=3, read_sectors=4, swap_bytes=9))
    metrics.event("trial_end", trial=trial(1, "A"), status="finished", reason=None)
    named = set(re.findall(r"`(plimsoll_\w+)`", text))
    watch = LiveMetrics("w", 4711, "/data")
    watch.event("picture", picture=at_work())
    told = set()
    for collector in (metrics, watch):
        with Endpoint(collector, 0) as endpoint:
            told |= {name for name, _ in scrape(endpoint.url)}
    assert told - {name for name in told if name.endswith("_created")} <= named
    assert named - told == {"plimsoll_phase", "plimsoll_throughput_per_second"}, "only while there is load"


def at_work() -> Picture:
    """Two seconds of a server with two backends, then a look."""
    picture = Picture()
    lock, sync = {(101, "lock"): 0.5}, {(100, "wal_sync"): 0.25, (102, "client"): 0.5}
    picture.line(_LIVE["line"](1, _LIVE["backend"](7, cpu=0.25, waits=lock, transactions=3, requests=9)))
    both = (
        _LIVE["backend"](7, cpu=0.5, waits=lock, transactions=2, requests=4),
        _LIVE["backend"](8, queue=0.125, waits=sync, transactions=1, requests=1),
        _LIVE["backend"](9, cpu=0.5, what="checkpointer"),
    )
    picture.line(_LIVE["line"](2, *both))
    picture.look(_LIVE["look"](2.1, _LIVE["seen"](7, 0), _LIVE["seen"](8, 1, state="idle in transaction")))
    return picture


def test_a_watch_tells_its_sums() -> None:
    watch = LiveMetrics('w"', 4711, "/data")
    with Endpoint(watch, 0) as endpoint:
        assert {name for name, _ in scrape(endpoint.url)} == {"plimsoll_breakdown_info"}, "before the first line"
        watch.event("watching")
        watch.event("picture", picture=at_work(), session={})
        found = scrape(endpoint.url)
    assert found[at("plimsoll_breakdown_info", run='w"', pid="4711", data_directory="/data")] == 1
    assert found[at("plimsoll_watched_seconds_total")] == pytest.approx(2)
    assert found[at("plimsoll_server_transactions_total")] == 6
    assert found[at("plimsoll_server_requests_total")] == 14
    spent = {dict(labels)["bucket"]: value for (name, labels), value in found.items()
             if name == "plimsoll_backend_seconds_total"}  # fmt: skip
    assert spent == pytest.approx({"cpu": 0.75, "run_queue": 0.125, "lock": 1, "wal_sync": 0.25, "client": 0.5}), (
        "the checkpointer carries no client's work"
    )
    place = {"event": "Lock:transactionid", "bucket": "lock"}
    assert found[at("plimsoll_waits_total", **place)] == 2
    assert found[at("plimsoll_wait_seconds_total", **place)] == pytest.approx(1)
    states = {dict(labels)["state"]: value for (name, labels), value in found.items()
              if name == "plimsoll_server_clients"}  # fmt: skip
    assert states == {"busy": 1, "idle_in_transaction": 1, "idle": 3}


def test_what_no_look_told_is_absent() -> None:
    watch, picture = LiveMetrics("w", 1, "/data"), Picture()
    picture.line(_LIVE["line"](1, _LIVE["backend"](7, cpu=0.25)))
    watch.event("picture", picture=picture)
    with Endpoint(watch, 0) as endpoint:
        states = {dict(labels).get("state") for name, labels in scrape(endpoint.url) if name.endswith("clients")}
    assert states == {"busy", "idle_in_transaction"}


def test_several_observers_are_told_alike() -> None:
    one, other = RunMetrics("r", "e", 1), RunMetrics("r", "e", 1)
    both = Several(one, other)
    both.event("trial_end", trial=trial(1, "A"), status="failed", reason="x")
    assert one._ended == other._ended == {"failed": 1}
