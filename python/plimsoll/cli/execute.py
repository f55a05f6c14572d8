"""The verbs that run, judge and draw: the flow of the whole program, experiment to report."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from plimsoll.analysis.capacity.kind import is_capacity
from plimsoll.analysis.watch.kind import is_breakdown
from plimsoll.cli import show
from plimsoll.cli.codes import FAILED, STOPPED
from plimsoll.cli.folders import shown
from plimsoll.cli.metrics import told_on
from plimsoll.cli.progress import Progress
from plimsoll.environment import StateDir
from plimsoll.experiment import ExperimentError, Problem, Source
from plimsoll.record import RecordError, compact, open_run, writer
from plimsoll.run import a_a
from plimsoll.run.observer import Observer, Several, Silent
from plimsoll.run.runner import Runner
from plimsoll.run.runner import resume as resumed

OWN_SERVER = "./plimsoll run own-server --set target.dsn=postgresql://USER@HOST/DATABASE"


def run(
    source: Source, out: Path, seed: int | None, as_json: bool, metrics: int | None = None, draws: bool = True
) -> int:
    """A new run. `metrics`: the loopback port on which it tells what it does; `draws`: whether it ends with a page."""
    return _go(Runner(source, out.absolute(), StateDir(), Silent(), sys.argv, seed), as_json, metrics, draws)


def resume(out: Path, as_json: bool, metrics: int | None = None, draws: bool = True) -> int:
    """A run that goes on."""
    if (out / "run.json").is_file() and is_breakdown(open_run(out)):
        what = "a watch cannot be resumed"
        raise ExperimentError(
            [Problem(str(out), "--resume", what, "./plimsoll report for what it recorded, or a new watch")]
        )
    if (out / "run.json").is_file() and is_capacity(open_run(out)):
        what = "a load-line search cannot be resumed: the machine may have changed since"
        allowed = "./plimsoll report for what it recorded, or a new search"
        raise ExperimentError([Problem(str(out), "--resume", what, allowed)])
    return _go(resumed(out.absolute(), StateDir(), Silent(), sys.argv), as_json, metrics, draws)


def _go(runner: Runner, as_json: bool, metrics: int | None, draws: bool) -> int:
    left = [trial for trial in runner.plan.trials if not runner.is_done(trial)]
    needs = runner.needs()
    out = show.console()
    if not as_json:
        out.print(runner.source.experiment.title)
        time_left = show.duration(needs.seconds)
        out.print(f"{len(left)} trials, about {time_left}; seed {runner.seed}; record: {shown(runner.out)}")
        for remark in needs.remarks:
            out.print(f"note: {remark}")
    with contextlib.ExitStack() as open_while_running:
        observers = []
        if metrics is not None:
            observers.append(_told_on(runner, len(left), metrics, open_while_running))
        if not as_json:
            progress = Progress(len(left), needs.seconds, lambda number: _figures(runner.out, number))
            observers.append(open_while_running.enter_context(progress))
        runner.observe(Several(*observers))
        status = runner.run()
    if not as_json:
        out.print("judging the record and drawing the report" if draws else "judging the record")
    verdict, path = judge(runner.out, draws=draws)
    if verdict is not None:
        _keep_a_a(runner, verdict)
    if as_json:
        print(
            json.dumps(
                {"status": status, "run": str(runner.out), "report": str(path) if path else None, "verdict": verdict}
            )
        )
    else:
        _say(verdict, path, runner.out)
        if status == "stopped":
            out.print(
                f"stopped; every finished trial is kept. Resume with: ./plimsoll run --resume {shown(runner.out)}"
            )
    return STOPPED if status == "stopped" else _exit_code(runner.out)


def _told_on(runner: Runner, trials: int, port: int, stack: contextlib.ExitStack) -> Observer:
    """What the run tells on a loopback port until `stack` is left."""
    from plimsoll.run.watch.openmetrics import RunMetrics

    found = RunMetrics(runner.out.name, runner.source.experiment.name, trials)
    told_on(found, port, stack)
    return found


def _exit_code(folder: Path) -> int:
    """A run none of whose trials has a result has failed."""
    return 0 if any(trial.status == "finished" for trial in open_run(folder).trials) else FAILED


def judge(folder: Path, is_with_files: bool = False, draws: bool = True) -> tuple[dict[str, Any] | None, Path | None]:
    """Compacts the record, judges it, draws the report, its figures as files if asked for. None: nothing to judge."""
    from plimsoll.analysis import analyse

    found = open_run(folder)
    if not any(trial.status for trial in found.trials):
        return None, None
    compact(folder)
    verdict = analyse(found)
    writer.write_json(folder / "verdict.json", verdict)
    if not draws:
        return verdict, None
    from plimsoll.report import write_report

    return verdict, write_report(folder, is_with_files)


def report(folder: Path, as_json: bool, is_with_files: bool = False) -> int:
    """The verb: judge and draw again."""
    if is_breakdown(open_run(folder)):
        from plimsoll.cli import breakdown

        if is_with_files:
            what = "the report of a watch has its figures inside and writes no separate files"
            raise ExperimentError([Problem("command line", "--figures", what, "no --figures")])
        return breakdown.report(folder.absolute(), as_json)
    if is_capacity(open_run(folder)):
        from plimsoll.cli import capacity

        return capacity.report(folder.absolute(), as_json, is_with_files)
    if not as_json:
        show.console().print("judging the record and drawing the report")
    verdict, path = judge(folder.absolute(), is_with_files)
    if verdict is None:
        raise RecordError(f"{folder}: no trial of this run has ended yet; ./plimsoll run --resume continues it")
    if as_json:
        print(json.dumps(verdict))
    else:
        _say(verdict, path, folder)
    return 0


def compare(first: Path, second: Path, force: bool, as_json: bool, page: Path | None = None) -> int:
    """The verb: two runs side by side."""
    from plimsoll.analysis import compare_runs
    from plimsoll.environment.fingerprint import comparable

    one, other = open_run(first), open_run(second)
    if is_breakdown(one) or is_breakdown(other):
        what = "one of the two is a watch of a server's own load: it varied nothing that could be compared"
        raise ExperimentError([Problem("command line", "compare", what, "two runs of an experiment, or of capacity")])
    if is_capacity(one) or is_capacity(other):
        from plimsoll.cli import capacity

        if page is not None:
            raise ExperimentError([Problem("command line", "--page", "a load-line search has none", "no --page")])
        return capacity.compare(one, other, force, as_json)
    _check_free(page)
    differences = comparable(one.fingerprint or {}, other.fingerprint or {})
    return _say_comparison(compare_runs(one, other, differences, accept=force), as_json, page)


def compare_treatments(folder: Path, first: str, second: str, *, as_json: bool, page: Path | None = None) -> int:
    """The verb, of two treatments of one run."""
    from plimsoll.analysis import compare_treatments as compared

    run = open_run(folder)
    if is_capacity(run):
        raise RecordError(f"{folder}: a load-line search has no treatments; give two such runs to compare")
    _check_free(page)
    return _say_comparison(compared(run, first, second), as_json, page)


def _check_free(page: Path | None) -> None:
    """What is there already is not written over, and a folder that is not there is not made."""
    if page is not None and (page.exists() or not page.absolute().parent.is_dir()):
        what = "this file exists already" if page.exists() else "there is no such folder to write into"
        raise ExperimentError([Problem("command line", f"--page {page}", what, "a file that does not exist yet")])


def _say_comparison(result: dict[str, Any], as_json: bool, page: Path | None) -> int:
    from plimsoll.words.comparison import comparison_lines

    if page is not None:
        from plimsoll.report.comparison.page import write_comparison

        write_comparison(result, page)
    if as_json:
        print(json.dumps(result))
    else:
        for line in comparison_lines(result) + ([f"Page: {shown(page)}"] if page is not None else []):
            show.console().print(line)
    return 0


def _figures(folder: Path, number: int) -> str:
    """A finished trial in one line."""
    from plimsoll.analysis.decision_support.metrics import LOAD, NAMES
    from plimsoll.analysis.estimates import estimates

    trial = next(one for one in open_run(folder).trials if one.number == number)
    found = estimates(trial)
    parts = [
        f"{name} {value:,.1f}{' s' if metric == LOAD else ''}"
        for metric, name in NAMES.items()
        if (value := found.get(metric)) is not None
    ]
    if not parts and (rate := found.get("throughput_per_second")) is not None:
        parts.append(f"{rate:8,.0f} transactions/s")
    if (ratio := found.get("database_hit_ratio")) is not None:
        parts.append(f"database hits {ratio:6.1%}")
    if (swap := found.get("swap_bytes_max")) is not None:
        parts.append(f"swap {swap / 2**20:5,.0f} MiB")
    return "  ".join(parts)


def _keep_a_a(runner: Runner, verdict: dict[str, Any]) -> None:
    spread = (verdict.get("a_a") or {}).get("within_run")
    unchanged = runner.source.experiment.name == "a-a" and not runner.source.changed
    if unchanged and spread and not runner.source.experiment.target.dsn:
        a_a.store(runner.state, {"run": runner.out.name, "epoch_ns": time.time_ns(), **spread})


def _say(verdict: dict[str, Any] | None, path: Path | None, folder: Path) -> None:
    from plimsoll.words.verdict import WIDTH, terminal_lines

    out = show.console()
    if verdict is None:
        out.print("No trial has ended, so there is nothing to judge.")
        return
    out.print()
    width = min(WIDTH, out.width) if out.is_terminal else WIDTH
    page = shown(path) if path else f"not drawn; ./plimsoll report {shown(folder)} draws it"
    for line in terminal_lines(verdict, page, OWN_SERVER, width):
        out.print(line)
