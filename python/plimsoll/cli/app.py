"""The verbs by their names, and what a signal means to them.

The fact that constrains it: a verb imports what it needs when it is called, so that `doctor` does not pay for the
statistics.
"""

from __future__ import annotations

import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
import typer.core

from plimsoll.cli.codes import STOPPED
from plimsoll.cli.failures import exit_codes
from plimsoll.cli.verbs import experiments, machine, records, servers
from plimsoll.cli.verbs.soak import soak

ABORTED = 130  # what the command-line library makes of Ctrl-C


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
app.command("list")(experiments.list_experiments)
app.command()(experiments.check)
app.command()(experiments.plan)
app.command()(experiments.run)
app.command()(servers.capacity)
app.command()(servers.breakdown)
app.command()(soak)
app.command()(experiments.demo)
app.command()(records.report)
app.command()(records.compare)
app.command()(records.query)
app.command("import")(records.import_capture)
app.command()(records.export)
app.command()(machine.undo)
app.command()(machine.doctor)

cache = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The data sets kept for the next run.")
cache.command("show")(machine.cache_show)
cache.command("remove")(machine.cache_remove)
app.add_typer(cache, name="cache")


_ends: list[int] = []  # what signals have asked for before a run's own handlers were there


def main() -> None:
    """Runs a verb; turns what went wrong into one message and an exit code."""
    # A run has handlers of its own; before and after it both signals mean: nothing is under way, end now.
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    _ends.clear()
    try:
        with exit_codes(), _wrapped_ends():
            app(prog_name="plimsoll")
    except SystemExit as end:
        sys.exit(STOPPED if end.code == ABORTED else end.code)


@contextmanager
def _wrapped_ends() -> Iterator[None]:
    """An extension in which a signal found us may hand on the end as an error of its own: pydantic's SchemaError, where
    models are being built."""
    try:
        yield
    except Exception as error:
        if _ends:
            raise SystemExit(STOPPED) from error
        raise


def _end(_signal: int, _frame: object) -> NoReturn:
    _ends.append(STOPPED)
    # Not KeyboardInterrupt: one that has passed through code which an extension runs while it is imported ends the
    # interpreter by SIGINT, whoever has caught it since.
    raise SystemExit(STOPPED)
