"""Decision support in experiment files: defaults, what has no place beside it, and how faults are named."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from plimsoll.experiment import ExperimentError, load
from plimsoll.experiment.reading.source import reload
from plimsoll.experiment.schedule import Closed
from plimsoll.experiment.workloads.decision_support import DecisionSupport, streams_min
from plimsoll.run.planning.needs import BUILD_BYTES_PER_S
from plimsoll.run.servers.registry import kind_of
from plimsoll.run.sizes import data_bytes

HEAD = """format = 1
name = "mine"
title = "A question"
"""
WORKLOAD = """[workload]
name = "decision_support"
scale_factor = 0.1
"""
COLD = """[warmup]
until = "none"
"""


def written(tmp_path: Path, *parts: str) -> str:
    path = tmp_path / "experiment.toml"
    path.write_text(HEAD + "".join(parts))
    return str(path)


def fault(tmp_path: Path, *parts: str, **options: Any) -> str:
    with pytest.raises(ExperimentError) as caught:
        load(written(tmp_path, *parts), **options)
    return str(caught.value)


def of(**about: Any) -> DecisionSupport:
    return DecisionSupport.model_validate({"name": "decision_support", "scale_factor": 1.0, **about})


def test_nothing_is_measured_by_seconds_and_the_composite_is_judged(tmp_path: Path) -> None:
    one = load(written(tmp_path, WORKLOAD, COLD)).experiment
    assert one.judged == "composite_queries_per_hour"
    assert one.workload.name == "decision_support"
    assert (one.workload.tests, one.workload.refresh, one.workload.clients) == (["power", "throughput"], True, 3)
    assert one.measure.transactions_of(one.workload.clients) is None
    again = reload(one.model_dump(mode="json"), tmp_path / "experiment.toml", quick=False)
    assert again.experiment == one


def test_seeds_of_repeats_share_no_stream() -> None:
    assert [of(repeats=5).seed_of(number) for number in (1, 2, 5)] == [1, 1, 1]
    new = of(streams=8, repeats=5, repeat_parameters="new", seed=100)
    drawn = [new.seed_of(number) + stream for number in range(1, 6) for stream in range(1, 9)]
    assert new.seed_of(1) == 100
    assert len(set(drawn)) == 40 and 100 not in drawn  # the power test's


def test_streams_and_pairs() -> None:
    assert of().streams_run == 2
    assert of(scale_factor=10.0).streams_run == streams_min(10) == 3
    # A pair a stream in each throughput test, and one in the power test.
    assert of(streams=8, repeats=5).pairs == 41
    assert of(streams=8, repeats=5, tests=["throughput"]).pairs == 40
    assert of(refresh=False).pairs == 0
    assert [of(streams=8).clients, of(streams=8, refresh=False).clients, of(tests=["power"]).clients] == [9, 8, 1]


def test_answers_are_compared_with_what_there_is_at_that_size() -> None:
    load = {"tests": ["load", "power"], "answers": True}
    assert of(**load).answers_against == "known"
    assert of(**load, scale_factor=0.5).answers_against == of(**load, scale_factor=10.0).answers_against == "duckdb"
    assert of(answers=True).answers_against is None  # its tables come from a kept data set
    assert of(tests=["load"]).answers_against is None


def test_a_plan_has_time_for_answers() -> None:
    small = {"tests": ["load", "power"], "scale_factor": 0.99}
    without, duckdb = (of(**small, answers=one).own_seconds(BUILD_BYTES_PER_S) for one in (False, True))
    known = of(**small | {"scale_factor": 1.0}, answers=True).own_seconds(BUILD_BYTES_PER_S)
    assert without < known < duckdb


@pytest.mark.parametrize(
    ("tests", "judged"),
    [
        (["load", "power", "throughput"], "composite_queries_per_hour"),
        (["load", "throughput"], "throughput_queries_per_hour"),
        (["load", "power"], "power_queries_per_hour"),
        (["load"], "load_test_seconds"),
    ],
)
def test_what_is_judged_by_default(tests: list[str], judged: str) -> None:
    assert of(tests=tests).judged(Closed()) == judged


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ("scale_factor = 0.015\n", "workload.scale_factor", "not a multiple of 0.01"),
        ("scale_factor = 0.001\n", "workload.scale_factor", "greater than or equal to 0.01"),
        ("scale_factor = 1.0\ntests = ['throughput', 'power']\n", "workload.tests", "out of order"),
        ("scale_factor = 1.0\ntests = ['power', 'power']\n", "workload.tests", "out of order"),
        ("scale_factor = 1.0\ntests = []\n", "workload.tests", "at least 1"),
        ("scale_factor = 1.0\ntests = ['power']\nrepeats = 5\n", "workload", "need the throughput test"),
        ("scale_factor = 1.0\nstreams = 500\nrepeats = 2\n", "workload", "999 refresh sets"),
        ("scale_factor = 1.0\nclients = 4\n", "workload.clients", "there is no such key"),
    ],
)
def test_faults_of_the_workload_name_their_key(tmp_path: Path, more: str, key: str, words: str) -> None:
    said = fault(tmp_path, '[workload]\nname = "decision_support"\n', more, COLD)
    assert key in said and words in said


@pytest.mark.parametrize(
    ("part", "key", "words"),
    [
        ("[measure]\nseconds = 5\n" + COLD, "measure", "measured whole"),
        ("", "warmup", 'warmup.until = "none"'),
        (COLD + "[schedule]\nkind = 'poisson'\nrate = 5.0\n", "schedule", "no [schedule]"),
        (COLD + "[design]\njudged = 'load_test_seconds'\n", "design", "composite_queries_per_hour"),
        (COLD + "[design]\njudged = 'throughput_per_second'\n", "design", "which these tests do not measure"),
    ],
)
def test_what_has_no_place_beside_it(tmp_path: Path, part: str, key: str, words: str) -> None:
    said = fault(tmp_path, WORKLOAD, part)
    assert key in said and words in said


def test_a_load_test_finds_no_tables_to_prewarm(tmp_path: Path) -> None:
    tests = "tests = ['load', 'power']\n"
    assert "prewarm" in fault(tmp_path, WORKLOAD, tests, COLD, "prewarm = true\n")
    assert load(written(tmp_path, WORKLOAD, COLD, "prewarm = true\n")).experiment.warmup.prewarm


def test_other_workloads_still_need_an_end_and_have_no_power(tmp_path: Path) -> None:
    bank = '[workload]\nname = "bank"\nscale = 1\n'
    assert "give exactly one of seconds and transactions" in fault(tmp_path, bank)
    assert "give exactly one of seconds and transactions" in fault(
        tmp_path, bank, "[measure]\nseconds = 1\ntransactions = 1\n"
    )
    judged = "[measure]\nseconds = 1\n[design]\njudged = 'power_queries_per_hour'\n"
    assert "which workload decision_support alone has" in fault(tmp_path, bank, judged)


def test_the_experiment_that_ships(tmp_path: Path) -> None:
    del tmp_path
    for quick in (True, False):
        source = load("decision-support", quick=quick)
        assert source.experiment.judged == "composite_queries_per_hour"
        assert len(source.treatments) == (4 if quick else 7)
        series = load("dss-repeat", quick=quick).experiment
        assert series.judged == "throughput_queries_per_hour"
        assert series.workload.goes_on_after_kills() and not source.experiment.workload.goes_on_after_kills()


DUCK = """[target]
server = "duckdb"
"""


def test_duckdb_runs_decision_support_with_settings_of_its_own(tmp_path: Path) -> None:
    more = """[target.settings]
