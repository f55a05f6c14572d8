"""A run that is scraped while it is on: it tells what its record says afterwards, and then the port is closed."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

from laboratory import Laboratory
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from plimsoll.record import open_run

NEEDS = ("root", "cgroup memory", "swap", "postgresql", "server user")


def scrape(url: str) -> dict[tuple[str, str, str, str], float]:
    """By name, trial, segment and outcome; nothing when the port is closed."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return {}
    keys = ("trial", "segment", "outcome")
    return {
        (s.name, *(s.labels.get(key, "") for key in keys)): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_a_run_tells_what_it_does(laboratory: Laboratory) -> None:
    out = laboratory.state / "run"
    options = ("--blocks", "1", "--set", "measure.seconds=5", "--metrics", "0", "--json", "--out", str(out))
    process = laboratory.start("run", str(laboratory.experiment), *options)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert said.startswith("metrics: http://127.0.0.1:")
    url, seen = said.split()[1], []
    while process.poll() is None and (found := scrape(url)):
        seen.append(found)
        time.sleep(0.3)
    answer, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert json.loads(answer)["status"] == "finished"
    assert scrape(url) == {}, "the port is closed"
    rates = [value for found in seen for (name, *_), value in found.items() if name.startswith("plimsoll_throughput")]
    assert max(rates) > 0
    ended = max((found for found in seen), key=lambda found: found.get(("plimsoll_trials_total", "", "", ""), 0))
    first = open_run(out).trials[0]
    assert first.measure.summary is not None
    identity = first.measure.summary["identity"]
    for outcome in ("done", "failed", "skipped", "lost"):
        told = ended["plimsoll_transactions_total", "1", "measure", outcome]
        assert told <= identity[outcome]
    # The last line comes within the last second of five.
    assert ended["plimsoll_transactions_total", "1", "measure", "done"] > 0.5 * identity["done"]
