"""What each treatment served: conforming connections, requests and their time, errors, and the mix against its target.

The fact that constrains it: a connection conforms by all that it got in the segment, which the load counts itself
(crates/web/src/session/tally.rs); here it is only added up. Nothing makes a result a published one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from plimsoll.analysis.metric import REQUEST, Measures
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.probes import page_cache
from plimsoll.analysis.probes.page_cache import probe_metrics
from plimsoll.analysis.statistics.distributions import share_interval
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.trial.latency import latency_by_kind
from plimsoll.analysis.trial.readings import done_count, per, seconds_measured
from plimsoll.analysis.web.document import Asked, Errors, Kept, Serving, WebServing
from plimsoll.analysis.web.metrics import CONFORMING, SPEED, WEB, WEB_METRICS
from plimsoll.analysis.workload import Workload
from plimsoll.experiment.workloads.web import LIKE, SPECIFIED
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Mean, Used

Json = dict[str, Any]
PERCENTILES: Final = ("p50", "p99")
OUTCOMES: Final = ("done", "failed", "lost")
CLASSES: Final = ("below 1 KiB", "1 to 9 KiB", "10 to 90 KiB", "100 to 900 KiB")
# Beside the set of files, by their names in the record: what the program behind the server has.
BESIDE: Final = {"posts": "log of POSTs", "other": "users, advertisements"}
FAULTS: Final = {
    "wrong_status": "a status other than 200",
    "wrong_length": "too short or too long",
    "wrong_file": "another file",
    "wrong_content": "other bytes",
    "wrong_cookie": "a wrong cookie",
    "ads_not_replaced": "an advertisement not replaced",
    "wrong_ads": "a wrong advertisement",
    "wrong_pages": "a wrong page around the file",
}
# So that one share in a hundred treatments is outside by chance, with four or five of them each.
CONFIDENCE: Final = 0.998
RULE: Final = (
    "kbit/s and ms a request are over the time in which a connection waited for an answer or took it; the mix is "
    f"inside where its target lies in the {CONFIDENCE:.1%} interval of the share, by the number of requests"
)
BITS_A_BYTE: Final = 8
NS_PER_SECOND: Final = 1e9


def _workload(trial: Trial) -> Json:
    return (trial.planned.get("resolved") or {}).get("workload") or {}


def totals(trial: Trial) -> Mapping[str, int]:
    """What the load counted in the measured segment."""
    return trial.measure.told.get("totals") or {}


def _ended(trial: Trial, *outcomes: str, kind: str | None = None) -> int:
    """Requests, of one kind or all, that ended so."""
    of_kinds = cast(Mapping[str, Mapping[str, int]], trial.measure.by_kind)
    counted = of_kinds.values() if kind is None else [of_kinds.get(kind) or {}]
    return sum(int(counts.get(outcome) or 0) for counts in counted for outcome in outcomes)


def requests_of(trial: Trial) -> int:
    """Requests that ended in whatever way."""
    return _ended(trial, *OUTCOMES)


def _speed(trial: Trial) -> float | None:
    received, busy = totals(trial).get("received_bytes"), totals(trial).get("busy_ns")
    return None if received is None or not busy else received * BITS_A_BYTE * NS_PER_SECOND / busy


def _line_speed(trial: Trial) -> float | None:
    carried, took = totals(trial).get("line_bytes"), totals(trial).get("line_ns")
    return None if not carried or not took else carried * BITS_A_BYTE * NS_PER_SECOND / took


def _conforming(trial: Trial) -> float | None:
    found = totals(trial).get("clients_conforming")
    return None if found is None else float(found)


def values(trial: Trial) -> dict[str, float | None]:
    """The trial's metrics."""
    if _workload(trial).get("name") != WEB:
        return {}
    return {CONFORMING: _conforming(trial), SPEED: _speed(trial)}