memory_limit = "0.5 x memory"
"""
    one = load(written(tmp_path, DUCK, more, WORKLOAD, COLD)).experiment
    assert kind_of(one).version(one) == duckdb.__version__
    assert data_bytes(one) < data_bytes(load(written(tmp_path, WORKLOAD, COLD)).experiment)
    again = reload(one.model_dump(mode="json"), tmp_path / "experiment.toml", quick=False)
    assert again.experiment == one


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((DUCK, WORKLOAD, "explain = true\n", COLD), "workload.explain"),
        ((DUCK, WORKLOAD, COLD, "prewarm = true\n"), "warmup.prewarm"),
        ((DUCK, WORKLOAD, COLD, "[probes]\nprofile = true\nblock = true\n"), "probes.profile, probes.block"),
        ((DUCK, 'transport = "tcp"\n', WORKLOAD, COLD), "target.transport"),
        ((DUCK, '[target.files]\nwal = "/x"\n', WORKLOAD, COLD), "target.files"),
        ((DUCK, "version = 15\n", WORKLOAD, COLD), "target.version"),
        ((DUCK, '[target.settings]\ntemp_directory = "/x"\n', WORKLOAD, COLD), "target.settings.temp_directory"),
        (
            (DUCK, '[workload]\nname = "bank"\nscale = 1\nclients = 1\n', "[measure]\nseconds = 1\n"),
            "does not run bank",
        ),
    ],
)
def test_what_an_embedded_server_has_not_is_refused_by_name(tmp_path: Path, parts: tuple[str, ...], named: str) -> None:
    found = fault(tmp_path, *parts)
    assert named in found and "duckdb" in found


def test_the_server_may_be_varied_with_settings_for_each() -> None:
    source = load(str(Path(__file__).parents[3] / "experiments/decision-support/duckdb.toml"), quick=True)
    settings = {one.levels["server"].label: one.settings for one in source.treatments}
    assert {label: one.target.server for label, one in settings.items()} == {
        "PostgreSQL": "postgresql",
        "DuckDB": "duckdb",
    }
    assert set(settings["DuckDB"].target.settings) == {"memory_limit"}
    assert "shared_buffers" in settings["PostgreSQL"].target.settings
