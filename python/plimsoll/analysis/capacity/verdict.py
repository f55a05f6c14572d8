"""From a capacity run to its verdict: every trial judged, the load line, the knee, what surrounded them.

capacity.json holds all the report draws; schema/capacity.md describes it. A pure function of the record, also of one
that was cut short: whatever trials finished are judged.
"""

from collections.abc import Callable

from plimsoll.analysis.capacity import line as lines
from plimsoll.analysis.capacity.conditions import CONDITIONS
from plimsoll.analysis.capacity.document import (
    Capacity,
    ClosedLoop,
    ConditionWords,
    DriftFound,
    KneeFound,
    LoadLine,
    SearchTrial,
)
from plimsoll.analysis.capacity.drift import DRIFT_RULE, drift, drift_words
from plimsoll.analysis.capacity.entry import mean, trial_entry
from plimsoll.analysis.capacity.heeded import DISTURBED_ALWAYS, DISTURBED_RULE, DISTURBED_SHARE_MAX, heeded
from plimsoll.analysis.capacity.judge import GENERATOR_RULE, judge
from plimsoll.analysis.capacity.line import Knee, Line, knee, knee_place, load_line
from plimsoll.analysis.capacity.objective import Objective, from_json
from plimsoll.analysis.capacity.reading import Reading, read_trial
from plimsoll.analysis.capacity.search import DOWN, LOWEST_SHARE, Tried
from plimsoll.analysis.statistics import percentile as percentiles
from plimsoll.analysis.statistics import queueing
from plimsoll.record import RecordError, Run

FORMAT = 1
_STEAL_NOTED = 0.05
_CHANGED = 1.15
_NEAR = 1.3


def assess(
    readings: list[Reading],
    objective: Objective,
    known: list[Tried] | None = None,
    lines_of: Callable[[Reading], float] | None = None,
) -> list[Tried]:
    """Each trial's verdict, alone and with all trials at its rate up to it: what the search goes on.

    `known`: the verdicts of the first readings, which later ones do not change; only the others are judged.
    `lines_of`: of a search over connections, how many lines what the closed loop moved would fill.
    """
    tried = list(known or [])
    for reading in readings[len(tried) :]:
        if reading.rate is None:
            tried.append(
                Tried(
                    reading.number,
                    reading.role,
                    None,
                    reading.seconds,
                    "cannot tell",
                    "cannot tell",
                    0.0,
                    reading.throughput if lines_of is None else lines_of(reading),
                )
            )
            continue
        alone = judge([reading], objective)
        before = zip(readings, tried, strict=False)  # those that were judged already
        same = [
            earlier
            for earlier, verdict in before
            if earlier.rate == reading.rate and (alone.disturbed or not verdict.disturbed)
        ] + [reading]
        pooled = alone if len(same) == 1 else judge(same, objective)
        tried.append(
            Tried(
                reading.number,
                reading.role,
                reading.rate,
                reading.seconds,
                alone.word,
                pooled.word,
                alone.excess,
                reading.throughput,
                alone.beyond(objective),
                alone.disturbed is not None,
            )
        )
    return tried


def carrier(readings: list[Reading], tried: list[Tried], objective: Objective) -> lines.Carries:
    """Whether all trials that have a say hold together, from a rate down to lines.LOWER times lower."""
    numbers = {trial.number for trial in heeded(tried)}
    said = [reading for reading in readings if reading.number in numbers]

    def carries(rate: float) -> bool:
        near = [reading for reading in said if reading.rate is not None and rate / lines.LOWER <= reading.rate <= rate]
        return judge(near, objective).word == "holds"

    return carries


