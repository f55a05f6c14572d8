"""One decision-support trial from its record: each test's figure or why it has none, each query's time, the timeline.

The fact that constrains it: what is not "done" left no time. It stands in the timeline with its status, and the test's
figure is absent and says by what.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Final

from plimsoll.analysis.decision_support import formulas
from plimsoll.analysis.decision_support.formulas import QUERIES, REFRESH, Figure
from plimsoll.analysis.decision_support.metrics import (
    COMPOSITE,
    DECISION_SUPPORT_METRICS,
    LOAD,
    POWER,
    THROUGHPUT,
    WORKLOAD,
)
from plimsoll.analysis.metric import Measures
from plimsoll.analysis.workload import Workload
from plimsoll.record import Segment, Trial

Json = dict[str, Any]
DONE = "done"
NAMES: Final = (*(f"Q{number}" for number in QUERIES), *REFRESH)
REFRESH_STREAM = "refresh"
_UNFIT_SHOWN = 6
_WHY_SHOWN = 160  # characters


def settings_of(trial: Trial) -> Json | None:
    """The trial's table [workload]; None of another workload."""
    found = (trial.planned.get("resolved") or {}).get("workload") or {}
    return found if found.get("name") == WORKLOAD else None


def reading(trial: Trial) -> Json | None:
    """What the tests of a trial gave; None of another workload.

    {`number`, `scale_factor`, `streams` (of the throughput test), `load_test`, `answers` (null, or as in trial.json),
    `figures`: {metric: {`value`, `why_absent`, `notes`}} of the tests that were asked for, `runs`: the throughput
    tests' figures with their `elapsed_s` and `remarks` (done again, begun cold), `cut`: what was begun and not ended,
    in words, `times_s`: {"power", "throughput": {name: [seconds]}} of what was done,
    `segments`: [{`test`, `segment`, `elapsed_s`, `work`: [{`stream`, `name`, `from_s`, `to_s`, `status`, `error`}]}]}
    """
    settings = settings_of(trial)
    if settings is None:
        return None
    scale = float(settings.get("scale_factor") or 0.0)
    asked = list(settings.get("tests") or [])
    segments = [_segment(test, segment) for test, segment in trial.tests if segment.queries is not None]
    power = [one for one in segments if one["test"] == "power"]
    throughput = [one for one in segments if one["test"] == "throughput"]
    runs = [_throughput(one, scale, settings) for one in throughput]
    befell = {str(one["segment"]): _remarks(one, trial.data.get("cut") or []) for one in trial.data.get("tests") or []}
    figures: dict[str, Figure] = {}
    if "load" in asked:
        figures[LOAD] = _load(trial)
    if "power" in asked:
        figures[POWER] = _power(power[0], scale, settings) if power else _no_record("power")
    if "throughput" in asked:
        figures[THROUGHPUT] = runs[0][0] if runs else _no_record("throughput")
    if POWER in figures and THROUGHPUT in figures:
        figures[COMPOSITE] = formulas.composite(figures[POWER], figures[THROUGHPUT])
    return {
        "number": trial.number,
        "scale_factor": scale,
        "streams": max((_streams(one) for one in throughput), default=None),
        "load_test": trial.data.get("load_test"),
        "answers": trial.data.get("answers"),
        "figures": {metric: asdict(figure) for metric, figure in figures.items()},
        "runs": [
            {**asdict(figure), "elapsed_s": elapsed_s, "remarks": befell.get(one["segment"], [])}
            for one, (figure, elapsed_s) in zip(throughput, runs, strict=True)
        ],
        "cut": _cut_words(trial.data.get("cut") or []),
        "times_s": {"power": _times(power), "throughput": _times(throughput)},
        "segments": segments,
    }


def metric_values(found: Json | None) -> dict[str, float | None]:
    """The trial's values by metric; all None where it has none."""
    figures = (found or {}).get("figures") or {}
    return {metric: (figures.get(metric) or {}).get("value") for metric in (LOAD, POWER, THROUGHPUT, COMPOSITE)}


def caveats(found: Json | None) -> list[str]:
    """What is absent and why, and what was done to the times on the way to a figure."""
    figures = (found or {}).get("figures") or {}
    said = [
        f"{metric.partition('_')[0]} of the tests: {one['why_absent']}"
        for metric, one in figures.items()
        if one["why_absent"] and metric != COMPOSITE
    ]
    later = enumerate(((found or {}).get("runs") or [])[1:], start=2)
    said += [f"throughput test {number}: {one['why_absent']}" for number, one in later if one["why_absent"]]
    said += _own_words(found)
    said += (found or {}).get("cut") or []
    return said + list(dict.fromkeys(note for one in figures.values() for note in one["notes"]))


def _own_words(found: Json | None) -> list[str]:
    """What a driver that shares the server's process took of the queries' time for itself; [] of any other."""
    shares = []
    for segment in (found or {}).get("segments") or []:
        told = [
            (one["own_s"], took) for one in segment["work"] if one["own_s"] is not None and (took := seconds_of(one))
        ]
        if told:
            share = math.fsum(own for own, _ in told) / math.fsum(took for _, took in told)
            shares.append(f"{segment['segment']} {share:.2%}")
    return [f"the driver's own part of the queries' time: {', '.join(shares)}"] if shares else []


