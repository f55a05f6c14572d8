"""Dirty pages, throttled time and run time of a trial written by hand, against figures worked out by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.probes.writeback import (
    dirty_curve,
    settings_of,
    thresholds,
    throttled_seconds,
    writeback_metrics,
)
from plimsoll.record import Trial
from plimsoll.record.format import MISSING

MIB = 2**20
SECOND = 10**9
START = 100 * SECOND
SYSCTL = {
    "vm.dirty_background_bytes": 20 * MIB,
    "vm.dirty_bytes": 40 * MIB,
    "vm.dirty_writeback_centisecs": 125,
    "vm.swappiness": 10,
}


def table(path: Path, seconds: list[float], **columns: list[int]) -> None:
    rows = np.zeros(len(seconds), [("t_ns", "<i8"), *((name, "<i8") for name in columns)])
    rows["t_ns"] = [START + round(second * SECOND) for second in seconds]
    for name, values in columns.items():
        rows[name] = values
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, rows)


def trial(folder: Path, *, group_version: int = 1, **summary: Any) -> Trial:
    """A trial of 2.5 s. In KiB, dirty pages go 0, 1024, 3072, 3072: areas 0.5, 2 and 1.5 MiB s, together 4."""
    table(
        folder / "measure/host.npy",
        [0, 1, 2, 2.5],
        dirty_kib=[0, 1024, 3072, 3072],
        writeback_kib=[0, 512, MISSING, 0],
    )
    table(folder / "measure/group.npy", [0, 2], dirty_bytes=[0, 4 * MIB], writeback_bytes=[MIB, MIB])
    table(folder / "warmup/host.npy", [-3, -2], dirty_kib=[2048, 4096], writeback_kib=[0, 0])
    document = {
        "format": 1,
        "started_ns": START,
        "ended_ns": START + 5 * SECOND // 2,
        "identity": {"planned": 10, "done": 10, "failed": 0, "skipped": 0, "lost": 0},
        "ended_by": "transactions",
        **summary,
    }
    (folder / "measure/summary.json").write_text(json.dumps(document))
    (folder / "trial.json").write_text(json.dumps({"status": "finished", "group": {"version": group_version}}))
    return Trial(folder, {"number": 1, "resolved": {"environment": {"sysctl": SYSCTL}}})


def throttle(**fields: Any) -> dict[str, Any]:
    return {"throttle": {"status": "on", "lost": {}, **fields}}


def test_dirty_pages_are_weighed_by_time(tmp_path: Path) -> None:
    found = writeback_metrics(trial(tmp_path))
    assert found["dirty_bytes_mean"] == pytest.approx(4 / 2.5 * MIB)
    assert found["dirty_bytes_max"] == 3 * MIB
    # The sample at 2 s could not be read: straight lines from 0 over 0.5 MiB to 0, areas 0.25 and 0.375.
    assert found["writeback_bytes_mean"] == pytest.approx(0.625 / 2.5 * MIB)
    assert found["writeback_bytes_max"] == 0.5 * MIB
    assert found["group_dirty_bytes_mean"] == pytest.approx(2 * MIB)
    assert found["group_dirty_bytes_max"] == 4 * MIB


def test_what_was_not_sampled_is_none(tmp_path: Path) -> None:
    one = trial(tmp_path)
    for name in ("host", "group"):
        (tmp_path / f"measure/{name}.npy").unlink()
    assert {name for name, value in writeback_metrics(one).items() if value is not None} == {"run_time_seconds"}


def test_pauses_are_summed_over_devices(tmp_path: Path) -> None:
    devices = {
        "vda": {"pauses": 3, "paused_ns": 1_500_000_000},
        "vdb": {"pauses": 1, "paused_ns": 250_000_000},
    }
    assert throttled_seconds(trial(tmp_path, probes=throttle(totals=devices)).measure) == 1.75


@pytest.mark.parametrize(
    ("probes", "expected"),
    [
        (throttle(totals={}), 0.0),  # it watched, and nobody was paused
        (throttle(totals={"vda": {"pauses": 0, "paused_ns": 0}}), 0.0),
        (throttle(totals={"vda": {"pauses": 2}}), None),
        (throttle(status="refused", reason="no BPF"), None),
        ({"throttle": None}, None),
        ({}, None),
    ],
)
def test_no_pauses_are_zero_and_no_probe_is_none(
    probes: dict[str, Any], expected: float | None, tmp_path: Path
) -> None:
    assert throttled_seconds(trial(tmp_path, probes=probes).measure) == expected


def test_run_time_is_that_of_a_whole_number_of_transactions(tmp_path: Path) -> None:
    assert writeback_metrics(trial(tmp_path / "all"))["run_time_seconds"] == 2.5
    assert writeback_metrics(trial(tmp_path / "time", ended_by="seconds"))["run_time_seconds"] is None
    fewer = {"planned": 10, "done": 9, "failed": 1, "skipped": 0, "lost": 0}
    assert writeback_metrics(trial(tmp_path / "fewer", identity=fewer))["run_time_seconds"] is None


def test_thresholds_hold_where_they_were_set(tmp_path: Path) -> None:
    assert thresholds(trial(tmp_path / "v1")) == {"background": 20 * MIB, "limit": 40 * MIB}
    # On cgroup v2 the kernel scales bytes to the group: what was set is not what holds.
    assert thresholds(trial(tmp_path / "v2", group_version=2)) == {}
    assert set(settings_of(trial(tmp_path / "v1").planned)) == set(SYSCTL) - {"vm.swappiness"}
    assert settings_of({"resolved": {"environment.memory": 1}}) == settings_of({}) == {}


def test_the_curve_begins_with_the_warm_up(tmp_path: Path) -> None:
    rows = dirty_curve(trial(tmp_path / "v1"))
    dirty = [(row["seconds"], row["bytes"] / MIB) for row in rows if row["what"] == "dirty"]
    assert dirty == [(-3, 2), (-2, 4), (0, 0), (1, 1), (2, 3), (2.5, 3)]
    assert [row["seconds"] for row in rows if row["what"] == "writeback"] == [-3, -2, 0, 1, 2.5]
    of_group = dirty_curve(trial(tmp_path / "v2", group_version=2))
    assert [(row["seconds"], row["bytes"]) for row in of_group if row["what"] == "dirty"] == [(0, 0), (2, 4 * MIB)]
