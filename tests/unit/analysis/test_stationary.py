"""The stationarity test against known curves, online as the run stage uses it: a look every second.

What it promises, and what not, stated by simulation: a filling cache is not let through before its distance to the
asymptote is within twice the tolerance, for time constants up to two and a half times the shortest warm-up, in at least
97 of 100 warm-ups, at five times in at least 94. At ten times, with noise that hides the slope, it may be: watched for
10 s, an approach over 100 s looks level. The measured segment is judged again afterwards.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.admission_stationary import standing
from plimsoll.analysis.statistics import stationary
from plimsoll.analysis.statistics.room import TURNED, Room, room_of

sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))
from simulate.caches import PER_SECOND, World, filling, is_admitted, level
from simulate.clock import draws, misses

SECONDS_MIN = 10


def _noise(random: np.random.Generator, warmups: int, seconds: int, sd: float, rho: float) -> np.ndarray:
    steps = random.normal(0, 1, (warmups, seconds + 20))
    values = np.zeros_like(steps)
    values[:, 0] = steps[:, 0]
    for second in range(1, seconds + 20):
        values[:, second] = rho * values[:, second - 1] + np.sqrt(1 - rho**2) * steps[:, second]
    return sd * values[:, 20:]


def _first_reached(values: np.ndarray) -> np.ndarray:
    """The second at which each warm-up is first called stationary; NaN for never. As `judge`, for many at once."""
    warmups, seconds = values.shape
    times = np.arange(1, seconds + 1.0)
    reached = np.full(warmups, np.nan)
    for now in range(SECONDS_MIN, seconds + 1):
        part = slice(now - int(max(SECONDS_MIN, now / 2)), now)
        left = stationary.approach(times[part], values[:, part])
        tolerance = stationary.MISS_RATIO
        allowed = np.maximum(np.maximum(tolerance.floor, tolerance.share * np.abs(left.level)), left.scatter)
        reached[left.reached(allowed) & np.isnan(reached)] = now
    return reached


@pytest.mark.parametrize(
    ("sd", "rho", "by_20", "by_60"),
    [(0.002, 0.0, 0.95, 1.0), (0.01, 0.0, 0.85, 0.99), (0.01, 0.5, 0.8, 0.98), (0.03, 0.0, 0.1, 0.98)],
)
def test_stationary_noise_is_recognised(sd: float, rho: float, by_20: float, by_60: float) -> None:
    random = np.random.default_rng(7)
    reached = _first_reached(0.3 + _noise(random, 400, 60, sd, rho))
    assert np.mean(reached <= 20) >= by_20
    assert np.mean(reached <= 60) >= by_60


@pytest.mark.parametrize("tau", [3, 6, 12, 25, 50])
@pytest.mark.parametrize(("sd", "rho"), [(0.003, 0.0), (0.01, 0.0), (0.01, 0.5)])
def test_a_filling_cache_is_not_let_through(tau: int, sd: float, rho: float) -> None:
    random = np.random.default_rng(tau)
    distance = 0.4 * np.exp(-np.arange(1, 121) / tau)
    reached = _first_reached(0.3 + distance + _noise(random, 300, 120, sd, rho))
    allowed = max(0.005, 0.05 * 0.3, sd)
    left = np.where(np.isfinite(reached), distance[np.nan_to_num(reached, nan=1).astype(int) - 1], 0.0)
    assert np.mean(left > 2 * allowed) <= (0.03 if tau <= 25 else 0.06)


@pytest.mark.parametrize("tau", [3, 6, 12])
def test_a_filled_cache_is_recognised_in_time(tau: int) -> None:
    random = np.random.default_rng(tau)
    curve = 0.3 + 0.4 * np.exp(-np.arange(1, 121) / tau) + _noise(random, 200, 120, 0.01, 0.0)
    assert np.nanmedian(_first_reached(curve)) <= 8 * tau + SECONDS_MIN


def _samples(miss_ratio: np.ndarray, reads: np.ndarray | None = None) -> list[dict[str, float | None]]:
    """Cumulative samples of a load of 1000 transactions and 10,000 blocks a second."""
    read = np.concatenate([[0.0], np.cumsum(miss_ratio * 10_000)])
    sectors = np.zeros(len(read)) if reads is None else np.concatenate([[0.0], np.cumsum(reads * 1000 / 512)])
    return [
        {
            "t_ns": 10**15 + second * 1_000_000_000,
            "done": second * 1000,
            "blks_hit": second * 10_000 - read[second],
            "blks_read": read[second],
            "read_sectors": sectors[second],
        }
        for second in range(len(read))
    ]


def test_judge_never_says_yes_early() -> None:
    random = np.random.default_rng(3)
    samples = _samples(0.3 + random.normal(0, 0.0005, 40), np.full(40, 4096.0))
    assert not any(stationary.judge(samples[:count], seconds_min=10).reached for count in range(10))
    assert stationary.judge(samples[:15], seconds_min=10).reached
    assert not stationary.judge(samples[:15], seconds_min=20).reached


def test_judge_wants_both_caches_at_rest() -> None:
    random = np.random.default_rng(4)
    level = 0.3 + random.normal(0, 0.001, 30)
    filling = 4096 + 40_000 * np.exp(-np.arange(30) / 12) + random.normal(0, 50, 30)
    found = stationary.judge(_samples(level, filling))
    assert not found.reached
    assert found.filling
    assert set(found.detail["series"]) == {"database_miss_ratio", "device_read_bytes_per_transaction"}


def _neighbour(seconds: int) -> np.ndarray:
    """What another user of the device reads meanwhile, bytes by our transactions: more and more."""
    return np.asarray(200_000 * (1 - np.exp(-np.arange(seconds) / 12)))


def _with_own_reads(samples: list[dict[str, float | None]], each: float) -> list[dict[str, float | None]]:
    return [{**sample, "io_read_bytes": 10**9 + each * (sample["done"] or 0)} for sample in samples]


def test_a_neighbours_reads_do_not_count_where_the_group_tells_its_own() -> None:
    level = 0.3 + np.random.default_rng(5).normal(0, 0.001, 30)
    samples = _samples(level, 4096 + _neighbour(30))
    assert stationary.judge(samples, whole=True).filling, "of all users of the device nobody can tell whose it is"
    found = stationary.judge(_with_own_reads(samples, 4096.0), whole=True)
    assert found.reached
    assert set(found.detail["series"]) == {"database_miss_ratio", stationary.GROUP_READS}


def test_a_cache_that_fills_is_seen_in_the_groups_own_reads() -> None:
    filling = 4096 + 40_000 * np.exp(-np.arange(30) / 12)
    samples = _samples(np.full(30, 0.3))
    total = np.concatenate([[0.0], np.cumsum(filling * 1000)])
    own = [{**sample, "io_read_bytes": total[second]} for second, sample in enumerate(samples)]
    assert stationary.judge(own, whole=True).filling


def test_a_process_that_has_just_ended_takes_nothing_from_its_groups_reads() -> None:
    """Between its end and its parent's hearing of it the sum is too small by all that it ever read."""
    samples = _with_own_reads(_samples(np.full(30, 0.3)), 4096.0)
    for second in (8, 17, 18):
        samples[second]["io_read_bytes"] = (samples[second]["io_read_bytes"] or 0) - 9e8
    found = stationary.judge(samples, whole=True)
    assert found.detail["series"][stationary.GROUP_READS]["level"] == 4096.0
    assert found.reached


