"""The verbs. Each imports what it needs when it is called, so that `doctor` does not pay for the statistics."""

from __future__ import annotations

import json
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from plimsoll.cli.codes import BAD_REQUEST, FAILED, FAULT, IMPOSSIBLE, STOPPED


class Verbs(typer.core.TyperGroup):
    """The verbs. To the command-line library any broken pipe is a reader of the output who has gone, for whom it ends
    without a word; one to a process of ours is an error like others."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            outputs = select.poll()
            for output in (1, 2):
                outputs.register(output, 0)
            if outputs.poll(0):
                raise
            raise RuntimeError("a process that Plimsoll was writing to had ended (broken pipe)") from error


app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How much load does this system carry, and which setting carries more?",
)

ABORTED = 130  # what the command-line library makes of Ctrl-C

Name = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="a name that `list` shows, or a path")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="the folder of a run")]
Quick = Annotated[bool, typer.Option("--quick", help="the experiment's small size")]
Blocks = Annotated[int | None, typer.Option("--blocks", help="number of blocks: each runs every treatment once")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="set one value, such as workload.clients=16; may be repeated"),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for other programs")]
Figures = Annotated[bool, typer.Option("--figures", help="write the figures as SVG and PNG, too")]
NoPage = Annotated[bool, typer.Option("--no-page", help="draw no page at the end; `report` draws it later")]
Metrics = Annotated[
    int | None,
    typer.Option("--metrics", metavar="PORT", help="serve Prometheus metrics on 127.0.0.1:PORT (0 = any free port)"),
]


def main() -> None:
    """Runs a verb; turns what went wrong into one message and an exit code."""
    # A run has handlers of its own; before and after it both signals mean: nothing is under way, end now.
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    try:
        with exit_codes():
            app(prog_name="plimsoll")
    except SystemExit as end:
        sys.exit(STOPPED if end.code == ABORTED else end.code)


def _end(_signal: int, _frame: object) -> NoReturn:
    # Not KeyboardInterrupt: one that has passed through code which an extension runs while it is imported ends the
    # interpreter by SIGINT, whoever has caught it since.
    raise SystemExit(STOPPED)


@contextmanager
def exit_codes() -> Iterator[None]:
    """One message that says what to do, and the exit code that says what kind of failure it was."""
    try:
        yield
    except Exception as error:
        _explain(error)


def _explain(error: Exception) -> NoReturn:
    from plimsoll.analysis import NotComparable, Unknown
    from plimsoll.cli.console import tell
    from plimsoll.environment.fault import Fault
    from plimsoll.experiment import ExperimentError
    from plimsoll.export import ExportError
    from plimsoll.record import RecordError
    from plimsoll.run import agent
    from plimsoll.run.runner import Impossible
    from plimsoll.target.running import Elsewhere, NotFound

    if isinstance(error, ExperimentError):
        for problem in error.problems:
            tell(f"plimsoll: {problem}")
        sys.exit(BAD_REQUEST)
    if isinstance(error, Impossible):
        tell("plimsoll: this cannot be run here:")
        for reason in error.reasons:
            tell(f"  - {reason}")
        sys.exit(IMPOSSIBLE)
    if isinstance(error, NotComparable):
        tell("plimsoll: these runs come from machines that differ in what affects results:")
        for difference in error.differences:
            tell(f"  - {difference}")
        tell("  what to do: compare runs of one machine in one state, or --force")
        sys.exit(BAD_REQUEST)
    if isinstance(error, RecordError | ExportError | Unknown):
        tell(f"plimsoll: {error}")
        sys.exit(BAD_REQUEST)
    if isinstance(error, Fault):
        tell(f"plimsoll: {error.what}\n  what to do: {error.remedy}")
        sys.exit({NotFound: BAD_REQUEST, Elsewhere: IMPOSSIBLE}.get(type(error), FAILED))
    # One without a number is no refusal of the system's: what it is about stands in the lines above it.
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        tell(f"plimsoll: {error.filename or 'a file'}: {error.strerror}")
        tell("  what to do: fix it (disk space, permissions), then resume: ./plimsoll run --resume RUN")
        sys.exit(FAILED)
    if isinstance(error, agent.AgentFailed) and error.code != agent.EXIT_IDENTITY:
        tell(f"plimsoll: {error}")
        sys.exit(FAILED)
    traceback.print_exception(error)
    tell("plimsoll: this is a bug in Plimsoll; please report it with the lines above")
    sys.exit(FAULT)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, default=str))


@app.command("list")
def list_experiments(as_json: Json = False) -> None:
    """The experiments that ship."""
    from plimsoll.cli import show
    from plimsoll.experiment import load, shipped

    experiments = [load(str(path)).experiment for path in shipped()]
    if as_json:
        _print_json(
            [
                {"name": experiment.name, "title": experiment.title, "source": experiment.source}
                for experiment in experiments
            ]
        )
    else:
        show.experiments(experiments)


@app.command()
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


@app.command()
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
    if as_json:
        _print_json({"seed": runner.seed, "needs": vars(needs), **plan_document(runner.plan)})
    else:
        show.plan(runner.plan, needs, a_a.newest(runner.state))
    if needs.impossible:
        sys.exit(IMPOSSIBLE)


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="a name, a path, or with --resume a run's folder")],
    quick: Quick = False,
    sets: Sets = None,
    blocks: Blocks = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="seed of the trials' order")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="resume a run that was stopped")] = False,
    metrics: Metrics = None,
    no_page: NoPage = False,
    as_json: Json = False,
) -> None:
    """Runs an experiment and ends with its verdict and report."""
    if resume:
        if quick or sets or blocks is not None or out or seed is not None:
            allowed = "--resume RUN without other options than --metrics, --no-page and --json"
            _refuse("--resume", "a run is resumed with the settings that it began with", allowed)
        from plimsoll.cli import records

        sys.exit(records.resume(Path(name), as_json, metrics, not no_page))
    from plimsoll.cli import execute, folders

    source = _source(name, quick, sets, blocks)
    sys.exit(execute.run(source, folders.folder_for(source.experiment.name, out), seed, as_json, metrics, not no_page))


@app.command()
def capacity(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="bank, order_entry, wpi_orders, or an experiment's name or path")
    ],
    slo: Annotated[str, typer.Option("--slo", help="the objective, such as 'p99 <= 20ms and errors <= 0.1%'")],
    dsn: Annotated[str | None, typer.Option("--dsn", help="an existing server, used as it is")] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", help="minutes for the search [10; --quick: 3]")] = None,
    clients: Annotated[int | None, typer.Option("--clients", help="connections")] = None,
    arrivals: Annotated[str, typer.Option("--arrivals", help="poisson or constant")] = "poisson",
    quick: Quick = False,
    sets: Sets = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="seed of the arrivals and of the trials' order")
    ] = None,
    as_json: Json = False,
) -> None:
    """The load line: the highest arrival rate that keeps an objective."""
    from plimsoll.cli import capacity as verb

    asked = verb.Request(what, slo, dsn, minutes, clients, arrivals, quick, sets)
    sys.exit(verb.run(asked, out, seed, as_json))


@app.command()
def breakdown(
    pid: Annotated[int | None, typer.Option("--pid", help="process id of any process of the server")] = None,
    dsn: Annotated[
        str | None, typer.Option("--dsn", help="connection string; the server has to run on this machine")
    ] = None,
    seconds: Annotated[str, typer.Option("--for", metavar="TIME", help="how long: 30s, 5m, 1h")] = "30s",
    top: Annotated[int, typer.Option("--top", help="rows shown of each list")] = 20,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> None:
    """Where the time of a running server goes, under its own load; nothing of it is changed or restarted."""
    from plimsoll.cli import breakdown as verb

    sys.exit(verb.run(verb.Request(pid, dsn, seconds, top, metrics), out, as_json))


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None, as_json: Json = False
) -> None:
    """The buffer-cache experiment at a small size: shared_buffers from too small to so large that it swaps."""
    from plimsoll.cli import execute, folders

    source = _source("buffer-cache", True, None, None)
    sys.exit(execute.run(source, folders.folder_for(source.experiment.name, out), None, as_json))


@app.command()
def report(folder: RunFolder, as_json: Json = False, figures: Figures = False) -> None:
    """Judges a run's record again and redraws its report."""
    from plimsoll.cli import records

    sys.exit(records.report(folder, as_json, figures))


