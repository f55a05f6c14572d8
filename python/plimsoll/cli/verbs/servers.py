"""Verbs about one server: capacity, breakdown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.options import Json, Metrics, Quick, Sets


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