def test_a_group_that_seldom_tells_leaves_the_devices() -> None:
    samples = _samples(np.full(30, 0.3), np.full(30, 4096.0))
    samples[3]["io_read_bytes"], samples[4]["io_read_bytes"] = 5.0, 6.0
    assert stationary.ALL_READS in stationary.judge(samples).detail["series"]


def test_judge_takes_what_there_is() -> None:
    samples = _samples(np.full(20, 0.25))
    for sample in samples:
        del sample["read_sectors"]
    assert set(stationary.judge(samples).detail["series"]) == {"database_miss_ratio"}
    bare = [{"t_ns": sample["t_ns"], "done": sample["done"]} for sample in samples]
    assert set(stationary.judge(bare).detail["series"]) == {"throughput_per_second"}


def test_judge_of_nothing_done_is_not_reached() -> None:
    samples = [
        {"t_ns": second * 10**9, "done": 0, "blks_hit": 5, "blks_read": 5, "read_sectors": 0} for second in range(30)
    ]
    assert not stationary.judge([]).reached
    assert not stationary.judge([{"t_ns": None}, {}]).reached
    assert not stationary.judge(samples[:1]).reached


def test_equals_of_a_measured_segment_are_seldom_called_filling() -> None:
    random = np.random.default_rng(5)
    values = 0.3 + _noise(random, 2000, 8, 0.01, 0.0)
    left = stationary.approach(np.arange(8.0), values)
    allowed = np.maximum(0.05 * left.level, left.scatter)
    assert np.mean(left.certain > allowed) <= 0.03


