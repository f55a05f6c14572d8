"""The verb `soak`: an experiment's load on one server for days, and what it left behind."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from plimsoll.cli import execute, show
from plimsoll.cli.codes import FAILED, STOPPED
from plimsoll.cli.folders import folder_for, shown
from plimsoll.cli.progress import Progress
from plimsoll.environment import StateDir
from plimsoll.record import open_run
from plimsoll.run.observer import Silent
from plimsoll.run.soak import runner as soaks
from plimsoll.run.soak.runner import SoakRunner
from plimsoll.run.soak.source import Asked, source_of
from plimsoll.words.soak.sentences import days


@dataclass(frozen=True)
class Request:
    """The options of the command line."""

    name: str
    asked: Asked
    quick: bool
    sets: list[str] | None
    has_unit: bool


def run(request: Request, out: Path | None, seed: int | None, *, as_json: bool, draws: bool = True) -> int:
    """A new soak."""
    source = source_of(request.name, request.asked, quick=request.quick, sets=request.sets)
    folder = folder_for(f"soak-{source.experiment.name.removesuffix('-soak')}", out).absolute()
    runner = soaks.new(source, folder, StateDir(), Silent(), sys.argv, seed, has_unit=request.has_unit)
    return _go(runner, as_json=as_json, draws=draws)


def resume(out: Path, *, as_json: bool, draws: bool = True) -> int:
    """A soak that goes on where it was."""
    runner = soaks.resumed(out.absolute(), StateDir(), Silent(), sys.argv)
    return _go(runner, as_json=as_json, draws=draws)


def _go(runner: SoakRunner, *, as_json: bool, draws: bool) -> int:
    console, needs = show.console(), runner.needs()
    if as_json:
        status = runner.run()
    else:
        soak = runner.soak
        console.print(runner.source.experiment.title)
        left = f", {days(max(0.0, soak.seconds - runner.spent_s))} of them left" if runner.spent_s else ""
        console.print(
            f"a soak of {days(soak.seconds)}{left}; {soak.between} between rounds; record: {shown(runner.out)}"
        )
        for remark in needs.remarks:
            console.print(f"note: {remark}")
        with Progress(1, needs.seconds, lambda number: _line_of(runner.out, number)) as progress:
            runner.observe(progress)
            status = runner.run()
        console.print("judging the record and drawing the report" if draws else "judging the record")
    verdict, page = execute.judge(runner.out, draws=draws)
    if as_json:
        told = {"status": status, "run": str(runner.out), "report": str(page) if page else None, "verdict": verdict}
        print(json.dumps(told))
    else:
        execute.say(verdict, page, runner.out)
        if status == "stopped":
            console.print(f"stopped; every round is kept. Go on with: ./plimsoll soak --resume {shown(runner.out)}")
    if status == "stopped":
        return STOPPED
    return 0 if any(trial.rounds for trial in open_run(runner.out).trials) else FAILED


def _line_of(folder: Path, number: int) -> str:
    """The finished soak in one line."""
    trial = next(one for one in open_run(folder).trials if one.number == number)
    return f"{len(trial.rounds)} rounds"
