"""Stacks become shares and boxes; equal stacks of several trials add up; what is missing is said."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.analysis.probes.profile import (
    FUNCTIONS_MAX,
    functions,
    off_cpu,
    profile,
    share,
    ticks_missing,
    together,
    tree,
)
from plimsoll.analysis.probes.spinlocks import spinlocks
from plimsoll.record.run import Segment

STACKS = {
    ("backend", "main", "scan"): 60,
    ("backend", "main", "scan", "read_[k]"): 30,
    ("walwriter", "main", "[postgres]"): 10,
}


def boxes_at(boxes: list[dict[str, Any]], depth: int) -> list[tuple[str, int, int]]:
    return [(box["name"], box["from"], box["to"]) for box in boxes if box["depth"] == depth]


def test_boxes_lie_on_what_called_them() -> None:
    boxes = tree(STACKS)
    assert boxes[0] == {"name": "all", "depth": 0, "from": 0, "to": 100}
    assert boxes_at(boxes, 1) == [("backend", 0, 90), ("walwriter", 90, 100)]
    assert sorted(boxes_at(boxes, 3)) == [("[postgres]", 90, 100), ("scan", 0, 90)]
    assert boxes_at(boxes, 4) == [("read_[k]", 0, 30)], "the rest of scan is its own"


def test_thin_boxes_are_left_out_but_keep_their_place() -> None:
    boxes = tree({("a", "x"): 1, ("b", "y"): 999}, least=0.01)
    assert boxes_at(boxes, 1) == [("b", 1, 1000)]


def test_functions_by_what_they_do_themselves() -> None:
    found = functions(STACKS | {("backend", "main", "main"): 5})
    assert [(row["name"], row["self"], row["total"]) for row in found] == [
        ("scan", 60, 90),
        ("read_[k]", 30, 30),
        ("[postgres]", 10, 10),
        ("main", 5, 105),
    ], "recursion counts once"
    assert found[0]["share"]["low"] < 60 / 105 < found[0]["share"]["high"]
    assert len(functions({("r", f"f{n}"): 1 for n in range(2 * FUNCTIONS_MAX)})) == FUNCTIONS_MAX


def test_shares_of_nothing_are_not_known() -> None:
    assert share(0, 0) is None
    none = share(0, 50)
    assert none is not None
    assert none["low"] == 0 < none["high"]


def test_samples_whose_stack_found_no_room_are_part_of_the_whole(tmp_path: Path) -> None:
    """More samples in the kernel than stacks that found room: they are shares of all that were taken."""
    samples = {"taken": 40, "in_kernel": 30, "named": 36, "complete": 40}
    one = trial(1, tmp_path / "1", profile={"hz": 99, "samples": samples}, lost={"no_room_for_stack": 20})
    (tmp_path / "1" / "profile.folded").write_text("backend;main 20\n")
    found = profile([one], {(1, "t1"): {"number": 1}}, ["t1"])
    assert found is not None
    mine = found["treatments"]["t1"]
    assert mine["samples"] == 20
    assert (mine["in_kernel"]["value"], mine["named"]["value"], mine["complete"]["value"]) == (0.75, 0.9, 1.0)


@pytest.mark.parametrize("count", [-1, 51])
def test_counts_that_do_not_add_up_end_no_analysis(count: int) -> None:
    found = share(count, 50)
    assert found is not None
    assert found["value"] in (0.0, 1.0)


def test_equal_stacks_add_up() -> None:
    assert together([{("a",): 1}, {("a",): 2, ("b",): 1}]) == Counter({("a",): 3, ("b",): 1})


def test_folded_stacks_are_read(tmp_path: Path) -> None:
    assert Segment(tmp_path, "measure").stacks is None
    (tmp_path / "profile.folded").write_text("backend;main 3\nwalwriter;a;b_[k] 12\ncut sho")
    assert Segment(tmp_path, "measure").stacks == {("backend", "main"): 3, ("walwriter", "a", "b_[k]"): 12}


def trial(number: int, folder: Path, **probe: Any) -> Any:
    folder.mkdir()
    segment = Segment(folder, "measure")
    segment.__dict__["summary"] = {"format": 1, "probes": {"profile": {"status": "on", **probe}}}
    return SimpleNamespace(number=number, status="finished", measure=segment)


def test_trials_of_a_treatment_are_one_profile(tmp_path: Path) -> None:
    image = {"path": "/bin/postgres", "symbols": "dynamic symbols", "samples": 9, "unnamed": 2, "remedy": "install x"}
    facts: dict[str, Any] = {
        "hz": 99,
        "samples": {"in_kernel": 1, "named": 8, "complete": 10, "kernel_has_names": True},
    }
    trials = [
        trial(n, tmp_path / str(n), profile={**facts, "images": [image]}, lost={"no_room": n - 1}) for n in (1, 2)
    ]
    for one in trials:
        (one.measure.path / "profile.folded").write_text("backend;main 10\n")
    used = {(1, "t1"): {"number": 1}, (2, "t1"): {"number": 2}}
    found = profile(trials, used, ["t1", "t2"])
    assert found is not None
    assert list(found["treatments"]) == ["t1"]
    one = found["treatments"]["t1"]
    assert (one["samples"], one["hz"], one["roles"], one["lost"]) == (20, [99], {"backend": 20}, {"no_room": 1})
    assert one["in_kernel"]["value"] == 2 / 20
    assert one["nameless"] == [image | {"samples": 18, "unnamed": 4}]


def test_waits_for_locks_add_up(tmp_path: Path) -> None:
    def wait(kind: str, stack: str, count: int, total_ns: int, max_ns: int) -> dict[str, Any]:
        return {"kind": kind, "caller": "b", "stack": stack, "count": count, "total_ns": total_ns, "max_ns": max_ns}

    rows = [[wait("mutex", "a;b", 2, 30, 20)], [wait("mutex", "a;b", 1, 40, 40), wait("rwsem read", "a;b", 1, 90, 90)]]
    trials = [
        trial(n, tmp_path / str(n), profile={"contention": {"kinds": [], "sites": sites}})
        for n, sites in enumerate(rows, 1)
    ]
    for one in trials:
        (one.measure.path / "profile.folded").write_text("backend;main 10\n")
    found = profile(trials, {(n, "t"): {"number": n} for n in (1, 2)}, ["t"])
    assert found is not None
    assert found["treatments"]["t"]["locks"] == {
        "kinds": [],
        "sites": [wait("rwsem read", "a;b", 1, 90, 90), wait("mutex", "a;b", 3, 70, 40)],
    }


def test_a_refused_profile_says_why(tmp_path: Path) -> None:
    refused = trial(1, tmp_path / "1", status="refused", reason="no clock", remedy="root")
    found = profile([refused], {(1, "t1"): {"number": 1}}, ["t1"])
    assert found == {
        "refused": [{"trial": 1, "reason": "no clock", "remedy": "root"}],
        "why_absent": "no clock",
        "treatments": {},
    }
    refused.measure.__dict__["summary"] = {"probes": {}}
    assert profile([refused], {}, ["t1"]) is None


@pytest.mark.parametrize("breakdown", [None, {"treatments": {}}])
def test_without_a_breakdown_nothing_is_known_off_the_cpus(breakdown: Any) -> None:
    assert off_cpu(breakdown) == {}


def test_waits_lie_on_their_parts() -> None:
    waits = [
        {"name": "IO:WALSync", "bucket": "wal_sync", "ns": 70},
        {"name": "Lock:tuple", "bucket": "lock", "ns": 20},
        {"name": "(3 more)", "bucket": "", "ns": 10},
    ]
    types = {"all": {"waits": []}, "payment": {"waits": waits}}
    boxes = off_cpu({"treatments": {"t1": {"types": types}}})["t1"]
    assert boxes_at(boxes, 1) == [("payment", 0, 100)]
    assert boxes_at(boxes, 2) == [("(3 more)", 0, 10), ("lock", 10, 30), ("wal_sync", 30, 100)]
    assert ("IO:WALSync", 30, 100) in boxes_at(boxes, 3)


def test_waits_for_spinlocks_are_shares_of_all_samples() -> None:
    stacks = {
        ("backend", "main", "StrategyGetBuffer", "s_lock"): 30,
        ("backend", "main", "StrategyGetBuffer", "s_lock", "perform_spin_delay", "nanosleep_[k]"): 10,
        ("backend", "main", "read", "native_queued_spin_lock_slowpath_[k]"): 5,
        ("backend", "main", "spin_lock_slowpath_of_ours"): 55,
    }
    found = spinlocks(stacks)
    assert found["server"] is not None and found["kernel"] is not None
    assert (found["server"]["value"], found["kernel"]["value"]) == (0.4, 0.05)
    assert found["server"]["low"] < 0.4 < found["server"]["high"]


def test_a_server_without_names_has_spinlocks_that_are_not_known_and_none_is_zero() -> None:
    nameless = spinlocks({("backend", "[postgres]"): 90, ("backend", "[postgres]", "read_[k]"): 10})
    assert nameless["server"] is None and nameless["kernel"] is not None and nameless["kernel"]["value"] == 0
    assert spinlocks({}) == {"server": None, "kernel": None}


def test_ticks_that_did_not_come_are_told_where_every_trial_tells(tmp_path: Path) -> None:
    told = [{"hz": 99, "ticks": {"due": 100, "came": came}} for came in (100, 50)]
    trials = [trial(n, tmp_path / str(n), profile=facts) for n, facts in enumerate((*told, {"hz": 99}), 1)]
    for one in trials:
        (one.measure.path / "profile.folded").write_text("backend;main 10\n")
    used = {(n, "t1"): {"number": n} for n in (1, 2)}
    both, with_an_older = profile(trials, used, ["t1"]), profile(trials, used | {(3, "t1"): {"number": 3}}, ["t1"])
    assert both is not None and with_an_older is not None
    assert both["treatments"]["t1"]["ticks"] == {"due": 200, "came": 150}
    assert ticks_missing(both["treatments"]["t1"]["ticks"]) == 0.25
    assert ticks_missing(with_an_older["treatments"]["t1"]["ticks"]) is None
    assert ticks_missing({"due": 100, "came": 101}) == 0
