"""The metrics of the decision-support workload: power, throughput, composite, and how throughput drifts.

The fact that constrains it: a query or refresh function that failed or timed out leaves no time, and then there is no
metric. A figure is absent with its reason, never zero and never taken over the rest.

Formulas: TPC-H 2.17.1, clause 5.4; names: OSDL DBT-3. Results are "-like", not comparable to published ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.experiment.workloads.decision_support import streams_min

QUERIES: Final = range(1, 23)
REFRESH: Final = ("RF1", "RF2")
SECONDS_PER_HOUR: Final = 3600
RATIO_MAX: Final = 1000

Times = Mapping[int | str, float | None]


@dataclass(frozen=True)
class Figure:
    """A metric, or why there is none; `notes`: what was done to the times on the way to it."""

    value: float | None
    why_absent: str | None = None
    notes: tuple[str, ...] = ()


def power(times_s: Times, scale_factor: float, *, refresh: bool = True, ratio_rule: bool = True) -> Figure:
    """Power@SF in queries an hour, times the scale factor, of one stream.

    `times_s`: seconds of each query, by number, and of "RF1" and "RF2"; None or left out: it failed or timed out.
    `refresh`: False for a run without refresh functions, of which DBT-3 takes the mean over the queries alone.
    `ratio_rule`: clause 5.4.1.4, which DBT-3 has not: queries a thousand times faster than the slowest count as that.
    """
    wanted: list[int | str] = [*QUERIES, *(REFRESH if refresh else ())]
    if (refused := _refused_scale(scale_factor)) or (refused := _missing(times_s, wanted)):
        return Figure(None, refused)
    times = {name: float(times_s[name] or 0.0) for name in wanted}
    notes: list[str] = []
    if ratio_rule:
        raised, least_s = _below_ratio(times)
        times |= dict.fromkeys(raised, least_s)
        if raised:
            names = ", ".join(_name(one) for one in raised)
            notes.append(f"clause 5.4.1.4: counted as {least_s:.6g} s, a thousandth of the slowest query: {names}")
    if not refresh:
        notes.append("without refresh functions: the geometric mean is over the 22 queries")
    mean_log = math.fsum(math.log(seconds) for seconds in times.values()) / len(times)
    return Figure(SECONDS_PER_HOUR * scale_factor / math.exp(mean_log), None, tuple(notes))


def throughput(elapsed_s: float, streams: int, scale_factor: float, failed: Iterable[str] = ()) -> Figure:
    """Throughput@SF in queries an hour, times the scale factor.

    `elapsed_s`: from the start of the first stream to the end of the last work, refresh functions included; `failed`:
    what failed or timed out in any stream, by name.
    """
    if names := list(failed):
        return Figure(None, f"no metric: failed or timed out: {', '.join(names)}")
    if refused := _refused_scale(scale_factor):
        return Figure(None, refused)
    if streams < 1 or not _is_time(elapsed_s):
        return Figure(None, f"no metric: {streams} streams in {elapsed_s} s")
    value = streams * len(QUERIES) * SECONDS_PER_HOUR * scale_factor / elapsed_s
    least = streams_min(scale_factor)
    few = f"fewer streams than the {least} that the specification asks for at scale factor {scale_factor:g}"
    return Figure(value, None, (few,) if streams < least else ())


def composite(power_figure: Figure, throughput_figure: Figure) -> Figure:
    """The geometric mean of power and throughput; absent if either is."""
    absent = [
        f"{name}: {figure.why_absent}"
        for name, figure in (("power", power_figure), ("throughput", throughput_figure))
        if figure.value is None
    ]
    if absent or power_figure.value is None or throughput_figure.value is None:
        return Figure(None, "; ".join(absent))
    notes = tuple(dict.fromkeys(power_figure.notes + throughput_figure.notes))
    return Figure(math.sqrt(power_figure.value * throughput_figure.value), None, notes)


def drift(values: Sequence[float | None]) -> list[float | None]:
    """Each run's change against the first as a share (-0.01: one in a hundred less); None where either is absent."""
    first = values[0] if values else None
    return [None if not first or value is None else value / first - 1 for value in values]


def _below_ratio(times: Mapping[int | str, float]) -> tuple[list[int | str], float]:
    """The queries below a thousandth of the slowest one, and that thousandth in seconds; refresh functions stay out."""
    queries = {name: seconds for name, seconds in times.items() if name not in REFRESH}
    least_s = max(queries.values()) / RATIO_MAX
    return [name for name, seconds in queries.items() if seconds < least_s], least_s


def _missing(times_s: Times, wanted: Iterable[int | str]) -> str | None:
    without = [_name(one) for one in wanted if not _is_time(times_s.get(one))]
    return f"no metric: failed, timed out or not run: {', '.join(without)}" if without else None


def _refused_scale(scale_factor: float) -> str | None:
    return None if _is_time(scale_factor) else f"no metric: the scale factor {scale_factor} is not above 0"


def _is_time(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def _name(one: int | str) -> str:
    return f"Q{one}" if isinstance(one, int) else one
