"""How windows and starts scatter among equals: what a stored A/A keeps of a run, and what a later run takes from it.

The fact that constrains it: an A/A tells how whole trials scatter, start and windows together. What is left for starts
once the windows are taken out is a difference of two estimates, which is often next to nothing where starts do scatter.
So what is tested with is the scatter of whole trials, whose degrees of freedom are known; what is left is for readers.
"""

from __future__ import annotations

import math

import numpy as np

from plimsoll.analysis.comparing.noise import noise_of
from plimsoll.analysis.trial.windows import Windows
from plimsoll.analysis.windows import rates
from plimsoll.analysis.windows.judge import Start, logs_of, within
from plimsoll.record import Run
from plimsoll.record.verdict import StoredEquals, Used, WindowsNoise


def noise_of_run(used: Used, again: Used, inside: dict[int, Windows]) -> WindowsNoise | None:
    """Both levels of noise over all treatments, as a stored A/A keeps them; None where windows cannot tell."""
    blocks = sorted({block for block, _ in used})
    treatments = sorted({treatment for _, treatment in used})
    if not inside:
        return None
    seconds = float(np.median(np.concatenate([windows.seconds for windows in inside.values()])))
    return noise_of_rates(rates.array(blocks, treatments, used, again, inside), seconds)


def noise_of_rates(by_arm: np.ndarray, seconds: float) -> WindowsNoise | None:
    """Of (copies, blocks, levels, rounds) of rates, of windows that count so many seconds."""
    scatter = within(np.concatenate(list(by_arm), axis=1)[None])
    if not np.isfinite(scatter.window):
        return None
    whole = noise_of(logs_of(by_arm))
    rounds = scatter.rounds[scatter.rounds > 0]
    has_starts = float(whole.freedom) >= 1
    of_windows = float(scatter.window) / float(np.mean(rounds))
    of_trial = float(whole.variance) if has_starts else math.nan
    return {
        "window_sd_log": math.sqrt(float(scatter.window)),
        "window_seconds": seconds,
        "correlation": float(scatter.correlation),
        "trial_sd_log": math.sqrt(of_trial) if has_starts else None,
        "windows_sd_log": math.sqrt(of_windows),
        "start_sd_log": math.sqrt(max(of_trial - of_windows, 0.0)) if has_starts else None,
        "start_freedom": float(whole.freedom) if has_starts else None,
    }


def stored_start(run: Run) -> Start | None:
    """How trials scatter by the stored A/A of windows that run.json has; None without one."""
    stored: StoredEquals | None = run.data.get("a_a")
    return None if stored is None else start_of(stored)


def start_of(stored: StoredEquals) -> Start | None:
    """Of an A/A that did not keep it yet: by its pairs, whose logs scatter by the root of two more than a trial's."""
    noise = stored.get("windows")
    if not noise or noise.get("start_sd_log") is None or not noise.get("start_freedom"):
        return None
    of_trial, of_windows = noise.get("trial_sd_log"), noise.get("windows_sd_log")
    if of_trial is not None and of_windows is not None:
        return Start(float(of_trial), float(noise["start_freedom"] or 0), float(of_windows))
    of_pairs, blocks = stored.get("sd_log"), stored.get("blocks") or 0
    return None if of_pairs is None or blocks < 2 else Start(float(of_pairs) / math.sqrt(2), blocks - 1.0)


def stored_run(run: Run) -> str | None:
    """Which run that A/A is."""
    return str((run.data.get("a_a") or {}).get("run")) if stored_start(run) is not None else None
