"""Soaks without a drift and with one: how often an alarm is false, and how often a step or a drift of 2 % is found.

Worlds: rounds of which each keeps a share of its neighbour's noise (AR), or with heavy tails; the scatter of a round is
stated, for what is found depends on it: a step of 2 % is seven times a scatter of 0.3 %, and four times one of 0.5 %.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from plimsoll.analysis.soak.document import Rounds
from plimsoll.analysis.soak.growth import GROWS, STAYS, Watched, judge_growth
from plimsoll.analysis.soak.inside import changes
from plimsoll.analysis.soak.rounds import judge_rounds
from simulate.rows import Row, Section

FALSE, FOUND = 0.01, 0.90
SCATTER = 0.003
STEP = 0.02
AFTER = 10  # rounds after the step
NEAR = 1  # rounds by which its place may be missed
COVERED = {"AR 0.8": 0.88}  # a soak of few rounds that agree so well does not show how well they agree
COVERED_ELSE = 0.95
FAMILY = 40
# Other programs beside what may leak: how many are there on average, and for how many minutes each stays.
VISITS = ((1, 5), (2, 5), (3, 10), (5, 10), (1, 20))
VISIT_MB, LEAK_MB_A_MINUTE, WANDERS_MB = 100.0, 5.0, 1.0
FOUND_AMONG = {(2, 5): 0.70, (3, 10): 0.25, (5, 10): 0.12, (1, 20): 0.60}  # the least that others leave is seldom zero
TAKEN = ("at once", "by and by", "soon")
PARTS, SCATTER_INSIDE, STEP_INSIDE, NEAR_INSIDE = 60, 0.01, 0.10, 2
# False alarms inside rounds are looked for where a step that is large enough to be told may come by chance: of parts
# that scatter by 1 % none ever is. With those from round to round (0.7 at most) they are to stay within 1 %.
SCATTER_FALSE, FALSE_INSIDE = 0.10, 0.005
KINDS = ("AR 0", "AR 0.3", "AR 0.5", "AR 0.8", "heavy")


def rounds(kind: str, count: int, runs: int, seed: int, scatter: float = SCATTER) -> np.ndarray:
    """(runs, count) of logs of rounds without a drift."""
    random = np.random.default_rng([seed, KINDS.index(kind), count])
    if kind == "heavy":
        return scatter * random.standard_t(3, (runs, count)) / np.sqrt(3)
    noise, share = random.standard_normal((runs, count)), float(kind.removeprefix("AR "))
    noise[:, 1:] *= np.sqrt(1 - share**2)
    for number in range(1, count):
        noise[:, number] += share * noise[:, number - 1]
    return scatter * noise


def alarms(found: Rounds) -> bool:
    """Whether somebody would look for a cause."""
    return bool(found["steps"]) or found["verdict"] in ("lower", "higher")


def names_step(found: Rounds, number: int) -> bool:
    """Whether a step is told before round `number` (from 1), or beside it."""
    return any(abs(step["round"] - number) <= NEAR for step in found["steps"])


def judged(logs: np.ndarray) -> list[Rounds]:
    """Each soak's rounds, judged."""
    return [judge_rounds(list(100 * np.exp(soak))) for soak in logs]


def _false(kind: str, count: int, seed: int, runs: int) -> list[Row]:
    found = judged(rounds(kind, count, runs, seed))
    case = f"{kind}, {count} rounds"
    return [
        Row("soak: false alarms", case, float(np.mean([alarms(one) for one in found])), FALSE, True, runs),
        Row(
            "soak: bound on the drift holds",
            case,
            float(np.mean([_covers(one) for one in found])),
            COVERED.get(kind, COVERED_ELSE),
            False,
            runs,
        ),
    ]


def _covers(found: Rounds) -> bool:
    drift = found["over_all"]
    return drift is None or drift["low"] <= 0 <= drift["high"]


def _step(kind: str, count: int, seed: int, runs: int) -> list[Row]:
    logs = rounds(kind, count, runs, seed)
    logs[:, count - AFTER :] += np.log1p(-STEP)
    share = np.mean([names_step(one, count - AFTER + 1) for one in judged(logs)])
    return [
        Row("soak: steps of 2 % found", f"{kind}, the last {AFTER} of {count} rounds", float(share), FOUND, False, runs)
    ]


def _drift(kind: str, count: int, seed: int, runs: int) -> list[Row]:
    logs = rounds(kind, count, runs, seed) + np.log1p(-STEP) * np.arange(count) / AFTER
    share = np.mean([alarms(one) for one in judged(logs)])
    return [
        Row("soak: drifts of 2 % found", f"{kind}, over {AFTER} of {count} rounds", float(share), FOUND, False, runs)
    ]


def _grown(share: float, seed: int, runs: int) -> list[Row]:
    """Of forty series of four hours that only wander, a sample a minute, any that is said to have grown."""
    random = np.random.default_rng([seed, round(100 * share)])
    times = np.arange(0, 4 * 3600, 60.0)
    told = 0
    for _ in range(runs):
        noise = random.standard_normal((FAMILY, len(times)))
        noise[:, 1:] *= np.sqrt(1 - share**2)
        for place in range(1, len(times)):
            noise[:, place] += share * noise[:, place - 1]
        family = {str(number): Watched(times, 100 + series, "bytes") for number, series in enumerate(noise)}
        told += any(one["verdict"] != STAYS for one in judge_growth(family))
    return [Row("growth: false alarms", f"AR {share:g} by the minute, {FAMILY} series", told / runs, FALSE, True, runs)]


