"""Runs of windows whose treatments were up in groups that share one: compared through it, and judged by replicates."""

from __future__ import annotations

import json
import math
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse, compare_treatments
from plimsoll.analysis.next_steps.blocks import blocks_to_tell
from plimsoll.analysis.windows.budget import POWER, Arrangement, ratio_told
from plimsoll.analysis.windows.judge import compare
from plimsoll.analysis.windows.looks import decision
from plimsoll.analysis.windows.spending import at_look
from plimsoll.record import open_run
from plimsoll.report import write_report
from plimsoll.words.terminal import terminal_lines

WORLD = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
Shape, make = WORLD["Shape"], WORLD["make"]
sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))
from simulate import groups as worlds  # noqa: E402  the path comes first
from simulate.windows import BOUND, COVERED, Noise, run  # noqa: E402

Json = dict[str, Any]
EFFECTS = (0.0, 0.3, -0.3, 0.0, 0.5)
GROUPS = ((0, 1, 2), (0, 3, 4))
# Blocks differ by far more than levels: what is not compared within one is worth nothing.
ROUGH: Json = {"effects": EFFECTS, "groups": GROUPS, "blocks": 4, "blocks_differ": 10.0, "start": 0.005}


def _verdict(folder: Path, **shape: Any) -> Json:
    verdict: Json = json.loads(json.dumps(analyse(open_run(make(folder / "run", Shape(**shape))))))
    return verdict


def _pairs(comparison: Json) -> dict[tuple[int, int], Json]:
    names = [level["level"] for level in comparison["levels"]]
    return {(names.index(pair["first"]), names.index(pair["second"])): pair for pair in comparison["pairs"]}


def test_a_ratio_across_groups_goes_through_the_reference(tmp_path: Path) -> None:
    found = _verdict(tmp_path, **ROUGH, duplicate=True)
    pairs = _pairs(found["comparisons"][0])
    assert len(pairs) == 10
    for (first, second), pair in pairs.items():
        assert math.log(pair["ratio"]) == pytest.approx(EFFECTS[second] - EFFECTS[first], abs=0.08)
        assert pair["low"] < math.exp(EFFECTS[second] - EFFECTS[first]) < pair["high"]
        across = first != 0 and (first < 3) != (second < 3)
        assert pair.get("through") == ("t1" if across else None) and pair["blocks"] == 4
        if across:
            legs = [math.log(pairs[0, place]["high"] / pairs[0, place]["low"]) for place in (first, second)]
            # no wider than both together: where the noisier of two levels counts by itself it does so once
            assert max(legs) < math.log(pair["high"] / pair["low"]) <= math.hypot(*legs) * 1.001
    levels = found["comparisons"][0]["levels"]
    assert [level["verdict"] for level in levels] == ["worse"] * 4 + ["best estimate"]
    assert levels[1]["against"] == levels[4]["level"]
    assert math.log(levels[1]["times_slower"]["ratio"]) == pytest.approx(0.2, abs=0.08)


def test_what_the_groups_blocks_have_in_common_cancels(tmp_path: Path) -> None:
    """The raw means would call whatever lay in a fast block the best."""
    found = _verdict(tmp_path, **{**ROUGH, "effects": (0.0,) * 5, "rounds": 40}, duplicate=True)
    levels = found["comparisons"][0]["levels"]
    raw = [level["estimate"] for level in levels]
    assert max(raw) > 1.2 * min(raw), "the blocks differ"
    assert not [level for level in levels if level["verdict"] == "worse"]
    for pair in found["comparisons"][0]["pairs"]:
        assert pair["low"] <= 1 <= pair["high"] and pair["high"] < 1.2


def test_a_comparison_without_the_reference_goes_through_it_too() -> None:
    """As of a second factor: none of its levels is the reference, which is the last column."""
    shape = worlds.Shape((1, 1, 1), 6, 40)
    found = worlds.rates(Noise("normal", 0.005, 0.1), shape, 1, 3, np.array([0.0, 0.3, -0.2, 0.1]))[0]
    through = worlds.Through(3, 3, 3)
    said, _ = compare(found[:, :, [1, 2, 3, 0]], None, through=through)
    assert said.shown.mean.shape == (3, 3) == said.half().shape == said.noise.error().shape
    assert said.shown.mean[0, 1] == pytest.approx(0.5, abs=0.1) and said.beaten[1, 0] and said.beaten[1, 2]
    assert (said.shown.blocks[~np.eye(3, dtype=bool)] == 6).all()
    alone, _ = compare(found[:, :, 1:])
    assert (alone.shown.blocks[~np.eye(3, dtype=bool)] == 0).all() and not alone.beaten.any()


def test_a_reference_that_failed_leaves_nothing_between_groups(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(**ROUGH))
    for trial in open_run(folder).trials:
        if trial.treatment == "t1" and trial.block % 2:
            path = trial.path / "trial.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "status": "failed", "reason": "killed"}))
    pairs = _pairs(analyse(open_run(folder))["comparisons"][0])
    assert sorted(pairs) == [(0, 3), (0, 4), (1, 2), (3, 4)], "within its own group each is compared as ever"


def test_it_is_looked_at_whole_replicates(tmp_path: Path) -> None:
    far = {**ROUGH, "effects": (0.0, 0.9, 1.8), "groups": ((0, 1), (0, 2)), "duplicate": True, "window": 0.05}
    for last, after in ((3, None), (4, 4), (5, 4)):
        found = decision(make(tmp_path / str(last), Shape(**far, last_block=last)))
        assert (found.after_block if found else None) == after
        assert found is None or found.decided
    why = "decided after block 4 (replicate 2): told"
    verdict = _verdict(tmp_path, **far, last_block=4, decided=True, why_skipped=why)
    assert verdict["windows"]["looks"]["decided_after"] == 4 and verdict["exclusions"] == []
    assert verdict["windows"]["looks"]["alpha"] == pytest.approx(at_look(2, 4).alpha)
    assert {entry["block"] for pair in verdict["windows"]["closing"] for entry in pair["looks"]} == {4}


