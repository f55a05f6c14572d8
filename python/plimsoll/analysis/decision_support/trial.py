"""One decision-support trial from its record: each test's figure or why it has none, each query's time, the timeline.

The fact that constrains it: what is not "done" left no time. It stands in the timeline with its status, and the test's
figure is absent and says by what.
"""

from __future__ import annotations

import math
from typing import Any, Final

from plimsoll.analysis.decision_support import formulas
from plimsoll.analysis.decision_support.document import FigureOfTest, Timeline, TrialReading, Work
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
    workload = (trial.planned.get("resolved") or {}).get("workload") or {}
    return workload if workload.get("name") == WORKLOAD else None


def reading(trial: Trial) -> TrialReading | None:
    """What the tests of a trial gave; None of another workload."""
    settings = settings_of(trial)
    if settings is None:
        return None
    scale = float(settings.get("scale_factor") or 0.0)
    asked = list(settings.get("tests") or [])
    segments = [_segment(test, segment) for test, segment in trial.tests if segment.queries is not None]
    power = [test for test in segments if test["test"] == "power"]
    throughput = [test for test in segments if test["test"] == "throughput"]
    runs = [_throughput(test, scale, settings) for test in throughput]
    befell = {
        str(entry["segment"]): _remarks(entry, trial.data.get("cut") or []) for entry in trial.data.get("tests") or []
    }
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
        "streams": max((_streams(test) for test in throughput), default=None),
        "load_test": trial.data.get("load_test"),
        "answers": trial.data.get("answers"),
        "figures": {metric: _figure(figure) for metric, figure in figures.items()},
        "runs": [
            {**_figure(figure), "elapsed_s": elapsed_s, "remarks": befell.get(test["segment"], [])}
            for test, (figure, elapsed_s) in zip(throughput, runs, strict=True)
        ],
        "cut": _cut_words(trial.data.get("cut") or []),
        "times_s": {"power": _times(power), "throughput": _times(throughput)},
        "segments": segments,
    }


def _figure(figure: Figure) -> FigureOfTest:
    return {"value": figure.value, "why_absent": figure.why_absent, "notes": list(figure.notes)}


def metric_values(of_tests: TrialReading | None) -> dict[str, float | None]:
    """The trial's values by metric; all None where it has none."""
    figures = {} if of_tests is None else of_tests["figures"]
    return {
        metric: figures[metric]["value"] if metric in figures else None
        for metric in (LOAD, POWER, THROUGHPUT, COMPOSITE)
    }


def caveats(of_tests: TrialReading | None) -> list[str]:
    """What is absent and why, and what was done to the times on the way to a figure."""
    if of_tests is None:
        return []
    figures = of_tests["figures"]
    said = [
        f"{metric.partition('_')[0]} of the tests: {figure['why_absent']}"
        for metric, figure in figures.items()
        if figure["why_absent"] and metric != COMPOSITE
    ]
    later = enumerate(of_tests["runs"][1:], start=2)
    said += [f"throughput test {number}: {run['why_absent']}" for number, run in later if run["why_absent"]]
    said += _own_words(of_tests)
    said += of_tests["cut"]
    return said + list(dict.fromkeys(note for figure in figures.values() for note in figure["notes"]))


def _own_words(of_tests: TrialReading) -> list[str]:
    """What a driver that shares the server's process took of the queries' time for itself; [] of any other."""
    shares = []
    for segment in of_tests["segments"]:
        own_and_whole = [
            (work["own_s"], took)
            for work in segment["work"]
            if work["own_s"] is not None and (took := seconds_of(work))
        ]
        if own_and_whole:
            share = math.fsum(own for own, _ in own_and_whole) / math.fsum(took for _, took in own_and_whole)
            shares.append(f"{segment['segment']} {share:.2%}")
    return [f"the driver's own part of the queries' time: {', '.join(shares)}"] if shares else []


def _remarks(entry: Json, cut: list[Json]) -> list[str]:
    """What befell a test of a series that was killed on the way."""
    before = sum(interrupted.get("segment") == entry["segment"] for interrupted in cut)
    said = [f"repeated after {before} interrupted {'attempt' if before == 1 else 'attempts'}"] if before else []
    return said + (["begun with cold caches"] if entry.get("begins_cold") else [])


def _cut_words(cut: list[Json]) -> list[str]:
    """What was begun and not ended, and why."""
    said = []
    for entry in cut:
        where, became = entry.get("segment"), "the server had to be restarted"
        if where:
            became = f"attempt {entry.get('attempt')} was interrupted, and the test was repeated"
        why = (str(entry.get("why") or "").strip().splitlines() or ["no reason is known"])[0]
        said.append(f"{where or 'between two tests'}: {became} ({why[:_WHY_SHOWN]})")
    return said


