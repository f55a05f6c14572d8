"""What grows and never falls, of series whose course is known."""

import numpy as np
import pytest

from plimsoll.analysis.soak.growth import Watched, judge_growth
from plimsoll.analysis.soak.increments import leak, rises

HOURS = 2.0
SECONDS = np.arange(0, HOURS * 3600, 10.0)
MIB = 2**20


def noises(seeds: range, share: float = 0.9) -> np.ndarray:
    """A series of standard deviation 1 for each; each sample keeps this share of the last."""
    drawn = np.stack([np.random.default_rng(seed).standard_normal(len(SECONDS)) for seed in seeds], axis=1)
    fresh = np.sqrt(1 - share**2)
    for place in range(1, len(drawn)):
        drawn[place] = share * drawn[place - 1] + fresh * drawn[place]
    return drawn.T


def noise(seed: int, share: float = 0.9) -> np.ndarray:
    """One of them."""
    return noises(range(seed, seed + 1), share)[0]


def judged(values: np.ndarray, least: float = 0.0):
    return judge_growth({"slab dentry": Watched(SECONDS, values, "bytes", least)})[0]


def test_a_leak_is_named_with_its_rate():
    found = judged(50 * MIB + 3.1 * MIB * SECONDS / 3600 + 0.2 * MIB * noise(1))
    assert found["verdict"] == "grows"
    assert found["an_hour"]["low"] <= 3.1 * MIB <= found["an_hour"]["high"]
    assert found["an_hour"]["high"] - found["an_hour"]["low"] < 1 * MIB


def test_a_leak_of_5_mib_a_minute_under_the_teeth_of_a_saw():
    teeth = (SECONDS % 600) / 600 * 200 * MIB
    found = judged(100 * MIB + 5 * MIB * SECONDS / 60 + teeth)
    assert found["verdict"] == "grows"
    assert found["an_hour"]["value"] == pytest.approx(300 * MIB, rel=0.1)


def test_dead_rows_between_vacuums_do_not_grow():
    assert judged((SECONDS % 900) * 1000.0 + 500 * noise(2))["verdict"] == "does not grow"


def test_a_cache_that_fills_settles():
    found = judged(1000 * MIB * (1 - np.exp(-SECONDS / 900)) + MIB * noise(3))
    assert found["verdict"] == "grew, and settles"