@app.command()
def compare(
    first: RunFolder,
    second: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="the run to compare with it")] = None,
    treatments: Annotated[
        tuple[str, str] | None,
        typer.Option("--treatments", metavar="FIRST SECOND", help="two treatments of one run, by label or id"),
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="an HTML file to make, with flame graphs")] = None,
    force: Annotated[bool, typer.Option("--force", help="compare even though the machines differ")] = False,
    as_json: Json = False,
) -> None:
    """Two runs side by side, or two treatments of one, and what changed; refuses when machines differ."""
    from plimsoll.cli import records

    if (second is None) == (treatments is None):
        _refuse(
            "compare",
            "two runs, or two treatments of one run, are compared",
            "RUN RUN, or RUN --treatments FIRST SECOND",
        )
    if second is None and treatments is not None:
        sys.exit(records.compare_treatments(first, *treatments, as_json=as_json, page=page))
    assert second is not None
    sys.exit(records.compare(first, second, force, as_json, page))


@app.command()
def query(
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="one SELECT; without it: the tables there are")
    ] = None,
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="runs, or folders of runs [./runs]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Queries all records at once, in SQL; read-only."""
    from plimsoll.cli import query as verb

    sys.exit(verb.query(sql, places or [], as_json))


@app.command()
def export(
    folder: RunFolder,
    form: Annotated[str, typer.Option("--format", help="perfetto, folded or parquet")],
    out: Annotated[Path | None, typer.Option("--out", help="file (parquet: folder) to make")] = None,
    trial: Annotated[int | None, typer.Option("--trial", help="perfetto: which trial [1]; folded: [all]")] = None,
    begin: Annotated[float | None, typer.Option("--from", help="perfetto: seconds into the trial [0]")] = None,
    seconds: Annotated[float | None, typer.Option("--for", help="perfetto: how many seconds [60]")] = None,
    as_json: Json = False,
) -> None:
    """A record for other programs: a trace, collapsed stacks, Parquet."""
    from plimsoll.cli import export as verb

    sys.exit(verb.export(folder, form, trial, begin, seconds, out, as_json))


