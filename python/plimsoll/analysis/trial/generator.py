"""Was the load generator the limit, and what could its share of the cores explain?

The generator was saturated when its threads had no time left, or when operations started late by a share of their own
latency that matters although a connection was free: then the figures describe the generator and no verdict is drawn.
Late because every connection was busy is the system under test, and belongs to the latency. On cores shared with the
server the generator's time is taken from the server; what that alone could explain is stated beside the verdict.
"""

from plimsoll.analysis.trial import starts
from plimsoll.analysis.trial.readings import cpu_list, fact, is_open_loop, nothing_to_do, seconds_measured
from plimsoll.record import Trial
from plimsoll.record.judged_trial import Generator

BUSY_MAX = 0.90
LAG_SHARE_MAX = 0.20
OWN_LAG_NS_MIN = 200_000
ACHIEVED_MIN = 0.95
CONNECTIONS_BUSY_MAX = 0.90
HOST_BUSY = 0.90
WAKING = (
    f"at least {LAG_SHARE_MAX:.0%} of the mean latency is the wake-up latency of the load generator, less than "
    f"{OWN_LAG_NS_MIN / 1e6:.1f} ms"
)
RULE = (
    f"the load generator counts as saturated when its threads used at least {BUSY_MAX:.0%} of the CPU time they could "
    f"have, when the mean lag is at least {LAG_SHARE_MAX:.0%} of the mean latency, or when it dropped records; in an "
    f"open loop only the lag while a connection was free counts, from {OWN_LAG_NS_MIN / 1e6:.1f} ms on and not on "
    "shared CPUs that were fully busy, and it also counts as saturated when less than "
    f"{ACHIEVED_MIN:.0%} of the plan was done or the lag kept growing while connections were free"
)


def generator(trial: Trial, host_busy: float | None = None, *, is_target: bool = False) -> Generator:
    """The generator's health in one trial; `limit` lists why it was saturated, and is empty when it was not.

    `host_busy`: the share of all CPU time that was busy meanwhile. `is_target`: the load is itself what is under test,
    so that its CPU time is the result and takes nothing from a server.
    """
    health = trial.measure.health
    seconds = seconds_measured(trial.measure)
    user, system = health.get("cpu_user_ns"), health.get("cpu_system_ns")
    load_user, load_system = fact(trial.measure, "load_cpu_user_ns"), fact(trial.measure, "load_cpu_system_ns")
    allowed = cpu_list(health.get("cpus_allowed"))
    threads = health.get("threads") or 1
    entry: Generator = {
        "busy_share": None,
        "core_share": None,
        "shares_cores": None,
        "explains_ratio": None,
        "lag_share": starts.mean_lag_share(trial.measure),
        "own_lag_share": None,
        "own_lag_ns_mean": None,
        "connections_busy_share": starts.connections_busy_share(trial),
        "achieved_share": None,
        "backlog": None,
        "records_dropped": health.get("records_dropped"),
        "limit": [],
        "notes": [],
    }
    if user is not None and system is not None and seconds:
        could = min(threads, len(allowed)) if allowed else threads
        used = user + system if load_user is None or load_system is None else load_user + load_system
        entry["busy_share"] = used / (seconds * 1e9 * could)
        entry["core_share"] = (user + system) / (seconds * 1e9 * len(allowed)) if allowed else None
    cpus = trial.data.get("cpus") or {}
    target, load = cpu_list(cpus.get("target")), cpu_list(cpus.get("load"))
    if target is not None and load is not None:
        entry["shares_cores"] = bool(set(target) & set(load))
    elif cpus:
        entry["shares_cores"] = True  # "all" for either side
    share = entry["core_share"]
    if is_target:
        entry["shares_cores"] = None
    elif entry["shares_cores"] is not False and share is not None and share < 1:
        entry["explains_ratio"] = 1 / (1 - share)
    if not is_target and entry["busy_share"] is not None and entry["busy_share"] >= BUSY_MAX:
        entry["limit"].append(f"its threads used {entry['busy_share']:.0%} of their CPU time")
    if entry["records_dropped"]:
        entry["limit"].append(f"it dropped {entry['records_dropped']} records")
    if is_open_loop(trial.measure):
        _judge_open(trial, entry, host_busy)
    elif not is_target and entry["lag_share"] is not None and entry["lag_share"] >= LAG_SHARE_MAX:
        entry["limit"].append(f"the mean lag was {entry['lag_share']:.0%} of the mean latency")
    return entry


def _judge_open(trial: Trial, entry: Generator, host_busy: float | None) -> None:
    """Lag, achieved rate and backlog of an open loop: whose they are."""
    own = starts.own_lag(trial)
    if own is not None:
        entry["own_lag_share"], entry["own_lag_ns_mean"] = own.share, own.mean_ns
        if own.share >= LAG_SHARE_MAX:
            words = f"operations started late by {own.share:.0%} of their mean latency while a connection was free"
            full = entry["shares_cores"] is not False and host_busy is not None and host_busy >= HOST_BUSY
            if own.mean_ns < OWN_LAG_NS_MIN:
                entry["notes"].append(WAKING)
            elif full:
                entry["notes"].append(f"{words}: generator and server compete for CPUs that were fully busy")
            else:
                entry["limit"].append(words)
    busy = entry["connections_busy_share"]
    had_room = busy is not None and busy < CONNECTIONS_BUSY_MAX
    identity = trial.measure.identity
    if identity.get("planned"):
        answered = int(identity.get("done") or 0) + int(identity.get("failed") or 0) + nothing_to_do(trial.measure)
        entry["achieved_share"] = achieved = answered / int(identity["planned"])
        if achieved < ACHIEVED_MIN:
            words = f"{achieved:.0%} of the plan was carried out"
            if had_room:
                entry["limit"].append(f"{words} although connections were free")
            else:
                entry["notes"].append(f"{words}: the rate is above what the server carries with these connections")
    entry["backlog"] = starts.backlog(trial.measure)
    if entry["backlog"] and entry["backlog"]["building"]:
        if had_room:
            entry["limit"].append("its lag kept growing although connections were free")
        else:
            entry["notes"].append(
                "the queue kept growing: latency reflects the length of the trial, not the speed of the server"
            )
