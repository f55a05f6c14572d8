"""Coverage and guarantees by simulation: blocks with their own effects, normal and heavy-tailed (t, 3 df) noise."""

import numpy as np
import pytest

from plimsoll.analysis.comparing.compare import beaten, best_set, effects, pairs, word
from plimsoll.analysis.comparing.noise import noise_of
from plimsoll.analysis.runs.runs import unpaired
from plimsoll.analysis.statistics.intervals import grade, half_width, over_blocks

REPEATS = 6000


def _blocks(noise: str, blocks: int, truth: np.ndarray, seed: int, repeats: int = REPEATS) -> np.ndarray:
    random = np.random.default_rng([seed, blocks])
    shape = (repeats, blocks, len(truth))
    scatter = random.normal(0, 1, shape) if noise == "normal" else random.standard_t(3, shape)
    return truth + random.normal(0, 0.2, (repeats, blocks, 1)) + 0.04 * scatter


@pytest.mark.parametrize("noise", ["normal", "heavy"])
@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_ratio_intervals_cover(noise: str, blocks: int) -> None:
    truth = np.array([0.0, 0.1, -0.3])
    found = pairs(_blocks(noise, blocks, truth, 1))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        wrong = np.abs(found.mean - (truth[:, None] - truth[None, :]))[:, first, second]
        assert np.mean(wrong <= found.half()[:, first, second]) >= 0.93


@pytest.mark.parametrize("noise", ["normal", "heavy"])
@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_estimate_intervals_cover(noise: str, blocks: int) -> None:
    values = _blocks(noise, blocks, np.array([0.0]), 2)[..., 0]
    half = half_width(values.std(-1, ddof=1), np.array(blocks))
    assert np.mean(np.abs(values.mean(-1)) <= half) >= 0.93


@pytest.mark.parametrize("noise", ["normal", "heavy"])
@pytest.mark.parametrize("blocks", [3, 5, 10])
@pytest.mark.parametrize("truth", [[0.0] * 5, [0.0, -0.02, -0.05, -0.1, -0.3], [0.0, 0.0, 0.0, -0.2, -0.4]])
def test_the_truly_best_stays_in_the_set(noise: str, blocks: int, truth: list[float]) -> None:
    inside = best_set(_blocks(noise, blocks, np.array(truth), 3)[:, None])
    assert inside[:, 0].mean() >= 0.98


def test_the_clearly_worse_leaves_the_set() -> None:
    inside = best_set(_blocks("normal", 5, np.array([0.0, -0.6]), 4)[:, None])
    assert inside[:, 1].mean() <= 0.01


@pytest.mark.parametrize("blocks", [3, 5, 10])
def test_unpaired_intervals_cover(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    first, second = np.exp(random.normal(0, 0.05, (1500, blocks))), np.exp(random.normal(0, 0.1, (1500, blocks)))
    found = [unpaired(one, two) for one, two in zip(first, second, strict=True)]
    assert np.mean([row["low"] <= 1 <= row["high"] for row in found]) >= 0.93


def test_two_blocks_give_no_interval() -> None:
    logs = np.log([[100.0, 50.0], [101.0, 49.0]])
    found = pairs(logs)
    assert np.isnan(found.half()).all()
    assert best_set(logs[None]).all()
    assert word(0.7, float("nan")) == "cannot tell"
    estimate = over_blocks([100.0, 101.0], log=True)
    assert estimate is not None
    assert estimate.low is None
    assert [grade(blocks) for blocks in (2, 3, 4, 5)] == ["none", "indicative", "indicative", "interval"]


def test_a_block_that_misses_a_treatment_serves_the_pairs_it_has() -> None:
    logs = np.log([[100.0, 50.0, 80.0], [110.0, np.nan, 88.0], [90.0, 45.0, 72.0], [100.0, 51.0, np.nan]])
    found = pairs(logs)
    assert found.blocks.tolist() == [[4, 3, 3], [3, 3, 2], [3, 2, 3]]
    assert found.mean[0, 2] == pytest.approx(np.log(1.25))


def test_effects_do_not_reward_missing_a_slow_block() -> None:
    truth, slow = np.array([0.0, -0.1]), np.array([0.0, 0.0, -1.0])
    logs = truth + slow[:, None]
    logs[2, 1] = np.nan
    found = effects(logs)
    assert found[0] - found[1] == pytest.approx(0.1)


def test_a_stored_a_a_run_that_was_noisier_decides_and_a_quieter_one_does_not() -> None:
    logs = np.array([[[0.0, -0.10], [0.1, -0.002], [0.2, 0.099]]])
    assert not best_set(logs)[1]
    assert not best_set(logs, floor=1e-6)[1]
    assert best_set(logs, floor=0.02).all()
    assert word(-0.1, 0.01, spread_log=0.2) == "cannot tell"


def test_words_of_a_ratio() -> None:
    assert word(0.01, 0.02) == "no relevant difference"
    assert word(0.2, 0.05) == "better"
    assert word(-0.2, 0.05) == "worse"
    assert word(0.2, 0.3) == "cannot tell"


def test_identical_values_are_told_apart_without_division_by_zero() -> None:
    found = pairs(np.log([[2.0, 1.0]] * 3))
    assert beaten(found, noise_of(np.log([[[2.0, 1.0]] * 3]))).tolist() == [[False, False], [True, False]]
