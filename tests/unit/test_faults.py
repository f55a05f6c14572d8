"""The planted faults fit the tree, and what plants them tells a fault that was seen from one that says nothing.

./test --long plants them (tests/faults/test_planted_faults.py).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import plant
import planted
import pytest
from plant import Result, Tree, is_enough
from planted import Fault

ROOT = Path(__file__).parents[2]
SUM = "def mean(values):\n    return sum(values) / len(values)\n"
TESTS = """from sums import mean

def test_mean():
    assert mean([1, 3]) == 2

def test_one():
    assert mean([5]) == 5
"""
DIVISOR = Fault("a divisor off by one", "analysis", "sums.py", "len(values)", "(len(values) + 1)", ("test_sums.py",))


def test_every_fault_fits_the_tree_and_names_tests_that_the_default_run_has() -> None:
    assert planted.misfits(planted.read(), ROOT) == []


def test_faults_are_planted_in_every_stage_and_in_both_languages() -> None:
    faults = planted.read()
    assert {fault.stage for fault in faults} == set(planted.STAGES)
    assert len(faults) >= 30 and sum(fault.crate is not None for fault in faults) >= 10
    assert {fault.crate for fault in faults} - {None} <= set(plant.CRATES)
    assert any(fault.file.endswith((".bpf.h", ".bpf.c")) for fault in faults)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A tree of one module and its tests."""
    for name, text in {"sums.py": SUM, "test_sums.py": TESTS, "pytest.ini": "[pytest]\npythonpath = .\n"}.items():
        (tmp_path / name).write_text(text)
    tree = Tree(tmp_path)
    tree.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # takes longer than the tests
    return tree


@pytest.mark.parametrize(
    ("change", "outcome", "said"),
    [
        ({}, "caught", "test_sums.py::test_mean"),
        ({"seen_by": ("test_sums.py::test_one",), "instead": "max(1, len(values))"}, "not caught", ""),
        ({"instead": "len(value)"}, "broken", "NameError"),
    ],
)
def test_only_a_test_that_fails_has_seen_a_fault(
    tree: Tree, change: dict[str, object], outcome: str, said: str
) -> None:
    fault = replace(DIVISOR, **change)
    with tree.with_fault(fault):
        found, by = plant.outcome_of(tree.ask(fault))
    assert (found, said in by) == (outcome, True), by
    assert (tree.folder / "sums.py").read_text() == SUM, "the fault is taken out again"


@pytest.mark.parametrize(
    ("built", "code", "said", "outcome"),
    [
        (0, 101, "test words::tests::bounds ... FAILED", "caught"),
        (0, 101, "process didn't exit successfully: signal: 6, SIGABRT", "caught"),
        (0, 0, "test words::tests::bounds ... ok", "not caught"),
        (0, 0, "running 0 tests", "broken"),
        (0, -15, "", "broken"),
        (101, 0, "error[E0308]: mismatched types", "broken"),
    ],
)
def test_of_rust_too_only_a_test_that_fails_has_seen_a_fault(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, built: int, code: int, said: str, outcome: str
) -> None:
    monkeypatch.setattr(tree, "run", lambda command: (built if "--no-run" in command else code, said))
    ran = tree.ask(replace(DIVISOR, file="crates/keys/src/words.rs", seen_by=("crates/keys/src/words.rs::bounds",)))
    assert plant.outcome_of(ran)[0] == outcome


def test_a_test_that_fails_without_a_fault_is_named(tree: Tree) -> None:
    (tree.folder / "sums.py").write_text(SUM.replace("len(values)", "2"))
    assert plant.clean(tree, [DIVISOR]) == ["test_sums.py::test_one"]


def test_a_table_that_does_not_fit_is_told(tree: Tree) -> None:
    wrong = [
        replace(DIVISOR, text="no such text"),
        replace(DIVISOR, name="two", text="values"),
        replace(DIVISOR, name="two", seen_by=("test_sums.py::test_none",)),
        replace(DIVISOR, name="four", stage="judging", seen_by=()),
        replace(DIVISOR, name="five", instead="len(values"),
    ]
    told = "\n".join(planted.misfits(wrong, tree.folder))
    for part in (
        "occurs 0 times",
        "occurs 3 times",
        "'two' is given twice",
        "no test test_none",
        "'judging'",
        "names no test",
        "never closed",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("caught", "missed", "broken", "not_asked", "enough"),
    [
        (30, 0, 0, 0, True),
        (28, 2, 0, 0, True),
        (27, 3, 0, 0, False),
        (29, 0, 1, 0, False),
        (14, 1, 0, 15, True),
        (13, 2, 0, 15, False),
    ],
)
def test_two_of_thirty_may_be_missed_and_none_be_broken(
    caught: int, missed: int, broken: int, not_asked: int, *, enough: bool
) -> None:
    counts: dict[plant.Outcome, int] = {
        "caught": caught,
        "not caught": missed,
        "broken": broken,
        "not asked": not_asked,
    }
    results = [Result(DIVISOR, what, 0.0, "") for what, times in counts.items() for _ in range(times)]
    assert is_enough(results) is enough
