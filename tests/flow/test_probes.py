"""Probes in the kernel beside a real PostgreSQL, from the experiment to the page: disk requests, the page cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from laboratory import Laboratory
from markupsafe import escape

from plimsoll.record import open_run
from plimsoll.report.probes.block_requests import words

NEEDS = ("root", "cgroup memory", "swap", "postgresql", "server user", "bpf")


@pytest.fixture(scope="module")
def out(laboratory: Laboratory) -> Path:
    """A run with probes that count, which ends well."""
    assert "PLIMSOLL_PROBE_FAULT" not in os.environ
    folder = laboratory.state / "watched"
    sets = ("--set", "probes.block=true", "--set", "probes.syscalls=true", "--set", 'probes.syscalls_counted="files"')
    laboratory.call("run", str(laboratory.experiment), "--blocks", "1", "--out", str(folder), *sets)
    assert laboratory.left_behind() == []
    return folder


def test_the_log_of_a_server_is_told_from_its_data(out: Path) -> None:
    for trial in open_run(out).trials:
        assert trial.measure.summary is not None
        probe = trial.measure.summary["probes"]["block"]
        assert probe["status"] == "on", probe["reason"]
        # Ends that the kernel does not show are counted; under load there are some.
        assert probe["lost"]["requests"] <= 0.05 * sum(ends["issued"] for ends in probe["disk_requests"].values())
        if all(system["type"] == "ext4" for system in probe["file_systems"]):
            assert "journal" not in probe.get("absent", {}), probe["absent"]
        assert probe["cost"]["run_ns"] > 0
        assert all(ends["holds"] for ends in probe["disk_requests"].values()), probe["disk_requests"]
        log = [classes["wal"]["write"] for classes in probe["request_totals"].values() if "wal" in classes]
        flushes = [
            classes["none"]["flush"]["count"] for classes in probe["request_totals"].values() if "none" in classes
        ]
        # Each of the server's syncs of its log has written some, and nothing else writes it.
        syncs = trial.measure.summary["probes"]["syscalls"]["call_totals"]["wal"]["fdatasync"]["count"]
        assert sum(one["count"] for one in log) >= syncs * 0.9
        assert sum(flushes) > 0
        assert all(one["bytes_min"] >= 4096 and one["device_ns_min"] > 0 for one in log)
        rows, depths = trial.measure.series("block"), trial.measure.series("block_depth")
        assert rows is not None and depths is not None
        assert (depths["depth_ns"][1:] >= 0).all()
    verdict = json.loads((out / "verdict.json").read_text())
    assert set(verdict["block"]) == set(verdict["treatments"])
    page = (out / "report/index.html").read_text()
    assert "Requests of the block devices" in page
    # Whose requests took most of the time, beside a neighbour's; writes of the log have a row in any case.
    lines = [line for requests in verdict["block"].values() for line in words(requests)]
    assert lines and all(escape(line) in page for line in lines)
    for requests in verdict["block"].values():
        assert any("wal" in disk["classes"] for disk in requests["disks"].values())
    assert 'data-figure="block-times"' in page and 'data-figure="block-time"' in page


def test_a_trusted_probe_of_the_page_cache_counts(out: Path) -> None:
    for trial in open_run(out).trials:
        assert trial.measure.summary is not None
        probe = trial.measure.summary["probes"]["page_cache"]
        assert probe["status"] == "on", probe["reason"]
        assert probe["self_test"]["passed"] and not any(probe["lost"].values())
        assert all(one["holds"] for one in probe["identity"].values())
        assert probe["totals"]["data"]["read_calls"] > 0
        assert probe["cost"]["run_ns"] > 0
