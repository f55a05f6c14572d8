"""The stationarity test against known curves, online as the run stage uses it: a look every second.

What it promises, and what not, stated by simulation: a filling cache is not let through before its distance to the
asymptote is within twice the tolerance, for time constants up to two and a half times the shortest warm-up, in at least
97 of 100 warm-ups, at five times in at least 94. At ten times, with noise that hides the slope, it may be: watched for
10 s, an approach over 100 s looks level. The measured segment is judged again afterwards.
"""

import numpy as np
import pytest

from plimsoll.analysis.statistics import stationary

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
