"""The verb `soak`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.options import Json, NoPage, Quick, Sets, refuse


def soak(
    name: Annotated[
        str | None, typer.Argument(metavar="EXPERIMENT", help="a name that `list` shows, or a path; not with --resume")
    ] = None,
    length: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="how long: 90s, 12h, 14d [the experiment's, or 14d]")
    ] = None,
    round_length: Annotated[
        str | None, typer.Option("--round", metavar="TIME", help="how long a round measures [the experiment's]")
    ] = None,
    between: Annotated[
        str | None,
        typer.Option("--between", help="rounds: vacuum, checkpoint or nothing [the experiment's, or vacuum]"),
    ] = None,
    go_on: Annotated[
        bool | None, typer.Option("--go-on/--end", help="when the server has crashed [the experiment's, or --end]")
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="an open loop of so many transactions a second")] = None,
    line: Annotated[
        Path | None, typer.Option("--line", metavar="RUN", help="an open loop at a share of this run's load line")
    ] = None,
    share: Annotated[float | None, typer.Option("--share", help="with --line: of the load line, such as 0.7")] = None,
    unit: Annotated[bool, typer.Option("--unit", help="a systemd unit that goes on after a reboot")] = False,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="go on with a soak")] = None,
    quick: Quick = False,
    sets: Sets = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="seed of the run")] = None,
    no_page: NoPage = False,
    as_json: Json = False,
) -> None:
    """One server under an experiment's load for days: drift, change points, what grows, what the kernel says."""
    given = [length, round_length, between, go_on, rate, line, share, sets, out, seed]
    if resume is not None:
        if name is not None or quick or unit or any(one is not None for one in given):
            allowed = "--resume RUN without other options than --no-page and --json"
            refuse("--resume", "a soak is resumed with the settings that it began with", allowed)
        from plimsoll.cli import records

        sys.exit(records.resume(resume, as_json, None, not no_page))
    if name is None:
        refuse("EXPERIMENT", "a soak is of an experiment", "a name that `list` shows, a path, or --resume RUN")
    if between not in (None, "vacuum", "checkpoint", "nothing"):
        refuse("--between", f"{between!r} is not known", "vacuum, checkpoint or nothing")
    from plimsoll.cli import soak as verb
    from plimsoll.run.soak.source import Asked

    asked = Asked(length, round_length, between, go_on, rate, line, share)
    request = verb.Request(name, asked, quick, sets, unit)
    sys.exit(verb.run(request, out, seed, as_json=as_json, draws=not no_page))