@app.command()
def undo(as_json: Json = False) -> None:
    """Puts back what killed runs left behind."""
    from plimsoll.cli.console import console
    from plimsoll.environment import StateDir, live_runs
    from plimsoll.environment import undo as put_back

    state, out = StateDir(), console()
    done = put_back(state)
    if as_json:
        _print_json([vars(undone) for undone in done])
    else:
        for undone in done:
            remedy = f"; {undone.remedy}" if undone.remedy else ""
            became = "left as it is" if undone.is_left else "put back" if undone.ok else "NOT put back"
            out.print(f"{became}: {undone.what}{remedy}")
        for run_id, pid in live_runs(state):
            out.print(f"left alone: run {run_id} is at work (process {pid})")
        if not done:
            out.print("Nothing was left to put back.")
    sys.exit(0 if all(undone.ok for undone in done) else FAILED)


@app.command()
def doctor(as_json: Json = False) -> None:
    """What this machine can do, and the remedy for what it cannot."""
    from plimsoll.cli import show
    from plimsoll.environment.doctor import diagnose

    checks = diagnose()
    if as_json:
        _print_json([vars(a_check) for a_check in checks])
    else:
        show.doctor(checks)


cache = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The data sets kept for the next run.")
app.add_typer(cache, name="cache")


@cache.command("show")
def cache_show(as_json: Json = False) -> None:
    """What is kept, and how much disk it takes."""
    from plimsoll.cli import show
    from plimsoll.environment import StateDir
    from plimsoll.target.dataset import kept

    state = StateDir()
    datasets = kept(state.datasets)
    if as_json:
        _print_json([vars(dataset) for dataset in datasets])
    else:
        show.datasets(state.datasets, datasets, sorted(path.name for path in state.datasets.glob("plimsoll-*")))


@cache.command("remove")
def cache_remove(
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="as `cache show` lists them")] = None,
    everything: Annotated[bool, typer.Option("--all", help="every data set")] = False,
) -> None:
    """Removes kept data sets; the next run that needs one builds it again."""
    import shutil

    from plimsoll.environment import StateDir
    from plimsoll.target.dataset import kept

    state = StateDir()
    known = {path.name for path in state.datasets.glob("*") if path.is_dir()}
    if bool(keys) == everything:
        _refuse(
            "cache remove", "names nothing to remove" if not keys else "names data sets and --all", "KEYs, or --all"
        )
    for key in keys or []:
        if key not in known:
            _refuse("cache remove", f"no data set {key} is kept", ", ".join(sorted(known)) or "none is kept")
    freed = {dataset.key: dataset.bytes for dataset in kept(state.datasets)}
    with state.hold_lock():
        for key in sorted(known if everything else keys or []):
            shutil.rmtree(state.datasets / key)
            print(f"removed {key} ({freed.get(key, 0) >> 20} MiB)")


def _refuse(where: str, message: str, allowed: str) -> NoReturn:
    from plimsoll.experiment import ExperimentError, Problem

    raise ExperimentError([Problem("command line", where, message, allowed)])


def _source(name: str, quick: bool, sets: list[str] | None, blocks: int | None) -> Any:
    from plimsoll.experiment import load
    from plimsoll.run.planning.fitting import Machine, fitted

    return fitted(load(name, quick=quick, sets=sets, blocks=blocks), Machine.found())


def _runner(source: Any, out: Path, command: list[str], seed: int | None) -> Any:
    from plimsoll.environment import StateDir
    from plimsoll.run.observer import Silent
    from plimsoll.run.runner import Runner

    return Runner(source, out, StateDir(), Silent(), command, seed)
