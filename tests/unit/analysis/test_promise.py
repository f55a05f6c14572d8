"""What Bonnie promised and what the database got of it: ratios by hand, and every word that may be said."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.files.promised import promised
from plimsoll.analysis.places import promise
from plimsoll.record import Run
from plimsoll.report.places.promise import heads, table
from plimsoll.words.places import PROMISE, promise_lines

Json = dict[str, Any]
FACTORS = [
    {"path": "storage", "paths": ["environment.places.disk.raid.level"], "label": "storage"},
    {"path": "workload.size", "paths": ["workload.size"], "label": "file"},
]
LEVELS = {
    "t1": ("one disk", "large"),
    "t2": ("one disk", "small"),
    "t3": ("stripe", "large"),
    "t4": ("stripe", "small"),
}
PLAN = {
    "factors": FACTORS,
    "treatments": {name: {"levels": {"storage": one, "workload.size": size}} for name, (one, size) in LEVELS.items()},
}
NAMES = ("storage: one disk", "storage: stripe")
# By block: what each write was on one disk, and how many times that on the stripe.
WRITES, TIMES = (100.0, 110.0, 90.0), (2.0, 1.9, 2.1)


def raw(tmp_path: Path, workload: str = "raw_storage", plan: Json = PLAN) -> Run:
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "experiment.json").write_text(json.dumps({"workload": {"name": workload}}))
    return Run(tmp_path, {"id": "raw-1"})


def judged() -> Json:
    """The trials of the raw run's verdict. Small files, excluded trials and duplicates would spoil every mean."""
    trials: list[Json] = []
    for block, (write, times) in enumerate(zip(WRITES, TIMES, strict=True), start=1):
        for treatment, value in (("t1", write), ("t3", write * times), ("t2", 1e6), ("t4", 1e9)):
            metrics = {"write_bytes_per_second": value, "seeks_per_second": 300.0, "read_bytes_per_second": None}
            trials.append({"block": block, "treatment": treatment, "metrics": metrics})
    trials += [trials[0] | {"excluded": True, "metrics": {"write_bytes_per_second": 1e12}}]
    trials += [trials[0] | {"duplicate": True, "metrics": {"write_bytes_per_second": 1e12}}]
    return {"trials": trials}


def mean(value: float, low: float | None = None, high: float | None = None) -> Json:
    return {"value": value, "low": low, "high": high, "blocks": 3}


def cells(ratio: Json | None, scale: float = 1.0) -> list[Json]:
    rows = [{"cell": NAMES[0], "scale": scale, "rate": mean(500.0, 490.0, 510.0), "ratio": None}]
    return [*rows, {"cell": NAMES[1], "scale": scale, "rate": mean(510.0, 500.0, 520.0), "ratio": ratio}]


def of(tmp_path: Path, ratio: Json | None) -> Any:
    found = promised(raw(tmp_path), judged(), ["kernel.release"])
    assert found is not None
    return promise.promise(found, {"rows": [], "cells": cells(ratio) + cells(mean(9.0), scale=25.0)})  # type: ignore[typeddict-item]


def test_ratios_are_within_blocks_of_the_largest_file(tmp_path: Path) -> None:
    found = promised(raw(tmp_path), judged(), ["b", "a"])
    assert found is not None
    assert (found["run"], found["at"], found["differences"]) == ("raw-1", "file large", ["a", "b"])
    one, stripe = found["storages"]
    assert (one["storage"], stripe["storage"]) == NAMES
    rate = one["phases"]["write"]["rate"]["value"]
    assert rate == pytest.approx(math.prod(WRITES) ** (1 / 3)) and one["phases"]["write"]["ratio"] is None
    ratio = stripe["phases"]["write"]["ratio"]
    assert ratio is not None and ratio["value"] == pytest.approx(math.prod(TIMES) ** (1 / 3)) and ratio["blocks"] == 3
    assert ratio["low"] is not None and 1.5 < ratio["low"] < 2 < (ratio["high"] or 0) < 2.5
    assert "read" not in one["phases"], "what was not measured is absent"


def test_a_run_of_another_load_or_of_one_storage_promises_nothing(tmp_path: Path) -> None:
    assert promised(raw(tmp_path, "bank"), judged(), []) is None
    assert promised(raw(tmp_path, plan=PLAN | {"factors": FACTORS[1:]}), judged(), []) is None


@pytest.mark.parametrize(
    ("ratio", "word"),
    [
        (mean(1.02, 0.99, 1.05), "did not arrive"),
        (mean(1.2, 1.1, 1.3), "less than promised"),
        (mean(1.95, 1.8, 2.1), "arrived"),
        (mean(1.3, 0.9, 2.4), "cannot tell"),
        (mean(1.9), "too few blocks"),
    ],
)
def test_what_may_be_said(tmp_path: Path, ratio: Json, word: str) -> None:
    found = of(tmp_path, ratio)
    assert [row["verdict"] for row in found["rows"]] == [None, word]
    assert [row["rate"]["value"] for row in found["rows"]] == [500.0, 510.0], "of the smallest scale"
    (line,) = promise_lines({"promise": found})
    assert line.startswith("storage: stripe, against storage: one disk: Bonnie's write 2.00 x [")
    assert f"the database's transactions {ratio['value']:.2f} x" in line


def test_a_promise_of_less_is_judged_the_other_way_round() -> None:
    half = mean(0.5, 0.45, 0.55)
    words = [promise._judged(half, one) for one in (mean(1.0, 0.95, 1.05), mean(0.5, 0.4, 0.6), mean(0.8, 0.7, 0.9))]  # type: ignore[arg-type]
    assert words == ["did not arrive", "arrived", "less than promised"]
    assert promise._judged(mean(1.0, 0.9, 1.1), half) == "nothing promised"  # type: ignore[arg-type]
    assert promise._judged(None, half) == "too few blocks"  # type: ignore[arg-type]


def test_both_numbers_stand_in_one_row(tmp_path: Path) -> None:
    found = of(tmp_path, mean(1.02, 0.99, 1.05))
    assert heads(found) == ["write, MB/s", "seeks/s"]
    one, stripe = table(found)
    assert one[0] == NAMES[0] and one[-2:] == ["500.0", ""]
    assert stripe[1].startswith("0.0 (2.00 x [") and stripe[2].startswith("300.0 (1.00 x [")
    assert stripe[-2:] == ["510.0 (1.02 x [0.99, 1.05])", "did not arrive"]
    assert "another machine" in PROMISE.warns({"promise": found})[0]
    assert PROMISE.warns({"promise": found | {"differences": []}}) == promise_lines({}) == []


def test_storages_that_only_one_of_the_runs_has(tmp_path: Path) -> None:
    found = promised(raw(tmp_path), judged(), [])
    assert found is not None
    found["storages"].append({"storage": "storage: mirror", "phases": {}})
    both = promise.promise(found, {"rows": [], "cells": cells(None)})  # type: ignore[typeddict-item]
    assert both is not None and both["missing"] == ["storage: mirror"]
    assert promise.promise(found, {"rows": [], "cells": cells(None)[:1]}) is None  # type: ignore[typeddict-item]
