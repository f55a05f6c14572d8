"""Which trials enter a verdict, and why the others do not.

Every exclusion carries its reason and stays in the verdict: loss is data. What is only worth knowing is a caveat and
excludes nothing.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plimsoll.analysis import workloads
from plimsoll.analysis.admission_stationary import FILLING, Sample, standing
from plimsoll.analysis.statistics.room import room_of
from plimsoll.analysis.trial.answers import wrong_answers
from plimsoll.analysis.trial.generator import generator
from plimsoll.analysis.trial.readings import (
    counter,
    done_count,
    fact,
    has_windows,
    is_whole,
    unanswered,
    weights,
    while_open,
)
from plimsoll.analysis.trial.standstill import bounds, hung_seconds, most_per_second
from plimsoll.record import Segment, Trial
from plimsoll.record.judged_trial import Commits, Generator, Stationary
from plimsoll.record.summary import accounted

COMMIT_RULE = (
    "xact_commit of the database under test, read with no client connected just before and after the measured segment, "
    "grows by the done transactions and by what the clients commit on their own (connecting, preparing): the number "
    "`server_commits_beside` of summary.json, else one number that all trials with as many connections share; the "
    "reader's own commits happen in another database, lost transactions may or may not be among them"
)
STOOD_STILL = "the server stood still, and ranks last in its block"
AGAIN = "done again on request after it had failed, at another time than the rest of its block"
AGAIN_OF_BLOCK = "its block was done again on request, after a trial of it had failed"
_STEAL_NOTED = 0.05
STEAL_DISTURBS = 0.10  # a trial that lost so much is worth another try; where that one loses it too, it stands
_COMMITS_A_CONNECTION_MAX = 16


@dataclass
class Admission:
    """The outcome for one trial: it enters when `reasons` is empty.

    `curable`: those of the reasons that time cures, and what disturbed a trial that enters all the same.
    """

    reasons: list[str] = field(default_factory=list)
    curable: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    commits: Commits = field(default_factory=Commits)
    generator: Generator = field(default_factory=Generator)
    stationary: Stationary = field(default_factory=Stationary)


def samples(segment: Segment) -> list[Sample]:
    """A segment's series as the cumulative samples the stationarity test takes, on the server's clock ticks; without a
    server on the host's.

    Of windows on a clock that stands between them, a sample at the end of each.
    """
    ticks = segment.series("server")
    ticks = segment.series("host") if ticks is None else ticks
    table = segment.transactions
    if ticks is None or table is None or not len(table):
        return []
    times = ticks["t_ns"].astype(np.int64)
    done = table["outcome"] == 0
    ends = table["end_ns"][done]
    order = np.argsort(ends, kind="stable")
    ends, upto = ends[order], np.concatenate([[0.0], np.cumsum(weights(segment)[done][order])])
    sectors, own = _sectors(segment, times), _own_reads(segment, times)
    hit, read = segment.column("server", "blks_hit"), segment.column("server", "blks_read")
    clock = while_open(segment, times)
    kept = {0, *range(1, len(times), 2)} if has_windows(segment) else range(len(times))
    return [
        {
            "t_ns": int(clock[row]),
            "done": int(upto[np.searchsorted(ends, time, side="right")]),
            "blks_hit": None if hit is None or np.isnan(hit[row]) else float(hit[row]),
            "blks_read": None if read is None or np.isnan(read[row]) else float(read[row]),
            "read_sectors": None if sectors is None else float(sectors[row]),
            "io_read_bytes": None if own is None else float(own[row]),
        }
        for row, time in enumerate(times)
        if row in kept
    ]


def _sectors(segment: Segment, times: np.ndarray) -> np.ndarray | None:
    """Sectors read, summed over devices, at the given times (between samples: in proportion)."""
    table = segment.series("device")
    values = segment.column("device", "read_sectors")
    if table is None or values is None:
        return None
    total = np.zeros(len(times))
    for device in np.unique(table["device"]):
        of_device = (table["device"] == device) & np.isfinite(values)
        if of_device.any():
            total += np.interp(times, table["t_ns"][of_device], while_open(segment, values[of_device]))
    return total


def _own_reads(segment: Segment, times: np.ndarray) -> np.ndarray | None:
    """Bytes that the server's own group read, at the given times (between samples: in proportion)."""
    table, values = segment.series("group"), segment.column("group", "io_read_bytes")
    if table is None or values is None:
        return None
    known = np.isfinite(values)
    if not known.any() or (has_windows(segment) and not known.all()):
        return None
    return np.interp(times, table["t_ns"][known], while_open(segment, values[known]))


