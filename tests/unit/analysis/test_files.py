"""Loads on files judged from records by hand: rates, costs, what the page cache did, each operation's latency."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.files.moved import NEVER_LEFT, UNKNOWN, what_the_cache_did
from plimsoll.analysis.metrics import METRICS
from plimsoll.experiment.judged import Judged
from plimsoll.experiment.workload import RawStorage, SequentialIo
from plimsoll.record import open_run
from plimsoll.words.workloads.files import operation_lines, phase_lines

_WORLD = runpy.run_path(str(Path(__file__).with_name("files_world.py")))
make, BYTES, SEEKS = _WORLD["make"], _WORLD["BYTES"], _WORLD["SEEKS"]
Json = dict[str, Any]
RAW = {"name": "raw_storage", "processes": 1}
BONNIE = ("putc", "write", "getc", "read", "seeks")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Json:
    return dict(analyse(open_run(make(tmp_path_factory.mktemp("runs") / "raw", RAW, BONNIE))))


@pytest.fixture(scope="module")
def mix(tmp_path_factory: pytest.TempPathFactory) -> Json:
    return dict(analyse(open_run(make(tmp_path_factory.mktemp("runs") / "mix", {"name": "files"}))))


def test_every_trial_enters(raw: Json, mix: Json) -> None:
    for verdict in (raw, mix):
        assert [entry["reasons"] for entry in verdict["trials"]] == [[]] * 6
        assert all(entry["generator"]["explains_ratio"] is None for entry in verdict["trials"]), "it is the target"


def test_a_phase_has_its_rate_and_its_cost(raw: Json) -> None:
    phases = raw["phases"]
    assert phases["phases"] == list(BONNIE) and "Bonnie" in phases["like"]
    write = phases["treatments"]["t1"]["write"]
    # 4.01, 4.02 and 4.03 s: the middle by logs is 4.02.
    assert write["bytes_per_second"]["value"] == pytest.approx(BYTES / 4.02, rel=1e-4)
    assert write["bytes_per_second"]["low"] < BYTES / 4.02 < write["bytes_per_second"]["high"]
    assert write["cpu_share"]["value"] == pytest.approx(0.75)
    assert write["cpu_system_share"]["value"] == pytest.approx(0.5)
    assert write["machine_share"]["value"] == pytest.approx(0.5, rel=0.01)
    # Of two CPUs half for 4.02 s are 4.02 s, for 400 MB.
    assert write["machine_ns_per_mb"]["value"] == pytest.approx(4.02e9 / 400, rel=0.01)
    assert write["load_ns_per_mb"]["value"] == pytest.approx(0.75 * 4.02e9 / 400, rel=1e-3)
    assert write["min_transfer_share"]["value"] == pytest.approx(0.25), "of what one process was to move"


def test_what_is_rewritten_in_place_counts_once(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, ("putc", "rewrite"))
    for place in run.glob("trials/*/rewrite/summary.json"):
        place.write_text(place.read_text().replace('"bytes_read": 0', f'"bytes_read": {BYTES}'))
    found = analyse(open_run(run))["phases"]["treatments"]["t1"]["rewrite"]  # type: ignore[typeddict-item]
    assert found["bytes_per_second"]["value"] == pytest.approx(BYTES / 4.02, rel=1e-4)
    assert found["cache"][0]["what"] == "read from memory: it never left it; written to the device"


def _unverified(run: Path, pattern: str) -> None:
    for place in run.glob(pattern):
        told = json.loads(place.read_text())
        told["facts"]["verified"] = False
        place.write_text(json.dumps(told))


def test_phases_that_were_read_without_comparing_are_not_verified(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, BONNIE)
    assert not any("Not verified" in line for line in phase_lines(dict(analyse(open_run(run)))))
    _unverified(run, "trials/*/*/summary.json")
    verdict = dict(analyse(open_run(run)))
    found = {phase: one["is_verified"] for phase, one in verdict["phases"]["treatments"]["t1"].items()}
    assert found == {"putc": True, "write": True, "getc": False, "read": False, "seeks": False}, "what reads"
    said = "Not verified, for what was read was not compared with what was written: "
    assert said + "getc, read, seeks" in phase_lines(verdict)


def test_where_treatments_differ_in_what_was_verified_it_is_said_of_which(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, ("write", "read"))
    _unverified(run, "trials/0002/read/summary.json")
    verdict = dict(analyse(open_run(run)))
    lines = [line for line in phase_lines(verdict) if line.startswith("Not verified")]
    assert len(lines) == 1 and lines[0].endswith("was written: memory 4 GiB: read"), lines


def test_what_failed_operations_moved_is_no_payload(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, ("putc", "rewrite"))
    for place in run.glob("trials/*/*/summary.json"):
        told = json.loads(place.read_text())
        told["totals"] |= {"bytes_read_failed": BYTES // 8, "bytes_written_failed": BYTES // 4}
        place.write_text(json.dumps(told))
    found = analyse(open_run(run))["phases"]["treatments"]["t1"]  # type: ignore[typeddict-item]
    assert found["putc"]["bytes_per_second"]["value"] == pytest.approx(BYTES * 5 / 8 / 4.02, rel=1e-4)
    assert found["rewrite"]["bytes_per_second"]["value"] == pytest.approx(BYTES * 3 / 4 / 4.02, rel=1e-4)
    assert found["rewrite"]["cache"][0]["what"] == "written to the device", "all that was moved"


def test_what_is_written_back_after_a_phase_is_no_part_of_it(tmp_path: Path) -> None:
    """A pass's files are synced once it is over: only the readings around it have that in them."""
    run = make(tmp_path / "run", RAW, ("write",))
    columns = [("t_ns", "<i8"), ("device", "<i8"), ("read_sectors", "<i8"), ("write_sectors", "<i8")]
    for place in run.glob("trials/*/write"):
        # Of two devices, each with a few that others had written before.
        rows = [(1, 0, 0, 4000), (1, 1, 5, 0), (2, 0, 0, 4000 + BYTES // 512 // 5), (2, 1, 5, BYTES // 512 // 20)]
        np.save(place / "device.npy", np.array(rows, columns))
    found = analyse(open_run(run))["phases"]["treatments"]["t1"]["write"]  # type: ignore[typeddict-item]
    assert found["device_write_share"]["value"] == pytest.approx(0.25, rel=1e-4), "and not all of it"
    assert found["cache"][0]["what"] == "written: 25% to the device, the rest still in memory"


def test_what_a_seek_writes_back_it_has_read_and_counts_once(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, BONNIE)
    before = analyse(open_run(run))["phases"]["treatments"]["t1"]["seeks"]  # type: ignore[typeddict-item]
    for place in run.glob("trials/*/seeks/summary.json"):
        told = json.loads(place.read_text())
        told["totals"]["bytes_written"] = told["totals"]["bytes_read"] // 10
        place.write_text(json.dumps(told))
    found = analyse(open_run(run))["phases"]["treatments"]["t1"]["seeks"]  # type: ignore[typeddict-item]
    assert before["machine_ns_per_mb"]["value"] == found["machine_ns_per_mb"]["value"]
    assert before["bytes_per_second"]["value"] == found["bytes_per_second"]["value"]


def test_the_end_of_a_file_is_no_seek(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, BONNIE)
    for place in run.glob("trials/*/seeks/summary.json"):
        told = json.loads(place.read_text())
        told["identity"] |= {"planned": SEEKS + 1, "done": SEEKS + 1}
        told["by_kind"]["fsync"] = {"done": 1, "failed": 0}
        told["facts"]["closings"] = ["fsync"]
        place.write_text(json.dumps(told))
    seeks = analyse(open_run(run))["phases"]["treatments"]["t1"]["seeks"]  # type: ignore[typeddict-item]
    assert seeks["operations_per_second"]["value"] == pytest.approx(SEEKS / 4.02, rel=1e-4)


def test_a_phase_with_lost_operations_has_no_rate(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, BONNIE)
    for place in run.glob("trials/*/write/summary.json"):
        told = json.loads(place.read_text())
        told["identity"] |= {"done": told["identity"]["done"] - 1, "lost": 1}
        place.write_text(json.dumps(told))
    verdict = analyse(open_run(run))
    found = verdict["phases"]["treatments"]["t1"]["write"]  # type: ignore[typeddict-item]
    assert found["bytes_per_second"] is None and found["machine_ns_per_mb"] is None and found["seconds"] is not None
    assert verdict["trials"][0]["metrics"]["write_bytes_per_second"] is None


def test_seeks_are_counted_and_not_weighed(raw: Json) -> None:
    seeks = raw["phases"]["treatments"]["t1"]["seeks"]
    assert seeks["operations_per_second"]["value"] == pytest.approx(SEEKS / 4.02, rel=1e-4)
    assert raw["treatments"]["t1"]["metrics"]["seeks_per_second"]["value"] == pytest.approx(SEEKS / 4.02, rel=1e-4)


def test_what_the_page_cache_did_is_said_of_each_phase(raw: Json) -> None:
    said = {phase: found["cache"] for phase, found in raw["phases"]["treatments"]["t1"].items()}
    assert {phase: [row["trials"] for row in rows] for phase, rows in said.items()} == {name: [3] for name in BONNIE}
    assert said["read"][0]["what"] == "read from memory: it never left it"
    assert said["getc"][0]["what"] == "read from the device"
    assert said["write"][0]["what"] == "written to the device"
    assert said["putc"][0]["what"] == "written: 50% to the device, the rest still in memory"
    assert said["seeks"][0]["what"] == "read from the device, 1.5 times over"


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        ((100.0, None, None, None), UNKNOWN),
        ((0.0, 0.0, 0.0, 0.0), "nothing moved"),
        ((1000.0, 0.0, 1000 * NEVER_LEFT, 0.0), "read: 1% from the device, the rest from memory"),
        ((1000.0, 0.0, 1000 * NEVER_LEFT - 1, 0.0), "read from memory: it never left it"),
        ((0.0, 1000.0, 0.0, 0.0), "written to memory: it has not left it yet"),
        ((1000.0, 1000.0, 900.0, 0.0), "read from the device; written to memory: it has not left it yet"),
    ],
)
def test_bounds_of_what_the_page_cache_did(moved: tuple[float | None, ...], said: str) -> None:
    assert what_the_cache_did(*moved) == said  # type: ignore[arg-type]


