"""How the levels of a run of windows are told apart: by the rates of its windows, with the share of its last look."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from plimsoll.analysis.comparing.compare import effects
from plimsoll.analysis.comparing.evidence import Evidence, Method, blocks_of
from plimsoll.analysis.comparing.noise import cells, noise_of
from plimsoll.analysis.comparing.unbounded import Compared
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.statistics.simultaneous import range_quantile
from plimsoll.analysis.windows import rates
from plimsoll.analysis.windows.equals import stored_run, stored_start
from plimsoll.analysis.windows.judge import Start, WindowNoise, Within, compare, logs_of, whole
from plimsoll.analysis.windows.spending import FIRST, FULL, Share, at_end, at_look
from plimsoll.analysis.windows.through import GroupsOfRun, groups_of, is_direct
from plimsoll.record import Run
from plimsoll.record.trial import SKIPPED
from plimsoll.record.verdict import Noise, NoiseLevels, Used

DECIDED = "decided after block "  # how the reason begins of trials that were left out by a look
_DECIDED_AFTER = re.compile(rf"{DECIDED}(\d+)\b")  # what follows the number is for readers (run/windows/blocks.py)


def method_of(run: Run, judged: Metric, share: Share | None = None) -> Method | None:
    """None where the run was not made in windows, or is judged by what they do not tell; `share`: that of a look."""
    if not judged.is_of_windows:
        return None
    known = rates.by_trial(run)
    if not known:
        return None
    return by_windows(known, stored_start(run), stored_run(run), share or share_of(run), groups_of(run))


def by_windows(
    known: rates.ByTrial, start: Start | None, starts_from: str | None, share: Share, groups: GroupsOfRun
) -> Method:
    """The method, of the windows of each trial."""

    def method(treatments: Sequence[str], used: Used, twins: Used, _metric: Metric) -> Evidence:
        columns, through = groups.through(treatments)
        named = blocks_of(columns, used)
        found = rates.array(named, columns, used, twins, known)
        found, beyond = rates.with_standstills(found, named, columns, used)
        blocks = np.isfinite(found[0]).any(-1).sum(0)
        least = 1 if start is not None else FIRST
        judged = (blocks >= least)[:, None]
        every, inside = compare(found, start, share, through, beyond)
        sure, _ = compare(np.where(judged, found, np.nan), start, share, through, beyond & judged[:, 0])
        noise = _noise(every, inside, share, start, starts_from)
        copies, count = logs_of(found), len(treatments)
        centre = None if through is None else effects(np.where(beyond, np.nan, cells(copies)))[:count]
        copies, beyond = copies[..., :count], beyond[:, :count]
        apart = None if through is None else ~is_direct(noise_of(copies).blocks)
        return Evidence(copies, beyond, every, sure, noise, least, centre, apart, groups.reference)

    return method


def _noise(found: Compared, inside: Within, share: Share, start: Start | None, starts_from: str | None) -> Noise | None:
    """As of trials; `ratio_told` is the median over pairs. None where nothing can be told."""
    scatter = found.noise
    assert isinstance(scatter, WindowNoise)
    levels = noise_levels(scatter, inside, start, starts_from)
    apart = ~np.eye(len(found.shown.mean), dtype=bool) & np.isfinite(found.half())
    if levels is None or not apart.any():
        return None
    count = len(found.shown.mean)
    beyond = scatter.beyond(lambda freedom: range_quantile(1 - share.alpha, count, whole(freedom)) / np.sqrt(2))
    has_own = scatter.freedom >= 1
    sd = math.hypot(levels["windows_sd_log"], levels["start_sd_log"] or 0.0)
    return {
        "sd_log": math.sqrt(float(scatter.variance)) if has_own else sd,
        "freedom": int(scatter.freedom if has_own else scatter.least_freedom),
        "ratio_told": math.exp(float(np.median(np.maximum(beyond, found.half())[apart]))),
        "levels": levels,
    }


def noise_levels(
    scatter: WindowNoise, inside: Within, start: Start | None = None, starts_from: str | None = None
) -> NoiseLevels | None:
    """What windows and starts each add to a trial's scatter; None where no block has two rounds of two levels.

    Of several blocks the starts' variance is what the windows leave of it, which may be nothing.
    """
    rounds = inside.rounds[inside.rounds > 1]
    if not len(rounds) or not np.isfinite(inside.window):
        return None
    window = float(inside.window)
    windows = window / float(np.mean(rounds))
    has_own = scatter.freedom >= 1
    of_start = max(float(scatter.variance) - windows, 0.0) if has_own else None if start is None else start.sd_log**2
    total = None if of_start is None else windows + of_start
    return {
        "window_sd_log": math.sqrt(window),
        "windows_sd_log": math.sqrt(windows),
        "start_sd_log": None if of_start is None else math.sqrt(of_start),
        "window_share": windows / total if total else None,
        "rounds": int(rounds.min()),
        "starts_from": None if has_own else starts_from,
    }


def share_of(run: Run) -> Share:
    """What the verdict of a run may spend: that of the look that ended it, else what earlier looks have left."""
    if not stops_when_decided(run):
        return FULL
    planned, ended, groups = planned_replicates(run), decided_after(run), groups_of(run)
    if ended is not None:
        return at_look(groups.replicate(ended), planned)
    last = max((trial.block for trial in run.trials if trial.status == "finished"), default=1)
    return at_end(groups.replicate(last), planned)


def stops_when_decided(run: Run) -> bool:
    """Whether its design ends it at the look that decides."""
    return (run.experiment.get("design") or {}).get("stop") == "decided"


def planned_blocks(run: Run) -> int:
    """How many blocks it would have at most."""
    return max((trial.block for trial in run.trials), default=1)


def planned_replicates(run: Run) -> int:
    """How many times all treatments would run at most: in as many blocks, without groups."""
    return groups_of(run).replicate(planned_blocks(run))


def decided_after(run: Run) -> int | None:
    """The block after which it was decided; None where no look ended it."""
    reasons = [str(trial.data.get("reason") or "") for trial in run.trials if trial.status == SKIPPED]
    return min((int(told[1]) for reason in reasons if (told := _DECIDED_AFTER.match(reason))), default=None)