def check_commits(trial: Trial) -> Commits:
    """COMMIT_RULE for one trial; `ok` is None while the other trials have a say, or where nothing was counted."""
    grown, done = counter(trial, "xact_commit"), done_count(trial.measure)
    summary = trial.measure.told
    workload = workloads.named(summary.get("workload"))
    if grown is None or done is None or not workload.is_committed_as_done:
        return {"ok": None, "rule": COMMIT_RULE}
    lost = int(trial.measure.identity.get("lost") or 0)
    beside = summary.get("server_commits_beside")
    connections = len(summary.get("backend_pids") or [])
    rolled_back = workload.rolled_back(summary)
    excess = int(grown) - (done - rolled_back)
    most = _COMMITS_A_CONNECTION_MAX * (connections + 1) if beside is None else int(beside) + lost
    least = 0 if beside is None else int(beside)
    settled = excess == least or not least <= excess <= most or beside is not None
    found: Commits = {
        "ok": least <= excess <= most if settled else None,
        "rule": COMMIT_RULE + (workload.rolled_back_rule if rolled_back else ""),
        "commits": int(grown),
        "done": done,
    }
    if rolled_back:
        found["rolled_back"] = rolled_back
    return {**found, "lost": lost, "beside": beside, "excess": excess, "connections": connections}


def settle_commits(of_trials: list[Commits]) -> None:
    """Decide what one trial alone could not: the same excess in every trial with as many connections, two at least."""
    open_ = [commits for commits in of_trials if commits.get("ok") is None and "excess" in commits]
    for commits in open_:
        alike = [other["excess"] for other in open_ if other["connections"] == commits["connections"]]
        least = min(alike)
        if len(alike) > 1:
            commits["ok"] = least <= commits["excess"] <= least + commits["lost"]


def commit_words(commits: Commits) -> str:
    return (
        f"the server committed {commits['commits']} transactions and the load completed {commits['done']}"
        f"{', ' + str(commits['rolled_back']) + ' of them rolled back' if commits.get('rolled_back') else ''}: "
        f"connecting does not explain the difference of {commits['excess']} (autovacuum's transactions count, too)"
    )


def _status_reasons(trial: Trial) -> list[str]:
    if trial.status != "finished":
        why = str(trial.data.get("reason") or "").strip()
        kills = (trial.data.get("group") or {}).get("oom_kills")
        killed = f" (processes ended by the out-of-memory killer: {kills})" if kills else ""
        return [f"{trial.status}{': ' + why if why else ''}{killed}"]
    # An open loop in which a server stood still throughout is a finding: its percentiles have no bound.
    if not done_count(trial.measure) and not trial.data.get("load_test") and not bounds(trial):
        return ["no transaction completed in the measured segment"]
    return []


def _answer_reasons(trial: Trial) -> list[str]:
    reasons = []
    for segment in trial.every_segment[1:]:  # of decision support every test, of a soak every round
        planned, counted = segment.identity.get("planned"), accounted(segment.identity)
        if planned is not None and planned != counted:
            reasons.append(f"transaction accounting does not add up: {planned} planned, {counted} accounted for")
        verification = segment.verification
        if verification.get("wrong"):
            what = "refresh functions" if segment.queries else "answers"
            reasons.append(f"{verification['wrong']} of {verification.get('checked')} checked {what} were wrong")
    for checks, when in ((trial.data.get("load_checks"), "the load test"), (trial.data.get("checks"), "the trial")):
        broken = [str(check.get("name")) for check in checks or [] if not check.get("ok")]
        if broken:
            reasons.append(f"checks after {when} failed: {', '.join(broken)}")
    wrong = wrong_answers(trial.data.get("answers"))
    return [*reasons, wrong] if wrong else reasons


def _judge_stationarity(trial: Trial, admission: Admission) -> None:
    warmed, measured = trial.data.get("stationary") or {}, samples(trial.measure)[1:]
    room = room_of(trial.data.get("cache"))
    # The first interval of a segment holds the connections' own catalogue reads.
    settled = standing(warmed, samples(trial.warmup), measured, room)
    admission.stationary = settled.entry
    admission.reasons += settled.reasons
    admission.curable += settled.reasons
    admission.caveats += settled.caveats


