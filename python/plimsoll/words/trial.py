"""A trial in one line, as the terminal shows it when it has finished."""

from collections.abc import Mapping

from plimsoll.analysis.metric import PROGRESS, Metric
from plimsoll.analysis.metrics import METRICS


def trial_line(values: Mapping[str, float | None]) -> str:
    """What metrics say of themselves that they are shown in progress; `values`: of one trial, by metric.

    Where a workload has figures of its own, the rate of another unit of work says nothing beside them, and a group that
    has not swapped is no news; its rate stands there in the unit of its own.
    """
    known = [metric for key, metric in METRICS.items() if PROGRESS in metric.shown_in and values.get(key) is not None]
    has_own = any(metric.workloads for metric in known)
    shown = [metric for metric in known if metric.workloads or not has_own or _is_news(metric, values[metric.key])]
    rate, own = values.get("throughput_per_second"), [metric for metric in shown if metric.workloads]
    said = [_quantity(metric, values[metric.key] or 0.0) for metric in shown]
    if own and own[0].beside[0] == Metric.beside[0] and rate is not None:
        what, of = own[0].beside
        said.insert(0, f"{what} {rate:>7,.0f} {of}/s")
    return "  ".join(said)


def _is_news(metric: Metric, value: float | None) -> bool:
    """Beside a workload's own figures: what is no rate or time of another unit of work, unless it is that nothing was
    swapped."""
    return metric.work is None and (metric.none_is_news or bool(value))


def _quantity(metric: Metric, value: float) -> str:
    # As wide in each trial, so that one can be read below the other.
    shown, form = value * metric.shown.factor, metric.shown.form
    # A query in two seconds is no rate of none.
    number = format(shown, ",.2f" if metric.work and form == ",.0f" and 0 < abs(shown) < 10 else form)
    return f"{metric.name} {number:>7} {metric.shown.axis_unit}"
