"""The verb `capacity`: from what was asked to the load line and its report."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from plimsoll.analysis.capacity.compare import compare_capacity, unlike
from plimsoll.analysis.capacity.document import Capacity, LinesCompared
from plimsoll.cli import show
from plimsoll.cli.capacity_progress import CapacityProgress
from plimsoll.cli.codes import FAILED, STOPPED
from plimsoll.cli.folders import folder_for, shown
from plimsoll.environment import StateDir
from plimsoll.environment.fingerprint import comparable
from plimsoll.experiment import ExperimentError
from plimsoll.quantities import elapsed
from plimsoll.record import RecordError, Run, compact, open_run, writer
from plimsoll.record.run import read_json
from plimsoll.run.capacity import source as capacity_source
from plimsoll.run.capacity.search import Asked, CapacityRunner
from plimsoll.run.observer import Silent
from plimsoll.words.capacity.capacity import compared_words, terminal_lines, trial_words, unit

EARLIER_MAX = 5


@dataclass(frozen=True)
class Request:
    """The options of the command line."""

    what: str
    slo: str
    dsn: str | None
    minutes: float | None
    clients: int | None
    arrivals: str
    quick: bool
    sets: list[str] | None


def run(request: Request, out: Path | None, seed: int | None, as_json: bool) -> int:
    """Searches, judges, draws and says what was found."""
    runner = _runner(request, out, seed)
    console = show.console()
    if not as_json:
        asked, needs = runner.asked, runner.needs()
        what = "the most connections of which" if asked.is_of_connections else "the highest rate at which"
        how = "each asks again at once" if asked.is_of_connections else f"{asked.arrivals} arrivals"
        console.print(f"{asked.subject}: {what} {asked.objective}, {how}")
        build = f", and {elapsed(needs.build_seconds)} to build the data" if needs.build_seconds else ""
        console.print(f"about {elapsed(asked.seconds)}{build}; seed {runner.seed}; record: {shown(runner.out)}")
        for remark in needs.remarks:
            console.print(f"note: {remark}")
        with CapacityProgress(asked.seconds, lambda number: _figures(runner.out, number)) as progress:
            runner.observe(progress)
            status = runner.run()
        console.print("judging the record and drawing the report")
    else:
        status = runner.run()
    verdict, path = judge(runner.out)
    if as_json:
        print(json.dumps({"status": status, "run": str(runner.out), "report": str(path), "verdict": verdict}))
    else:
        say(verdict, path)
        if status == "stopped":
            console.print("stopped; the verdict is that of the trials that finished")
    if status == "stopped":
        return STOPPED
    return 0 if any(trial.status == "finished" for trial in open_run(runner.out).trials) else FAILED


def _runner(request: Request, out: Path | None, seed: int | None) -> CapacityRunner:
    """Reads everything that was given; raises ExperimentError with all that is wrong."""
    problems = capacity_source.check_options(request.minutes, request.arrivals, request.clients)
    try:
        objective = capacity_source.objective_of(request.slo)
    except ExperimentError as error:
        raise ExperimentError([*error.problems, *problems]) from None
    if problems:
        raise ExperimentError(problems)
    source = capacity_source.source_of(
        request.what,
        quick=request.quick,
        sets=request.sets,
        clients=request.clients,
        dsn=request.dsn,
        has_lines=objective.conforming is not None,
    )
    capacity_source.check_lines(source, objective)
    settings = source.treatments[0].settings
    minutes = request.minutes
    if minutes is None:
        minutes = capacity_source.MINUTES_QUICK if request.quick else capacity_source.MINUTES
    name = settings.name if settings.name.startswith("capacity") else f"capacity-{settings.name}"
    folder = folder_for(name, out)
    subject = capacity_source.subject_of(request.what, settings)
    clients, called = settings.workload.clients, settings.workload.clients_called
    asked = Asked(subject, objective, request.arrivals, clients, called, minutes * 60)
    return CapacityRunner(source, folder.absolute(), StateDir(), Silent(), sys.argv, seed, asked=asked)


def judge(folder: Path, is_with_files: bool = False) -> tuple[Capacity, Path]:
    """Compacts the record, judges it beside the earlier ones, draws the report, its figures as files if asked for."""
    from plimsoll.analysis.capacity.verdict import analyse_capacity
    from plimsoll.report.capacity.page import write_capacity_report

    record = open_run(folder)
    compact(folder)
    verdict = analyse_capacity(record)
    verdict["earlier"] = _earlier(record, verdict)
    writer.write_json(folder / "capacity.json", verdict)
    return verdict, write_capacity_report(folder, is_with_files)


def compare(first: Run, second: Run, force: bool) -> tuple[LinesCompared, list[str]]:
    """Two load lines: whether they agree, and if not, what changed; the document, and its lines for people."""
    from plimsoll.analysis import NotComparable
    from plimsoll.analysis.capacity.verdict import analyse_capacity

    first_verdict, second_verdict = analyse_capacity(first), analyse_capacity(second)
    differences = [f"{row['key']}: {row['a']} against {row['b']}" for row in _machines(first, second)]
    differences += unlike(first_verdict, second_verdict)
    if differences and not force:
        raise NotComparable(differences)
    result = compare_capacity(first_verdict, second_verdict, differences)
    caveats = [f"Caveat: compared although they differ: {difference}" for difference in differences]
    return result, [f"{result['second']['run']}:", compared_words(result, unit(second_verdict)), *caveats]


def _machines(first: Run, second: Run) -> list[dict[str, Any]]:
    return list(comparable(first.fingerprint or {}, second.fingerprint or {}))


def _earlier(run: Run, verdict: Capacity) -> list[LinesCompared]:
    """The newest runs beside this one that asked the same of the same machine before it, newest first."""
    known: list[Capacity] = []
    for path in sorted(run.path.parent.glob("*/capacity.json")):
        if path.parent == run.path:
            continue
        try:
            other, document = open_run(path.parent), cast(Capacity | None, read_json(path))
        except (RecordError, OSError):
            continue  # not ours to judge here
        began = None if document is None else document.get("started_epoch_ns")
        if document is None or began is None or began >= (verdict["started_epoch_ns"] or 0):
            continue
        if unlike(document, verdict) or _machines(other, run):
            continue
        known.append(document)
    known.sort(key=lambda document: -int(document["started_epoch_ns"] or 0))
    return [compare_capacity(document, verdict, []) for document in known[:EARLIER_MAX]]


def _figures(folder: Path, number: int) -> str:
    """A finished trial in one line."""
    from plimsoll.analysis.capacity.entry import trial_entry
    from plimsoll.analysis.capacity.objective import from_json
    from plimsoll.analysis.capacity.reading import read_trial

    record = open_run(folder)
    trial = next(each for each in record.trials if each.number == number)
    return trial_words(trial_entry(trial, read_trial(trial), from_json(record.data["capacity"]["objective"])))


def say(verdict: Capacity, path: Path) -> None:
    """The line for people."""
    out = show.console()
    out.print()
    for line in terminal_lines(verdict, shown(path)):
        out.print(line)
