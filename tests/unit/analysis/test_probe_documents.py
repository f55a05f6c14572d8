"""What the probes give a verdict is of its types, from trials written by hand: no golden run has these probes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from plimsoll.analysis.probes import document
from plimsoll.analysis.probes.block_requests import requests_of
from plimsoll.analysis.probes.profile import off_cpu, profile
from plimsoll.analysis.probes.syscalls import calls_of, syncs_of

HERE = Path(__file__).parent
trial = runpy.run_path(str(HERE / "probe_trial.py"))["trial"]
faults = runpy.run_path(str(HERE.parent / "record" / "test_types.py"))["faults"]
of_calls, of_requests, of_profile = (
    runpy.run_path(str(HERE / f"test_{name}.py")) for name in ("syscalls", "block_requests", "profile")
)


def wrong(found: Any, kind: Any) -> list[str]:
    assert found is not None
    lines: list[str] = faults(json.loads(json.dumps(found)), kind, "found")
    return lines


def test_calls_and_estimates_of_them(tmp_path: Path) -> None:
    call, calls = of_calls["call"], of_calls["calls"]
    counted = calls(wal={"pwrite": call(10, bytes_log2=[0, 10])})
    estimated = calls(data={"pread": call(7, count_se=0.5)}) | {"calls_share": 0.125, "others_share": 0.125}
    for number, probe in enumerate((counted, estimated), 1):
        assert wrong(calls_of([trial(tmp_path, number, syscalls=probe)]), document.Calls) == []


def test_syncs_whose_parts_are_told_and_are_not(tmp_path: Path) -> None:
    told = of_calls["sync"](2, 300, 100, 200, flush=250, cpu=50)
    probe = {"status": "on", "classes": ["wal"], "file_systems": [{"type": "ext4"}], "lost": {"records": 1}}
    for number, (one, absent) in enumerate(((told | {"pages": 4, "journal_flush_ns": 0}, {}), (told, {"pages": "no"}))):
        syncs = probe | {"sync_totals": {"wal": {"fdatasync": one}}, "absent": absent}
        assert wrong(syncs_of([trial(tmp_path, number, sync=syncs)]), document.Syncs) == []


def test_requests_whose_queue_is_told_and_is_not(tmp_path: Path) -> None:
    kind, probe = of_requests["kind"], of_requests["probe"]
    told, untold = kind(3, 8192, 1000, 64_000), kind(4, 4096, 0, 70_000, queued=0, queue_ns_buckets=[])
    for number, one in enumerate((told, untold)):
        found = requests_of([trial(tmp_path, number, block=probe(wal={"write": one}))])
        assert wrong(found, document.BlockRequests) == []


def test_a_profile_and_the_waits_beside_it(tmp_path: Path) -> None:
    image = {"path": "/bin/postgres", "symbols": "dynamic symbols", "samples": 9, "unnamed": 2, "remedy": None}
    wait = {"kind": "mutex", "caller": "b", "stack": "a;b", "count": 2, "total_ns": 30, "max_ns": 20}
    facts = {"hz": 99, "images": [image], "contention": {"kinds": [wait], "sites": [wait]}}
    facts["samples"] = {"taken": 12, "in_kernel": 1, "named": 8, "complete": 10}
    on = of_profile["trial"](1, tmp_path / "1", profile=facts, lost={"no_room": 1}, cost={"run_ns": 7})
    (on.measure.path / "profile.folded").write_text("backend;main 10\n")
    refused = of_profile["trial"](2, tmp_path / "2", status="refused", reason="no clock")
    used: Any = {(1, "t1"): {"number": 1}, (2, "t1"): {"number": 2}}
    assert wrong(profile([on, refused], used, ["t1"]), document.Profile) == []
    waits = [{"name": "IO:WALSync", "bucket": "wal_sync", "ns": 70.5}]
    boxes = off_cpu({"treatments": {"t1": {"types": {"all": {"waits": waits}}}}})
    assert wrong(boxes, dict[str, list[document.Box]]) == []