def _segment(test: str, segment: Segment) -> Timeline:
    """A test as the record has it, times in seconds from its begin."""
    queries = segment.queries or {}
    began, ended = queries.get("began_ns"), queries.get("ended_ns")
    rows = [row for row in queries.get("queries") or [] if isinstance(row, dict)]
    zero = int(began) if began is not None else min((int(row["began_ns"]) for row in rows if _is_begun(row)), default=0)
    return {
        "test": test,
        "segment": segment.name,
        "elapsed_s": (int(ended) - zero) / 1e9 if began is not None and ended is not None else None,
        "work": [_work(row, test, zero) for row in rows],
    }


def _is_begun(row: Json) -> bool:
    return row.get("began_ns") is not None


def _work(row: Json, test: str, zero: int) -> Work:
    began, ended = row.get("began_ns"), row.get("ended_ns")
    name = str(row.get("name"))
    stream = REFRESH_STREAM if name in REFRESH and test == "throughput" else row.get("stream")
    return {
        "stream": stream,
        "name": name,
        "title": row.get("title"),
        "from_s": None if began is None else (int(began) - zero) / 1e9,
        "to_s": None if ended is None else (int(ended) - zero) / 1e9,
        "status": str(row.get("status")),
        "error": row.get("error"),
        "rows": row.get("rows"),
        "set": row.get("set"),
        "own_s": None if row.get("own_ns") is None else int(row["own_ns"]) / 1e9,
        "plan": row.get("plan"),
    }


def seconds_of(work: Work) -> float | None:
    """How long a piece of work took; None unless it was done."""
    return lasted_s(work) if work["status"] == DONE else None


def lasted_s(work: Work) -> float | None:
    """How long a piece of work was under way, whatever became of it; None where its begin or end is not known."""
    return None if work["from_s"] is None or work["to_s"] is None else float(work["to_s"] - work["from_s"])


def _times(segments: list[Timeline]) -> dict[str, list[float]]:
    """Seconds of what was done, by name, in the order of the names."""
    seconds_by_name: dict[str, list[float]] = {}
    for work in (work for segment in segments for work in segment["work"]):
        if (seconds := seconds_of(work)) is not None:
            seconds_by_name.setdefault(work["name"], []).append(seconds)
    return {name: seconds_by_name[name] for name in NAMES if name in seconds_by_name}


def geometric_mean(values: list[float]) -> float | None:
    """None without values, or where one is not above 0."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _streams(test: Timeline) -> int:
    return len({work["stream"] for work in test["work"] if work["stream"] != REFRESH_STREAM})


def _load(trial: Trial) -> Figure:
    seconds = (trial.data.get("load_test") or {}).get("seconds")
    if seconds is None:
        return Figure(None, "no metric: the load test did not end")
    return Figure(float(seconds))


def _no_record(test: str) -> Figure:
    return Figure(None, f"no metric: the {test} test left no record of its queries")


def _power(test: Timeline, scale: float, settings: Json) -> Figure:
    key: dict[str, int | str] = {f"Q{number}": number for number in QUERIES}
    times = {key.get(work["name"], work["name"]): seconds_of(work) for work in test["work"]}
    return formulas.power(
        times, scale, refresh=bool(settings.get("refresh")), ratio_rule=bool(settings.get("ratio_rule"))
    )


def _throughput(test: Timeline, scale: float, settings: Json) -> tuple[Figure, float | None]:
    streams, elapsed_s = _streams(test), test["elapsed_s"]
    unfit = [_unfit_words(work) for work in test["work"] if seconds_of(work) is None]
    wanted = streams * (len(QUERIES) + (len(REFRESH) if settings.get("refresh") else 0))
    if len(test["work"]) < wanted:
        unfit.append(f"{wanted - len(test['work'])} of {wanted} are not in the record")
    if len(unfit) > _UNFIT_SHOWN:
        unfit = [*unfit[:_UNFIT_SHOWN], f"and {len(unfit) - _UNFIT_SHOWN} more"]
    if elapsed_s is None and not unfit:
        unfit = ["the test's end is not in the record"]
    return formulas.throughput(elapsed_s or 0.0, streams, scale, unfit), elapsed_s


def _unfit_words(work: Work) -> str:
    where = "refresh stream" if work["stream"] == REFRESH_STREAM else f"stream {work['stream']}"
    return f"{where} {work['name']} ({work['status']})"


def _trial_caveats(trial: Trial) -> list[str]:
    return caveats(reading(trial))


def _values(trial: Trial) -> dict[str, float | None]:
    of_tests = reading(trial)
    return {} if of_tests is None else metric_values(of_tests)


MEASURES: Final = Measures(DECISION_SUPPORT_METRICS, _values)
# Its streams commit what they like beside their queries.
DECISION_SUPPORT: Final = Workload(WORKLOAD, is_of_tests=True, is_committed_as_done=False, trial_caveats=_trial_caveats)
