"""Has the load's cache behaviour stopped changing? Used online during warm-up and after the fact on what was measured.

The test bounds what is left, and does not ask for significance alone: noise must not pass for rest. An exponential
approach y = level + distance * exp(-(t - end) / tau) is fitted to the last part of the segment, for several tau. The
segment is stationary when, for the database's miss ratio and for device reads per transaction alike,
(a) for each tau up to the length of that part the upper 90 % bound of |distance| at its end is within the tolerance,
(b) for slower ones up to four lengths there is no evidence (lower 90 % bound) that it is not,
(c) where the server's room is known: it may be full, or misses no more than the tolerance has for its smallest.

The fact that constrains it: an approach much slower than what was watched looks level from inside once noise hides its
slope. (a) is a guarantee up to the length of the part, (b) is as good as the noise allows, (c) is free of noise.
tests/unit/analysis/test_stationary.py states by simulation how often noise is recognised and how far from its asymptote
a filling cache is let through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plimsoll.analysis.statistics.distributions import t_quantile
from plimsoll.analysis.statistics.room import Room
from plimsoll.record.judged_trial import StationaryDetail

CONFIDENCE = 0.90
CONFIDENCE_FILLING = 0.99
TEST = (
    "of the last half of the warm-up, at least the shortest time: the distance left to the asymptote is within the "
    "tolerance, by its upper 90 % bound for exponential approaches with time constants up to the part judged, and "
    "without evidence of more for slower ones; for the database's miss ratio (tolerance 0.005, 5 % of the level, or "
    "the scatter from second to second, the largest) and for reads from devices, of the server's own group where its "
    "processes tell them, else of all users of its devices (512 bytes per transaction, 20 %, or the scatter); and as "
    "many blocks were read since the server's start as its cache or the data have, unless it misses less than 0.005"
)
# Time constants tried, in lengths of the part judged: 1/16 to 4 in steps of the square root of 2.
_FRACTIONS = tuple(2.0 ** (step / 2) for step in range(-8, 5))
_WHOLE = _FRACTIONS.index(1.0)
_SECTOR = 512


@dataclass(frozen=True)
class Tolerance:
    """How near to its asymptote is near enough: the largest of these."""

    floor: float
    share: float

    def at(self, level: float, scatter: float) -> float:
        return max(self.floor, self.share * abs(level), scatter)


MISS_RATIO = Tolerance(floor=0.005, share=0.05)
DEVICE_READS = Tolerance(floor=512.0, share=0.20)
THROUGHPUT = Tolerance(floor=1.0, share=0.05)
# Whose reads were looked at: of the server's own group, or of everybody who uses its devices.
GROUP_READS = "group_read_bytes_per_transaction"
ALL_READS = "device_read_bytes_per_transaction"


@dataclass(frozen=True)
class Stationarity:
    """Outcome of one look. `filling` is evidence of change, which is more than not having shown rest.

    `turns`: how often what was read since the server's start would have filled its cache; None where not known.
    """

    reached: bool
    test: str
    detail: StationaryDetail
    filling: bool = False
    turns: float | None = None

    @property
    def has_room(self) -> bool:
        """The server's cache cannot be full, and misses enough for that to matter."""
        found = self.detail["series"].get("database_miss_ratio")
        missing = found is None or found["level"] > MISS_RATIO.floor
        return self.turns is not None and self.turns < 1 and missing


@dataclass(frozen=True)
class Approach:
    """What is left to the asymptote at the end of a part.

    `upper` bounds it for fast approaches, `evidence` is what any of them proves at 90 %, `certain` fast ones at 99 %.
    """

    level: np.ndarray
    scatter: np.ndarray
    distance: np.ndarray
    upper: np.ndarray
    evidence: np.ndarray
    certain: np.ndarray

    def reached(self, allowed: np.ndarray) -> np.ndarray:
        return (self.upper <= allowed) & (self.evidence <= allowed)


