"""Verbs about experiments: list, check, plan, run, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from plimsoll.cli.codes import IMPOSSIBLE
from plimsoll.cli.options import Blocks, Json, Metrics, Name, NoPage, Quick, Sets, print_json, refuse


def list_experiments(as_json: Json = False) -> None:
    """The experiments that ship."""
    from plimsoll.cli import show
    from plimsoll.experiment import load, shipped

    experiments = [load(str(path)).experiment for path in shipped()]
    if as_json:
        print_json(
            [
                {"name": experiment.name, "title": experiment.title, "source": experiment.source}
                for experiment in experiments
            ]
        )
    else:
        show.experiments(experiments)


def check(name: Name, quick: Quick = False, sets: Sets = None, blocks: Blocks = None) -> None:
    """Reads an experiment and says what is wrong with it; starts nothing."""
    from plimsoll.cli import folders, show
    from plimsoll.experiment import load

    source = load(name, quick=quick, sets=sets, blocks=blocks)
    design = source.experiment.design
    treatments = len(source.treatments)
    trials = (treatments + design.duplicate) * design.blocks
    place = folders.shown(source.path)
    show.console().print(f"{place}: good: {treatments} treatments, {design.blocks} blocks, {trials} trials")


def plan(
    name: Name,
    quick: Quick = False,
    sets: Sets = None,
    blocks: Blocks = None,
    seed: int | None = None,
    as_json: Json = False,
) -> None:
    """The trials in order, what they need, and everything that stands in the way; starts nothing."""
    from plimsoll.cli import show
    from plimsoll.run import a_a
    from plimsoll.run.planning.documents import plan_document

    runner = _runner(_source(name, quick, sets, blocks), Path("plan"), [], seed)
    needs = runner.needs()
    if (soak := runner.source.experiment.soak) is not None:
        needs.remarks.append(f"a soak of {soak.length}, which `./plimsoll soak` runs; the time above is of one round")
    if as_json:
        print_json({"seed": runner.seed, "needs": vars(needs), **plan_document(runner.plan)})
    else:
        on_host = runner.source.experiment.kernel_kind == "host"  # what equals differ by is a kernel's own
        show.plan(runner.plan, needs, a_a.newest(runner.state) if on_host else None)
    if needs.impossible:
        sys.exit(IMPOSSIBLE)


def run(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="a name, a path, or with --resume a run's folder")],
    quick: Quick = False,
    sets: Sets = None,
    blocks: Blocks = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="seed of the trials' order")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="resume a run that was stopped")] = False,
    again: Annotated[bool, typer.Option("--again", help="with --resume: do the trials that failed again")] = False,
    metrics: Metrics = None,
    no_page: NoPage = False,
    as_json: Json = False,
) -> None:
    """Runs an experiment and ends with its verdict and report."""
    if resume:
        if quick or sets or blocks is not None or out or seed is not None:
            allowed = "--resume RUN without other options than --again, --metrics, --no-page and --json"
            refuse("--resume", "a run is resumed with the settings that it began with", allowed)
        from plimsoll.cli import records

        sys.exit(records.resume(Path(name), as_json, metrics, not no_page, does_failed_again=again))
    if again:
        refuse("--again", "only a run that there is has trials that failed", "--resume RUN --again")
    from plimsoll.cli import execute, folders

    source = _source(name, quick, sets, blocks)
    if source.experiment.soak is not None:
        refuse(name, "its trial is rounds back to back for days", f"./plimsoll soak {name}")
    sys.exit(execute.run(source, folders.folder_for(source.experiment.name, out), seed, as_json, metrics, not no_page))


def demo(
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None, as_json: Json = False
) -> None:
    """The buffer-cache experiment at a small size: shared_buffers from too small to so large that it swaps."""
    from plimsoll.cli import execute, folders

    source = _source("buffer-cache", True, None, None)
    sys.exit(execute.run(source, folders.folder_for(source.experiment.name, out), None, as_json))


def _source(name: str, quick: bool, sets: list[str] | None, blocks: int | None) -> Any:
    """The experiment that is named, fitted to this machine where it is quick."""
    from plimsoll.experiment import load
    from plimsoll.run.planning.fitting import Machine, fitted

    return fitted(load(name, quick=quick, sets=sets, blocks=blocks), Machine.here())


def _runner(source: Any, out: Path, command: list[str], seed: int | None) -> Any:
    from plimsoll.environment import StateDir
    from plimsoll.run.kernels import runner_of
    from plimsoll.run.observer import Silent

    return runner_of(source, out, StateDir(), Silent(), command, seed)
