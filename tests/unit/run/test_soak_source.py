"""What a soak is made of: rounds of a stated length, an open loop at a share of a load line, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, shipped
from plimsoll.experiment.soaking import Soak, seconds_of
from plimsoll.run.soak.series import ROUNDS_MAX
from plimsoll.run.soak.source import ROUND_S_MAX, ROUNDS, Asked, source_of

BANK = """
name = "tiny"
title = "Does it last?"
[workload]
name = "bank"
scale = 1
[measure]
seconds = 30
"""


def written(folder: Path, text: str = BANK) -> str:
    path = folder / "experiment.toml"
    path.write_text(text)
    return str(path)


def test_any_experiment_of_one_treatment_is_soaked(tmp_path: Path) -> None:
    settings = source_of(written(tmp_path), Asked()).experiment
    assert settings.soak == Soak() and settings.soak.seconds == 14 * 86_400
    assert settings.measure.seconds == ROUND_S_MAX, "not of 30 s, which would be forty thousand"
    assert settings.probes.machine_speed
    assert settings.probes.kernel and not settings.probes.breakdown and not settings.probes.page_cache
    assert settings.workload.reconnect and settings.goes_on_after_kills and settings.design.blocks == 1


def test_the_command_line_sets_what_it_names(tmp_path: Path) -> None:
    asked = Asked(length="2h", round_length="2m", between="nothing", goes_on=True, rate=50.0)
    settings = source_of(written(tmp_path), asked).experiment
    assert settings.soak is not None and settings.soak.seconds == 7200 and settings.measure.seconds == 120
    assert (settings.soak.between, settings.soak.after_crash) == ("nothing", "go on")
    assert settings.is_open and settings.judged == "latency_ns_p99"
    short = source_of(written(tmp_path), Asked(length="1h")).experiment
    assert short.measure.seconds == pytest.approx(3600 / ROUNDS)


def test_those_that_ship_as_soaks_keep_their_rounds() -> None:
    names = [path.parent.name for path in shipped() if path.parent.name.endswith("-soak")]
    assert names == ["dss-soak", "oltp-soak"]
    for name in names:
        for quick in (False, True):
            source = source_of(name, Asked(), quick=quick)
            assert source.experiment.soak is not None
            assert source.experiment.soak.seconds == (240 if quick else 14 * 86_400)
    assert source_of("oltp-soak", Asked()).experiment.measure.seconds == 21_600
    assert source_of("dss-soak", Asked()).experiment.measure.seconds is None, "its tests are measured whole"


def test_a_share_of_a_load_line_is_a_rate(tmp_path: Path) -> None:
    line = tmp_path / "line"
    line.mkdir()
    (line / "run.json").write_text(json.dumps({"format": 1, "id": "line", "kind": "capacity"}))
    (line / "capacity.json").write_text(json.dumps({"line": {"rate": 1000.0}}))
    settings = source_of(written(tmp_path), Asked(length="1h", line=line, share=0.7)).experiment
    assert settings.schedule.model_dump(include={"kind", "rate"}) == {"kind": "poisson", "rate": 700.0}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(length="a fortnight"), "--for: 'a fortnight' is not a duration"),
        (Asked(length="0s"), "--for"),
        (Asked(length="14d", round_length="x"), "--round"),
        (Asked(rate=-1.0), "--rate: -1 is no rate"),
        (Asked(share=0.7), "--line: a share of a load line takes both"),
        (Asked(rate=5.0, line=Path("x"), share=0.7), "the load line gives the rate already"),
        (Asked(length="14d", round_length="1m"), f"more than {ROUNDS_MAX} in 14d; allowed: --round of at least 605s"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_said(tmp_path: Path, asked: Asked, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        source_of(written(tmp_path), asked)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("buffer-cache", "levels, and a soak is of one treatment"),
        ("file-serving", "keeps none; allowed: target.server"),
        ("own-server", "is not ours to start again"),
    ],
)
def test_what_no_soak_is_made_of_is_refused_with_what_is(name: str, said: str) -> None:
    sets = ["target.dsn=postgresql://u@h/d"] if name == "own-server" else None
    with pytest.raises(ExperimentError) as caught:
        source_of(name, Asked(), sets=sets)
    assert said in str(caught.value)


def test_durations() -> None:
    assert [seconds_of(text) for text in ("90s", "1.5h", "14d", " 2 m ")] == [90, 5400, 14 * 86_400, 120]
    for wrong in ("", "14", "d", "1w", "-1d", "367d", "1e3s"):
        with pytest.raises(ValueError, match="allowed: a number with s, m, h or d"):
            seconds_of(wrong)
