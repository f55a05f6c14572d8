"""What changed: ranked, with intervals, in a world where it is known; and "cannot tell" where it cannot be told."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from plimsoll.analysis import Unknown, compare_runs, compare_treatments
from plimsoll.analysis.breakdown.changes import of_cpu, of_latency, word
from plimsoll.analysis.statistics.intervals import welch
from plimsoll.record import open_run
from plimsoll.words.comparing.changes import changes_lines
from plimsoll.words.comparing.comparison import comparison_lines

_VERDICT = runpy.run_path(str(Path(__file__).with_name("test_breakdown_verdict.py")))
_WORLD = runpy.run_path(str(Path(__file__).with_name("breakdown_world.py")))
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
band, one = _VERDICT["band"], _VERDICT["one"]
Json = dict[str, Any]
US = 1000


def side(locks: list[int], syncs: list[int], tuple_share: float = 0.0) -> dict[int, Json]:
    """A reading a block: 300 µs on a CPU, so much in locks and syncs, 1 µs in no part; a hundred transactions."""
    found = {}
    for block, (lock, sync) in enumerate(zip(locks, syncs, strict=True), 1):
        mean = band(301 + lock + sync, cpu=300, lock=lock, wal_sync=sync)
        shares = {"Lock:transactionid": 1 - tuple_share, "Lock:tuple": tuple_share}
        waits = [
            {"name": name, "bucket": "lock", "count": 1, "ns": int(lock * share * US * 100)}
            for name, share in shares.items()
            if share
        ]
        found[block] = one(block, mean, mean, waits)
    return found


def test_parts_are_ranked_and_add_up_to_the_difference() -> None:
    first, second = side([100, 110, 90], [50, 50, 50]), side([400, 420, 380], [40, 42, 38], tuple_share=0.25)
    found = of_latency(first, second, "all", "all", is_paired=True)
    assert found is not None
    assert [(row["name"], row["word"]) for row in found["parts"]] == [
        ("lock", "more"),
        ("wal_sync", "less"),
        ("cpu", "cannot tell"),
    ]
    assert sum(row["difference"]["value"] for row in found["parts"]) == pytest.approx(290 * US)
    assert found["total"]["value"] == pytest.approx(290 * US)
    assert [row["share"] for row in found["parts"]] == pytest.approx([300 / 290, -10 / 290, 0])
    assert found["closure_error"]["value"] == pytest.approx(0)
    assert [(row["name"], row["part"]) for row in found["waits"]] == [
        ("Lock:transactionid", "lock"),
        ("Lock:tuple", "lock"),
    ]
    # The event that the first side never had counts as 0 there: 0.25 of 400, 420, 380.
    assert found["waits"][1]["first"] == 0
    assert found["waits"][1]["difference"]["value"] == pytest.approx(100 * US)


def test_within_a_run_the_difference_is_that_of_the_blocks() -> None:
    """Blocks drift by more than what differs: paired it is told, unpaired it is not."""
    first, second = side([100, 900, 500], [1, 1, 1]), side([150, 951, 549], [1, 1, 1])
    paired = of_latency(first, second, "all", "all", is_paired=True)
    unpaired = of_latency(first, second, "all", "all", is_paired=False)
    assert paired is not None
    assert unpaired is not None
    assert (paired["word"], unpaired["word"]) == ("more", "cannot tell")
    assert {row["word"] for row in unpaired["parts"]} == {"cannot tell"}
    assert {row["share"] for row in unpaired["parts"]} == {None}


def test_only_common_blocks_are_paired() -> None:
    first, second = side([100, 100, 100, 5000], [1] * 4), side([200, 201, 199], [1] * 3)
    found = of_latency(first, second, "all", "all", is_paired=True)
    assert found is not None
    assert (found["total"]["blocks"], found["first"]) == (3, 402 * US)
    assert of_latency({4: first[4]}, second, "all", "all", is_paired=True) is None
    assert of_latency(first, second, "no such type", "all", is_paired=True) is None


@pytest.mark.parametrize(("one", "two"), [([1.0, 2.0, 4.0], [5.0, 9.0, 6.0, 7.0]), ([3.0, 3.1, 3.0], [1.0, 2.0, 3.0])])
def test_welch_is_what_scipy_has(one: list[float], two: list[float]) -> None:
    found = welch(one, two)
    wanted = stats.ttest_ind(two, one, equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert (found["low"], found["high"]) == pytest.approx((wanted.low, wanted.high))


def test_too_few_blocks_tell_nothing() -> None:
    assert welch([], [1.0]) is None
    assert word(welch([1.0, 1.0], [9.0, 9.0, 9.0]) or {}) == "cannot tell"
    found = of_latency(side([1, 1], [1, 1]), side([900, 900], [1, 1]), "all", "all", is_paired=True)
    assert found is not None
    assert found["word"] == "cannot tell"
    lines = changes_lines({"latency": {"all": found}, "cpu": None})
    assert lines[1].endswith("cannot tell: no interval from fewer than three blocks")
    assert lines[2:] == ["    cannot tell for: lock"]


def test_equals_that_differ_as_much_leave_no_shares() -> None:
    first, second = side([100, 101, 99], [50] * 3), side([150, 152, 149], [50] * 3)
    for spread, said in ((1.05, "more"), (1.2, "cannot tell")):
        found = of_latency(first, second, "all", "all", is_paired=True, spread=spread)
        assert found is not None
        assert found["word"] == said
        assert (found["parts"][0]["share"] is None) == (said == "cannot tell")
        lines = changes_lines({"latency": {"all": found}, "cpu": None}, spread)
        assert ("    cannot tell: equal trials differ as much (A/A 1.20 x)" in lines) == (said == "cannot tell")


def _with_cpu(readings: dict[int, Json], walwriter: int, one_in: int = 1) -> dict[int, Json]:
    for reading in readings.values():
        reading["processes"] = [{"what": "walwriter", "cpu_ns": walwriter * US * reading["done"]}]
        reading["sampling"] = {"one_in_max": one_in, "budget_share": None, "share": None, "cut": 0}
    return readings


def test_the_cpu_is_told_by_who_took_it() -> None:
    metrics = [
        {number: {"cpu_ns_per_transaction": (whole + number) * US, "generator_cpu_ns_per_transaction": 100 * US}
         for number in (1, 2, 3)}
        for whole in (500, 540)
    ]  # fmt: skip
    first, second = (_with_cpu(side([0, 0, 0], [1, 1, 1]), walwriter) for walwriter in (10, 50))
    found = of_cpu((first, metrics[0]), (second, metrics[1]), is_paired=True)
    assert found is not None
    assert [(row["name"], row["word"]) for row in found["users"]] == [
        ("walwriter", "more"),
        ("backends", "cannot tell"),
        ("the load generator", "cannot tell"),
    ]
    assert found["users"][0]["share"] == pytest.approx(1.0)
    sampled = of_cpu((_with_cpu(first, 10, 2), metrics[0]), (second, metrics[1]), is_paired=True)
    assert sampled is not None
    assert not sampled["others_known"]
    assert "walwriter" not in [row["name"] for row in sampled["users"]]
    assert of_cpu((first, {1: {}, 2: {}, 3: {}}), (second, metrics[1]), is_paired=True) is None


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same load twice; in the second half of each request fetches swapped memory, in one treatment."""
    place = tmp_path_factory.mktemp("runs")
    shape = _MAKER["Shape"](caches=(64, 1024), measure_seconds=8, warmup_seconds=8)
    first, second = (_MAKER["make"](place / name, shape) for name in ("first", "second"))
    plan = json.loads((second / "plan.json").read_text())
    large = next(name for name, one in plan["treatments"].items() if "1024" in str(one))
    _WORLD["add_to_run"](first)
    _WORLD["add_to_run"](second, {large: ("swap_in", 0xFEFFFFFF, 0.5)})
    return first, second


