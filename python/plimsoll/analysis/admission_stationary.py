"""Did the caches of a trial stand still while it was measured? From the warm-up's end and the measured segment.

The fact that constrains it: noise hides rest as it hides change. So a trial that shows neither enters where its cache
was filled so often that it cannot but be at its level (room.py), and says so; else only where rest is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.analysis.statistics import stationary
from plimsoll.analysis.statistics.room import TURNED, Room
from plimsoll.record.judged_trial import Stationary

Sample = Mapping[str, float | None]
TAIL_SECONDS = 10
JOINED_SAMPLES_MIN = 12  # more than the ten seconds that the test needs
FILLING = "still filling: "
_WHOSE = {
    stationary.GROUP_READS: "reads of the server's own group",
    stationary.ALL_READS: "reads of all users of the devices",
}


@dataclass
class Standing:
    """`reasons` keep the trial out, each of them one that a longer warm-up cures."""

    entry: Stationary
    reasons: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


def standing(
    warmed: Mapping[str, Any], warmup: Sequence[Sample], measured: Sequence[Sample], room: Room | None
) -> Standing:
    """`warmed`: `stationary` of trial.json; samples are cumulative, the first of the measured segment left out."""
    alone = stationary.judge(measured, seconds_min=4.0, whole=True, room=room)
    # A segment of a few transactions adds nothing: then the warm-up's end has to be long enough by itself.
    tail = warmup[-max(len(measured), TAIL_SECONDS, JOINED_SAMPLES_MIN - len(measured)) :]
    both = stationary.judge(joined(tail, measured), whole=True, room=room)
    is_moving = _moving(alone, both)
    judged = Standing(
        {
            "warmup_reached": warmed.get("reached"),
            "warmup_seconds": warmed.get("seconds"),
            "measured_reached": both.reached,
            "measured_filling": is_moving,
            "detail": both.detail,
        }
    )
    if both.has_room and room is not None and both.turns is not None:
        cold = (
            f"since its start the server has read {both.turns:.0%} of the {room.blocks:,.0f} blocks that fill its cache"
        )
        if warmed.get("reached") is None:
            judged.caveats.append(f"no warm-up was asked for: {cold}")
        else:
            judged.reasons.append(f"{FILLING}{cold}")
    elif is_moving:
        judged.reasons.append(f"{FILLING}misses or {_whose(both)} were still changing in the measured segment")
    elif not warmed.get("reached"):
        _unsettled(judged, warmed, both)
    return judged


def _unsettled(judged: Standing, warmed: Mapping[str, Any], both: stationary.Stationarity) -> None:
    """The warm-up did not show rest, and what was measured shows no change."""
    cache = both.detail["series"].get("database_miss_ratio")
    if both.reached or (cache is not None and cache["reached"] and not both.filling):
        how = "both caches" if both.reached else f"the database's cache ({_whose(both)} too noisy to show it)"
        when = "the end of the warm-up and the measured segment together show it for"
        judged.caveats.append(f"not shown stationary within the warm-up; {when} {how}")
    elif _is_turned(both) and not both.filling:
        judged.caveats.append(
            "too noisy to be shown stationary; no sign of filling is seen, and the server's cache was filled "
            f"{both.turns:,.1f} times over since its start"
        )
    elif warmed.get("reached") is False:
        judged.reasons.append(
            f"{FILLING}neither the warm-up nor its end together with the measured segment was stationary"
        )
    else:
        judged.caveats.append("no warm-up was asked for, and the measured segment is not shown stationary")


def _moving(measured: stationary.Stationarity, both: stationary.Stationarity) -> bool:
    """The database's cache was moving, or device reads were and the end of the warm-up says so too.

    Device reads wander with swapping and with other users of the device; a filling page cache shows in both. So does a
    cache that was filled again and again, if at all.
    """
    series, joint = measured.detail["series"], both.detail["series"]
    one_tells = set() if _is_turned(both) else {"database_miss_ratio"}
    return any(
        found["filling"] and (name in one_tells or joint.get(name, found)["filling"]) for name, found in series.items()
    )


def _whose(both: stationary.Stationarity) -> str:
    """Whose reads from devices were looked at."""
    name = stationary.GROUP_READS if stationary.GROUP_READS in both.detail["series"] else stationary.ALL_READS
    return _WHOSE[name]


def _is_turned(both: stationary.Stationarity) -> bool:
    return both.turns is not None and both.turns >= TURNED


def test_in_words(of_trials: Sequence[Stationary]) -> str:
    """The test, and in how many trials whose reads were looked at."""
    looked_at = [(one.get("detail") or {"series": {}})["series"] for one in of_trials]
    counts = {whose: sum(name in series for series in looked_at) for name, whose in _WHOSE.items()}
    told = [f"{whose} in {count} trial{'' if count == 1 else 's'}" for whose, count in counts.items() if count]
    return f"{stationary.TEST}{'; here ' if told else ''}{', '.join(told)}"


def joined(first: Sequence[Sample], second: Sequence[Sample]) -> list[Sample]:
    """Two segments as one row of samples; what lies between them is a gap and no interval."""
    if not first or not second:
        return [*first, *second]
    done = first[-1]["done"] or 0
    gap: Sample = {"t_ns": ((first[-1]["t_ns"] or 0) + (second[0]["t_ns"] or 0)) / 2}
    return [*first, gap, *({**sample, "done": done + (sample["done"] or 0)} for sample in second)]
