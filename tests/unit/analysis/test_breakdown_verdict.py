"""From a run's trials to the breakdown of its verdict: means and differences over blocks, and what is said of them."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.breakdown.breakdown import breakdown
from plimsoll.analysis.breakdown.difference import over
from plimsoll.analysis.studies import clients
from plimsoll.record import open_run
from plimsoll.words.probes import breakdown as breakdown_words
from plimsoll.words.terminal import LINES_MAX, terminal_lines

_WORLD = runpy.run_path(str(Path(__file__).with_name("breakdown_world.py")))
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
Json = dict[str, Any]
US = 1000


def band(latency_us: int, count: int = 100, **us: int) -> Json:
    ns = {part: value * US * count for part, value in us.items()}
    return {
        "transactions": count, "requests": count, "latency_ns": latency_us * US * count, "ns": ns,
        "user_ns": 0, "system_ns": 0, "cpu_can_be_split": False,
    }  # fmt: skip


def test_parts_that_did_not_change_are_seldom_named() -> None:
    """One real part and ten of noise, three blocks: of the parts that are named at most one in twenty is chance."""
    random = np.random.default_rng(20251122)
    repeats, wrong, right = 300, 0.0, 0
    for _ in range(repeats):
        blocks = random.normal(0, 0.1, (3, 11))
        blocks[:, 0] += 1.0
        parts = {f"part {place}": over(list(values)) for place, values in enumerate(blocks.T)}
        named = breakdown_words.named_parts({"total": over(list(blocks.sum(1))), "parts": parts})
        right += "part 0" in named
        wrong += sum(part != "part 0" for part in named) / max(1, len(named))
    assert wrong / repeats <= 0.05
    assert right / repeats >= 0.7


def one(number: int, mean: Json, slow: Json, waits: list[Json] | None = None) -> Json:
    """A trial's reading with one type."""
    closure = {"error_ns": 0, "of_ns": 1, "share": 0.001, "absolute_share": 0.002, "unnamed_share": 0.0}
    reads = {f"{name}_{key}": 0 for name in ("own", "on_its_way", "untold") for key in ("count", "ns")}
    named = {"waits": waits or [], "payers": {}, "data_read": reads, "nfs": {}}
    bands = {"all": mean, "up to p50": mean, "p50 to p90": mean, "p90 to p99": mean, "beyond p99": slow}
    kind = {"bands": bands, "closure": closure, "all": named, "beyond p99": named}
    return {
        "number": number, "status": "on", "reason": None, "remedy": None, "types": {"all": kind, "pay": kind},
        "slowest": [], "processes": [], "done": 100,
        "cost": {"run_ns": 1, "ns_per_transaction": 1.0, "cpu_share": 0.01},
        "lost": {}, "checks": [], "boundaries": {}, "absent": {}, "counts": {}, "faults": {}, "joined": {},
        "sampled": False, "requests": {"seen": 5, "sent": 5}, "syncs": {},
        "sampling": {"one_in_max": 1, "budget_share": None, "share": None, "cut": 0},
    }  # fmt: skip