def visits(taken: str, together: float, minutes: float, times: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """MB that programs hold which come at random, stay for an exponential time and give all back when they go.

    Each takes a lognormal size, of VISIT_MB on average: at once, by and by until it goes, or most of it soon.
    """
    stay, earlier = 60.0 * minutes, 600.0 * minutes
    count = random.poisson(together * (times[-1] + earlier) / stay)
    came = random.uniform(-earlier, times[-1], (count, 1))
    stays, size = random.exponential(stay, (count, 1)), VISIT_MB * random.lognormal(-0.5, 1.0, (count, 1))
    share = np.clip((times - came) / stays, 0, 1)
    held = {"at once": np.ones_like(share), "by and by": share, "soon": 1 - np.exp(-4 * share)}[taken]
    return np.where((share > 0) & (share < 1), size * held, 0.0).sum(axis=0)


def among_visits(taken: str, together: float, minutes: float, runs: int, seed: int) -> np.ndarray:
    """(runs, 720) soaks of two hours, a sample every ten seconds: MB that wander a little, and those of visits."""
    times = np.arange(0, 2 * 3600, 10.0)
    random = np.random.default_rng([seed, TAKEN.index(taken), int(together), int(minutes)])
    noise = random.standard_normal((runs, len(times)))
    for place in range(1, len(times)):
        noise[:, place] = 0.9 * noise[:, place - 1] + np.sqrt(1 - 0.9**2) * noise[:, place]
    held = np.stack([visits(taken, together, minutes, times, random) for _ in range(runs)])
    return 300.0 + WANDERS_MB * noise + held


def _grows(soaks: np.ndarray) -> float:
    """The share of soaks whose series is said to grow, as one of forty; the others stay as they are."""
    times = np.arange(soaks.shape[1]) * 10.0
    others = {str(number): Watched(times[:2], times[:2], "MB") for number in range(1, FAMILY)}
    told = [judge_growth({**others, "all": Watched(times, soak, "MB", least=16.0)})[0] for soak in soaks]
    return float(np.mean([one["verdict"] == GROWS for one in told]))


def _among(taken: str, together: float, minutes: float, seed: int, runs: int) -> list[Row]:
    """Two hours among visits, without a leak and with one of 5 MB a minute."""
    soaks = among_visits(taken, together, minutes, runs, seed)
    case = f"{together:g} at a time, {minutes:g} min each, {taken}"
    rows = [Row("growth among visits: false alarms", case, _grows(soaks), FALSE, True, runs)]
    leak = LEAK_MB_A_MINUTE * np.arange(soaks.shape[1]) / 6
    if taken == "at once":
        least = FOUND_AMONG.get((together, minutes), FOUND)
        rows.append(Row("growth among visits: leaks found", case, _grows(soaks + leak), least, False, runs))
    return rows


def _inside(kind: str, count: int, seed: int, runs: int) -> list[Row]:
    """Rounds of which each is sixty parts: a false change inside any of them, and a step of 10 % inside one."""
    false = np.mean([bool(changes(one)) for one in as_parts(kind, count, seed, runs, SCATTER_FALSE)])
    few = rounds(kind, PARTS, max(1, runs // 4) * count, seed, SCATTER_INSIDE).reshape(-1, count, PARTS)
    few[:, 0, PARTS // 2 :] += np.log1p(-STEP_INSIDE)
    told = [changes(_as_parts(soak)) for soak in few]
    at = PARTS // 2
    found = np.mean([any(c["round"] == 1 and abs(c["after_s"] - at) <= NEAR_INSIDE for c in one) for one in told])
    case = f"{kind}, {count} rounds of {PARTS} parts"
    return [
        Row("inside rounds: false alarms", case, float(false), FALSE_INSIDE, True, runs),
        Row("inside rounds: steps of 10 % found", case, float(found), FOUND, False, len(few)),
    ]


def as_parts(kind: str, count: int, seed: int, runs: int, scatter: float) -> list[dict[int, tuple[float, np.ndarray]]]:
    """Soaks of so many rounds without a change, each round in parts that scatter so much."""
    return [_as_parts(soak) for soak in rounds(kind, PARTS, runs * count, seed, scatter).reshape(runs, count, PARTS)]


def _as_parts(soak: np.ndarray) -> dict[int, tuple[float, np.ndarray]]:
    return {number: (1.0, 1000 * np.exp(one)) for number, one in enumerate(soak, start=1)}


def sections() -> list[Section]:
    """What this file can show."""
    quiet = [(f"{kind}, {count}", partial(_false, kind, count)) for kind in KINDS for count in (5, 10, 20, 40)]
    stepped = [(f"{kind}, {count}", partial(_step, kind, count)) for kind in KINDS for count in (20, 40)]
    drifting = [(f"{kind}, {count}", partial(_drift, kind, count)) for kind in KINDS for count in (20, 40)]
    grown = [(f"AR {share:g}", partial(_grown, share)) for share in (0.0, 0.9, 0.98)]
    among = [
        (f"{taken}, {many} of {minutes} min", partial(_among, taken, many, minutes))
        for taken in TAKEN
        for many, minutes in VISITS
    ]
    inside = [(f"{kind}, {count}", partial(_inside, kind, count)) for kind in KINDS for count in (1, 10)]
    return [
        Section("inside rounds", tuple(inside), 1000),
        Section("soak", (*quiet, *stepped, *drifting), 1000),
        Section("growth", tuple(grown), 100),
        Section("growth among visits", tuple(among), 400),
    ]
