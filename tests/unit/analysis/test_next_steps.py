"""What to do next: a step where the verdict carries it, with numbers that hold by simulation, and else none."""

import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.comparing.compare import best_set
from plimsoll.analysis.next_steps.blocks import BLOCKS_MAX, block_seconds, blocks_to_tell, own_sd
from plimsoll.analysis.next_steps.load_line import steps as line_steps
from plimsoll.analysis.next_steps.next_steps import _choose, _extend
from plimsoll.record import open_run
from plimsoll.words.next_steps import next_lines

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
Json = dict[str, Any]


@pytest.mark.parametrize(("levels", "sd", "ratio"), [(2, 0.05, 1.10), (3, 0.1, 1.2), (5, 0.02, 1.03), (3, 0.2, 1.5)])
def test_so_many_blocks_tell_it_in_four_of_five_runs(levels: int, sd: float, ratio: float) -> None:
    """Levels of equal noise, one of them slower by the ratio: how often it leaves the best set."""
    blocks = blocks_to_tell(ratio, levels, sd, levels - 1 - (levels - 1) / 8, sd * math.sqrt(2))
    assert blocks is not None and blocks > 3
    random = np.random.default_rng([7, levels])

    def told(count: int) -> float:
        logs = random.normal(0, sd, (400, 1, count, levels))
        logs += random.normal(0, 0.3, (400, 1, count, 1))
        logs[..., 0] -= math.log(ratio)
        copies = np.concatenate([logs, np.full_like(logs, np.nan)], axis=1)
        inside = np.asarray([best_set(one) for one in copies])
        return float((~inside[:, 0] & inside[:, 1]).mean())

    assert 0.68 <= told(blocks) <= 0.95
    assert told(max(3, blocks // 2)) < told(blocks) - 0.1, "half of them would not do"


def test_what_no_number_of_blocks_tells_has_none() -> None:
    assert blocks_to_tell(1.0, 3, 0.1, 2, 0.1) is None
    assert blocks_to_tell(1.001, 3, 0.5, 2, 0.5) is None
    assert (blocks_to_tell(1.05, 3, 0.2, 2, 0.3) or BLOCKS_MAX) > 60


def test_a_pairs_own_scatter_is_that_of_its_interval() -> None:
    values = np.asarray([0.1, 0.3, 0.2, 0.25])
    half = 3.182446 * values.std(ddof=1) / 2  # t of three degrees of freedom
    low, high = np.exp(values.mean() - half), np.exp(values.mean() + half)
    pair: Any = {"ratio": 1.2, "low": float(low), "high": float(high), "blocks": 4}
    noise: Any = {"sd_log": 0.5, "freedom": 3, "ratio_told": 2.0}
    assert own_sd(pair, noise) == pytest.approx(values.std(ddof=1), rel=1e-6)
    assert own_sd({**pair, "low": None}, noise) == pytest.approx(0.5 * math.sqrt(2))


def _change(folder: Path, name: str, **fields: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def _kinds(folder: Path) -> list[str]:
    return [step["kind"] for step in analyse(open_run(folder))["next_steps"]]


def test_a_level_that_is_told_is_named_and_the_end_of_a_sweep_is(tmp_path: Path) -> None:
    shape = Shape(blocks=5, caches=(64, 512, 1024), noise=0.002)
    folder = make(tmp_path / "run", shape)
    verdict = analyse(open_run(folder))
    (best,) = verdict["comparisons"][0]["best_set"]
    choose = verdict["next_steps"][0]
    assert (choose["kind"], choose["levels"], choose["label"]) == ("choose", [best], "shared_buffers")
    said = [one.text for one in next_lines(verdict)]
    assert said[0] == f"Set shared_buffers to {best}"
    if best == "64 MiB":
        assert "Try smaller levels, too: shared_buffers 64 MiB is the smallest that was tried" in said


def test_what_cannot_be_told_names_the_blocks_and_the_command(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 256), noise=0.3))
    _change(folder, "run.json", command=["x", "run", "mine.toml", "--blocks", "3", "--set", "a=b c", "--out=/tmp/x"])
    verdict = analyse(open_run(folder))
    (step,) = verdict["next_steps"]
    assert step["kind"] == "longer" and step["blocks"] > 3 and step["ratio"] >= 1.05
    expected = ["./plimsoll", "run", "mine.toml", "--set", "a=b c", "--blocks", str(step["blocks"])]
    assert step["command"] == expected, "without the options of that run alone"
    seconds = block_seconds(open_run(folder))
    assert seconds is not None
    assert step["seconds"] == pytest.approx(step["blocks"] * seconds)
    said = next_lines(verdict)[0]
    assert (
        said.text.startswith("To distinguish ")
        and f", if they differ by a ratio of {step['ratio']:.2f}: about " in said.text
    )
    assert said.command == f"./plimsoll run mine.toml --set 'a=b c' --blocks {step['blocks']}"


def test_a_quick_run_is_run_in_full_and_a_stopped_one_resumed(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 256), noise=0.3))
    _change(folder, "run.json", quick=True, status="stopped", command=["x", "demo"])
    verdict = analyse(open_run(folder))
    assert [step["kind"] for step in verdict["next_steps"]] == ["resume", "full"]
    assert verdict["next_steps"][1]["command"] == ["./plimsoll", "run", "buffer-cache"]


