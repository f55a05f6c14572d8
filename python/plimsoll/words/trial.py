"""A trial in one line, as the terminal shows it when it has finished."""

from collections.abc import Mapping

from plimsoll.analysis.metric import PROGRESS, Metric
from plimsoll.analysis.metrics import METRICS


def trial_line(values: Mapping[str, float | None]) -> str:
    """What metrics say of themselves that they are shown in progress; `values`: of one trial, by metric.

    Where a workload has figures of its own, the rate of another unit of work says nothing beside them.
    """
    known = [metric for key, metric in METRICS.items() if PROGRESS in metric.shown_in and values.get(key) is not None]
    has_own = any(metric.workloads for metric in known)
    shown = [metric for metric in known if metric.workloads or metric.work is None or not has_own]
    return "  ".join(_quantity(metric, values[metric.key] or 0.0) for metric in shown)


def _quantity(metric: Metric, value: float) -> str:
    # As wide in each trial, so that one can be read below the other.
    number = format(value * metric.shown.factor, metric.shown.form)
    return f"{metric.name} {number:>7} {metric.shown.axis_unit}"
