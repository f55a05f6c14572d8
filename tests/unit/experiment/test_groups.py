"""Groups of treatments that share one: dealt out, fewest that fit, and the order in which they run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.experiment import Plan, load, plan_trials
from plimsoll.experiment.design import blocks_of
from plimsoll.experiment.groups import Groups, dealt, fewest
from plimsoll.experiment.replicates import in_groups, replicates_of

TEXT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "bank"
scale = 1
[measure]
seconds = 1
[design]
kind = "windows"
blocks = 4
duplicate = true
[[factors]]
path = "workload.clients"
levels = [1, 2, 3, 4, 5, 6]
"""
GROUPS = Groups("t1", (("t1", "t2", "t3"), ("t1", "t4", "t5"), ("t1", "t6")), "why")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    file = tmp_path_factory.mktemp("groups") / "experiment.toml"
    Path(file).write_text(TEXT)
    source = load(str(file))
    return plan_trials(source.experiment, source.treatments, 1)


@given(st.lists(st.integers(0, 9), min_size=3, max_size=12), st.integers(2, 11), st.integers(0, 11))
def test_each_treatment_is_in_one_group_and_the_reference_in_all(sizes: list[int], count: int, place: int) -> None:
    names = [f"t{number}" for number in range(1, len(sizes) + 1)]
    reference, count = names[place % len(names)], min(count, len(names) - 1)
    groups = dealt(dict(zip(names, sizes, strict=True)), reference, count, "")
    assert len(groups.members) == count
    seen = Counter(name for members in groups.members for name in members)
    assert seen == Counter(names) + Counter({reference: count - 1})
    assert all(list(members) == sorted(members, key=names.index) for members in groups.members)
    assert min(map(len, groups.members)) >= 2, "no group has nothing to compare"


def test_treatments_of_one_size_are_dealt_out_evenly_and_the_largest_apart() -> None:
    even = dealt(dict.fromkeys(("a", "b", "c", "d", "e", "f"), 1), "a", 2, "")
    assert even.members == (("a", "b", "d", "f"), ("a", "c", "e"))
    odd = dealt({"a": 1, "b": 6, "c": 2, "d": 2, "e": 2}, "a", 2, "")
    assert odd.members == (("a", "b"), ("a", "c", "d", "e"))


def test_as_few_groups_as_fit() -> None:
    sizes = {"a": 1, "b": 4, "c": 4, "d": 4, "e": 2}

    def fits(room: int) -> Groups | None:
        return fewest(
            sizes, "a", "", lambda some: all(sum(sizes[name] for name in one) <= room for one in some.members)
        )

    counts = {room: len(found.members) if (found := fits(room)) else 0 for room in (4, 5, 7, 9, 13)}
    assert counts == {4: 0, 5: 4, 7: 3, 9: 2, 13: 2}


@given(st.integers(0, 2**63 - 1))
@settings(max_examples=25)
def test_a_replicate_has_each_group_once_and_each_block_one_group(plan: Plan, seed: int) -> None:
    planned = Plan(plan.experiment, seed, plan.treatments, plan.trials)
    found = in_groups(planned, GROUPS)
    assert found == in_groups(planned, GROUPS) and found.groups == GROUPS
    assert [trial.number for trial in found.trials] == list(range(1, len(found.trials) + 1))
    assert [block[0].block for block in blocks_of(found.trials)] == list(range(1, 13))
    orders = []
    for replicate in replicates_of(found):
        assert sorted(block[0].group or 0 for block in replicate) == [1, 2, 3]
        orders.append([block[0].group for block in replicate])
        for block in replicate:
            (group,) = {trial.group for trial in block}
            originals = sorted(trial.treatment.id for trial in block if not trial.duplicate)
            (twin,) = (trial.treatment.id for trial in block if trial.duplicate)
            assert tuple(originals) == GROUPS.members[(group or 0) - 1] and twin in originals
            assert [trial.position for trial in block] == list(range(1, len(block) + 1))
    assert orders[2] == orders[0][::-1] and orders[3] == orders[1][::-1]
    twins = {t.treatment.id for t in found.trials if t.duplicate}
    assert twins == {f"t{number}" for number in range(1, 7)}, "each in turn"


def test_the_order_of_groups_is_random_over_seeds(plan: Plan) -> None:
    first = Counter(
        in_groups(Plan(plan.experiment, seed, plan.treatments, []), GROUPS).trials[0].group for seed in range(600)
    )
    assert all(abs(first[group] - 200) < 50 for group in (1, 2, 3))  # four standard deviations are 46


def test_without_groups_each_block_is_a_replicate(plan: Plan) -> None:
    assert replicates_of(plan) == [[block] for block in blocks_of(plan.trials)]


def test_groups_are_the_same_from_their_document() -> None:
    assert Groups.of(GROUPS.document()) == GROUPS