def test_two_runs_are_explained(runs: tuple[Path, Path]) -> None:
    found = json.loads(json.dumps(compare_runs(*(open_run(run) for run in runs)), allow_nan=False))
    by_label = {one["treatment"]: one["latency"]["all"] for one in found["explained"]}
    planted = next(one for label, one in by_label.items() if "1024" in label)
    same = next(one for label, one in by_label.items() if "1024" not in label)
    assert {row["word"] for row in same["parts"] + same["waits"]} == {"cannot tell"}
    changed = {row["name"]: row["word"] for row in planted["parts"]}
    assert changed["swap_in"] == "more"
    assert [row["part"] for row in planted["waits"] if row["word"] == "more"] == ["swap_in"]
    text = comparison_lines(found)
    assert sum(line.startswith("What changed, ") for line in text) == 2
    assert any(line.endswith("  swap_in") for line in text)


def test_two_treatments_of_a_run_are_explained(runs: tuple[Path, Path]) -> None:
    run = open_run(runs[1])
    labels = [one["label"] for one in run.plan["treatments"].values()]
    found = json.loads(json.dumps(compare_treatments(run, labels[0], "t2"), allow_nan=False))
    assert (found["first"]["treatment"], found["second"]["treatment"]) == (labels[0], labels[1])
    latency = found["explained"][0]["latency"]["all"]
    assert next(row for row in latency["parts"] if row["name"] == "swap_in")["word"] != "cannot tell"
    back = compare_treatments(run, "t2", "t1")["explained"][0]["latency"]["all"]
    assert back["total"]["value"] == pytest.approx(-latency["total"]["value"])
    assert back["total"]["low"] == pytest.approx(-latency["total"]["high"])
    assert comparison_lines(found)[0].startswith(f"{labels[1]} against {labels[0]}")
    with pytest.raises(Unknown, match="this run has: "):
        compare_treatments(run, "t1", "t9")


def test_runs_without_a_breakdown_say_so(tmp_path: Path) -> None:
    run = open_run(_MAKER["make"](tmp_path / "run", _MAKER["SMALL"]))
    found = compare_runs(run, run)
    assert all(one["latency"] == {} and one["cpu"] is None for one in found["explained"])
    said = [line for line in comparison_lines(found) if line.startswith("What changed")]
    assert len(said) == 3, "of parts, of system calls, of functions"
    assert all("not known" in line for line in said)
