"""The page-cache probe's figures and the reconciliation with the device, against values worked out by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.caches import reconcile
from plimsoll.analysis.probes import instruments
from plimsoll.analysis.probes.page_cache import probe_metrics, totals
from plimsoll.record import Run, Trial

Json = dict[str, Any]
# 1000 pages asked for by reads (500 blocks) and 40 by faults; 100 + 28 of them missed; 200 brought ahead, 90 used.
DATA = {
    "read_pages": 1000,
    "read_blocks": 500,
    "read_missed_pages": 100,
    "read_missed_blocks": 60,
    "read_calls_waited": 5,
    "fault_pages": 40,
    "fault_missed_pages": 28,
    "readahead_pages": 160,
    "prefetch_pages": 40,
    "ahead_used_pages": 90,
    "ahead_evicted_pages": 50,
    "write_pages": 999,
    "other_pages": 2,
    "unsettled_pages": 0,
}
WAL = dict.fromkeys(DATA, 0) | {"read_missed_pages": 10, "readahead_pages": 10, "ahead_used_pages": 12}


def _probe(**fields: Any) -> Json:
    found = {"status": "on", "absent": {}, "page_bytes": 4096, "block_bytes": 8192, "lost": {"ahead": 0}}
    found |= {"file_systems": [{"device": "254:0", "type": "ext4"}], "totals": {"data": DATA, "wal": WAL}}
    return found | {"cost": {"run_ns": 3_000_000}} | fields


def _trial(
    folder: Path, probes: Json | None, pages_read: int = 400, swapped: int | None = 20, number: int = 1
) -> Trial:
    """100 transactions of two statements in one second on two CPUs; the data on two devices."""
    place = folder / f"{number:04d}" / "measure"
    place.mkdir(parents=True)
    summary: Json = {"format": 1, "identity": {"done": 100}, "started_ns": 0, "ended_ns": 10**9}
    if probes is not None:
        summary["probes"] = probes
    (place / "summary.json").write_text(json.dumps(summary))
    rows = np.zeros(100, [("statements", "u1"), ("outcome", "u1")])
    rows["statements"] = 2
    np.save(place / "transactions.npy", rows)
    if swapped is not None:
        host = np.zeros(2, [("t_ns", "<i8"), ("pswpin", "<i8")])
        host["pswpin"] = [7, 7 + swapped]
        np.save(place / "host.npy", host)
    before = {"vda": [5, 0, 1000, 9], "vdb": [1, 0, 3, 9]}
    after = {"vda": [6, 0, 1000 + (pages_read - 50) * 8, 9], "vdb": [2, 0, 3 + 50 * 8, 9]}
    data = {"number": number, "status": "finished", "device_counters": {"before": before, "after": after}}
    data |= {
        "counters": {"before": {"blks_read": 10}, "after": {"blks_read": 310}},
        "cpus": {"target": "0", "load": "1"},
    }
    (place.parent / "trial.json").write_text(json.dumps(data))
    return Trial(place.parent, {"number": number})


def test_the_metrics_equal_a_hand_count(tmp_path: Path) -> None:
    heads = {"status": "on", "totals": {"vda": {"touched": 30}, "vdb": {"touched": 10}}}
    probes = {"page_cache": _probe(), "buffer_heads": heads}
    found = probe_metrics(_trial(tmp_path, probes))
    assert found["page_cache_hit_ratio"] == pytest.approx(1 - 128 / 1040)
    assert found["page_cache_read_hit_ratio_blocks"] == pytest.approx(1 - 60 / 500)
    assert found["page_cache_misses_per_query"] == pytest.approx(60 / 200)
    assert found["database_misses_per_page_cache_miss"] == pytest.approx(300 / 60)
    assert found["readahead_pages_per_missed_page"] == pytest.approx(160 / 128)
    assert found["ahead_used_share"] == pytest.approx(90 / 200)
    assert found["ahead_evicted_share"] == pytest.approx(50 / 200)
    assert found["page_cache_waited_reads_per_transaction"] == pytest.approx(0.05)
    # 100 + 28 + 160 + 40 + 2 of the data, 10 + 10 of the WAL; what writes added was not brought.
    assert found["page_cache_brought_bytes_per_transaction"] == pytest.approx(350 * 4096 / 100)
    assert found["buffer_head_touches_per_query"] == pytest.approx(40 / 200)
    assert found["probe_ns_per_transaction"] == pytest.approx(30_000)
    assert found["probe_core_share"] == pytest.approx(3e6 / 2e9)


@pytest.mark.parametrize("probes", [None, {}, {"page_cache": {"status": "refused", "reason": "no BPF"}}])
def test_what_was_not_probed_is_missing_and_never_zero(tmp_path: Path, probes: Json | None) -> None:
    trial = _trial(tmp_path, probes)
    assert all(value is None for value in probe_metrics(trial).values())
    assert reconcile.reconcile(trial) is None
    assert totals(trial.measure, "page_cache") is None


def test_nothing_missed_has_no_ratio_of_misses(tmp_path: Path) -> None:
    found = probe_metrics(_trial(tmp_path, {"page_cache": _probe(totals={"data": dict.fromkeys(DATA, 0)})}))
    assert found["database_misses_per_page_cache_miss"] is None
    assert found["page_cache_hit_ratio"] is None
    assert found["page_cache_misses_per_query"] == 0


def test_a_kernel_without_fault_counts_counts_reads_alone(tmp_path: Path) -> None:
    reads = {key: value for key, value in DATA.items() if not key.startswith("fault")}
    why = {"fault_pages": "no tracepoint", "fault_missed_pages": "no tracepoint"}
    known = probe_metrics(_trial(tmp_path / "a", {"page_cache": _probe(totals={"data": reads}, absent=why)}))
    assert known["page_cache_hit_ratio"] == pytest.approx(0.9)
    unknown = probe_metrics(_trial(tmp_path / "b", {"page_cache": _probe(totals={"data": reads})}))
    assert unknown["page_cache_hit_ratio"] is None
    assert unknown["page_cache_brought_bytes_per_transaction"] is None


def test_device_reads_are_explained_by_part(tmp_path: Path) -> None:
    found = reconcile.reconcile(_trial(tmp_path, {"page_cache": _probe()}))
    assert found is not None
    pages = {key: value / 4096 for key, value in found.items() if key.endswith("_bytes")}
    # Of the WAL's ten pages brought ahead no more than ten can have been used of this segment's.
    assert pages == {
        "device_bytes": 400,
        "demand_bytes": 138,
        "ahead_used_bytes": 100,
        "ahead_unused_bytes": 110,
        "other_bytes": 2,
        "swap_in_bytes": 20,
        "unexplained_bytes": 30,
    }
    assert found["unexplained_share"] == pytest.approx(0.075)
    assert found["classes"]["wal"] == {
        "demand_bytes": 10 * 4096,
        "ahead_used_bytes": 10 * 4096,
        "ahead_unused_bytes": 0,
        "other_bytes": 0,
    }


def test_more_brought_than_read_is_a_remainder_below_zero(tmp_path: Path) -> None:
    found = reconcile.reconcile(_trial(tmp_path, {"page_cache": _probe()}, pages_read=250), swap_counted=False)
    assert found is not None
    assert found["unexplained_bytes"] == -100 * 4096
    assert found["unexplained_share"] == pytest.approx(-0.4)


def test_a_treatment_has_the_means_of_its_blocks_and_a_caveat_beyond_five_percent(tmp_path: Path) -> None:
    trials = [
        _trial(tmp_path, {"page_cache": _probe()}, pages_read=pages, number=number)
        for number, pages in enumerate((370, 400), start=1)
    ]
    found = reconcile.over_trials([one for trial in trials if (one := reconcile.reconcile(trial))])
    assert found is not None
    assert found["device_bytes"] == 385 * 4096
    assert found["unexplained_bytes"] == 15 * 4096
    assert not found["exceeds"]
    wide = reconcile.over_trials([one for trial in trials[1:] if (one := reconcile.reconcile(trial))])
    assert wide is not None
    assert wide["exceeds"]
    lines = reconcile.caveats({"t1": {"reconciliation": found}, "t2": {"reconciliation": wide}}, {"t2": "64 MiB"})
    assert lines == [
        "device reads that the page-cache probe does not explain exceed 5%: 64 MiB: +7.5% of 1.6 MB read (+0.1 MB)"
    ]
    assert reconcile.over_trials([]) is None


@pytest.mark.parametrize(
    ("ours", "areas", "counted", "noted"),
    [
        (1, [], True, None),
        (None, [], True, None),
        (None, ["/dev/zram0"], False, "in memory"),
        (1, ["/dev/zram0"], True, "as if it lay on the data's device"),
        (None, ["/dev/sdb2"], True, "as if it lay on the data's device"),
    ],
)
def test_swap_in_memory_reads_no_device(
    tmp_path: Path, ours: int | None, areas: list[str], counted: bool, noted: str | None
) -> None:
    (tmp_path / "experiment.json").write_text(json.dumps({"environment": {"swap": ours}}))
    (tmp_path / "fingerprint.json").write_text(json.dumps({"swap": [{"path": path} for path in areas]}))
    found = reconcile.swap_of(Run(tmp_path, {}))
    assert found["counted"] is counted
    assert (noted is None and found["note"] is None) or noted in found["note"]


def test_the_probes_say_what_they_lost_and_why_they_were_refused(tmp_path: Path) -> None:
    test = {"pages": 64, "missed_cold": 64, "missed_warm": 0, "passed": True}
    holds = {"data": {"added": 330, "accounted": 330, "holds": True}}
    broken = {"data": {"added": 330, "accounted": 329, "holds": False}}
    cost = {"run_ns": 600, "programs": [{"name": "added", "runs": 3, "run_ns": 600}]}
    refused = {"status": "refused", "reason": "no BTF", "remedy": "another kernel"}
    entries = [
        _probe(self_test=test, identity=holds, cost=cost, requests="get_pages"),
        _probe(self_test=test | {"missed_cold": 63, "passed": False}, identity=broken, cost=cost, lost={"ahead": 4}),
        refused,
    ]
    trials = [
        _trial(tmp_path, {"page_cache": entry, "throttle": refused}, number=number)
        for number, entry in enumerate(entries, start=1)
    ]
    found = instruments.instruments(trials)
    pages = found["page_cache"]
    assert pages["on"] == [1, 2]
    assert pages["self_test"] == {
        "trials": 2,
        "passed": 1,
        "pages": [64, 64],
        "missed_cold": [63, 64],
        "missed_warm": [0, 0],
    }
    assert (pages["lost"], pages["lost_trials"]) == ({"ahead": 4}, [2])
    assert pages["identity"] == {"trials": 2, "broken": [2], "added": 660, "accounted": 659}
    assert pages["cost"]["programs"]["added"] == {"runs": 6, "run_ns": 1200, "ns_per_run": 200}
    assert pages["why_absent"] is None
    assert pages["note"] == (
        "Lower bound: the probe lost events (4 ahead) in trial 2. Not from trial 3: refused, no BTF."
    )
    assert found["throttle"]["why_absent"] == "the probe was refused: no BTF (another kernel)"
    assert found["buffer_heads"]["why_absent"] == "it was not asked for"
    assert instruments.caveats(trials[1]) == [
        "the page cache probe lost events: its counts are lower bounds",
        "the page cache probe's page accounting does not add up: pages added and pages accounted for differ",
        "the throttling of writers probe was refused: no BTF",
    ]
    assert "earlier version" in instruments.instruments([_trial(tmp_path / "old", None)])["page_cache"]["why_absent"]


def test_a_page_evicted_before_it_was_read_is_missed_again_and_no_ratio_is_below_zero(tmp_path: Path) -> None:
    data = dict.fromkeys(DATA, 0) | {"read_pages": 100, "read_missed_pages": 103}
    found = probe_metrics(_trial(tmp_path, {"page_cache": _probe(totals={"data": data})}))
    assert found["page_cache_hit_ratio"] == 0
