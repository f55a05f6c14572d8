"""System calls and syncs summed over trials written by hand, and what the page makes of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.probes.syscalls import added, calls_of, syncs_of, typical
from plimsoll.report.probes.syscalls import size_of, system_calls_part
from plimsoll.words.probes import syncs as sync_words

trial = runpy.run_path(str(Path(__file__).with_name("probe_trial.py")))["trial"]


def call(count: int, **fields: Any) -> dict[str, Any]:
    zero = dict.fromkeys(("errors", "asked_bytes", "returned_bytes", "ns", "sequential"), 0)
    return {"count": count, **zero, "ns_log2": [], "bytes_log2": [], **fields}


def calls(**totals: Any) -> dict[str, Any]:
    return {
        "status": "on",
        "lost": {"files": 0},
        "classes": ["data", "wal", "none"],
        "calls": ["pread", "pwrite", "fdatasync"],
        "call_totals": totals,
        "other_calls": {"sendto": {"count": 7, "errors": 0, "ns": 70}},
    }


def verdict_of(found: dict[str, Any]) -> dict[str, Any]:
    return {"treatments": {"a": {"label": "a"}}, "comparisons": [], "syscalls": {"calls": {"a": found}, "syncs": {}}}


def sync(count: int, ns: int, least: int, most: int, **parts: int) -> dict[str, Any]:
    return {"count": count, "errors": 0, "ns": ns, "ns_min": least, "ns_max": most, "ns_log2": [], "parts_ns": parts}


def test_calls_are_summed_over_trials_in_the_programs_order(tmp_path: Path) -> None:
    one = calls(
        wal={"pwrite": call(10, returned_bytes=10 * 8192, sequential=9, bytes_log2=[0] * 14 + [10])},
        data={"pread": call(3, ns=30, bytes_log2=[1, 0, 2])},
    )
    other = calls(wal={"pwrite": call(5, returned_bytes=8192, sequential=1, bytes_log2=[5])})
    found = calls_of([trial(tmp_path, 1, syscalls=one), trial(tmp_path, 2, syscalls=other)])
    assert found is not None
    assert list(found["classes"]) == ["data", "wal"]
    log = found["classes"]["wal"]["pwrite"]
    assert (log["count"], log["returned_bytes"], log["sequential"]) == (15, 11 * 8192, 10)
    assert (log["bytes_log2"][0], log["bytes_log2"][14]) == (5, 10)
    assert (found["transactions"], found["trials"], found["lost"]) == (200, [1, 2], {})
    assert found["others"] == {"sendto": {"count": 14, "errors": 0, "ns": 140}}
    assert found["others_share"] is None
    part = system_calls_part(verdict_of(found))
    assert part is not None and part["calls"][0]["others_note"] == ""


def test_calls_counted_in_slices_of_time_are_said_to_be_estimates(tmp_path: Path) -> None:
    sampled = [calls(wal={"pwrite": call(10)}) | {"others_share": share} for share in (0.125, 0.11)]
    found = calls_of([trial(tmp_path, number, syscalls=one) for number, one in enumerate(sampled, 1)])
    assert found is not None and found["others_share"] == 0.11
    part = system_calls_part(verdict_of(found))
    assert part is not None
    note = part["calls"][0]["others_note"]
    assert "estimates" in note and "11 %" in note


def test_estimates_of_calls_by_class_have_their_errors_added_in_squares(tmp_path: Path) -> None:
    shares = {"calls_share": 0.125, "others_share": 0.125}
    sampled = [calls(wal={"pwrite": call(1000, count_se=error)}) | shares for error in (30, 40)]
    found = calls_of([trial(tmp_path, number, syscalls=one) for number, one in enumerate(sampled, 1)])
    assert found is not None and found["calls_share"] == 0.125
    assert found["classes"]["wal"]["pwrite"]["count_se"] == 50
    part = system_calls_part(verdict_of(found))
    assert part is not None
    drawn = part["calls"][0]
    assert drawn["calls_note"].startswith("Estimates") and "12.5 %" in drawn["calls_note"]
    assert drawn["details"][0]["count"] == "2,000 ± 98"


def test_a_trial_whose_probe_was_refused_is_in_no_sum(tmp_path: Path) -> None:
    refused = {"status": "refused", "reason": "no BTF"}
    both = [trial(tmp_path, 1, syscalls=refused), trial(tmp_path, 2, syscalls=calls(wal={"fdatasync": call(4)}))]
    found = calls_of(both)
    assert found is not None and (found["trials"], found["transactions"]) == ([2], 100)
    assert calls_of(both[:1]) is None
    assert syncs_of(both) is None


def test_syncs_keep_their_extremes_and_what_is_not_told_stays_absent(tmp_path: Path) -> None:
    def probe(one: dict[str, Any], **fields: Any) -> dict[str, Any]:
        head = {"status": "on", "lost": {"records": 2}, "classes": ["data", "wal"], "open_ns_max": 3}
        return {**head, "sync_totals": {"wal": {"fdatasync": one}}, **fields}

    told = sync(2, 300, 100, 200, flush=250, cpu=50) | {"pages": 4, "journal_flush_ns": 0}
    mine = [
        trial(tmp_path, 1, sync=probe(told)),
        trial(tmp_path, 2, sync=probe(sync(1, 50, 50, 50, flush=40, cpu=10), absent={"journal": "xfs does not"})),
    ]
    found = syncs_of(mine)
    assert found is not None
    log = found["classes"]["wal"]["fdatasync"]
    assert (log["count"], log["ns"], log["ns_min"], log["ns_max"]) == (3, 350, 50, 200)
    assert log["parts_ns"] == {"flush": 290, "cpu": 60}
    assert log["pages"] == 4
    assert (found["lost"], found["open_ns_max"], found["absent"]) == ({"records": 4}, 3, {"journal": "xfs does not"})


def test_a_sentence_says_where_a_sync_of_the_log_spends_its_time(tmp_path: Path) -> None:
    def said(**parts: int) -> list[str]:
        log = {"fdatasync": sync(3, 3_600_000, 1, 2, **parts), "fsync": sync(1, 9, 9, 9)}
        probe = {"status": "on", "classes": ["wal"], "file_systems": [{"type": "ext4"}], "sync_totals": {"wal": log}}
        found = syncs_of([trial(tmp_path / str(sum(parts.values())), 1, sync=probe)])
        return sync_words.lines({"syscalls": {"calls": {}, "syncs": {"t1": found}}}, {"t1": "8 clients"})

    assert said(journal=2_400_000, flush=1_100_000, cpu=100_000) == [
        "8 clients: an fdatasync of the WAL takes 1.20 ms (3 calls), of which 0.80 ms the journal's commit, "
        "0.37 ms the device's flush; the parts sum to 100.0% of the calls"
    ]
    (line,) = said(journal=2_400_000)
    assert line.endswith("the parts sum to 66.7% of the calls, which leaves part of them unexplained")
    assert sync_words.lines({"syscalls": None}, {}) == []


@pytest.mark.parametrize(
    ("histogram", "bucket"), [([], None), ([0, 0], None), ([5], 0), ([1, 0, 3], 2), ([2, 0, 2], 0), ([1, 1, 1], 1)]
)
def test_the_median_lies_in_one_bucket(histogram: list[int], bucket: int | None) -> None:
    assert typical(histogram) == bucket


def test_histograms_add_up_whatever_their_lengths() -> None:
    assert added([1, 2], [3]) == added([3], [1, 2]) == [4, 2]
    assert added([], []) == []


@pytest.mark.parametrize(("bucket", "words"), [(0, "0"), (1, "1 B"), (14, "8 KiB"), (21, "1 MiB")])
def test_a_bucket_of_sizes_begins_at_its_power_of_two(bucket: int, words: str) -> None:
    assert size_of(bucket) == words


def test_the_page_has_the_studys_columns_and_dashes_for_what_is_not_told(tmp_path: Path) -> None:
    one = calls(
        wal={"pwrite": call(4, returned_bytes=4 << 20, sequential=3, bytes_log2=[0] * 14 + [4])},
        none={"pread": call(2)},
    )
    syncs = {
        "status": "on",
        "classes": ["wal"],
        "open_ns_max": 0,
        "file_systems": [{"device": "8:1", "type": "xfs"}],
        "absent": {"journal": "not reported by xfs"},
        "sync_totals": {"wal": {"fdatasync": sync(4, 4000, 500, 2000, flush=3000, cpu=1000)}},
    }
    mine = [trial(tmp_path, 1, syscalls=one, sync=syncs)]
    verdict = {
        "treatments": {"t1": {"label": "as it is"}},
        "comparisons": [],
        "syscalls": {"calls": {"t1": calls_of(mine)}, "syncs": {"t1": syncs_of(mine)}},
    }
    part = system_calls_part(verdict)
    assert part is not None
    (log, no_file) = part["calls"][0]["rows"]
    assert (log["written"], log["write_size"], log["write_order"], log["read_size"]) == ("4.0", "8 KiB", "75.0%", "–")
    assert no_file["read_order"] == "–"
    assert dict(zip(part["columns"], log["counts"], strict=True))["positioned<br>writes"] == "4"
    assert part["calls"][0]["of"] == "trial 1, 100 transactions"
    (row,) = part["syncs"][0]["rows"]
    assert (row["mean"], row["min"], row["max"], row["closure"], row["each"]) == (
        "1.0",
        "0.5",
        "2.0",
        "100.00%",
        "0.04",
    )
    cells = dict(zip(part["parts"], row["parts"], strict=True))
    assert cells["device<br>flush"] == "0.8 (75%)"
    assert cells["journal<br>commit"] == "–" and row["pages"] == "–"
    assert "not reported by xfs" in part["syncs"][0]["absent"]
    assert system_calls_part({"syscalls": None}) is None
