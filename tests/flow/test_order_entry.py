"""Order entry through the whole pipeline: data, conditions, two treatments, its ranges in verdict and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory

from plimsoll.analysis import analyse
from plimsoll.experiment.workload import OrderEntry
from plimsoll.record import Run, open_run
from plimsoll.run import agent

Json = dict[str, Any]
ATTEMPTS = 3
TEXT = """
format = 1
name = "tiny-order-entry"
title = "Do Deliveries that wait matter?"

[target.settings]
autovacuum = false
fsync = false

[workload]
name = "order_entry"
warehouses = 1
clients = 4
keying_and_think = true
time_scale = 0.001
ledger = true

[probes]
page_cache = false

[warmup]
until = "none"

[measure]
seconds = 2

[design]
blocks = 1

[[factors]]
path = "workload.delivery"
levels = ["deferred", "in turn"]
"""


def test_a_plan_knows_the_size_of_the_data() -> None:
    for warehouses in (1, 7, 400):
        workload = {"name": "order_entry", "warehouses": warehouses, "seed": 1}
        described = agent.call("describe", {"workload": workload, "mode": "prepared"})
        assert OrderEntry(name="order_entry", warehouses=warehouses).estimated_bytes(0) == pytest.approx(
            described["estimated_bytes"], rel=0.001
        )


def _judged(laboratory: Laboratory) -> tuple[Json, Run, Json]:
    """(the answer, the record, the verdict) of a pair. Where other tests kept the generator from running, its trials
    say nothing of the server: the pair is asked for again."""
    path = laboratory.state / "orders.toml"
    path.write_text(TEXT)
    for attempt in range(ATTEMPTS):
        answer = json.loads(laboratory.call("run", str(path), "--json", "--out", f"orders-{attempt}"))
        assert answer["status"] == "finished"
        run = open_run(Path(answer["run"]))
        verdict = analyse(run)
        if not any("generator was saturated" in " ".join(one["reasons"]) for one in verdict["exclusions"]):
            break
    return answer, run, verdict


def test_a_pair_of_treatments(laboratory: Laboratory) -> None:
    answer, run, verdict = _judged(laboratory)
    for trial in run.trials:
        assert trial.status == "finished", trial.data.get("reason")
        names = [check["name"].partition(":")[0] for check in trial.data["checks"]]
        assert all(check["ok"] for check in trial.data["checks"])
        assert {f"condition {number}" for number in (*range(1, 11), 12)} <= set(names)
        assert "condition 11" not in names, "true only until the first Delivery"
        ledger = trial.data["ledger"]
        assert ledger["new_orders"]["acknowledged"] > 0
        assert ledger["lost"] == []

    assert [trial["commits"]["ok"] for trial in verdict["trials"]] == [True, True]
    found = verdict["order_entry"]
    assert "not comparable to published results" in found["like"]
    modes = [one["facts"]["delivery"] for one in found["treatments"].values()]
    assert modes == ["deferred", "in turn"], verdict["exclusions"]
    for name, one in found["treatments"].items():
        summary = next(trial.measure.summary for trial in run.trials if trial.treatment == name) or {}
        assert sum(row["count"] for row in one["mix"]) == summary["identity"]["done"]
        assert one["rate"]["new_orders"] == summary["by_kind"]["new_order"]["done"]
        assert one["rate"]["name"] == "New-Orders a minute", (
            "users a thousand times as fast are not the specification's"
        )
        assert {row["name"]: row["verdict"] for row in one["ranges"]}["remote_payments"] == "does not apply"

    page = Path(answer["report"]).read_text()
    assert 'id="section-order-entry"' in page
    assert "keying and think times multiplied by 0.001: a different benchmark" in page
    assert "0 lost, 0 duplicated" in page
    assert laboratory.left_behind() == []


def test_data_are_kept_for_the_next_run(laboratory: Laboratory) -> None:
    kept = json.loads(laboratory.call("cache", "show", "--json"))
    assert [one["key"].rsplit("-", 2)[0] for one in kept] == ["order_entry-1"]