def analyse_capacity(run: Run) -> Capacity:
    """The verdict of a capacity run."""
    asked = run.data.get("capacity") or {}
    if not asked.get("objective"):
        raise RecordError(f"{run.path}: not a capacity run: its run.json names no objective")
    objective = from_json(asked["objective"])
    readings = {trial.number: reading for trial in run.trials if (reading := read_trial(trial)) is not None}
    tried = assess(list(readings.values()), objective)
    line = load_line(tried, carrier(list(readings.values()), tried, objective))
    grown = _knee([readings[trial.number] for trial in heeded(tried)], objective)
    entries = [trial_entry(trial, readings.get(trial.number), objective) for trial in run.trials]
    described: dict[str, ConditionWords] = {
        key: {"label": label, "unit": unit} for key, (label, unit) in CONDITIONS.items()
    }
    moved = drift(entries, described, line.rate)
    return {
        "format": FORMAT,
        "run": run.data.get("id"),
        "experiment": run.data.get("experiment"),
        "title": run.data.get("title"),
        "status": run.data.get("status"),
        "started_epoch_ns": run.data.get("started_epoch_ns"),
        "quick": bool(run.data.get("quick")),
        "subject": asked.get("subject"),
        "objective": asked["objective"],
        "arrivals": asked.get("arrivals"),
        "clients": asked.get("clients"),
        "clients_called": _called(run),
        "budget_seconds": asked.get("budget_seconds"),
        "seed": run.data.get("seed"),
        "line": _line_json(line),
        "knee": _knee_json(grown, line),
        "drift": moved,
        "closed_loop": _closed(readings),
        "trials": entries,
        "conditions": described,
        "checks": asked.get("checks"),
        "rules": {
            "line": lines.LINE_RULE,
            "interval": lines.INTERVAL_RULE,
            "drift": DRIFT_RULE,
            "knee": lines.KNEE_RULE,
            "percentile": percentiles.METHOD,
            "backlog": queueing.RULE,
            "generator": GENERATOR_RULE,
            "disturbed": DISTURBED_RULE,
        },
        "caveats": _caveats(run, readings, entries, line, grown, moved),
    }


def _called(run: Run) -> str:
    """What clients are of this workload; runs from before files were searched do not say."""
    return str((run.data.get("capacity") or {}).get("clients_called", "connections"))


def _line_json(line: Line) -> LoadLine:
    return {
        "status": line.status,
        "rate": line.rate,
        "low": line.low,
        "high": line.high,
        "trials_near": line.trials_near,
        "generator": line.generator,
        "more": line.more,
    }


def _knee_json(grown: Knee | None, line: Line) -> KneeFound | None:
    if grown is None:
        return None
    return {
        "rate": grown.rate,
        "low": grown.low,
        "high": grown.high,
        "why": grown.why,
        "level_ns": grown.level_ns,
        "place": knee_place(grown, line),
    }


def _median(reading: Reading) -> float | None:
    estimate = percentiles.percentile(reading.cells, 0.5)
    return None if estimate is None else estimate.value


def _knee(readings: list[Reading], objective: Objective) -> Knee | None:
    points = []
    if objective.conforming is not None:
        return None  # of connections with lines none waits for another's
    for reading in readings:
        median = _median(reading)
        if reading.rate is not None and median is not None:
            points.append((reading.rate, median, judge([reading], objective).building))
    return knee(points)


def _closed(readings: dict[int, Reading]) -> ClosedLoop | None:
    """What all connections together got done when each asked as soon as it was free."""
    closed = next((reading for reading in readings.values() if reading.rate is None), None)
    if closed is None:
        return None
    return {"number": closed.number, "throughput": closed.throughput, "clients": closed.clients}


def _left_out(entries: list[SearchTrial]) -> float:
    """How many disturbed trials have no say, at most."""
    return max(DISTURBED_ALWAYS, DISTURBED_SHARE_MAX * sum(entry["rate"] is not None for entry in entries))


def _changed(entries: list[SearchTrial], line: Line) -> list[str]:
    """Whether a transaction cost the server much more CPU in some trials near the line than in others."""
    key = "server_cpu_ns_per_transaction"
    near = [
        (value, entry["number"])
        for entry in entries
        if line.rate and entry["rate"] and line.rate / _NEAR <= entry["rate"] <= line.rate * _NEAR
        if (value := entry["conditions"].get(key))
    ]
    if len(near) < 3 or max(near)[0] < _CHANGED * min(near)[0]:
        return []
    (least, cheap), (most, dear) = min(near), max(near)
    return [
        f"the machine changed during the search: near the line {CONDITIONS[key][0]} went from {least / 1e3:,.1f} µs "
        f"(trial {cheap}) to {most / 1e3:,.1f} µs (trial {dear})"
    ]


def _shape_caveats(line: Line, grown: Knee | None, moved: DriftFound | None, *, is_of_rates: bool) -> list[str]:
    """What the line and the knee do not say."""
    caveats = []
    if line.status == "found" and line.trials_near < 4:
        caveats.append(
            "fewer than four trials near the line: its interval is the bracket alone; a larger --minutes narrows it"
        )
    if moved is not None and moved["drifted"]:
        caveats.append(drift_words(moved))
    elif moved is None and line.status == "found":
        caveats.append("too few trials to compare: whether the machine drifted is unknown; use a larger --minutes")
    if not is_of_rates:
        return caveats
    if grown is None:
        caveats.append("no rate was tried at which the queue grows by the stated rule")
    elif knee_place(grown, line) == "above":
        caveats.append(
            "the queue starts to grow only above the load line: at the line the median latency has not doubled, and "
            "the slowest operations break the objective before a queue shows in the median"
        )
    return caveats


