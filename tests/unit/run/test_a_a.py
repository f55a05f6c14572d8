"""Whose spread is kept as this machine's."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment.state import StateDir
from plimsoll.experiment.reading import source
from plimsoll.run import a_a

SPREAD: dict[str, Any] = {"ratio_spread": 1.02, "pairs": 4}
WINDOWS = {"start_sd_log": 0.01}
FOUND = {"a_a": {"within_run": SPREAD}, "windows": {"noise": WINDOWS}}


def test_that_of_the_shipped_experiment_as_it_stands(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert a_a.newest(state) is None
    a_a.keep(state, source.load(a_a.EXPERIMENT, quick=True), "r1", FOUND)
    kept = a_a.newest(state)
    assert kept is not None and kept.pop("epoch_ns") > 0
    assert kept == {"run": "r1", **SPREAD, "windows": WINDOWS}


@pytest.mark.parametrize(
    ("name", "sets", "verdict"),
    [
        ("buffer-cache", [], FOUND),
        (a_a.EXPERIMENT, ["measure.seconds=3"], FOUND),
        (a_a.EXPERIMENT, [], {"a_a": None}),
        (a_a.EXPERIMENT, [], {"a_a": {"within_run": None}}),
    ],
)
def test_that_of_no_other(tmp_path: Path, name: str, sets: list[str], verdict: dict[str, Any]) -> None:
    state = StateDir(tmp_path)
    a_a.keep(state, source.load(name, quick=True, sets=sets), "r1", verdict)
    assert a_a.newest(state) is None
