"""Where the time of a web server's processes went, a request of the load, and how long its clients waited meanwhile.

The fact that constrains it: a worker serves many connections by turns, so what it waits for is no single request's.
Time on a CPU, waiting for one, for a page or a lock is divided by the requests that were answered meanwhile. That it
waits for a socket is a worker's leisure, and no part of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.web.document import RequestTimes, WebWorkers, WorkerTimes
from plimsoll.analysis.web.serving import requests_of, time_of_request
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Mean, Used

Json = dict[str, Any]
PROBE: Final = "worker_waits"
CPU: Final = "cpu"
RUN_QUEUE: Final = "run_queue"
# What a worker sleeps for when it has nothing to do: no part of a request.
IDLE: Final = ("socket", "pause", "other_wait")
SHOWN_MAX: Final = 8  # processes of a kind, one by one
HIDDEN_MAX: Final = 0.02  # of the time on a CPU that may have been time asleep: beyond that nothing is told
# What was lost that takes no wait away: of its place the function is not known; programs that did not run are `missed`.
_HARMLESS: Final = ("places", "events")


def _probed(trial: Trial) -> Json | None:
    found = trial.measure.probes.get(PROBE) or {}
    return dict(found) if found.get("status") == "on" and found.get("workers") is not None else None


def _unseen(told: Json) -> int:
    """Times that a thread was off its CPU and nobody knows: that time counts as time on one."""
    lost = sum(int(count) for what, count in (told.get("lost") or {}).items() if what not in _HARMLESS)
    return max(lost, sum(int(worker["missed"]) for worker in told["workers"]))


def _hidden(told: Json) -> float:
    """The share of the time on a CPU that may have been time asleep: what was not seen, each as long as the average of
    what was."""
    if not (unseen := _unseen(told)):
        return 0.0
    workers = told["workers"]
    waits = sum(sum((one.get("waits") or {}).values()) for one in workers)
    asleep = sum(sum((one.get("asleep_ns") or {}).values()) for one in workers)
    cpu = sum(int(one["cpu_ns"]) for one in workers)
    return unseen * asleep / waits / cpu if waits and cpu else 1.0


def _parts(worker: Json) -> dict[str, float]:
    return {CPU: float(worker["cpu_ns"]), RUN_QUEUE: float(worker["run_queue_ns"])} | {
        name: float(ns) for name, ns in (worker.get("asleep_ns") or {}).items()
    }


def _summed(workers: Sequence[Json]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for worker in workers:
        for name, ns in _parts(worker).items():
            sums[name] = sums.get(name, 0.0) + ns
    return sums


def _like(workers: Iterable[Json]) -> dict[tuple[str, str], list[Json]]:
    """Those of each role and name, the busiest first."""
    found: dict[tuple[str, str], list[Json]] = {}
    for worker in sorted(workers, key=lambda one: -int(one["cpu_ns"])):
        found.setdefault((worker["role"], worker["name"]), []).append(worker)
    return found


def _workers(probed: Sequence[Json]) -> list[WorkerTimes]:
    of_trials = [_like(one["workers"]) for one in probed]
    rows: list[WorkerTimes] = []
    for role, name in dict.fromkeys(key for found in of_trials for key in found):
        of_kind = [found.get((role, name), []) for found in of_trials]
        for at in range(min(SHOWN_MAX, max(map(len, of_kind)))):
            if row := _row(role, name, at + 1, [workers[at : at + 1] for workers in of_kind]):
                rows.append(row)
        if rest := _row(role, name, None, [workers[SHOWN_MAX:] for workers in of_kind]):
            rows.append(rest)
    return rows


def _row(role: str, name: str, number: int | None, of_trials: Sequence[Sequence[Json]]) -> WorkerTimes | None:
    there = [workers for workers in of_trials if sum(int(one["span_ns"]) for one in workers)]
    if not there:
        return None
    spans = [float(sum(int(one["span_ns"]) for one in workers)) for workers in there]
    sums = [_summed(workers) for workers in there]
    names = list(dict.fromkeys(part for found in sums for part in found))
    shares = {
        part: _over((found.get(part, 0.0) / span for found, span in zip(sums, spans, strict=True)), ceiling=1.0)
        for part in names
    }
    return {
        "role": role,
        "name": name,
        "number": number,
        "processes": _over(float(sum(int(one["processes"]) for one in workers)) for workers in there),
        "threads": _over(float(sum(int(one["threads"]) for one in workers)) for workers in there),
        "shares": {part: mean for part, mean in shares.items() if mean and mean["value"]},
    }


def _over(values: Iterable[float | None], ceiling: float | None = None) -> Mean | None:
    return as_mean(over_blocks([value for value in values if value is not None], log=False, ceiling=ceiling))


def _of_requests(trials: Sequence[Trial], probed: Sequence[Json]) -> dict[str, Mean]:
    by_trial = [
        {name: ns / requests_of(trial) for name, ns in _summed(one["workers"]).items()} if requests_of(trial) else {}
        for trial, one in zip(trials, probed, strict=True)
    ]
    names = list(dict.fromkeys(name for found in by_trial for name in found if name not in IDLE))
    means = {name: _over(found.get(name, 0.0) for found in by_trial if found) for name in names}
    return {name: mean for name, mean in means.items() if mean and mean["value"]}


def _treatment(trials: Sequence[Trial]) -> RequestTimes | None:
    watched = [
        (trial, told) for trial in trials if (told := _probed(trial)) is not None and _hidden(told) <= HIDDEN_MAX
    ]
    if not watched:
        return None
    of, probed = [trial for trial, _ in watched], [told for _, told in watched]
    return {
        "trials": len(of),
        "requests": sum(requests_of(trial) for trial in of),
        "latency_ns": time_of_request(of),
        "parts_ns": _of_requests(of, probed),
        "workers": _workers(probed),
        "missed": sum(int(worker["missed"]) for one in probed for worker in one["workers"]),
        "lost": sum(int(count) for one in probed for count in (one.get("lost") or {}).values()),
    }


def web_workers(run: Run, used: Used) -> WebWorkers | None:
    """The `web_workers` of verdict.json; None where no trial was watched, or too much was not seen."""
    trials = {trial.number: trial for trial in run.trials}
    of_treatment: dict[str, list[Trial]] = {}
    for (_, treatment), entry in sorted(used.items()):
        of_treatment.setdefault(treatment, []).append(trials[entry["number"]])
    found = {name: seen for name, mine in of_treatment.items() if (seen := _treatment(mine))}
    return {"treatments": found} if found else None


def _judge(context: Context) -> WebWorkers | None:
    return web_workers(context.run, context.used)


def _caveats(trial: Trial, _read: object) -> list[str]:
    told = _probed(trial)
    if told is None or not (unseen := _unseen(told)):
        return []
    share = _hidden(told)
    if share > HIDDEN_MAX:
        return [f"where a request's time goes is not told: waits of the server's processes were not seen ({unseen:,})"]
    return [
        f"waits of the server's processes were not seen ({unseen:,}): about {100 * share:.1g} % of their time on a CPU "
        "may be time asleep"
    ]


PART = Part("web_workers", _judge, trial_caveats=_caveats)
