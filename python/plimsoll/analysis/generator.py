"""Was the load generator the limit, and what could its share of the cores explain?

The generator was the limit when its threads had no time left, or when transactions began late by a share of their own
latency that matters: then the figures describe the generator and no verdict is drawn. On cores shared with the server
the generator's time is taken from the server; what that alone could explain is stated beside the verdict.
"""

from typing import Any

from plimsoll.analysis.readings import cpu_list, seconds_measured
from plimsoll.record import Trial

BUSY_MAX = 0.90
LAG_SHARE_MAX = 0.20
RULE = (
    f"a trial is the generator's limit when its threads used at least {BUSY_MAX:.0%} of the CPU time they could have, "
    f"when the mean lag is at least {LAG_SHARE_MAX:.0%} of the mean latency, or when it dropped records"
)


def _mean_lag_share(trial: Trial) -> float | None:
    """Mean of start - planned over mean of end - planned; done and failed transactions."""
    table = trial.measure.transactions
    if table is None or not len(table):
        return None
    sent = table[table["outcome"] <= 1]
    latency = float((sent["end_ns"] - sent["planned_ns"]).sum()) if len(sent) else 0.0
    return float((sent["start_ns"] - sent["planned_ns"]).sum()) / latency if latency > 0 else None


def generator(trial: Trial) -> dict[str, Any]:
    """The generator's health in one trial; `limit` lists why it was the limit, and is empty when it was not."""
    health = (trial.measure.summary or {}).get("health") or {}
    seconds = seconds_measured(trial.measure)
    user, system = health.get("cpu_user_ns"), health.get("cpu_system_ns")
    allowed = cpu_list(health.get("cpus_allowed"))
    threads = health.get("threads") or 1
    found: dict[str, Any] = {
        "busy_share": None,
        "core_share": None,
        "shares_cores": None,
        "explains_ratio": None,
        "lag_share": _mean_lag_share(trial),
        "records_dropped": health.get("records_dropped"),
        "limit": [],
    }
    if user is not None and system is not None and seconds:
        could = min(threads, len(allowed)) if allowed else threads
        found["busy_share"] = (user + system) / (seconds * 1e9 * could)
        found["core_share"] = (user + system) / (seconds * 1e9 * len(allowed)) if allowed else None
    cpus = trial.data.get("cpus") or {}
    target, load = cpu_list(cpus.get("target")), cpu_list(cpus.get("load"))
    if target is not None and load is not None:
        found["shares_cores"] = bool(set(target) & set(load))
    elif cpus:
        found["shares_cores"] = True  # "all" for either side
    share = found["core_share"]
    if found["shares_cores"] is not False and share is not None and share < 1:
        found["explains_ratio"] = 1 / (1 - share)
    if found["busy_share"] is not None and found["busy_share"] >= BUSY_MAX:
        found["limit"].append(f"its threads used {found['busy_share']:.0%} of their CPU time")
    if found["lag_share"] is not None and found["lag_share"] >= LAG_SHARE_MAX:
        found["limit"].append(f"the mean lag was {found['lag_share']:.0%} of the mean latency")
    if found["records_dropped"]:
        found["limit"].append(f"it dropped {found['records_dropped']} records")
    return found
