"""Where only slices of time are watched, what is recorded stands for all: by hand, and by simulation."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.breakdown import sampling as breakdown_sampling
from plimsoll.analysis.breakdown.breakdown import breakdown, caveats
from plimsoll.analysis.breakdown.difference import band_over_blocks
from plimsoll.analysis.breakdown.join import faults, join
from plimsoll.analysis.breakdown.trial import mean_latency, reading
from plimsoll.record import Trial

_WORLD = runpy.run_path(str(Path(__file__).with_name("breakdown_world.py")))
sent, server_rows, waits, BUCKETS = (_WORLD[name] for name in ("sent", "server_rows", "waits", "BUCKETS"))
SENT, ROW, NO_REPLY = (_WORLD[name] for name in ("SENT", "ROW", "NO_REPLY"))
MS = 1_000_000
ONE, TWO = 10, 11
FAST_MS, SLOW_MS, SLICE_MS = 1.0, 3.0, 50
REQUESTS = 7
Tables = tuple[np.ndarray, np.ndarray]


def by_hand() -> Tables:
    """Two transactions recorded whole, one in part, one between slices, one of which the server saw nothing."""
    rows = sent(
        {"backend_pid": ONE, "start_ns": 0, "end_ns": 1000, "requests": 7},
        {"backend_pid": ONE, "start_ns": 1000, "end_ns": 3000, "requests": 9},  # tried again: 5 and then 4
        {"backend_pid": ONE, "start_ns": 3000, "end_ns": 4000, "requests": 7},
        {"backend_pid": TWO, "start_ns": 0, "end_ns": 1000, "requests": 3},  # two of the server, one not watched
        {"backend_pid": TWO, "start_ns": 1000, "end_ns": 1100, "requests": 0},
    )
    asked = server_rows(
        {"backend_pid": ONE, "arrived_ns": 50, "ended_ns": 950, "requests": 7, "one_in": 4},
        {"backend_pid": ONE, "arrived_ns": 1050, "ended_ns": 1900, "requests": 5, "one_in": 4},
        {"backend_pid": ONE, "arrived_ns": 2000, "ended_ns": 2900, "requests": 4, "one_in": 4},
        {"backend_pid": TWO, "arrived_ns": 500, "ended_ns": 900, "requests": 2, "one_in": 4},
        {"backend_pid": 99, "arrived_ns": 100, "ended_ns": 200, "requests": 3},
    )
    return rows, asked


def test_what_became_of_each_is_counted() -> None:
    joined = join(*by_hand(), waits(), [ONE, TWO])
    assert faults(joined, BUCKETS) == {}
    assert joined.served.tolist() == [True, True, False, False, False]
    assert joined.counts == {
        "requests": 18,
        "requests_of_others": 3,
        "requests_joined": 18,
        "requests_without_transaction": 0,
        "requests_straddling": 0,
        "requests_ended_later": 0,
        "ended_later_ns_max": 0,
        "transactions": 5,
        "transactions_joined": 2,
        "transactions_without_request": 1,
        "transactions_not_watched": 1,
        "transactions_in_part": 1,
        "transactions_thinned": 0,
    }


def test_where_all_of_the_time_was_watched_none_is_between_slices() -> None:
    rows, asked = by_hand()
    asked["one_in"] = 1
    counts = join(rows, asked, waits(), [ONE, TWO]).counts
    assert counts["transactions_not_watched"] == 0
    assert counts["transactions_without_request"] == 2


def test_what_the_probe_says_of_the_highest_rate_is_believed() -> None:
    """It may have risen after the last row: what was recorded until then is one in so many all the same."""
    rows, asked = by_hand()
    joined = join(rows, asked, waits(), [ONE, TWO], 2**20)
    assert joined.counts["transactions_thinned"] == 2
    assert not joined.served.any()


def test_earlier_records_are_whole() -> None:
    rows, asked = by_hand()
    early = rows[[name for name in rows.dtype.names if name != "requests"]]
    joined = join(early, asked[[name for name in ROW.names if name not in ("requests", "one_in")]], waits())
    assert joined.served.tolist() == [True, True, False, True, False]
    assert joined.counts["transactions_not_watched"] == 0


def test_as_many_requests_as_the_record_can_say_may_be_more() -> None:
    rows = sent(
        {"backend_pid": ONE, "start_ns": 0, "end_ns": 1000, "requests": 65_535},
        {"backend_pid": ONE, "start_ns": 1000, "end_ns": 2000, "requests": 65_535},
    )
    asked = server_rows(
        {"backend_pid": ONE, "arrived_ns": 50, "ended_ns": 950, "requests": 70_000},
        {"backend_pid": ONE, "arrived_ns": 1050, "ended_ns": 1950, "requests": 65_534},
    )
    assert join(rows, asked, waits()).whole.tolist() == [True, False]


def test_encrypted_requests_that_became_one_are_whole_unless_there_are_slices() -> None:
    rows = sent({"backend_pid": ONE, "start_ns": 0, "end_ns": 1000, "requests": 3})
    row = {"backend_pid": ONE, "arrived_ns": 50, "ended_ns": 950, "requests": 2, "flags": NO_REPLY}
    assert join(rows, server_rows(row), waits()).whole.tolist() == [True]
    assert join(rows, server_rows(row | {"one_in": 2}), waits()).whole.tolist() == [False]
    assert join(rows, server_rows(row | {"flags": 0}), waits()).whole.tolist() == [False]


def test_thinning_keeps_its_share_and_always_the_same() -> None:
    """Of transactions with two rows each, of which the first counts."""
    rows, asked = np.zeros(100_000, SENT), np.zeros(200_000, ROW)
    rows["index"], owner = np.arange(len(rows)), np.arange(len(asked)) // 2
    for one_in in (1, 2, 8):
        asked["one_in"][::2], asked["one_in"][1::2] = one_in, 8
        kept = breakdown_sampling.kept(rows, asked, owner, 8)
        share = one_in / 8
        assert kept.mean() == pytest.approx(share, abs=4 * (share * (1 - share) / len(rows)) ** 0.5)
        again = breakdown_sampling.kept(rows[::-1], asked, owner[::-1], 8)[::-1]
        assert (kept == again).all(), "whatever their order"
    assert breakdown_sampling.kept(rows, asked, np.full(len(asked), -1), 8).all()


def population(random: np.random.Generator, count: int, retried: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Of each transaction its time on a CPU, later ones three times that of earlier ones, and the server's tries.

    Those that are tried again take a whole time a try.
    """
    mean = np.where(np.arange(count) < count // 2, FAST_MS, SLOW_MS) * MS
    tries = 1 + (random.random(count) < retried)
    return (mean * random.uniform(0.5, 1.5, count)).astype(np.int64), tries


def slices(random: np.random.Generator, begins: np.ndarray, ends: np.ndarray, rates: tuple[int, int]) -> np.ndarray:
    """Of how many slices one was watched when each of a backend's was begun; 0 between slices.

    Until half of them are done the first rate holds, then the second. A slice is closed when what is under way ends.
    """
    found, at, half = np.zeros(len(begins), np.int64), int(begins[0]), int(begins[len(begins) // 2])
    while at < begins[-1]:
        one_in = rates[0] if at < half else rates[1]
        until = max(at + SLICE_MS * MS, half if one_in == 1 else 0)
        first, last = np.searchsorted(begins, [at, until])
        found[first:last] = one_in
        closed = max(until, int(ends[last - 1])) if last > first else until
        rate = rates[0] if closed < half else rates[1]
        at = max(until + int(random.uniform(0, 2 * (rate - 1) * SLICE_MS * MS)), closed)
    return found


def recorded(random: np.random.Generator, cpu: np.ndarray, tries: np.ndarray, rates: tuple[int, int]) -> Tables:
    """What is recorded of one backend, watched for one slice in `rates[0]`, from half way on one in `rates[1]`."""
    rows, asked = np.zeros(len(cpu), SENT), np.zeros(int(tries.sum()), ROW)
    whole, at = cpu * tries, np.repeat(np.arange(len(cpu)), tries)
    rows["index"], rows["backend_pid"], rows["requests"] = np.arange(len(cpu)), ONE, REQUESTS * tries
    rows["end_ns"] = np.cumsum(whole + 10_000)
    rows["start_ns"] = rows["planned_ns"] = rows["end_ns"] - whole
    asked["backend_pid"], asked["requests"], asked["cpu_ns"] = ONE, REQUESTS, cpu[at]
    number = 1 + np.arange(len(at)) - np.searchsorted(at, at)
    asked["ended_ns"] = np.repeat(rows["start_ns"], tries) + cpu[at] * number
    asked["arrived_ns"] = asked["ended_ns"] - cpu[at]
    asked["one_in"] = slices(random, asked["arrived_ns"], asked["ended_ns"], rates)
    asked = asked[asked["one_in"] > 0]
    asked["request"] = np.arange(len(asked))
    return rows, asked


def test_estimates_lie_about_the_truth() -> None:
    """One set of transactions, watched again and again: what is estimated is right on average."""
    random = np.random.default_rng(5)
    cpu, tries = population(random, 6000)
    truth, found, early = float(cpu.mean()), [], []
    for number in range(100):
        rows, asked = recorded(random, cpu, tries, (1, 4))
        # Other indices, or thinning would keep the same each time.
        rows["index"] += np.uint64(number * len(cpu))
        joined = join(rows, asked, waits())
        spent = joined.over_rows(joined.rows["cpu_ns"])
        classes = ("joined", "without_request", "not_watched", "in_part", "thinned")
        assert sum(joined.counts[f"transactions_{name}"] for name in classes) == len(cpu)
        assert joined.counts["transactions_in_part"] == 0
        assert (spent == cpu)[joined.served].all(), "none is split"
        found.append(float(spent[joined.served].mean()))
        early.append(float(spent[joined.whole].mean()))
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - truth) < 4 * error + 3e-3 * truth
    assert np.mean(early) < 0.8 * truth, "with all that were recorded early ones count too much"


@pytest.mark.parametrize(("times", "share", "is_said"), [(1, 0.03, False), (10, 0.25, True)])
def test_those_of_several_of_the_servers_are_lost_by_their_length(
    times: int, share: float, is_said: bool, tmp_path: Path
) -> None:
    random = np.random.default_rng(6)
    cpu, tries = population(random, 6000, 0.4)
    rows, asked = recorded(random, times * cpu, tries, (4, 4))
    _WORLD["write_segment"](tmp_path / "measure", rows, asked, waits())
    found = reading(Trial(tmp_path, {"number": 1}))
    assert found is not None
    counts = found["joined"]
    lost = counts["transactions_in_part"] / (counts["transactions_in_part"] + counts["transactions_joined"])
    assert share / 2 < lost < 2 * share
    words = f"leaves out {lost:.0%} of the transactions it saw, the long ones more often"
    assert any(words in text for text in caveats(found)) == is_said


def trials(folder: Path, seed: int, **said: Any) -> dict[int, dict[str, Any]]:
    """Six blocks in which the rate rises from all to 1 in 8 half way, as transactions become slower."""
    found = {}
    for block in range(1, 7):
        random = np.random.default_rng([seed, block])
        rows, asked = recorded(random, *population(random, 6000), (1, 8))
        if said:
            asked["one_in"] = said["one_in"]
        place = folder / f"{block}"
        _WORLD["write_segment"](place / "measure", rows, asked, waits(), requests_sent=REQUESTS * len(rows))
        one = reading(Trial(place, {"number": block}))
        assert one is not None
        found[block] = one
    return found


def test_the_truth_lies_in_the_interval_and_would_not_without_thinning(tmp_path: Path) -> None:
    truth = (FAST_MS + SLOW_MS) / 2 * MS
    found = trials(tmp_path / "thinned", 3)
    for one in found.values():
        assert one["requests"]["seen"] < one["requests"]["sent"]
        assert caveats(one) == ["1 in 8 slices of time was watched"], "and nothing of fewer seen than sent"
    cpu = (band_over_blocks(found, "all", "all") or {})["parts"]["cpu"]
    assert cpu["low"] < truth < cpu["high"]
    assert cpu["high"] - cpu["low"] < 0.2 * truth
    # The lower half by latency is the first half by time, but for a few.
    half = found[1]["types"]["all"]["bands"]["up to p50"]
    assert mean_latency(half) < 1.2 * FAST_MS * MS

    alike = trials(tmp_path / "alike", 3, one_in=1)
    cpu = (band_over_blocks(alike, "all", "all") or {})["parts"]["cpu"]
    assert cpu["high"] < truth
    assert any("requests and the load sent" in text for text in caveats(alike[1]))


def test_it_is_said_that_not_all_of_the_time_was_watched(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows, asked = recorded(random, *population(random, 400), (1, 8))
    said = {"one_in_max": 8, "budget_share": 0.005, "share": 0.0049, "cut": 12}
    watched = "1 in 8 slices of time was watched"
    cut = "the breakdown lacks 12 transactions that lasted longer than one watched slice of time"
    for name, sampling, words in (
        ("a", said, [f"{watched}, to keep the probe within 0.5 % of the machine's CPU time", cut]),
        ("b", {}, [watched]),
    ):
        probes = {"breakdown": _WORLD["report"](len(asked), sampling=sampling)}
        _WORLD["write_segment"](tmp_path / name / "measure", rows, asked, waits(), probes=probes, requests_sent=2800)
        found = reading(Trial(tmp_path / name, {"number": 1}))
        assert caveats(found) == words
        assert found is not None
        assert found["sampling"]["one_in_max"] == 8
    _WORLD["write_segment"](tmp_path / "c" / "measure", rows, asked[:0], waits(), requests_sent=2800)
    found = reading(Trial(tmp_path / "c", {"number": 1}))
    assert not any("watched" in text for text in caveats(found))


def test_why_there_are_no_figures_where_every_transaction_is_recorded_in_part(tmp_path: Path) -> None:
    rows = sent({"backend_pid": TWO, "start_ns": 0, "end_ns": 1000, "requests": 3})
    asked = server_rows({"backend_pid": TWO, "arrived_ns": 500, "ended_ns": 900, "requests": 2, "one_in": 2})
    assert why_absent(tmp_path, rows, asked) == (
        "no transaction is recorded with all its requests in a trial that entered the verdict"
    )


def test_why_there_are_no_figures_where_no_transaction_was_in_a_slice(tmp_path: Path) -> None:
    rows = sent({"backend_pid": TWO, "start_ns": 0, "end_ns": 1000, "requests": 3})
    asked = server_rows({"backend_pid": ONE, "arrived_ns": 500, "ended_ns": 900, "requests": 2, "one_in": 2})
    assert why_absent(tmp_path, rows, asked) == (
        "too little of the time was watched in the trials that entered the verdict"
    )


def why_absent(folder: Path, rows: np.ndarray, asked: np.ndarray) -> str:
    _WORLD["write_segment"](folder / "measure", rows, asked, waits(), requests_sent=3)
    one = reading(Trial(folder, {"number": 1}))
    assert one is not None
    found = breakdown({1: one}, {(1, "a"): {"number": 1}}, {"a": {"label": "A"}}, [])
    assert found is not None
    return str(found["why_absent"])


@pytest.mark.parametrize(("share", "words"), [(0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %"), (0.0025, "0.25 %")])
def test_a_budget_in_words(share: float, words: str) -> None:
    said = breakdown_sampling.sampling_words({"one_in_max": 2, "budget_share": share})
    assert said == f"1 in 2 slices of time was watched, to keep the probe within {words} of the machine's CPU time"


def test_the_slowest_ten_are_of_those_recorded_however_early(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    cpu, tries = population(random, 400)
    cpu[::40] *= 20  # ten, half of them while all of the time was watched
    rows, asked = recorded(random, cpu, tries, (1, 8))
    _WORLD["write_segment"](tmp_path / "measure", rows, asked, waits(), requests_sent=2800)
    found = reading(Trial(tmp_path, {"number": 1}))
    assert found is not None
    assert {0, 40, 80, 120, 160} <= {row["index"] for row in found["slowest"]}
    assert {row["requests"] for row in found["slowest"]} == {REQUESTS}
