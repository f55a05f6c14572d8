"""Whose spread is kept as this machine's."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment.state import StateDir
from plimsoll.experiment.reading import source
from plimsoll.run import a_a

SPREAD: dict[str, Any] = {"ratio_spread": 1.02, "pairs": 4}
WINDOWS = {"start_sd_log": 0.01}
DONE = [{"status": "finished"}] * 4
FOUND = {"a_a": {"within_run": SPREAD}, "windows": {"noise": WINDOWS}, "trials": DONE}


def test_that_of_the_shipped_experiment_as_it_stands(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert a_a.newest(state) is None
    assert a_a.keep(state, source.load(a_a.EXPERIMENT, quick=True), "r1", FOUND) is None
    kept = a_a.newest(state)
    assert kept is not None and kept.pop("epoch_ns") > 0
    assert kept == {"run": "r1", **SPREAD, "windows": WINDOWS}


@pytest.mark.parametrize(
    ("name", "sets", "verdict"),
    [
        ("buffer-cache", [], FOUND),
        (a_a.EXPERIMENT, ["measure.seconds=3"], FOUND),
        (a_a.EXPERIMENT, [], {"a_a": None, "trials": DONE}),
        (a_a.EXPERIMENT, [], {"a_a": {"within_run": None}, "trials": DONE}),
    ],
)
def test_that_of_no_other(tmp_path: Path, name: str, sets: list[str], verdict: dict[str, Any]) -> None:
    state = StateDir(tmp_path)
    a_a.keep(state, source.load(name, quick=True, sets=sets), "r1", verdict)
    assert a_a.newest(state) is None


@pytest.mark.parametrize("status", ["failed", "stopped", "not run"])
def test_one_that_was_cut_short_is_not_kept_for_whole_and_says_so(tmp_path: Path, status: str) -> None:
    state, shipped = StateDir(tmp_path), source.load(a_a.EXPERIMENT, quick=True)
    a_a.keep(state, shipped, "whole", FOUND)
    why = a_a.keep(state, shipped, "cut", {**FOUND, "trials": [*DONE, {"status": status}]})
    assert why is not None and "1 of its 5 trials have no result" in why
    kept = a_a.newest(state)
    assert kept is not None and kept["run"] == "whole"


@pytest.mark.parametrize(("sets", "is_kept"), [([], True), (["measure.seconds=3"], False)])
def test_one_that_goes_on_is_kept_as_it_would_have_been(tmp_path: Path, sets: list[str], is_kept: bool) -> None:
    """A record has every override in it, and not that there was one."""
    began = source.load(a_a.EXPERIMENT, quick=True, sets=sets, blocks=6)
    resumed = source.reload(began.experiment.model_dump(mode="json"), began.path, True)
    state = StateDir(tmp_path)
    assert a_a.keep(state, resumed, "r1", FOUND) is None
    assert (a_a.newest(state) is not None) == is_kept


def test_that_of_another_experiment_of_this_name_is_not_kept(tmp_path: Path) -> None:
    text = source.find(a_a.EXPERIMENT).read_text()
    (tmp_path / "mine.toml").write_text(text.replace("seconds = 8", "seconds = 9"))
    state = StateDir(tmp_path)
    a_a.keep(state, source.load(str(tmp_path / "mine.toml")), "r1", FOUND)
    assert a_a.newest(state) is None
