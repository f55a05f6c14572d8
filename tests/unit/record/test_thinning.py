"""Thinning: the stated rule, nothing lost of histograms, and no more bytes than allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plimsoll.record import read_table
from plimsoll.record.thinning import STEPS_S, bytes_of, thin

SECOND = 10**9
HOST = [("t_ns", "<i8"), ("pgpgin", "<i8")]
DEVICE = [("t_ns", "<i8"), ("device", "<u4"), ("reads", "<i8")]
SECONDS = [("second", "<u4"), ("kind", "u1"), ("low_ns", "<u8"), ("high_ns", "<u8"), ("count", "<u8")]


def segment(folder: Path, seconds: int = 3601) -> Path:
    """One sample a second, a little late each; two devices; histograms with three cells of two kinds; rows."""
    host = np.zeros(seconds, HOST)
    host["t_ns"] = 5 * SECOND + np.arange(seconds) * SECOND + np.arange(seconds) % 7 * 1_000_000
    host["pgpgin"] = np.arange(seconds) ** 2
    np.save(folder / "host.npy", host)
    device = np.zeros(2 * seconds, DEVICE)
    device["t_ns"], device["device"] = np.repeat(host["t_ns"], 2), np.tile([0, 1], seconds)
    np.save(folder / "device.npy", device)
    cells = np.zeros(3 * seconds, SECONDS)
    cells["second"], cells["kind"] = np.repeat(np.arange(seconds), 3), np.tile([0, 0, 1], seconds)
    cells["low_ns"], cells["count"] = np.tile([100, 200, 100], seconds), np.tile([1, 2, 3], seconds)
    cells["high_ns"] = cells["low_ns"] + 100
    np.save(folder / "latency_seconds.npy", cells)
    lag = np.zeros(seconds, [one for one in SECONDS if one[0] != "kind"])
    lag["second"], lag["count"] = np.arange(seconds), 6
    np.save(folder / "lag_seconds.npy", lag)
    np.save(folder / "latency.npy", cells[:3])
    np.save(folder / "transactions.npy", np.zeros(1000, [("planned_ns", "<i8")]))
    (folder / "summary.json").write_text("{}")
    return folder


def table(folder: Path, name: str) -> np.ndarray:
    found = read_table(folder / f"{name}.npy")
    assert found is not None
    return found


def test_what_fits_is_left_as_it_is(tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in segment(tmp_path).iterdir()}
    assert thin(tmp_path, 10**9) == {"step_s": 1, "has_rows": True, "bytes": bytes_of(tmp_path)}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("step_s", STEPS_S[1:])
def test_the_first_step_that_fits_is_taken(tmp_path: Path, step_s: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    whole = bytes_of(segment(folder))
    found = thin(folder, whole / step_s + 15_000)
    assert found["step_s"] == step_s and found["bytes"] <= whole / step_s + 15_000 and found["has_rows"]
    host = table(folder, "host")
    assert len(host) == 3600 // step_s + 1
    assert (host["t_ns"][0], host["pgpgin"][-1]) == (5 * SECOND, 3600**2)
    assert (np.diff(host["t_ns"]) >= (step_s - 0.1) * SECOND).all()
    assert len(table(folder, "device")) == 2 * len(host), "rows of one sample stay together"


def test_histograms_by_second_are_added_up_and_lose_nothing(tmp_path: Path) -> None:
    found = thin(segment(tmp_path), 0)
    assert (found["step_s"], found["has_rows"]) == (300, False) and not (tmp_path / "transactions.npy").exists()
    assert not (tmp_path / "latency_seconds.npy").exists(), "its seconds are no seconds any more"
    cells, lag = table(tmp_path, "latency_blocks"), table(tmp_path, "lag_blocks")
    assert cells["count"].sum() == 6 * 3601 and lag["count"].sum() == 6 * 3601
    first = cells[cells["second"] == 0]
    told = {(int(one["kind"]), int(one["low_ns"])): int(one["count"]) for one in first}
    assert told == {(0, 100): 300, (0, 200): 600, (1, 100): 900}
    assert sorted(set(cells["second"])) == list(range(0, 3601, 300))
    assert len(table(tmp_path, "latency")) == 3, "that of the whole segment is left as it is"


def test_thinning_again_changes_nothing(tmp_path: Path) -> None:
    thin(segment(tmp_path), 0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert thin(tmp_path, 0)["bytes"] == sum(map(len, before.values()))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_table_that_a_kill_cut_short_is_thinned_to_its_last_whole_row(tmp_path: Path) -> None:
    segment(tmp_path)
    path = tmp_path / "host.npy"
    path.write_bytes(path.read_bytes()[: -16 * 100 - 5])
    (tmp_path / "group.npy").write_bytes(b"\x93NUM")  # ends inside its header
    thin(tmp_path, 0)
    assert table(tmp_path, "host")["pgpgin"][-1] == 3499**2