def web_serving(run: Run, used: Used) -> WebServing | None:
    """The `web_serving` of verdict.json; None where the load was another one."""
    workload = run.experiment.get("workload") or {}
    if workload.get("name") != WEB:
        return None
    trials = {trial.number: trial for trial in run.trials}
    by_treatment: dict[str, list[Trial]] = {name: [] for name in run.plan.get("treatments") or {}}
    for (_, treatment), entry in sorted(used.items()):
        by_treatment.setdefault(treatment, []).append(trials[entry["number"]])
    speeds = {_workload(trial).get("line_bits_per_s") for trial in run.trials if trial.planned} - {None}
    return {
        "like": LIKE,
        "rule": RULE,
        "speed": _what_conforms(workload, speeds) if speeds else None,
        "treatments": {name: of_trials(found) for name, found in by_treatment.items() if found},
    }


def _what_conforms(workload: Json, speeds: Iterable[Any]) -> str:
    lines = " or ".join(f"{int(speed):,}" for speed in sorted(speeds))
    least = int(workload.get("conforming_bits_per_s") or 0)
    conforms = f"a connection conforms from {least:,} bit/s on, with fewer than one error in a hundred"
    return f"lines of {lines} bit/s; {conforms}"


def of_trials(trials: Sequence[Trial]) -> Serving:
    """Trials of one treatment."""
    requested = {int(clients) for trial in trials if (clients := _workload(trial).get("clients"))}
    shares = [per(_conforming(trial), _workload(trial).get("clients")) for trial in trials]
    return {
        "trials": [trial.number for trial in trials],
        "requested": min(requested) if len(requested) == 1 else None,
        "conforming": _over((_conforming(trial) for trial in trials), log=False, ceiling=max(requested, default=None)),
        "conforming_share": _over(shares, log=False, ceiling=1.0),
        "operations_per_second": _over((_rate(trial) for trial in trials), log=True),
        "operation_ns": time_of_request(trials),
        "connection_bits_per_second": _over((_speed(trial) for trial in trials), log=True),
        "line_bits_per_second": _over((_line_speed(trial) for trial in trials), log=True),
        "connections_opened": sum(int(totals(trial).get("connections_opened") or 0) for trial in trials),
        "errors": _errors(trials),
        "kinds": _kinds(trials),
        "classes": _classes(trials),
        "kept": _kept(trials),
        "hit_ratio": _over(
            (probe_metrics(trial).get("page_cache_hit_ratio") for trial in trials), log=False, ceiling=1.0
        ),
    }


def _rate(trial: Trial) -> float | None:
    done = done_count(trial.measure)
    return per(None if done is None else float(done), seconds_measured(trial.measure))


def _errors(trials: Sequence[Trial]) -> Errors:
    failed, lost = (sum(_ended(trial, outcome) for trial in trials) for outcome in ("failed", "lost"))
    asked = sum(requests_of(trial) for trial in trials)
    kinds = {what: sum(int(totals(trial).get(what) or 0) for trial in trials) for what in FAULTS}
    return {
        "requests": asked,
        "failed": failed,
        "lost": lost,
        "share": per(float(failed + lost), asked),
        "kinds": {what: found for what, found in kinds.items() if found},
    }


def _target_mix(workload: Json) -> Mapping[str, float]:
    mix = workload.get("mix", "whole")
    if isinstance(mix, Mapping):
        return {kind: float(mix.get(kind) or 0) for kind in SPECIFIED}
    return SPECIFIED if mix == "whole" else {"static": 1.0}


def _kinds(trials: Sequence[Trial]) -> list[Asked]:
    target = _target_mix(_workload(trials[0]))
    counts = {kind: sum(_ended(trial, *OUTCOMES, kind=kind) for trial in trials) for kind in target}
    latencies = [latency_by_kind(trial.measure) for trial in trials]
    rows = _against(counts, target)
    for row in rows:
        row["latency_ns"] = {
            name: _over(((found.get(row["name"]) or {}).get(name) for found in latencies), log=True)
            for name in PERCENTILES
        }
    return rows


def _classes(trials: Sequence[Trial]) -> list[Asked]:
    """Empty where the load did not count them."""
    if any(f"class{number}_requests" not in totals(trial) for trial in trials for number in range(len(CLASSES))):
        return []
    shares = _workload(trials[0]).get("classes") or ()
    counts = {
        name: sum(int(totals(trial)[f"class{number}_requests"]) for trial in trials)
        for number, name in enumerate(CLASSES)
    }
    return _against(counts, dict(zip(CLASSES, map(float, shares), strict=True)))


