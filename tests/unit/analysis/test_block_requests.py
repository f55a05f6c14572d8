"""Requests of the disks summed over trials written by hand, and what the page makes of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.probes.block_requests import added_buckets, dominant, percentile, requests_of, width_of
from plimsoll.analysis.probes.block_series import depth_rows, device_rows
from plimsoll.report.probes.block_figures import block_figures
from plimsoll.report.probes.block_requests import block_part

trial = runpy.run_path(str(Path(__file__).with_name("probe_trial.py")))["trial"]
US = 1_000


def kind(count: int, size: int, queue: int, device: int, **fields: Any) -> dict[str, Any]:
    """So many requests that are all alike."""
    return {
        "count": count,
        "errors": 0,
        "bytes": count * size,
        "bytes_min": size,
        "bytes_max": size,
        "synchronous": count,
        "meta": 0,
        "fua": 0,
        "ahead": 0,
        "queued": count,
        "queue_ns": count * queue,
        "queue_ns_min": queue,
        "queue_ns_max": queue,
        "device_ns": count * device,
        "device_ns_min": device,
        "device_ns_max": device,
        "bytes_buckets": [[size, count]],
        "queue_ns_buckets": [[queue, count]],
        "device_ns_buckets": [[device, count]],
        **fields,
    }


def probe(holds: bool = True, **classes: Any) -> dict[str, Any]:
    ends = dict.fromkeys(("requeued", "under_way", "unseen", "no_room", "before", "flush_asks", "bios_merged"), 0)
    count = sum(one["count"] for name in classes.values() for one in name.values())
    ends |= {"issued": count, "completed": count, "requests_merged": 0, "splits": None, "holds": holds}
    return {
        "status": "on",
        "lost": {"events": 0},
        "classes": ["data", "wal", "none"],
        "devices": ["vda"],
        "file_systems": [{"device": "8:1", "type": "ext4"}],
        "request_totals": {"vda": classes},
        "disk_requests": {"vda": ends | {"depth_ns": 3 * 10**9, "depth_max": count, "segment_ns": 10**9}},
    }


def test_requests_are_summed_over_trials(tmp_path: Path) -> None:
    one = probe(wal={"write": kind(3, 8192, 1 * US, 64 * US)}, none={"flush": kind(2, 0, 1 * US, 900 * US)})
    other = probe(wal={"write": kind(1, 16384, 5 * US, 32 * US, errors=1)})
    found = requests_of([trial(tmp_path, 1, block=one), trial(tmp_path, 2, block=other)])
    assert found is not None
    log = found["disks"]["vda"]["classes"]["wal"]["write"]
    assert (log["count"], log["bytes"], log["errors"]) == (4, 3 * 8192 + 16384, 1)
    assert (log["bytes_min"], log["bytes_max"], log["queue_ns_max"], log["device_ns_min"]) == (
        8192,
        16384,
        5 * US,
        32 * US,
    )
    assert log["device_ns_buckets"] == [[32 * US, 1], [64 * US, 3]]
    assert log["queue_ns_mean"] == pytest.approx(2 * US)
    assert log["bytes_typical"] == pytest.approx(8192, rel=1 / 32)
    ends = found["disks"]["vda"]["ends"]
    assert (ends["issued"], ends["depth_max"], ends["holds"]) == (6, 5, True)
    assert "splits" not in ends  # not told is not 0
    assert (found["trials"], found["transactions"], found["file_systems"]) == ([1, 2], 200, ["ext4"])
    assert [(name, operation) for _, name, operation, _ in dominant(found)] == [("none", "flush"), ("wal", "write")]


def test_a_trial_whose_identity_breaks_is_told(tmp_path: Path) -> None:
    mine = [trial(tmp_path, 1, block=probe()), trial(tmp_path, 2, block=probe(holds=False))]
    found = requests_of(mine)
    assert found is not None and found["disks"]["vda"]["ends"]["holds"] is False
    assert requests_of([trial(tmp_path, 3, block={"status": "refused", "reason": "no disk"})]) is None


def test_queue_times_that_are_not_told_stay_absent(tmp_path: Path) -> None:
    untold = kind(4, 4096, 0, 70 * US, queued=0, queue_ns_buckets=[])
    found = requests_of([trial(tmp_path, 1, block=probe(data={"read": untold}))])
    assert found is not None
    reads = found["disks"]["vda"]["classes"]["data"]["read"]
    assert reads["queue_ns_mean"] is None and reads["queue_ns_p99"] is None and "queue_ns_max" not in reads
    verdict = {"treatments": {"t1": {"label": "as it is"}}, "comparisons": [], "block": {"t1": found}}
    part = block_part(verdict)
    assert part is not None
    (row,) = part["treatments"][0]["rows"]
    assert row["queue"] == ["–"] * 4
    assert "queued for an unknown time" in part["treatments"][0]["lines"][0]


@pytest.mark.parametrize(
    ("values", "share"),
    [(range(1, 64), 0.5), (range(1000, 3000), 0.5), (range(10**6, 10**7, 999), 0.99), ([4096] * 9, 0.9)],
)
def test_percentiles_are_right_to_three_percent(values: Any, share: float) -> None:
    buckets: dict[int, int] = {}
    for value in values:
        wide = width_of(value)
        buckets[value // wide * wide] = buckets.get(value // wide * wide, 0) + 1
    found = percentile(sorted([least, count] for least, count in buckets.items()), share)
    assert found == pytest.approx(float(np.quantile(list(values), share, method="inverted_cdf")), rel=0.032)


def test_distributions_add_up_and_nothing_has_no_percentile() -> None:
    assert added_buckets([[1, 2], [64, 1]], [(64, 2), (3, 1)]) == [[1, 2], [3, 1], [64, 3]]
    assert percentile([], 0.5) is None


def test_the_page_says_what_took_most(tmp_path: Path) -> None:
    one = probe(wal={"write": kind(4, 8192, 200 * US, 1100 * US)}, none={"flush": kind(1, 0, US, 800 * US)})
    found = requests_of([trial(tmp_path, 1, block=one)])
    verdict = {"treatments": {"t1": {"label": "<b>as it is</b>"}}, "comparisons": [], "block": {"t1": found}}
    part = block_part(verdict)
    assert part is not None
    lines = part["treatments"][0]["lines"]
    assert lines[0].startswith(
        "WAL writes on vda waited 0.2 ms in the queue and 1.1 ms at the device (means of 4): 87%"
    )
    assert lines[1].startswith("Flushes on vda")
    log, flush = part["treatments"][0]["rows"]
    assert (log["megabytes"], log["count"], log["each"], log["synchronous"]) == ("0.0", "4", "0.04", "100%")
    assert (log["queue"][0], log["device"][0], log["device"][3]) == ("200.0", "1,100.0", "1,100.0")
    assert (flush["megabytes"], flush["size"]) == ("–", "–")
    (disk,) = part["treatments"][0]["disks"]
    assert (disk["holds"], disk["depth"], disk["beside"][4]) == ("holds", ["3.000", "5"], "–")
    assert block_part({"block": None}) is None
    assert block_figures(None, {}) == []  # type: ignore[arg-type]


def test_seconds_are_growth_and_an_interval_without_requests_has_no_mean() -> None:
    depths = np.array(
        [(0, 0, 0, 0), (10**9, 0, 5 * 10**8, 3), (2 * 10**9, 0, 5 * 10**8, 0)],
        dtype=[(name, "i8") for name in ("t_ns", "device", "depth_ns", "depth_max")],
    )
    rows = depth_rows(depths, ["vda"])
    assert [row["value"] for row in rows if (row["device"], row["how"]) == ("vda", "mean")] == [0.5, 0.0]
    assert [row["value"] for row in rows if (row["device"], row["how"]) == ("vda", "most")] == [3, 0]
    counted = np.array(
        [(10**9, 0, 1, 1, 2, 4 * 10**6), (2 * 10**9, 0, 1, 1, 4, 8 * 10**6), (3 * 10**9, 0, 1, 1, 4, 8 * 10**6)],
        dtype=[(name, "i8") for name in ("t_ns", "device", "class", "operation", "count", "device_ns")],
    )
    writes = [{"device": "vda", "how": "writes", "seconds": seconds, "value": 2.0} for seconds in (1.0, 2.0)]
    assert device_rows(counted, ["vda"], 0) == writes
    assert depth_rows(None, ["vda"]) == []
