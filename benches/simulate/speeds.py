"""Soaks on a machine whose own speed wanders and is watched: false alarms, and what knowing the speed is worth.

Worlds: three speeds as the probe `machine_speed` has them, each of which keeps a share of its last round's, and rounds
that go by them, or do not, with a noise of their own.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from plimsoll.analysis.soak.document import Rounds, Share
from plimsoll.analysis.soak.rounds import CANNOT_TELL, judge_rounds
from plimsoll.analysis.soak.speed import PIECES
from simulate.rows import Row, Section
from simulate.soaks import COVERED, COVERED_ELSE, FALSE, KINDS, alarms, rounds

# Made up: how far each speed wanders (multiply, add, memory), how much of it goes into the rounds, and what else
# scatters them; together 3 of 5.6 % are left, where 3.1 of 6.1 % were once seen.
WANDERS = np.array([0.01, 0.02, 0.10])
GOES_INTO = np.array([-1.0, -0.5, -0.45])
ALONE = 0.03
KEEPS = "AR 0.5"  # how much of it a round keeps of the last one's
# The most of the interval that knowing the speed leaves, by the median.
NARROWER = 0.80


def speeds(count: int, runs: int, seed: int, keeps: str = KEEPS) -> np.ndarray:
    """(runs, count, 3) logarithms of what a beat of each piece takes."""
    each = [rounds(keeps, count, runs, seed + 7 * place, wide) for place, wide in enumerate(WANDERS)]
    return np.stack(each, axis=2)


def judged(logs: np.ndarray, of_machine: np.ndarray) -> list[Rounds]:
    """Each soak's rounds, judged beside the machine's speeds."""
    return [
        judge_rounds(list(100 * np.exp(soak)), (), [dict(zip(PIECES, row, strict=True)) for row in np.exp(beats)])
        for soak, beats in zip(logs, of_machine, strict=True)
    ]


def _case(kind: str, count: int, goes_into: float, seed: int, runs: int) -> list[Row]:
    """Soaks without a drift, whose rounds go by the machine's speed by this much of what is usual."""
    of_machine = speeds(count, runs, seed)
    logs = rounds(kind, count, runs, seed + 3, ALONE) + goes_into * of_machine @ GOES_INTO
    found = judged(logs, of_machine)
    case = f"{kind}, {count} rounds, {'by the speed' if goes_into else 'speeds beside the point'}"
    shown = [_shown(one) for one in found]
    rows = [
        Row("speeds: false alarms", case, float(np.mean([alarms(one) for one in found])), FALSE, True, runs),
        Row(
            "speeds: bound on the drift holds",
            case,
            float(np.mean([one["low"] <= 0 <= one["high"] for one in shown])),
            COVERED.get(kind, COVERED_ELSE),
            False,
            runs,
        ),
    ]
    if goes_into and count == 36:
        alone = [judge_rounds(list(100 * np.exp(soak))) for soak in logs]
        wide = [_wide(one) / _wide(_shown(other)) for one, other in zip(shown, alone, strict=True)]
        rows.append(Row("speeds: interval over that without", case, float(np.median(wide)), NARROWER, True, 0))
        told, before = (np.mean([one["verdict"] != CANNOT_TELL for one in each]) for each in (found, alone))
        rows.append(Row("speeds: told, beyond those without", case, float(told - before), 0.0, False, runs))
    return rows


def _shown(found: Rounds) -> Share:
    """The drift that the bound is of."""
    share = (found["at_equal_speed"] or found)["over_all"]
    assert share is not None  # of twelve rounds or more it is known
    return share


def _wide(share: Share) -> float:
    return share["high"] - share["low"]


def sections() -> list[Section]:
    """What this file can show."""
    cases = [
        (f"{kind}, {count}, {goes_into:g}", partial(_case, kind, count, goes_into))
        for kind in KINDS
        for count in (12, 36)
        for goes_into in (0.0, 1.0)
    ]
    return [Section("soak on a machine that wanders", tuple(cases), 1000)]