def _against(counts: Mapping[str, int], target: Mapping[str, float]) -> list[Asked]:
    """Shares and what they are to be; none of what nobody asks for."""
    asked, weights = sum(counts.values()), sum(target.values())
    rows: list[Asked] = []
    for name, weight in target.items():
        if not asked or not weight:
            continue
        low, high = share_interval(counts[name], asked, CONFIDENCE)
        wanted = weight / weights
        rows.append(
            {
                "name": name,
                "requests": counts[name],
                "share": counts[name] / asked,
                "target": wanted,
                "low": low,
                "high": high,
                "is_inside": low <= wanted <= high,
                "latency_ns": {},
            }
        )
    return rows


def _kept(trials: Sequence[Trial]) -> list[Kept]:
    """By class of file; of what is no part of the set only what was asked for."""
    rows = [_of_set(trials, number) for number in range(len(CLASSES))]
    rows += [_beside_set(trials, key) for key in BESIDE]
    return [row for row in rows if row["asked_pages"] or row["before"] or row["after"]]


def _of_set(trials: Sequence[Trial], number: int) -> Kept:
    readings = [(trial.data.get("residency") or {}).get("by_class") for trial in trials]
    known = [one for one in readings if one]

    def share(when: str) -> Mean | None:
        return _over(
            (per(one[when][number]["resident_bytes"], one[when][number]["total_bytes"]) for one in known),
            log=False,
            ceiling=1.0,
        )

    return _counted(trials, f"class{number}", CLASSES[number]) | {"before": share("before"), "after": share("after")}


def _beside_set(trials: Sequence[Trial], key: str) -> Kept:
    return _counted(trials, key, BESIDE[key])


def _counted(trials: Sequence[Trial], key: str, name: str) -> Kept:
    """What the page-cache probe told of one class; null where it was not on in a trial, or does not know the class."""
    told = [
        (page_cache.probe(trial.measure, "page_cache") or {}, (page_cache.totals(trial.measure, "page_cache") or {}))
        for trial in trials
    ]
    own = [(entry, by_class[key]) for entry, by_class in told if key in by_class and entry.get("part_of")]
    asked, missed, brought = (
        _all([value(entry, columns) for entry, columns in own], len(trials))
        for value in (
            lambda entry, columns: page_cache.asked_and_missed(entry, columns)[0],
            lambda entry, columns: page_cache.asked_and_missed(entry, columns)[1],
            page_cache.brought_pages,
        )
    )
    return {
        "name": name,
        "asked_pages": asked,
        "missed_pages": missed,
        "brought_pages": brought,
        "hit_ratio": _over((page_cache.hit_ratio(entry, columns) for entry, columns in own), log=False, ceiling=1.0),
        "before": None,
        "after": None,
    }


def _all(values: Sequence[float | None], trials: int) -> int | None:
    """The sum over trials, which is not known where one of them does not tell."""
    known = [value for value in values if value is not None]
    return int(sum(known)) if known and len(known) == trials else None


def time_of_request(trials: Sequence[Trial]) -> Mean | None:
    """In which its client waited for the answer or took it."""
    return _over((per(totals(trial).get("busy_ns"), requests_of(trial)) for trial in trials), log=True)


def _over(of_trials: Iterable[float | None], *, log: bool, ceiling: float | None = None) -> Mean | None:
    known = [float(value) for value in of_trials if value is not None and (value > 0 or not log)]
    return as_mean(over_blocks(known, log=log, ceiling=ceiling))


def _judge(context: Context) -> WebServing | None:
    return web_serving(context.run, context.used)


def _caveats(trial: Trial, _read: Any) -> list[str]:
    """A level is compared by the logarithm, which none has."""
    if _workload(trial).get("name") != WEB or _conforming(trial) != 0:
        return []
    return ["no connection conformed: the trial has no say where levels are compared by how many do"]


PART = Part("web_serving", _judge, trial_caveats=_caveats)
MEASURES: Final = Measures(WEB_METRICS, values)
WEB_SERVING: Final = Workload(WEB, unit=REQUEST, is_committed_as_done=False)