def _others_wrote(run: Run) -> str:
    """A cause that lies outside Plimsoll: on a server that others use, others may have written to the tables."""
    if not (run.experiment.get("target") or {}).get("dsn"):
        return ""
    return (
        "; the checks attribute every change of these tables to this run, so another client that wrote to them "
        "meanwhile (such as pgbench, which also empties its history) is a possible cause"
    )


def _cut_short(readings: dict[int, Reading], line: Line) -> list[str]:
    """Whether the time was up before the search had both sides of the line."""
    scale = next((reading.throughput for reading in readings.values() if reading.rate is None), 0.0)
    if line.status == "below" and line.high is not None and line.high > DOWN * LOWEST_SHARE * scale:
        return ["the time was up before lower rates were tried: use a larger --minutes"]
    if line.status == "at least" and not line.generator:
        return ["the time was up before a rate broke the objective: use a larger --minutes"]
    return []


def _caveats(
    run: Run,
    readings: dict[int, Reading],
    entries: list[SearchTrial],
    line: Line,
    grown: Knee | None,
    moved: DriftFound | None,
) -> list[str]:
    caveats: list[str] = []
    asked = (run.data.get("capacity") or {}).get("objective") or {}
    is_of_rates = asked.get("conforming") is None
    if run.data.get("quick"):
        caveats.append("quick: short trials, a wide interval")
    if run.data.get("status") not in (None, "finished"):
        caveats.append(f"the run is {run.data.get('status')}: the search did not finish")
    caveats += _shape_caveats(line, grown, moved, is_of_rates=is_of_rates)
    caveats += _cut_short(readings, line)
    steal = [value for entry in entries if (value := entry["conditions"].get("cpu_steal_share")) is not None]
    if steal and max(steal) >= _STEAL_NOTED:
        caveats.append(f"the hypervisor took up to {max(steal):.0%} of the CPU time in a trial")
    disturbed = sum(bool(entry.get("disturbed")) for entry in entries)
    if disturbed:
        became = "left out, and their rates repeated" if disturbed <= _left_out(entries) else "too many to be left out"
        caveats.append(f"{disturbed} trials that did not hold were disturbed by the hypervisor: {became}")
    caveats += _changed(entries, line)
    checkpoints = [entry["number"] for entry in entries if entry["conditions"].get("checkpoints")]
    if checkpoints:
        caveats.append(f"checkpoints began in {len(checkpoints)} trials")
    elif any(entry["conditions"].get("checkpoints") == 0 for entry in entries):
        caveats.append(
            "no checkpoint began in a trial: under sustained load, with checkpoints, the server may carry less"
        )
    full = [
        reading
        for reading in readings.values()
        if is_of_rates and reading.rate and mean(reading.busy) and (mean(reading.busy) or 0) > 0.9 * reading.clients
    ]
    if full:
        caveats.append(
            f"from {min(reading.rate or 0 for reading in full):,.0f}/s on all {full[0].clients} {_called(run)} were in "
            f"use: the number of {_called(run)} (--clients) is part of the answer"
        )
    failed = sum(reading.identity["failed"] + reading.identity["lost"] for reading in readings.values())
    if failed:
        caveats.append(f"{failed} operations failed or were lost")
    wrong = [entry["number"] for entry in entries if "wrong" in str(entry["reason"] or "")]
    if wrong:
        caveats.append(f"wrong answers in {len(wrong)} trials, which therefore have no result")
    broken = [
        str(check.get("name")) for check in (run.data.get("capacity") or {}).get("checks") or [] if not check.get("ok")
    ]
    if broken:
        caveats.append(f"checks of the data after the trials FAILED: {', '.join(broken)}{_others_wrote(run)}")
    counted: dict[str, list[int]] = {}
    for entry in entries:
        for caveat in entry["caveats"]:
            counted.setdefault(str(caveat), []).append(entry["number"])
    for caveat, numbers in counted.items():
        caveats.append(f"{f'trial {numbers[0]}' if len(numbers) == 1 else f'{len(numbers)} trials'}: {caveat}")
    return caveats