def approach(times: np.ndarray, values: np.ndarray) -> Approach:
    """Bound the distance to the asymptote for rows of `values` (last axis: time). Needs four samples."""
    count = values.shape[-1]
    span = (times[-1] - times[0]) * count / (count - 1)
    likely, sure = t_quantile([CONFIDENCE, CONFIDENCE_FILLING], count - 2)
    shapes = np.exp((times[-1] - times) / (np.array(_FRACTIONS)[:, None] * span))
    centred = shapes - shapes.mean(-1, keepdims=True)
    power = (centred**2).sum(-1)
    distance = values @ centred.T / power  # (..., time constant)
    deviation = values - values.mean(-1, keepdims=True)
    residual = deviation[..., None, :] - distance[..., None] * centred
    variance = (residual**2).sum(-1) / (count - 2)
    inflation = _inflation(residual)
    error = np.sqrt(variance / power * inflation)
    best = np.argmin(variance, axis=-1)[..., None]
    least, widened = (np.take_along_axis(table, best, -1) for table in (variance, inflation))
    # A slow approach that fits clearly worse than the best has no say; fast ones always have, to be on the safe side.
    fast = np.array(_FRACTIONS) <= 1
    fits = variance <= least * (1 + widened * t_quantile(0.995, count - 2) ** 2 / (count - 2)) + 1e-30

    def largest(bound: np.ndarray, who: np.ndarray) -> np.ndarray:
        return np.max(np.where(who, bound, 0.0), axis=-1)

    size = np.abs(distance)
    return Approach(
        level=values.mean(-1),
        scatter=np.sqrt(least[..., 0]),
        distance=distance[..., _WHOLE],
        upper=largest(size + likely * error, fast),
        evidence=largest(size - likely * error, fits | fast),
        certain=largest(size - sure * error, fits & fast),
    )


def _inflation(residual: np.ndarray) -> np.ndarray:
    """Variance inflation of a mean under AR(1), its coefficient corrected for the bias of short series."""
    count = residual.shape[-1]
    power = (residual**2).sum(-1)
    raw = (residual[..., 1:] * residual[..., :-1]).sum(-1) / np.where(power > 0, power, 1.0)
    rho = np.clip(raw + (1 + 4 * np.clip(raw, 0, None)) / count, 0.0, 0.8)
    return np.where(power > 0, (1 + rho) / (1 - rho), 1.0)


def despiked(values: np.ndarray) -> np.ndarray:
    """Single outliers replaced by the median of their five neighbours: other users of a device read in bursts.

    The ends stay as they are, for nothing says whether a spike or a change stands there.
    """
    if len(values) < 7:
        return values
    windows = np.lib.stride_tricks.sliding_window_view(values, 5)
    middle = np.median(windows, axis=-1)
    off = np.abs(values[2:-2] - middle)
    scale = 1.4826 * np.median(np.abs(values - np.median(values)))
    result = values.copy()
    result[2:-2] = np.where(off > 5 * scale, middle, values[2:-2])
    return result


def _rates(samples: Sequence[Mapping[str, Any]]) -> dict[str, tuple[np.ndarray, np.ndarray, Tolerance]]:
    """Per-interval series from cumulative samples; an interval in which nothing was done has no value."""

    def steps(name: str) -> np.ndarray:
        return np.diff(np.array([_number(sample.get(name)) for sample in samples]))

    ends = np.array([_number(sample.get("t_ns")) for sample in samples])[1:] / 1e9
    length, done = steps("t_ns") / 1e9, steps("done")
    hit, read, (source, reads) = steps("blks_hit"), steps("blks_read"), _reads(samples)
    # The last interval of a segment is a stump in which the connections close.
    full = length >= 0.5 * np.nanmedian(length)
    with np.errstate(invalid="ignore", divide="ignore"):
        series = {
            "database_miss_ratio": (read / (hit + read), MISS_RATIO),
            source: (reads / done, DEVICE_READS),
            "throughput_per_second": (done / length, THROUGHPUT),
        }
    kept = {}
    for name, (values, tolerance) in series.items():
        good = np.isfinite(values) & np.isfinite(ends) & full
        if good.sum() >= max(4, 0.5 * len(values)):
            kept[name] = (ends[good], despiked(values[good]), tolerance)
    if len(kept) > 1:
        kept.pop("throughput_per_second", None)  # judged only where neither cache can be seen
    return kept