def _remarks(entry: Json, cut: list[Json]) -> list[str]:
    """What befell a test of a series that was killed on the way."""
    before = sum(one.get("segment") == entry["segment"] for one in cut)
    said = [f"repeated, after {before} of it {'was' if before == 1 else 'were'} interrupted"] if before else []
    return said + (["begun with cold caches"] if entry.get("begins_cold") else [])


def _cut_words(cut: list[Json]) -> list[str]:
    """What was begun and not ended, and why."""
    said = []
    for one in cut:
        where, became = one.get("segment"), "the server had to be restarted"
        if where:
            became = f"attempt {one.get('attempt')} was interrupted, and the test was repeated"
        why = (str(one.get("why") or "").strip().splitlines() or ["no reason is known"])[0]
        said.append(f"{where or 'between two tests'}: {became} ({why[:_WHY_SHOWN]})")
    return said


def _segment(test: str, segment: Segment) -> Json:
    """A test as the record has it, times in seconds from its begin."""
    found = segment.queries or {}
    began, ended = found.get("began_ns"), found.get("ended_ns")
    rows = [one for one in found.get("queries") or [] if isinstance(one, dict)]
    zero = int(began) if began is not None else min((int(one["began_ns"]) for one in rows if _is_begun(one)), default=0)
    return {
        "test": test,
        "segment": segment.name,
        "elapsed_s": (int(ended) - zero) / 1e9 if began is not None and ended is not None else None,
        "work": [_work(one, test, zero) for one in rows],
    }


def _is_begun(one: Json) -> bool:
    return one.get("began_ns") is not None


def _work(one: Json, test: str, zero: int) -> Json:
    began, ended = one.get("began_ns"), one.get("ended_ns")
    name = str(one.get("name"))
    stream = REFRESH_STREAM if name in REFRESH and test == "throughput" else one.get("stream")
    return {
        "stream": stream,
        "name": name,
        "title": one.get("title"),
        "from_s": None if began is None else (int(began) - zero) / 1e9,
        "to_s": None if ended is None else (int(ended) - zero) / 1e9,
        "status": str(one.get("status")),
        "error": one.get("error"),
        "rows": one.get("rows"),
        "set": one.get("set"),
        "own_s": None if one.get("own_ns") is None else int(one["own_ns"]) / 1e9,
        "plan": one.get("plan"),
    }


def seconds_of(one: Json) -> float | None:
    """How long a piece of work took; None unless it was done."""
    return lasted_s(one) if one["status"] == DONE else None


def lasted_s(one: Json) -> float | None:
    """How long a piece of work was under way, whatever became of it; None where its begin or end is not known."""
    return None if one["from_s"] is None or one["to_s"] is None else float(one["to_s"] - one["from_s"])


def _times(segments: list[Json]) -> dict[str, list[float]]:
    """Seconds of what was done, by name, in the order of the names."""
    found: dict[str, list[float]] = {}
    for one in (one for segment in segments for one in segment["work"]):
        if (seconds := seconds_of(one)) is not None:
            found.setdefault(one["name"], []).append(seconds)
    return {name: found[name] for name in NAMES if name in found}


def geometric_mean(values: list[float]) -> float | None:
    """None without values, or where one is not above 0."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _streams(one: Json) -> int:
    return len({work["stream"] for work in one["work"] if work["stream"] != REFRESH_STREAM})


def _load(trial: Trial) -> Figure:
    seconds = (trial.data.get("load_test") or {}).get("seconds")
    if seconds is None:
        return Figure(None, "no metric: the load test did not end")
    return Figure(float(seconds))


def _no_record(test: str) -> Figure:
    return Figure(None, f"no metric: the {test} test left no record of its queries")


def _power(one: Json, scale: float, settings: Json) -> Figure:
    key: dict[str, int | str] = {f"Q{number}": number for number in QUERIES}
    times = {key.get(work["name"], work["name"]): seconds_of(work) for work in one["work"]}
    return formulas.power(
        times, scale, refresh=bool(settings.get("refresh")), ratio_rule=bool(settings.get("ratio_rule"))
    )


def _throughput(one: Json, scale: float, settings: Json) -> tuple[Figure, float | None]:
    streams, elapsed_s = _streams(one), one["elapsed_s"]
    unfit = [_unfit_words(work) for work in one["work"] if seconds_of(work) is None]
    wanted = streams * (len(QUERIES) + (len(REFRESH) if settings.get("refresh") else 0))
    if len(one["work"]) < wanted:
        unfit.append(f"{wanted - len(one['work'])} of {wanted} are not in the record")
    if len(unfit) > _UNFIT_SHOWN:
        unfit = [*unfit[:_UNFIT_SHOWN], f"and {len(unfit) - _UNFIT_SHOWN} more"]
    if elapsed_s is None and not unfit:
        unfit = ["the test's end is not in the record"]
    return formulas.throughput(elapsed_s or 0.0, streams, scale, unfit), elapsed_s


def _unfit_words(work: Json) -> str:
    where = "refresh stream" if work["stream"] == REFRESH_STREAM else f"stream {work['stream']}"
    return f"{where} {work['name']} ({work['status']})"


def _trial_caveats(trial: Trial) -> list[str]:
    return caveats(reading(trial))


def _values(trial: Trial) -> dict[str, float | None]:
    found = reading(trial)
    return {} if found is None else metric_values(found)


MEASURES: Final = Measures(DECISION_SUPPORT_METRICS, _values)
# Its streams commit what they like beside their queries.
DECISION_SUPPORT: Final = Workload(WORKLOAD, is_of_tests=True, is_committed_as_done=False, trial_caveats=_trial_caveats)
