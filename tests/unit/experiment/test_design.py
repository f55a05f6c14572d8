"""The plan is a pure function of experiment and seed; every block holds each treatment once and a duplicate of one."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.experiment import load, plan_trials, size
from plimsoll.experiment.reading.source import EXPERIMENTS, reload
from plimsoll.experiment.schema import schema

TRIALS = ['design.kind="full factorial"', "design.blocks=3", "design.duplicate=true"]


@given(st.integers(0, 2**63 - 1))
def test_blocks_hold_each_treatment_once(seed: int) -> None:
    source = load("buffer-cache", quick=True, sets=TRIALS)
    plan = plan_trials(source.experiment, source.treatments, seed)
    assert plan == plan_trials(source.experiment, source.treatments, seed)
    assert [trial.number for trial in plan.trials] == list(range(1, len(plan.trials) + 1))
    for block in range(1, 4):
        arms = Counter((trial.treatment.id, trial.duplicate) for trial in plan.trials if trial.block == block)
        assert {arm: count for arm, count in arms.items() if not arm[1]} == {(f"t{n}", False): 1 for n in range(1, 5)}
    twins = [trial.treatment.id for trial in plan.trials if trial.duplicate]
    assert len(twins) == len(set(twins)) == 3


@given(st.integers(0, 2**63 - 1))
@settings(max_examples=20)
def test_a_drift_strikes_all_treatments_alike(seed: int) -> None:
    source = load("buffer-cache", quick=True, sets=TRIALS)
    trials = plan_trials(source.experiment, source.treatments, seed).trials
    numbers = {name: [t.number for t in trials if t.treatment.id == name and not t.duplicate and t.block != 2]
               for name in ("t1", "t2", "t3", "t4")}  # fmt: skip
    assert {sum(mine) for mine in numbers.values()} == {16}


def test_order_is_random_over_seeds() -> None:
    source = load("buffer-cache", quick=True, sets=TRIALS)
    first = Counter(
        plan_trials(source.experiment, source.treatments, seed).trials[0].treatment.id for seed in range(2000)
    )
    # Five arms, one of them the duplicate of any: each treatment leads a quarter; 4 standard deviations are 78.
    for treatment in ("t1", "t2", "t3", "t4"):
        assert abs(first[treatment] - 500) < 90


def test_full_size_is_the_studys() -> None:
    source = load("buffer-cache")
    sizes = {treatment.levels["workload.size"] for treatment in source.treatments}
    caches = [
        size.parse(t.levels["target.settings.shared_buffers"]) >> 20
        for t in source.treatments
        if t.levels["workload.size"] == "2 x memory"
    ]
    assert sizes == {"0.5 x memory", "1 x memory", "2 x memory"}
    assert min(caches) == 64
    assert max(caches) == 1536
    assert source.experiment.design.blocks == 3


def test_one_factor_at_a_time() -> None:
    sets = ['design.kind="one factor at a time"', 'workload.size=["1 x memory","2 x memory"]']
    source = load("buffer-cache", quick=True, sets=sets)
    assert len(source.treatments) == 1 + 1 + 3
    base = source.treatments[0].levels
    for treatment in source.treatments[1:]:
        assert sum(treatment.levels[path] != base[path] for path in base) == 1


def test_setting_a_factor_replaces_its_levels_and_a_measure_replaces_the_other() -> None:
    source = load("buffer-cache", sets=["workload.size=1 x memory", "measure.transactions=100"])
    assert {t.levels["workload.size"] for t in source.treatments} == {"1 x memory"}
    assert source.experiment.measure.seconds is None
    assert source.experiment.measure.transactions == 100


def test_sysctl_names_keep_their_dots() -> None:
    source = load("buffer-cache", sets=["environment.sysctl.vm.swappiness=10"])
    assert source.experiment.environment.sysctl == {"vm.swappiness": 10}


def test_a_record_gives_the_same_plan_back() -> None:
    source = load("buffer-cache", quick=True, sets=["workload.clients=3"])
    again = reload(source.experiment.model_dump(mode="json"), source.path, True)
    assert plan_trials(again.experiment, again.treatments, 7) == plan_trials(source.experiment, source.treatments, 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("768 MiB", 768 << 20),
        ("1.5GiB", 1536 << 20),
        ("2 x memory", 2000),
        ("0.5 x memory", 500),
        (4096, 4096),
        ("64MB", 64 << 20),
    ],
)
def test_sizes(text: str | int, expected: int) -> None:
    assert size.parse(text, memory=1000) == expected


@pytest.mark.parametrize("text", ["", "MiB", "1 parsec", "x memory", "-1 MiB", 1.5, True, -1])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError):
        size.parse(text, memory=1000)  # type: ignore[arg-type]


@given(st.integers(0, 2**50))
def test_shown_sizes_are_near(value: int) -> None:
    shown = size.parse(size.show(value))
    assert abs(shown - value) <= max(1024, 0.06 * value)


def test_the_committed_schema_is_the_models() -> None:
    committed = EXPERIMENTS.parent / "schema/experiment.schema.json"
    assert committed.read_text() == schema(), (
        "run: python -m plimsoll.experiment.schema > schema/experiment.schema.json"
    )
