"""The part about the kernel itself, of records that are written by hand; and its sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.kernel.part import EVENTS_MAX, kernel_of
from plimsoll.analysis.soak.document import Growth, Slope
from plimsoll.record import Run, Trial
from plimsoll.report.drawing.html import piece
from plimsoll.report.kernel.part import SECTION
from plimsoll.report.section import Page
from plimsoll.words.kernel import sentences, slabs

NO_LOSS = {"overwritten": 0, "unreadable": 0, "events": 0}
MIB = 2**20
SECONDS = np.arange(0, 7200, 30)


def event(at_s: float, text: str = "WARNING: CPU: 1 PID: 2 at fs/buffer.c:1 f+0x1/0x2", **given: Any) -> dict[str, Any]:
    known = {"class": "warning", "sequence": 9, "level": 4, "by": "kernel"}
    return known | {"t_ns": int((1000 + at_s) * 1e9), "text": text} | given


def log(*events: dict[str, Any], boot: str = "one", **given: Any) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for one in events:
        counts[one["class"]] = counts.get(one["class"], 0) + 1
    told = {"status": "on", "reason": None, "boot_id": boot, "counts": counts, "events": list(events), "lost": NO_LOSS}
    return told | given


def trial(folder: Path, number: int, probes: dict[str, Any], slab_an_hour: float = 0.0, from_s: float = 0.0) -> Trial:
    """Its measured segment begins 1000 s after the boot, and `from_s`."""
    measure = folder / f"{number}/measure"
    measure.mkdir(parents=True)
    summary = {"format": 1, "epoch_minus_monotonic_ns": 5_000_000_000_000, "probes": probes}
    (measure / "summary.json").write_text(json.dumps(summary))
    (folder / f"{number}/trial.json").write_text(json.dumps({"status": "finished"}))
    moments = ((1000 + from_s + SECONDS) * 1e9).astype(np.int64)
    table = np.zeros(len(SECONDS), [("t_ns", "<i8"), ("records", "<i8")])
    table["t_ns"] = moments
    np.save(measure / "kernel_log.npy", table)
    slabs = np.zeros(len(SECONDS), [(name, "<i8") for name in ("t_ns", "slab", "active_objects", "objects", "bytes")])
    scatter = np.random.default_rng(number).normal(0, 0.05 * MIB, len(SECONDS))
    slabs["t_ns"], slabs["bytes"] = moments, 50 * MIB + slab_an_hour * (from_s + SECONDS) / 3600 + scatter
    np.save(measure / "slabs.npy", slabs)
    return Trial(folder / str(number), {"number": number})


SLABS = {"status": "on", "slabs": ["dentry"], "bytes_min": 262144}


def test_an_event_is_told_with_its_trial_and_its_time(tmp_path: Path) -> None:
    found = kernel_of([trial(tmp_path, 3, {"kernel_log": log(event(12.5))})])
    assert found is not None
    (told,) = found["events"]
    assert (told["trial"], told["segment"], told["what"], told["seconds"]) == (3, "measure", "warning", 12.5)
    assert told["epoch_ns"] == int(1012.5e9) + 5_000_000_000_000
    assert found["counts"] == {"warning": 1}
    said = sentences.SENTENCES.warns({"kernel": found})
    assert said == ['the kernel\'s log has WARNING x 1; first "WARNING: CPU: 1 PID: 2 at fs/buffer.c:1 f+0x1/0x2"']
    assert sentences.event_words(told).startswith("WARNING, 12.5 s into trial 3 (measure): WARNING: CPU: 1")


def test_a_quiet_kernel_has_nothing_to_say_and_one_that_nobody_watched_is_absent(tmp_path: Path) -> None:
    quiet = kernel_of([trial(tmp_path, 1, {"kernel_log": log(), "slabs": SLABS})])
    assert quiet is not None and quiet["growth"] == []
    assert sentences.SENTENCES.warns({"kernel": quiet}) == []
    assert kernel_of([trial(tmp_path, 2, {})]) is None
    assert sentences.SENTENCES.warns({}) == []


def test_a_cache_that_grows_over_trials_is_named_with_its_rate(tmp_path: Path) -> None:
    probes = {"kernel_log": log(), "slabs": SLABS}
    trials = [trial(tmp_path, number, probes, 3.1 * MIB, 7200.0 * (number - 1)) for number in (1, 2)]
    found = kernel_of(trials)
    assert found is not None
    (growth,) = found["growth"]
    assert (growth["name"], growth["verdict"]) == ("slab dentry", "grows")
    assert growth["an_hour"] is not None and growth["an_hour"]["low"] <= 3.1 * MIB <= growth["an_hour"]["high"]
    slope: Slope = {"value": 10_500.0, "low": 9_800.0, "high": 11_100.0}
    many: Growth = {**growth, "unit": "files", "an_hour": slope}
    assert sentences.growth_words(many) == "slab dentry +10,500 files/h [9,800, 11,100]"
    assert sentences.growth_words(growth).startswith("slab dentry +3.1 MiB/h [3.0")
    assert sentences.SENTENCES.warns({"kernel": found})[0].startswith("keeps growing: slab dentry +3.1 MiB/h")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slab dentry", "names of files"),
        ("slab radix_tree_node", "page cache"),
        ("slab ext4_inode_cache", "inodes"),
        ("slab sock_inode_cache", "sockets"),
        ("slab kmalloc-cg-2k", "pieces of that size"),
        ("slab kmalloc-rnd-05-128", "pieces of that size"),
        ("slab TCPv6", "sockets"),
        ("slab dentry_of_mine", None),
        ("page tables", None),
        ("dentry", None),
    ],
)
def test_what_a_known_cache_holds_is_said(name: str, words: str | None) -> None:
    said = slabs.holds(name)
    assert (said is None) if words is None else (said is not None and words in said)


def test_the_page_says_what_grew_and_what_is_in_it(tmp_path: Path) -> None:
    probes = {"kernel_log": log(), "slabs": SLABS}
    trials = [trial(tmp_path, number, probes, 3.1 * MIB, 7200.0 * (number - 1)) for number in (1, 2)]
    page = Page(Run(tmp_path, {}), {"kernel": kernel_of(trials)})
    drawn = piece(SECTION.template, SECTION.context(page))
    assert "slab dentry +3.1 MiB/h" in drawn and "<td>names of files that were looked up</td>" in drawn


def test_each_test_of_a_series_is_looked_at(tmp_path: Path) -> None:
    for name, probes in (("throughput-1", log()), ("throughput-2", log(event(2.0)))):
        (tmp_path / "1" / name).mkdir(parents=True)
        summary = {"format": 1, "probes": {"kernel_log": probes}}
        (tmp_path / "1" / name / "summary.json").write_text(json.dumps(summary))
    tests = [{"test": "throughput", "segment": f"throughput-{number}"} for number in (1, 2)]
    (tmp_path / "1/trial.json").write_text(
        json.dumps({"status": "finished", "tests": tests, "measured_segment": "throughput-1"})
    )
    found = kernel_of([Trial(tmp_path / "1", {"number": 1})])
    assert found is not None
    assert [(one["segment"], one["trial"]) for one in found["events"]] == [("throughput-2", 1)]
    assert found["trials"] == [1]


def test_a_boot_begins_the_kernels_memory_anew(tmp_path: Path) -> None:
    slow, fast = ({"kernel_log": log(boot=boot), "slabs": SLABS} for boot in ("one", "two"))
    trials = [trial(tmp_path, 1, slow, 0.0), trial(tmp_path, 2, fast, 20 * MIB)]
    found = kernel_of(trials)
    assert found is not None
    assert [round((one["an_hour"] or {"value": 0})["value"] / MIB) for one in found["growth"]] == [20]


def test_what_was_lost_or_refused_is_said(tmp_path: Path) -> None:
    refused = {"status": "refused", "reason": "/dev/kmsg: Permission denied", "remedy": "run as root", "absent": {}}
    gaps = log(lost={"overwritten": 11, "unreadable": 1, "events": 0})
    found = kernel_of([trial(tmp_path, 1, {"kernel_log": refused}), trial(tmp_path, 2, {"kernel_log": gaps})])
    assert sentences.SENTENCES.warns({"kernel": found}) == [
        "12 records of the kernel's log were lost: what they told is not known",
        "the kernel's log was not read: /dev/kmsg: Permission denied",
    ]


def test_what_servers_that_were_up_at_once_have_both_read_counts_once(tmp_path: Path) -> None:
    first, second, third = event(1.0, sequence=11), event(2.0, sequence=12), event(3.0, sequence=21)
    logs = [log(first, second, before=10, last=15), log(second, before=11, last=16), log(third, before=16, last=30)]
    found = kernel_of([trial(tmp_path, number, {"kernel_log": one}) for number, one in enumerate(logs, start=1)])
    assert found is not None
    assert found["counts"] == {"warning": 3}
    assert [(one["trial"], one["seconds"]) for one in found["events"]] == [(1, 1.0), (1, 2.0), (3, 3.0)]


def test_many_events_are_counted_and_kept_to_a_bound(tmp_path: Path) -> None:
    found = kernel_of(
        [trial(tmp_path, 1, {"kernel_log": log(*(event(at, sequence=at) for at in range(EVENTS_MAX + 50)))})]
    )
    assert found is not None
    assert (len(found["events"]), found["lost"]["events"]) == (EVENTS_MAX, 50)
    assert found["counts"] == {"warning": EVENTS_MAX + 50}