# --- the room of a cache --------------------------------------------------------------------------------------------


def _admitted(world: World, trials: int) -> float:
    random = np.random.default_rng(19)
    return sum(is_admitted(world, random) for _ in range(trials)) / trials


def test_a_cache_that_cannot_be_full_is_never_called_stationary() -> None:
    curve = filling(0.1, 0.1, 300.0)
    blocks = float(curve(np.arange(1500)).sum()) * PER_SECOND
    assert _admitted(World(curve, 0.02, 0.9, Room(blocks, 0.0)), 20) == 0
    # Of the same cache without its room nothing says so: an approach over minutes looks level from inside.
    assert _admitted(World(curve, 0.02, 0.0, None), 20) >= 0.9


def test_noisy_rest_is_let_in_where_the_cache_was_filled_again_and_again() -> None:
    often = Room(0.1 * PER_SECOND, -1e5)
    assert _admitted(World(level(0.1), 0.02, 0.9, often), 40) >= 0.85
    assert _admitted(World(level(0.1), 0.02, 0.9, None), 40) <= 0.5


def test_what_fits_and_is_not_asked_for_does_not_keep_a_cache_from_being_at_rest() -> None:
    samples = _samples(np.full(40, 0.004))
    assert stationary.judge(samples, room=Room(1e9, 0)).reached
    found = stationary.judge(_samples(np.full(40, 0.02)), room=Room(1e9, 0))
    assert not found.reached
    assert found.has_room
    assert "room for" in found.detail["why"]


@pytest.mark.parametrize(("asked", "is_reason"), [({"reached": True}, True), ({"reached": False}, True), ({}, False)])
def test_a_cold_cache_is_a_reason_only_where_a_warm_one_was_asked_for(asked: dict[str, bool], is_reason: bool) -> None:
    samples = _samples(np.full(60, 0.1))
    found = standing(asked, samples[:40], samples[41:], Room(1e9, 0))
    assert bool(found.reasons) == is_reason
    assert any("since its start" in text for text in [*found.reasons, *found.caveats])


def test_the_room_is_the_smaller_of_cache_and_data() -> None:
    told = {"cache_blocks": 16384, "data_blocks": 2000, "read_before": 500, "block_bytes": 8192}
    found = room_of(told)
    assert found == Room(2000, 500)
    assert found.turns(1500) == 0.5
    assert room_of(None) is None
    assert room_of({"cache_blocks": 5}) is None


def test_a_clock_is_near_its_level_once_it_was_turned() -> None:
    turns, ratio = misses(draws("hot fifth", 20_000, np.random.default_rng(3)), 4000).T
    rest = ratio[turns >= 5].mean()
    assert ratio[(turns >= TURNED) & (turns < 3)].mean() == pytest.approx(rest, rel=stationary.MISS_RATIO.share)
    assert ratio[turns < 0.5].mean() > 1.05 * rest