def test_what_is_given_back_is_no_leak():
    values = 100 * MIB + 10 * MIB * SECONDS / 3600 + 0.1 * MIB * noise(4)
    values[len(values) // 3 :] -= 5 * MIB
    assert judged(values)["verdict"] != "grows"


def test_spikes_and_samples_that_are_missing_change_nothing():
    values = 50 * MIB + 3.0 * MIB * SECONDS / 3600 + 0.1 * MIB * noise(5)
    values[::37] += 500 * MIB
    values[5::41] = np.nan
    found = judged(values)
    assert found["verdict"] == "grows"
    assert found["an_hour"]["value"] == pytest.approx(3.0 * MIB, rel=0.1)


def test_a_rise_that_nobody_would_look_at_is_none():
    values = 50 * MIB + 0.01 * MIB * SECONDS / 3600 + 0.0001 * MIB * noise(6)
    assert judged(values)["verdict"] == "grows"
    assert judged(values, least=MIB)["verdict"] == "does not grow"


def test_samples_in_any_order_tell_the_same():
    values = 50 * MIB + 3.0 * MIB * SECONDS / 3600 + 0.1 * MIB * noise(7)
    mixed = np.random.default_rng(8).permutation(len(SECONDS))
    assert judge_growth({"a": Watched(SECONDS[mixed], values[mixed], "bytes")}) == judge_growth(
        {"a": Watched(SECONDS, values, "bytes")}
    )


def visits(seed: int) -> np.ndarray:
    """What other programs hold, on average two of them, each for five minutes: taken at once, given back at once."""
    random = np.random.default_rng(seed)
    held = np.zeros(len(SECONDS))
    for came in random.uniform(-3600, SECONDS[-1], random.poisson(2 / 300 * (SECONDS[-1] + 3600))):
        goes, size = came + random.exponential(300), 100 * MIB * random.lognormal(-0.5, 1.0)
        held[(came <= SECONDS) & (goes > SECONDS)] += size
    return held


def test_a_leak_of_5_mib_a_minute_among_other_programs_is_named_with_its_rate():
    leaks = 300 * MIB + 5 * MIB * SECONDS / 60
    found = [judged(leaks + visits(seed) + MIB * noise(seed), least=16 * MIB) for seed in range(40)]
    named = [one for one in found if one["verdict"] == "grows"]
    assert len(named) >= 30  # of 400 other soaks 332
    covers = [one["an_hour"]["low"] <= 300 * MIB <= one["an_hour"]["high"] for one in named]
    assert all(one["first"] < one["last"] for one in named), "what others hold at either end is no part of it"
    assert sum(covers) >= 0.85 * len(named)  # of those all: the interval errs on the wide side
    assert np.median([one["an_hour"]["value"] for one in named]) == pytest.approx(300 * MIB, rel=0.03)


def test_other_programs_that_come_and_go_are_no_leak():
    calm = [judged(300 * MIB + visits(seed) + MIB * noise(seed), least=16 * MIB)["verdict"] for seed in range(100)]
    assert "grows" not in calm


@pytest.mark.parametrize("steps", ["normal", "heavy"])
def test_a_walk_at_random_has_as_many_rises_as_falls(steps: str):
    """Signs of independent increments: of 600 walks 30 rise by chance at most, where 5 % of them may."""
    random = np.random.default_rng(11)
    added = random.standard_normal((600, 239)) if steps == "normal" else random.standard_t(3, (600, 239))
    assert 10 <= sum(rises(one, chance=0.1) for one in added) <= 46  # both sides have half; three standard deviations


def test_what_fills_by_and_by_and_is_given_back_at_once_has_more_rises_and_is_no_leak():
    for period in (40, 77, 130):
        teeth = (np.arange(240) % period) * 1.0 + 0.01 * np.random.default_rng(period).standard_normal(240)
        assert leak(np.arange(240.0), teeth, chance=0.001, least=0.0) is None


@pytest.mark.parametrize("median_rise", [0.5, 2.0, 5.0])
def test_rounds_that_fill_and_give_back_above_a_base_that_wanders_are_no_leak(median_rise: float) -> None:
    """As open files do in the rounds of a soak: signs rise always, and the base goes where others take it."""
    random, told = np.random.default_rng(13), 0
    for _ in range(200):
        base = random.standard_normal(40)
        for place in range(1, 40):
            base[place] = 0.9 * base[place - 1] + np.sqrt(1 - 0.9**2) * base[place]
        values = np.repeat(base, 6) + median_rise / 240 * (np.arange(240) % 6)
        told += leak(np.arange(240.0), values, chance=0.001, least=0.0) is not None
    assert told <= 4


def test_a_leak_that_stops_at_half_time_is_none_of_increments():
    values = np.minimum(np.arange(240.0), 120) + 0.01 * np.random.default_rng(12).standard_normal(240)
    assert leak(np.arange(240.0), values, chance=0.001, least=0.0) is None


def test_too_short_a_series_cannot_tell():
    found = judge_growth({"files": Watched(SECONDS[:20], SECONDS[:20], "files")})[0]
    assert (found["verdict"], found["an_hour"]) == ("cannot tell", None)
    assert judge_growth({"files": Watched([], [], "files")})[0]["verdict"] == "cannot tell"


def test_of_two_hundred_series_that_do_not_grow_none_is_named():
    """And the one leak among them is, first of all."""
    found = 100 * MIB + MIB * noises(range(200), 0.99)
    series = {f"slab {seed}": Watched(SECONDS, values, "bytes") for seed, values in enumerate(found)}
    assert {one["verdict"] for one in judge_growth(series)} == {"does not grow"}
    one_leak = Watched(SECONDS, 100 * MIB + 60 * MIB * SECONDS / 3600 + MIB * noise(999, 0.99), "bytes")
    first = judge_growth({**series, "leak": one_leak})[0]
    assert (first["name"], first["verdict"]) == ("leak", "grows")