def test_of_files_on_no_device_nothing_is_said_to_have_stayed_in_memory(tmp_path: Path) -> None:
    """Of tmpfs and NFS no device is watched, which is not one that moved nothing."""
    run = make(tmp_path / "run", RAW, BONNIE)
    for place in run.glob("trials/*/trial.json"):
        told = json.loads(place.read_text())
        for entry in told["passes"]:
            entry["device_counters"] = {"before": {}, "after": {}}
        place.write_text(json.dumps(told))
    found = analyse(open_run(run))["phases"]["treatments"]["t1"]  # type: ignore[typeddict-item]
    for phase in BONNIE:
        assert found[phase]["cache"] == [{"what": UNKNOWN, "trials": 3}]
        assert found[phase]["device_read_share"] is None and found[phase]["device_write_share"] is None


def test_where_requests_were_watched_only_those_for_the_load_s_files_count(tmp_path: Path) -> None:
    """The device has read all of the bytes, and a quarter of them for the load; where requests were lost it is the
    device's word again."""

    def read(lost: int) -> float:
        run = make(tmp_path / f"run{lost}", RAW, BONNIE)
        of = {"other": BYTES // 4, "elsewhere": BYTES, "swap": 7}
        totals = {"vda": {name: {"read": {"bytes": count}} for name, count in of.items()}}
        for place in run.glob("trials/*/getc/summary.json"):
            told = json.loads(place.read_text())
            told["probes"] = {"block": {"status": "on", "lost": {"events": lost}, "request_totals": totals}}
            place.write_text(json.dumps(told))
        found = analyse(open_run(run))["phases"]["treatments"]["t1"]["getc"]  # type: ignore[typeddict-item]
        return float(found["device_read_share"]["value"])

    assert (read(0), read(1)) == (0.25, 1.0)


def test_levels_are_compared_by_a_phases_rate(raw: Json) -> None:
    (comparison,) = raw["comparisons"]
    assert comparison["metric"] == "putc_bytes_per_second"
    assert comparison["best_set"] == ["256 MiB"]
    (pair,) = comparison["pairs"]
    assert pair["ratio"] == pytest.approx(8.02 / 4.02, rel=0.01) or pair["ratio"] == pytest.approx(
        4.02 / 8.02, rel=0.01
    )


def test_only_its_own_phases_are_metrics_of_a_workload(raw: Json, mix: Json) -> None:
    assert "putc_bytes_per_second" in raw["metrics"] and "reread_bytes_per_second" not in raw["metrics"]
    assert "bytes_per_second" in mix["metrics"] and "putc_bytes_per_second" not in mix["metrics"]


def test_an_operation_has_its_count_and_its_latency(mix: Json) -> None:
    found = mix["operations"]["treatments"]["t1"]
    assert [(one["kind"], one["done"], one["failed"]) for one in found["kinds"]] == [
        ("read", 3000, 0),
        ("append", 3000, 0),
    ]
    latency = found["kinds"][1]["latency_ns"]
    assert latency["mean"]["value"] == pytest.approx(3e6) and latency["p99"]["value"] == pytest.approx(3e6)
    assert found["system_calls_per_operation"]["value"] == 3.0
    assert found["bytes_per_second"]["value"] == pytest.approx(BYTES / 4.02, rel=1e-4)
    assert found["cache"] == [{"what": "read from memory: it never left it", "trials": 3}]


def test_the_lines_say_what_the_verdict_holds(raw: Json, mix: Json) -> None:
    lines = phase_lines(raw)
    assert lines[0].startswith("memory 256 MiB: putc 100 MB/s, write 100 MB/s")
    assert lines[-1] == "Never left memory in any trial: read"
    (line,) = operation_lines(mix)
    assert "498 operations/s, 99.5 MB/s" in line
    assert phase_lines(mix) == [] and operation_lines(raw) == []


def test_a_wrong_byte_excludes_the_trial(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, BONNIE)
    summary = run / "trials" / "0001" / "getc" / "summary.json"
    summary.write_text(summary.read_text().replace('"wrong": 0', '"wrong": 2'))
    entry = analyse(open_run(run))["trials"][0]
    assert not entry["admitted"] and "2 of 48828 checked answers were wrong" in entry["reasons"]


def test_a_phase_without_a_record_has_no_metric(tmp_path: Path) -> None:
    run = make(tmp_path / "run", RAW, BONNIE)
    (run / "trials" / "0001" / "write" / "summary.json").unlink()
    metrics = analyse(open_run(run))["trials"][0]["metrics"]
    assert metrics.get("write_bytes_per_second") is None and metrics["getc_bytes_per_second"]


def test_what_may_be_judged_is_measured() -> None:
    """The names that an experiment may give, and the metrics that there are."""
    names = set(Judged.__args__)  # type: ignore[attr-defined]
    assert names <= set(METRICS)
    assert {*RawStorage.own_metrics, *SequentialIo.own_metrics} <= names
    for name in (*RawStorage.own_metrics, *SequentialIo.own_metrics):
        kinds = {kind for kind in (RawStorage, SequentialIo) if name in kind.own_metrics}
        assert set(METRICS[name].workloads) == {kind.model_fields["name"].annotation.__args__[0] for kind in kinds}  # type: ignore[union-attr]
