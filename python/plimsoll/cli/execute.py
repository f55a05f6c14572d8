"""The verb `run`: the flow of the whole program, experiment to report."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from plimsoll.cli import show
from plimsoll.cli.codes import FAILED, STOPPED
from plimsoll.cli.folders import shown
from plimsoll.cli.metrics import told_on
from plimsoll.cli.progress import Progress
from plimsoll.environment import StateDir
from plimsoll.experiment import Source
from plimsoll.quantities import elapsed
from plimsoll.record import compact, open_run, writer
from plimsoll.run import a_a
from plimsoll.run.guest.runner import GuestRunner
from plimsoll.run.kernels import resumed, runner_of
from plimsoll.run.observer import Observer, Several, Silent
from plimsoll.run.runner import Runner
from plimsoll.run.trial import again

OWN_SERVER = "./plimsoll run own-server --set target.dsn=postgresql://USER@HOST/DATABASE"
OWN_WEB_SERVER = (
    "./plimsoll capacity web --slo 'p99 <= 50ms' --set environment.page_cache=cold --set target.url=http://HOST/PATH "
    "--set target.files.data=FOLDER"
)


def run(
    source: Source, out: Path, seed: int | None, as_json: bool, metrics: int | None = None, draws: bool = True
) -> int:
    """A new run. `metrics`: the loopback port on which it tells what it does; `draws`: whether it ends with a page."""
    return _go(runner_of(source, out.absolute(), StateDir(), Silent(), sys.argv, seed), as_json, metrics, draws)


def resume(
    out: Path, as_json: bool, metrics: int | None = None, draws: bool = True, *, does_failed_again: bool = False
) -> int:
    """A run that goes on; with `does_failed_again` its failed trials as well."""
    runner = resumed(out.absolute(), StateDir(), Silent(), sys.argv)
    if does_failed_again and not runner.do_again() and not as_json:
        show.console().print("no trial of this run has failed that might do better")
    return _go(runner, as_json, metrics, draws)


def _go(runner: Runner | GuestRunner, as_json: bool, metrics: int | None, draws: bool) -> int:
    left = [trial for trial in runner.plan.trials if not runner.is_done(trial)]
    needs = runner.needs()
    out = show.console()
    if not as_json:
        out.print(runner.source.experiment.title)
        time_left = elapsed(needs.seconds)
        out.print(f"{len(left)} trials, about {time_left}; seed {runner.seed}; record: {shown(runner.out)}")
        for remark in needs.remarks:
            out.print(f"note: {remark}")
    with contextlib.ExitStack() as open_while_running:
        observers = []
        if metrics is not None:
            observers.append(_told_on(runner, len(left), metrics, open_while_running))
        if not as_json:
            progress = Progress(len(left), needs.seconds, lambda number: _line_of(runner.out, number))
            observers.append(open_while_running.enter_context(progress))
        runner.observe(Several(*observers))
        status = runner.run()
    if not as_json:
        out.print("judging the record and drawing the report" if draws else "judging the record")
    verdict, path = judge(runner.out, draws=draws)
    unkept = None if verdict is None else a_a.keep(runner.state, runner.source, runner.out.name, verdict)
    if as_json:
        print(
            json.dumps(
                {"status": status, "run": str(runner.out), "report": str(path) if path else None, "verdict": verdict}
            )
        )
    else:
        say(verdict, path, runner.out)
        if unkept is not None:
            out.print(unkept)
        if failed := again.failed(runner.out, runner.plan):
            out.print(_failed_words([trial.number for trial in failed], runner.out))
        if status == "stopped":
            out.print(
                f"stopped; every finished trial is kept. Resume with: ./plimsoll run --resume {shown(runner.out)}"
            )
    return STOPPED if status == "stopped" else _exit_code(runner.out)


def _failed_words(numbers: list[int], folder: Path) -> str:
    """Which trials have failed, and how they are done again."""
    which = f"trial {numbers[0]} has" if len(numbers) == 1 else f"trials {', '.join(map(str, numbers))} have"
    return f"{which} failed, without a value in the verdict. Again: ./plimsoll run --resume --again {shown(folder)}"


def _told_on(runner: Runner | GuestRunner, trials: int, port: int, stack: contextlib.ExitStack) -> Observer:
    """What the run tells on a loopback port until `stack` is left."""
    from plimsoll.run.watch.openmetrics import RunMetrics

    observer = RunMetrics(runner.out.name, runner.source.experiment.name, trials)
    told_on(observer, port, stack)
    return observer


def _exit_code(folder: Path) -> int:
    """A run none of whose trials has a result has failed."""
    return 0 if any(trial.status == "finished" for trial in open_run(folder).trials) else FAILED


def judge(folder: Path, is_with_files: bool = False, draws: bool = True) -> tuple[dict[str, Any] | None, Path | None]:
    """Compacts the record, judges it, draws the report, its figures as files if asked for. None: nothing to judge."""
    from plimsoll.analysis import analyse

    record = open_run(folder)
    if not any(trial.status for trial in record.trials):
        return None, None
    compact(folder)
    verdict = analyse(record)
    writer.write_json(folder / "verdict.json", verdict)
    if not draws:
        return verdict, None
    from plimsoll.report import write_report

    return verdict, write_report(folder, is_with_files)


def _line_of(folder: Path, number: int) -> str:
    """A finished trial in one line."""
    from plimsoll.analysis.estimates import estimates
    from plimsoll.words.trial import trial_line

    return trial_line(estimates(next(trial for trial in open_run(folder).trials if trial.number == number)))


def say(verdict: dict[str, Any] | None, path: Path | None, folder: Path) -> None:
    """The verdict for people."""
    from plimsoll.words.terminal import WIDTH, terminal_lines

    out = show.console()
    if verdict is None:
        out.print("No trial has ended, so there is nothing to judge.")
        return
    out.print()
    width = min(WIDTH, out.width) if out.is_terminal else WIDTH
    page = shown(path) if path else f"not drawn; ./plimsoll report {shown(folder)} draws it"
    own_server = OWN_WEB_SERVER if verdict.get("web_serving") else OWN_SERVER
    for line in terminal_lines(verdict, page, own_server, width):
        out.print(line)