def test_the_page_and_the_terminal_say_in_which_groups_they_ran(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(**ROUGH))
    verdict = json.loads(json.dumps(analyse(open_run(folder))))
    assert verdict["windows"]["groups"] == {
        "reference": "t1", "members": [["t1", "t2", "t3"], ["t1", "t4", "t5"]], "why": "they need too much"
    }  # fmt: skip
    said = "A block had one of 2 groups of treatments, which share shared_buffers 64 MiB (they need too much)"
    page = write_report(folder).read_text()
    assert said in page and "shared_buffers 512 MiB, shared_buffers 1024 MiB" in page
    assert "after each replicate (all groups once) from the second on" in page
    assert said in " ".join(" ".join(terminal_lines(verdict, "page")).split())
    assert any(caveat.startswith("not all treatments were up at once: levels of diff") for caveat in verdict["caveats"])
    closing = {(pair["first"], pair["second"]): pair for pair in verdict["windows"]["closing"]}
    assert all(pair["windows"] and pair["looks"] for pair in closing.values()) and len(closing) == 10


def test_two_treatments_of_different_groups_compared_by_themselves_have_the_ratio_of_the_page(tmp_path: Path) -> None:
    record = open_run(make(tmp_path / "run", Shape(**ROUGH, duplicate=True)))
    pair = _pairs(analyse(record)["comparisons"][0])[1, 4]
    row = compare_treatments(record, "t2", "t5")["treatments"][0]
    assert row["ratio"] == pytest.approx(pair["ratio"]) and row["blocks"] == 4
    assert row["low"] < row["ratio"] < row["high"]


def test_equals_in_groups_are_accused_in_at_most_one_run_of_a_hundred() -> None:
    """A fiftieth of what benches/verdicts.py has: six treatments in two and three groups."""
    ever = []
    for shape in (worlds.Shape((3, 2), 3, 20), worlds.Shape((2, 2, 1), 3, 20, duplicate=True)):
        for start, window in ((0.0, 0.15), (0.05, 0.05)):
            ever.append(run(worlds.rates(Noise("normal", start, window), shape, 200, 11), None, shape.through)[1])
    assert np.concatenate(ever).mean() <= BOUND + 2 * math.sqrt(BOUND / 800)


def test_intervals_across_groups_hold() -> None:
    shape = worlds.Shape((2, 2, 1), 5, 20)
    truth = -0.1 * np.arange(6)
    shown, _ = run(worlds.rates(Noise("normal", 0.02, 0.15), shape, 300, 3, truth), None, shape.through)
    for first, second in ((0, 1), (1, 2), (1, 5), (3, 5)):
        held = np.abs(shown.mean[:, first, second] - 0.1 * (second - first)) <= shown.half[:, first, second]
        assert held.mean() >= COVERED


def test_what_a_plan_in_groups_can_tell_is_told_across_groups() -> None:
    noise: Json = {"window_sd_log": 0.12, "start_sd_log": 0.01, "start_freedom": 20, "window_seconds": 0.75}
    whole, ratio = (
        ratio_told(noise, Arrangement(5, arms, 8, 20, 0.75, True, groups)) or 0 for arms, groups in ((5, 1), (6, 2))
    )
    assert math.log(ratio) == pytest.approx(math.sqrt(2) * math.log(whole), rel=0.05), "the errors of two comparisons"
    shape, truth = worlds.Shape((2, 2), 8, 20), np.zeros(5)
    truth[4] = -math.log(ratio)
    shown, _ = run(worlds.rates(Noise("normal", 0.01, 0.12), shape, 300, 3, truth), None, shape.through)
    assert POWER - 0.1 < shown.told[:, 4, 1].mean() < shown.told[:, 4, 0].mean()


def test_how_many_replicates_would_tell_counts_the_errors_of_both_comparisons(tmp_path: Path) -> None:
    """Twice as many as two levels of one group would need; and a replicate takes the time of all groups."""
    near: Json = {**ROUGH, "effects": (0.05, 0.0, 0.1), "groups": ((0, 1), (0, 2)), "window": 0.1, "start": 0.03}
    folder = make(tmp_path / "run", Shape(**near))
    for trial in open_run(folder).trials:
        path = trial.path / "trial.json"
        phases = [{"name": "measure", "start_ns": 0, "end_ns": 60 * 10**9}]
        path.write_text(json.dumps({**json.loads(path.read_text()), "phases": phases}))
    verdict = analyse(open_run(folder))
    (step,) = [step for step in verdict["next_steps"] if step["kind"] == "longer"]
    pair = _pairs(verdict["comparisons"][0])[1, 2]
    assert pair["through"] == "t1" and pair["blocks"] == 4 and verdict["comparisons"][0]["blocks"] == 8
    assert step["blocks"] > 4 and step["command"][-2:] == ["--blocks", str(step["blocks"])]
    assert step["seconds"] == 2 * 60 * step["blocks"]
    assert set(step["levels"]) == {pair["first"], pair["second"]}
    noise = verdict["comparisons"][0]["noise"]
    direct = blocks_to_tell(step["ratio"], 3, noise["sd_log"], noise["freedom"] / 4, 0.0)
    assert direct is not None and step["blocks"] > 1.7 * direct
