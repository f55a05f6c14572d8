"""Has the load's cache behaviour stopped changing? Used online during warm-up and after the fact on what was measured.

The test bounds what is left, and does not ask for significance: noise must not pass for rest. An exponential approach
y = level + distance * exp(-(t - end) / tau) is fitted to the last part of the segment for several tau up to the whole
of that part; the segment is stationary when the upper 90 % bound of |distance| at its end is within the tolerance for
each of them, for the database's miss ratio and for device reads per transaction alike.

The fact that constrains it: an approach much slower than what was watched looks level from inside. The bound holds for
time constants up to the length of the part fitted; beyond, the distance left may be larger in proportion
tau / length. tests/unit/analysis/test_stationary.py states by simulation how often noise is recognised and how far from
its asymptote a filling cache is ever let through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.90
TEST = (
    "upper 90 % bound of the distance left to the asymptote, over exponential approaches with time constants up to the "
    "part judged (the last half, at least the shortest time), is within max(floor, share of the level, scatter from "
    "second to second): miss ratio 0.005 and 5 %, device reads 256 bytes/transaction and 10 %"
)
_FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1.0)
_SECTOR = 512


@dataclass(frozen=True)
class Tolerance:
    """How near to its asymptote is near enough: the largest of these."""

    floor: float
    share: float

    def at(self, level: float, scatter: float) -> float:
        return max(self.floor, self.share * abs(level), scatter)


MISS_RATIO = Tolerance(floor=0.005, share=0.05)
DEVICE_READS = Tolerance(floor=256.0, share=0.10)
THROUGHPUT = Tolerance(floor=1.0, share=0.05)


@dataclass(frozen=True)
class Stationarity:
    """Outcome of one look. `filling` is evidence of change, which is more than not having shown rest."""

    reached: bool
    test: str
    detail: dict[str, Any] = field(default_factory=dict)
    filling: bool = False


@dataclass(frozen=True)
class Approach:
    """What is left to the asymptote at the end of a part: estimate and bounds, over all time constants tried."""

    level: np.ndarray
    scatter: np.ndarray
    distance: np.ndarray
    upper: np.ndarray
    lower: np.ndarray


def approach(times: np.ndarray, values: np.ndarray) -> Approach:
    """Bound the distance to the asymptote for rows of `values` (last axis: time). Needs four samples."""
    count = values.shape[-1]
    span = times[-1] - times[0] + (times[-1] - times[0]) / (count - 1)
    critical = stats.t.ppf(CONFIDENCE, count - 2)
    estimates, uppers, lowers = [], [], []
    for fraction in _FRACTIONS:
        shape = np.exp((times[-1] - times) / (fraction * span))
        centred = shape - shape.mean()
        power = float(centred @ centred)
        distance = values @ centred / power
        residual = values - values.mean(-1, keepdims=True) - distance[..., None] * centred
        variance = (residual**2).sum(-1) / (count - 2)
        error = np.sqrt(variance / power * _inflation(residual))
        estimates.append(distance)
        uppers.append(np.abs(distance) + critical * error)
        lowers.append(np.abs(distance) - critical * error)
        scatter = np.sqrt(variance)  # of the slowest approach, the last of the loop
    return Approach(values.mean(-1), scatter, estimates[-1], np.max(uppers, axis=0), lowers[-1])


def _inflation(residual: np.ndarray) -> np.ndarray:
    """Variance inflation of a mean under AR(1), its coefficient corrected for the bias of short series."""
    count = residual.shape[-1]
    power = (residual**2).sum(-1)
    raw = (residual[..., 1:] * residual[..., :-1]).sum(-1) / np.where(power > 0, power, 1.0)
    rho = np.clip(raw + (1 + 4 * np.clip(raw, 0, None)) / count, 0.0, 0.8)
    return np.where(power > 0, (1 + rho) / (1 - rho), 1.0)


def _rates(samples: Sequence[Mapping[str, Any]]) -> dict[str, tuple[np.ndarray, np.ndarray, Tolerance]]:
    """Per-interval series from cumulative samples; an interval in which nothing was done has no value."""

    def steps(name: str) -> np.ndarray:
        return np.diff(np.array([_number(sample.get(name)) for sample in samples]))

    ends = np.array([_number(sample.get("t_ns")) for sample in samples])[1:] / 1e9
    length, done = steps("t_ns") / 1e9, steps("done")
    hit, read, sectors = steps("blks_hit"), steps("blks_read"), steps("read_sectors")
    with np.errstate(invalid="ignore", divide="ignore"):
        series = {
            "database_miss_ratio": (read / (hit + read), MISS_RATIO),
            "device_read_bytes_per_transaction": (sectors * _SECTOR / done, DEVICE_READS),
            "throughput_per_second": (done / length, THROUGHPUT),
        }
    kept = {}
    for name, (values, tolerance) in series.items():
        good = np.isfinite(values) & np.isfinite(ends)
        if good.sum() >= max(4, 0.5 * len(values)):
            kept[name] = (ends[good], values[good], tolerance)
    if len(kept) > 1:
        kept.pop("throughput_per_second", None)  # judged only where neither cache can be seen
    return kept


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def judge(samples: Sequence[Mapping[str, Any]], seconds_min: float = 10.0, whole: bool = False) -> Stationarity:
    """Judge cumulative per-second samples ({t_ns, done, blks_hit, blks_read, read_sectors, ...}, oldest first).

    Never reached on less than `seconds_min` seconds. `whole`: judge everything given (a measured segment), not its
    last half.
    """
    usable = [sample for sample in samples if sample.get("t_ns") is not None]
    seconds = (usable[-1]["t_ns"] - usable[0]["t_ns"]) / 1e9 if len(usable) > 1 else 0.0
    detail: dict[str, Any] = {"seconds": round(seconds, 3), "series": {}}
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
        detail["series"][name] = {
            "level": float(left.level),
            "distance": float(left.distance),
            "bound": float(left.upper),
            "allowed": allowed,
            "intervals": len(values),
        }
        reached &= bool(left.upper <= allowed)
        filling |= bool(left.lower > allowed)
    return Stationarity(reached, TEST, detail, filling)