def test_trials_that_are_out_are_mended_where_they_leave_no_verdict(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 256)))
    for path in folder.glob("trials/*/trial.json"):
        if json.loads(path.read_text())["treatment"] == "t2":
            _change(folder, str(path.relative_to(folder)), status="failed", reason="the server closed the connection")
    assert _kinds(folder) == ["mend"]
    assert _kinds(make(tmp_path / "few", Shape(caches=(64, 256), blocks=2))) == ["longer"]


def test_a_run_of_one_treatment_is_given_something_to_compare(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(256,)))
    plan = json.loads((folder / "plan.json").read_text())
    for trial in plan["trials"]:
        assert trial["treatment"] == "t1"
        trial["duplicate"] = False
    (folder / "plan.json").write_text(json.dumps(plan))
    for path in folder.glob("trials/*/trial.json"):
        _change(folder, str(path.relative_to(folder)), duplicate=False)
    assert _kinds(folder) == ["vary"]


def test_what_the_load_asks_is_no_setting_to_choose(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(blocks=5, caches=(64, 1024), noise=0.002))
    text = (folder / "plan.json").read_text().replace("target.settings.shared_buffers", "workload.clients")
    (folder / "plan.json").write_text(text)
    assert _kinds(folder) == ["look"]


def _comparison(**levels: Json) -> Any:
    """A comparison with these levels: their words, and what else is said of them."""
    rows = [
        {"level": name, "value": place, "unbounded": None, "in_best_set": one["verdict"] != "worse", **one}
        for place, (name, one) in enumerate(levels.items())
    ]
    best = [row["level"] for row in rows if row["in_best_set"]]
    return {"factor": "target.settings.x", "label": "x", "at": {}, "at_labels": {}, "levels": rows, "best_set": best}


def test_a_level_that_stalls_is_not_to_be_chosen_and_the_middle_of_a_sweep_is_no_end() -> None:
    best, worse = {"verdict": "best estimate"}, {"verdict": "worse"}
    stalls = {"verdict": "cannot tell", "unbounded": {"blocks": 1, "of": 5}}
    step = _choose(_comparison(a=best, b=stalls, c=worse))
    assert step is not None and step["levels"] == ["a"]
    assert _choose(_comparison(a=best, b=stalls)) is None, "nothing is told to be worse"
    assert _extend(_comparison(a=worse, b=best, c=worse)) is None
    largest, smallest = _extend(_comparison(a=worse, b=worse, c=best)), _extend(_comparison(a=best, b=worse, c=worse))
    assert largest is not None and (largest["end"], largest["levels"]) == ("largest", ["c"])
    assert smallest is not None and (smallest["end"], smallest["levels"]) == ("smallest", ["a"])
    assert _extend(_comparison(a=worse, b=best)) is None, "two levels are no sweep"
    equal = {"verdict": "cannot tell"}
    assert _extend(_comparison(a=best, b=equal, c=worse)) is None, "the one beside the end is as good: it is flat there"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"status": "found", "low": 95.0, "high": 100.0, "generator": False}, ["keep_below"]),
        ({"status": "found", "low": 80.0, "high": 100.0, "generator": False}, ["keep_below", "longer"]),
        ({"status": "at least", "low": 80.0, "high": None, "generator": True}, ["generator", "longer"]),
        ({"status": "below", "low": None, "high": 80.0, "generator": False}, ["look", "longer"]),
        ({"status": "cannot tell", "low": None, "high": None, "generator": False}, ["longer"]),
    ],
)
def test_after_a_search_for_the_load_line(line: Json, expected: list[str]) -> None:
    assert line_steps({"line": line}) == expected
