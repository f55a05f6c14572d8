"""The workloads whose trials are judged otherwise than a plain stream of transactions, by name."""

from collections.abc import Mapping
from typing import Any

from plimsoll.analysis.decision_support.trial import DECISION_SUPPORT
from plimsoll.analysis.files.operations import DBENCH_LIKE, MIX
from plimsoll.analysis.files.phases import BONNIE_LIKE, IOZONE_LIKE
from plimsoll.analysis.order_entry.order_entry import ORDER_ENTRY
from plimsoll.analysis.web.serving import WEB_SERVING
from plimsoll.analysis.workload import Workload
from plimsoll.record import Trial

# How often a user's script commits is the user's business.
SCRIPT = Workload("script", is_committed_as_done=False)
OF_FILES = (MIX, DBENCH_LIKE, BONNIE_LIKE, IOZONE_LIKE)
WORKLOADS: dict[str, Workload] = {
    one.name: one for one in (ORDER_ENTRY, DECISION_SUPPORT, SCRIPT, *OF_FILES, WEB_SERVING)
}


def named(name: object) -> Workload:
    """The workload of that name; a plain one where there is nothing to say of it."""
    return WORKLOADS.get(str(name)) or Workload(str(name))


def of_settings(settings: Mapping[str, Any]) -> Workload:
    """The workload of an experiment's or a trial's settings."""
    return named((settings.get("workload") or {}).get("name"))


def of_trial(trial: Trial) -> Workload:
    """The workload that a trial was planned with."""
    return of_settings(trial.planned.get("resolved") or {})