def _note(trial: Trial, values: dict[str, float | None], admission: Admission) -> None:
    identity, work = trial.measure.identity, workloads.of_trial(trial).unit
    for outcome in ("failed", "skipped", "lost"):
        if identity.get(outcome):
            why = _by_error(trial) if outcome == "failed" else ""
            admission.caveats.append(f"{identity[outcome]} of {identity.get('planned')} {work}s {outcome}{why}")
    if unanswered(trial.measure):
        admission.caveats.append(
            f"{work}s that were due and not answered in time count as slower than any other: a percentile among "
            "them has no upper bound, and ranks last in its block"
        )
    if fact(trial.measure, "retries"):
        admission.caveats.append("transactions were retried after serialization failures or deadlocks")
    if fact(trial.measure, "reconnects"):
        admission.caveats.append("connections broke and were reopened")
    if not is_whole(trial.measure):
        admission.caveats.append(
            f"only a sample of the {work}s is recorded row by row: percentiles are from histograms of all of them"
        )
    admission.caveats += admission.generator.get("notes") or []
    checkpoints = sum(counter(trial, name) or 0 for name in ("checkpoints_timed", "checkpoints_req"))
    if checkpoints:
        admission.caveats.append(f"{checkpoints:.0f} checkpoint(s) began inside the measured segment")
    steal = values.get("cpu_steal_share")
    if steal is not None and steal >= _STEAL_NOTED:
        taken = f"the hypervisor took {steal:.0%} of the CPU time"
        admission.caveats.append(taken)
        if steal >= STEAL_DISTURBS and not workloads.of_trial(trial).is_of_tests:
            admission.curable.append(taken)
    if repeated := trial.data.get("repeated"):
        admission.caveats.append(repeated_words(repeated))
    if trial.data.get("again"):
        admission.caveats.append(AGAIN_OF_BLOCK if trial.data.get("windows") else AGAIN)
    kills = (trial.data.get("group") or {}).get("oom_kills")
    if kills:
        admission.caveats.append(f"the out-of-memory killer ended {kills} process(es) of the group")
    admission.caveats += [str(caveat) for caveat in trial.data.get("caveats") or []]


def repeated_words(repeated: Mapping[str, Any]) -> str:
    """Of a repeated trial: why, without the figures, so that like ones are counted together."""
    was_filling = any(why.startswith(FILLING) for why in repeated["why"])
    what = (
        "its caches were still filling (the repeat warmed up longer)" if was_filling else "the hypervisor took CPU time"
    )
    return f"repeated within its block: at the first attempt {what}; that attempt is kept in the record"


def _shown(state: str) -> str:
    """Of a web server the status that it answered with (HT500), as its administrator calls it."""
    return f"HTTP status {state[2:]}" if state.startswith("HT") and state[2:].isdigit() else state


def _by_error(trial: Trial) -> str:
    """How often which error ended a transaction, the most frequent first."""
    counts: dict[str, int] = {}
    for error in trial.measure.errors:
        state = str(error.get("sqlstate"))
        counts[state] = counts.get(state, 0) + int(error.get("count") or 0)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{_shown(state)}: {count}" for state, count in ordered)
    if ordered and _shown(ordered[0][0]) != ordered[0][0]:
        return f" ({listed})"
    if not ordered or ordered[0][0] not in errno.errorcode.values():
        return f" (SQLSTATE {listed})" if ordered else ""
    # Of the kernel, about a file: which one tells what to look at.
    first = next(error for error in trial.measure.errors if error.get("sqlstate") == ordered[0][0])
    return f" ({listed}; {first.get('message')})"


def admit(trial: Trial, values: dict[str, float | None]) -> Admission:
    """Judge one trial's right to enter the verdict."""
    if (hung := hung_seconds(trial)) is not None:  # what it left is cut short, and its rate is known well enough
        return Admission(caveats=[f"{STOOD_STILL}: nothing was answered within {hung:.0f} s, and it was ended"])
    admission = Admission(reasons=_status_reasons(trial))
    if admission.reasons:
        return admission
    admission.reasons += _answer_reasons(trial)
    if most_per_second(trial) is not None:
        admission.caveats.append(f"{STOOD_STILL}: nothing was done in the time that counts")
        _note(trial, values, admission)
        return admission
    admission.commits = check_commits(trial)
    if admission.commits.get("excess", 0) < 0:
        beside = f" less {admission.commits['rolled_back']} rolled back" if admission.commits.get("rolled_back") else ""
        admission.reasons.append(
            f"the server committed {admission.commits['commits']}, fewer than the {admission.commits['done']} "
            f"transactions done{beside}"
        )
    workload = workloads.of_trial(trial)
    admission.generator = generator(trial, values.get("cpu_busy_share"), is_target=workload.is_its_own_target)
    if admission.generator["limit"]:
        admission.reasons.append("the load generator was saturated: " + "; ".join(admission.generator["limit"]))
    if not workload.is_of_tests:
        _judge_stationarity(trial, admission)
    admission.caveats += workload.trial_caveats(trial)
    _note(trial, values, admission)
    return admission