def world(blocks: int, lock: Any, wal_sync: Any = lambda _block: 100) -> Json:
    """Treatment `a`: 300 µs on a CPU, 100 syncing; `b` the same and waiting for locks by `lock(block)` µs."""
    readings, used = {}, {}
    for block in range(1, blocks + 1):
        syncing, waiting = wal_sync(block), lock(block)
        mine = {
            "a": band(410 + block, cpu=300 + block, wal_sync=100, transport_in=10),
            "b": band(
                311 + block + syncing + waiting, cpu=300 + block, wal_sync=syncing, transport_in=10, lock=waiting
            ),
        }
        for place, (name, mean) in enumerate(mine.items()):
            number = 2 * block + place
            slow = band(mean["latency_ns"] // mean["transactions"] // US + 900 + block, 1, cpu=300, lock=900 + block)
            waits = [{"name": "Lock:tuple", "bucket": "lock", "count": 9, "ns": waiting * 90}] if name == "b" else []
            readings[number] = one(number, mean, slow, waits)
            used[block, name] = {"number": number}
    level = {"verdict": "worse", "blocks": blocks}
    levels = [{"treatment": "a", "level": "A", **level}, {"treatment": "b", "level": "B", **level}]
    comparisons = [{"label": "cache", "reference": "A", "at": {}, "levels": levels}]
    treatments = {"a": {"label": "A"}, "b": {"label": "B"}}
    found = breakdown(readings, used, treatments, comparisons)
    assert found is not None
    return {"breakdown": found, "treatments": treatments, "comparisons": comparisons, "a_a": {"ratio_spread": 1.05}}


def test_a_difference_adds_up_and_is_taken_within_blocks() -> None:
    found = world(3, lambda block: 2900 + 10 * block)["breakdown"]
    mean = next(row for row in found["differences"] if row["band"] == "all")
    assert [row["kind"] for row in found["differences"]] == ["pay", "pay"], "a single type stands for all"
    # Within blocks the CPU is alike, although it differs between them.
    assert mean["parts"]["cpu"] == {"value": 0.0, "low": 0.0, "high": 0.0, "blocks": 3}
    assert mean["parts"]["lock"]["value"] == pytest.approx(2920 * US)
    # Three blocks 2910, 2920 and 2930: sd 10, t(2) 4.3027, so 24.84 to either side.
    assert mean["parts"]["lock"]["high"] - 2920 * US == pytest.approx(24.84 * US, rel=1e-3)
    whole = sum(part["value"] for part in mean["parts"].values()) + mean["closure_error"]["value"]
    assert mean["total"]["value"] == pytest.approx(whole)
    assert mean["closure_error"]["value"] == pytest.approx(1 * US)


def test_means_have_intervals_from_three_blocks_on() -> None:
    two = world(2, lambda _block: 10)["breakdown"]["treatments"]["a"]["types"]["pay"]["bands"]["all"]
    assert two["parts"]["cpu"] == {"value": 301.5 * US, "low": None, "high": None, "blocks": 2}
    three = world(3, lambda _block: 10)["breakdown"]["treatments"]["a"]["types"]["pay"]["bands"]["all"]
    assert three["parts"]["cpu"]["low"] < 302 * US < three["parts"]["cpu"]["high"]
    assert three["transactions"] == 300


def test_the_sentence_names_what_the_difference_consists_of() -> None:
    verdict = world(3, lambda block: 2900 + 10 * block)
    assert breakdown_words.why_lines(verdict) == [
        "Why: cache B against A, pay: +2.92 ms [2.90, 2.95] a transaction, of which +2.92 ms [2.90, 2.94] lock "
        "(waiting for a lock that another process holds: Lock:tuple)"
    ]


@pytest.mark.parametrize(
    ("blocks", "lock", "said"),
    [
        (2, lambda _block: 2900, "cannot tell: no interval from fewer than three blocks"),
        (3, lambda block: 50 * (block % 2), "cannot tell whether it takes longer"),
        (5, lambda block: 10 + block % 2, "cannot tell: equal trials differ as much (A/A 1.05 x)"),
    ],
)
def test_what_cannot_be_told_is_said_so(blocks: int, lock: Any, said: str) -> None:
    line = breakdown_words.why_lines(world(blocks, lock))[0]
    assert line.endswith(said)
    assert "of which" not in line


def test_parts_whose_interval_holds_zero_are_not_named() -> None:
    verdict = world(3, lambda _block: 2900, wal_sync=lambda block: 100 + 600 * (block - 2))
    line = breakdown_words.why_lines(verdict)[0]
    assert "lock" in line
    assert "wal_sync" not in line


def test_what_the_slowest_are_made_of() -> None:
    found = breakdown_words.of_slowest(world(3, lambda _block: 100), "a", "pay")
    assert found is not None
    assert breakdown_words.amount(found[0]["total"]) == "+0.90 ms [0.90, 0.90]"
    assert found[1].more_by == ["+0.90 ms [0.90, 0.90] lock (waiting for a lock that another process holds)"]
    few = breakdown_words.of_slowest(world(2, lambda _block: 100), "a", "pay")
    assert few is not None
    assert few[1].more_by == []
    assert few[1].remark == "cannot tell what makes them slow: no interval from fewer than three blocks"


def test_scales_are_set_against_each_other_at_each_number_of_clients() -> None:
    rows = [
        {"treatment": f"s{scale}c{count}", "scale": scale, "clients": count, "transactions_per_client": 50}
        for scale in (1, 25)
        for count in (1, 30)
    ]
    found = clients.pairs({"rows": rows})
    assert [(row["first"], row["second"], row["clients"]) for row in found] == [
        ("s25c1", "s1c1", 1),
        ("s25c30", "s1c30", 30),
    ]
    assert found[1]["at"] == {"clients": "30", "transactions per client": "50"}
    assert clients.pairs({"rows": rows[:2]}) == []
    verdict = world(3, lambda block: 2900 + 10 * block)
    for row in verdict["breakdown"]["differences"]:
        row |= {"about": "clients", "clients": 30, "first_label": "25", "second_label": "scale 1"}
    line = breakdown_words.why_lines(verdict)[0]
    assert line.startswith("Why: scale 1 against 25, pay: +2.92 ms")
    assert line.endswith("; so most of it is waiting for each other's rows")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = make(
        tmp_path_factory.mktemp("runs") / "run", Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8)
    )
    plan = json.loads((folder / "plan.json").read_text())
    large = next(name for name, one in plan["treatments"].items() if "1024" in str(one))
    _WORLD["add_to_run"](folder, {large: ("swap_in", 0xFEFFFFFF, 0.5)})
    return folder


def test_a_whole_run(run: Path) -> None:
    verdict = json.loads(json.dumps(analyse(open_run(run)), allow_nan=False))
    found = verdict["breakdown"]
    assert found["why_absent"] is None
    for entry in found["treatments"].values():
        for kind in entry["types"].values():
            mean = kind["bands"]["all"]
            assert 0 < kind["closure_share_worst"] < 0.01
            parts = sum(part["value"] for part in mean["parts"].values())
            assert parts == pytest.approx(mean["latency"]["value"], rel=0.01)
            assert mean["split"] == ("cpu_user" in mean["parts"])
        assert [one["what"] for one in entry["system"]] == ["walwriter"]
        assert len(entry["slowest"]) == 10
        payers = entry["types"]["all"]["payers"]
        assert list(payers) == ["walwriter"]
    assert any(row["parts"].get("swap_in") for row in found["differences"])
    assert not any("breakdown" in caveat for caveat in verdict["caveats"])
    assert len(terminal_lines(verdict, "x")) <= LINES_MAX


def test_a_run_that_never_asked_has_no_such_part(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    assert "breakdown" not in analyse(open_run(folder))