def _reads(samples: Sequence[Mapping[str, Any]]) -> tuple[str, np.ndarray]:
    """Bytes read from devices in each interval: of the server's own group where it tells, else of all users together.

    A group's sum falls while a process that has ended is in no sum yet; then it is not known.
    """
    own = np.array([_number(sample.get("io_read_bytes")) for sample in samples])
    own[own < np.fmax.accumulate(own)] = np.nan
    told = np.diff(own)
    if np.isfinite(told).sum() >= max(1, 0.5 * len(told)):
        return GROUP_READS, told
    return ALL_READS, _SECTOR * np.diff(np.array([_number(sample.get("read_sectors")) for sample in samples]))


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def judge(
    samples: Sequence[Mapping[str, Any]], seconds_min: float = 10.0, whole: bool = False, room: Room | None = None
) -> Stationarity:
    """Judge cumulative per-second samples ({t_ns, done, blks_hit, blks_read, read_sectors, ...}, oldest first).

    `io_read_bytes` of the server's group, where a sample has it, goes before `read_sectors` of its devices.

    Never reached on less than `seconds_min` seconds. `whole`: judge everything given (a measured segment), not its
    last half. `room`: of the server's cache, where it is known.
    """
    found = _judge(samples, seconds_min, whole)
    last = next((one["blks_read"] for one in reversed(samples) if one.get("blks_read") is not None), None)
    if room is None or last is None:
        return found
    turns = room.turns(float(last))
    found = replace(found, turns=turns, detail={**found.detail, "room_blocks": room.blocks, "turns": turns})
    if found.reached and found.has_room:
        why = f"its cache has room for {room.blocks:,.0f} blocks, of which at most {turns:.0%} were read"
        return replace(found, reached=False, detail={**found.detail, "why": why})
    return found


def _judge(samples: Sequence[Mapping[str, Any]], seconds_min: float, whole: bool) -> Stationarity:
    usable = [sample for sample in samples if sample.get("t_ns") is not None]
    seconds = (usable[-1]["t_ns"] - usable[0]["t_ns"]) / 1e9 if len(usable) > 1 else 0.0
    detail: StationaryDetail = {"seconds": round(seconds, 3), "series": {}}
    if seconds < seconds_min * (1 - 1e-3) or len(usable) < 6:
        detail["why"] = f"{seconds:.0f} s watched, at least {seconds_min:.0f} s and five intervals needed"
        return Stationarity(False, TEST, detail)
    part = seconds if whole else max(seconds_min, seconds / 2)
    begin = usable[-1]["t_ns"] - part * 1e9 * (1 + 1e-3)
    rates = _rates([sample for sample in usable if sample["t_ns"] >= begin])
    if not rates:
        detail["why"] = "too few intervals in which anything was done"
        return Stationarity(False, TEST, detail)
    reached, filling = True, False
    for name, (times, values, tolerance) in rates.items():
        left = approach(times, values)
        allowed = tolerance.at(float(left.level), float(left.scatter))
        one_reached, one_filling = bool(left.reached(np.asarray(allowed))), bool(left.certain > allowed)
        reached &= one_reached
        filling |= one_filling
        detail["series"][name] = {
            "level": float(left.level),
            "distance": float(left.distance),
            "bound": float(left.upper),
            "evidence": float(left.evidence),
            "allowed": allowed,
            "reached": one_reached,
            "filling": one_filling,
            "intervals": len(values),
        }
    return Stationarity(reached, TEST, detail, filling)
