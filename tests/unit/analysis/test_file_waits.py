"""Times of operations on files from a record by hand: which operation each wait lies in, and that parts add up."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.files import file_waits
from plimsoll.analysis.files.times import Times, times
from plimsoll.record import Segment, Trial
from plimsoll.words.workloads.files import wait_lines

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
TRANSACTION = _MAKER["TRANSACTION"]
WAIT = np.dtype(
    [("connection", "<u4"), ("place", "<u4")]
    + [(name, "<i8") for name in ("left_ns", "back_ns", "run_queue_ns", "runtime_ns", "switches")]
)
BUCKETS = ["run_queue", "device", "journal"]
PLACES = [
    {"bucket": "device", "function": "submit_bio_wait", "stack": "", "count": 2, "ns": 40},
    {"bucket": "run_queue", "function": "preempted", "stack": "", "count": 1, "ns": 0},
    {"bucket": "journal", "function": "jbd2_log_wait_commit", "stack": "", "count": 1, "ns": 30},
]
DEVICE, PREEMPTED, JOURNAL = range(3)
# Session, planned, started, ended, kind.
OPERATIONS = [(0, 90, 100, 200, 0), (0, 210, 210, 300, 1), (1, 100, 100, 190, 0)]
# Session, place, left, back, run queue.
WAITS = [
    (0, DEVICE, 110, 140, 10),
    (0, PREEMPTED, 150, 155, 5),
    (0, DEVICE, 202, 208, 0),  # between two operations
    (0, JOURNAL, 220, 250, 0),
    (1, DEVICE, 120, 140, 0),
]


def record(folder: Path, waits: list[tuple[int, ...]], lost: int = 0, switches: list[int] | None = None) -> Path:
    rows = np.zeros(len(OPERATIONS), TRANSACTION)
    for row, (connection, planned, start, end, kind) in zip(rows, OPERATIONS, strict=True):
        row["connection"], row["kind"], row["outcome"] = connection, kind, 0
        row["planned_ns"], row["start_ns"], row["end_ns"] = planned, start, end
    table = np.zeros(len(waits), WAIT)
    for number, (row, (connection, place, left, back, queue)) in enumerate(zip(table, waits, strict=True)):
        row["connection"], row["place"], row["left_ns"], row["back_ns"] = connection, place, left, back
        row["run_queue_ns"] = queue
        row["switches"] = (switches or range(len(waits)))[number]
    folder.mkdir(parents=True)
    np.save(folder / "transactions.npy", rows)
    np.save(folder / "file_waits.npy", table)
    entry: dict[str, Any] = {"status": "on", "buckets": BUCKETS, "places": PLACES, "lost": {"waits": lost}}
    summary = {"kinds": ["read", "append"], "probes": {"file_waits": entry}, "started_ns": 0, "ended_ns": 300}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def read(folder: Path) -> Times:
    found = times(Segment(folder, "measure"))
    assert found is not None
    return found


def test_each_wait_is_its_operation_s_and_parts_add_up(tmp_path: Path) -> None:
    found = read(record(tmp_path / "measure", WAITS))
    assert found.latency.tolist() == [110, 90, 90]
    assert {name: values.tolist() for name, values in found.parts.items()} == {
        "lag": [10, 0, 0],
        "cpu": [65, 60, 70],
        "run_queue": [15, 0, 0],
        "journal": [0, 30, 0],
        "device": [20, 0, 20],
    }
    assert (found.straddling, found.missed) == (0, 0)


def test_operations_on_a_ring_wait_for_their_completion(tmp_path: Path) -> None:
    folder = record(tmp_path / "trial" / "measure", []).parent
    (folder / "trial.json").write_text(json.dumps({"measured_segment": "measure"}))

    def parts(engine: str, *, breakdown: bool) -> list[dict[str, float]]:
        resolved = {"workload": {"name": "files", "engine": engine}, "probes": {"breakdown": breakdown}}
        trial = Trial(folder, {"number": 1, "resolved": resolved})
        found = file_waits._treatment([trial])
        if found is None:
            return []
        values = [{name: mean["value"] for name, mean in one["parts_ns"].items()} for one in found["operations"]]
        wholes = [one["latency_ns"]["value"] for one in found["operations"] if one["latency_ns"]]
        assert [sum(of_kind.values()) for of_kind in values] == wholes
        return values

    assert parts("io_uring", breakdown=True) == [{"lag": 5, "completion": 95}, {"completion": 90}]
    assert "completion" not in parts("sync", breakdown=True)[0], "a thread is watched"
    assert parts("io_uring", breakdown=False)[0].keys() == {"lag", "cpu"}, "nobody has asked"


def test_a_switch_that_nobody_saw_is_told(tmp_path: Path) -> None:
    found = read(record(tmp_path / "measure", WAITS, switches=[0, 1, 2, 5, 9]))
    assert found.missed == 2, "of the second session there is one wait, and nothing to compare it with"


def test_a_wait_that_seems_to_last_longer_than_its_operation_counts_up_to_its_end(tmp_path: Path) -> None:
    found = read(record(tmp_path / "measure", [(0, DEVICE, 190, 205, 12)]))
    assert found.straddling == 1
    assert (found.parts["device"][0], found.parts["run_queue"][0], found.parts["cpu"][0]) == (0, 10, 90)


def test_without_the_probe_nothing_is_said(tmp_path: Path) -> None:
    folder = record(tmp_path / "measure", WAITS)
    summary = json.loads((folder / "summary.json").read_text())
    summary["probes"]["file_waits"] = {"status": "refused"}
    (folder / "summary.json").write_text(json.dumps(summary))
    assert times(Segment(folder, "measure")) is None


def test_what_was_lost_is_a_caveat_of_its_trial(tmp_path: Path) -> None:
    record(tmp_path / "0001" / "measure", WAITS, lost=3)
    caveats = file_waits.PART.trial_caveats(Trial(tmp_path / "0001", {}), None)
    assert caveats == ["3 waits of operations were lost: their time counts as time on a CPU"]
    record(tmp_path / "0002" / "measure", WAITS)
    assert file_waits.PART.trial_caveats(Trial(tmp_path / "0002", {}), None) == []


def test_the_sentence_names_what_makes_a_tenth() -> None:
    def mean(value: float) -> dict[str, Any]:
        return {"value": value, "low": None, "high": None, "blocks": 1}

    parts = {"device": mean(700), "journal": mean(250), "cpu": mean(50)}
    one = {"kind": "append", "operations": 9, "latency_ns": mean(1000), "parts_ns": parts}
    treatments = {"t1": {"operations": [one | {"slowest_ns": None, "slowest_parts_ns": {}}]}}
    verdict = {"file_waits": {"treatments": treatments}, "treatments": {"t1": {"label": "all"}}, "comparisons": []}
    (line,) = wait_lines(verdict)
    assert line.endswith("append 70% waiting for the device, 25% waiting for the journal")
