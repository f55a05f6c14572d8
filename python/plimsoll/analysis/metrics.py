"""What is measured of a trial, room by room: a room with metrics of its own is a line here.

The order is that in which verdicts and pages list them.
"""

from collections.abc import Mapping
from typing import Any

from plimsoll.analysis.decision_support.trial import MEASURES as DECISION_SUPPORT
from plimsoll.analysis.files.operations import MEASURES as OPERATIONS
from plimsoll.analysis.files.phases import MEASURES as PHASES
from plimsoll.analysis.metric import TRANSACTION, Measures, Metric
from plimsoll.analysis.probes.metrics import PROBE_METRICS
from plimsoll.analysis.probes.page_cache import probe_metrics
from plimsoll.analysis.probes.writeback import WRITEBACK_METRICS, writeback_metrics
from plimsoll.analysis.trial.estimates import trial_values
from plimsoll.analysis.trial.metrics import TRIAL_METRICS
from plimsoll.analysis.web.serving import MEASURES as WEB_SERVING

MEASURES: list[Measures] = [
    Measures(TRIAL_METRICS, trial_values),
    Measures(PROBE_METRICS, probe_metrics),
    Measures(WRITEBACK_METRICS, writeback_metrics),
    DECISION_SUPPORT,
    PHASES,
    OPERATIONS,
    WEB_SERVING,
]
METRICS: dict[str, Metric] = {metric.key: metric for room in MEASURES for metric in room.metrics}
JUDGED = "throughput_per_second"
JUDGED_OPEN = "latency_ns_p99"


def metric_of(key: object, verdict: Mapping[str, Any] | None = None) -> Metric:
    """The metric of that name, in the words of a verdict's workload; the usual one where a verdict names none that is
    known."""
    metric = METRICS.get(str(key)) or METRICS[JUDGED]
    return metric if verdict is None else metric.of(unit_of_work(verdict))


def unit_of_work(verdict: Mapping[str, Any]) -> str:
    """What a verdict calls a unit of work; earlier verdicts say nothing of it."""
    return str(verdict.get("unit_of_work") or TRANSACTION)


def shown_for(experiment: dict[str, Any]) -> list[str]:
    """The metrics that a run's verdict has: those of some workloads alone are of no other."""
    workload = (experiment.get("workload") or {}).get("name")
    return [key for key, metric in METRICS.items() if not metric.workloads or workload in metric.workloads]


def judged_of(plan: dict[str, Any], experiment: dict[str, Any]) -> str:
    """The metric that a run's levels are compared by: as its plan says.

    Of records of before plans said so: as its design does, else by what schedules had by default then.
    """
    wanted = plan.get("judged") or (experiment.get("design") or {}).get("judged")
    if wanted in METRICS:
        return str(wanted)
    kind = (experiment.get("schedule") or {}).get("kind", "closed")
    return JUDGED if kind == "closed" else JUDGED_OPEN
