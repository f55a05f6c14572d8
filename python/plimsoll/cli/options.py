"""What several verbs take, how JSON is printed where it is asked for, and how wrong words are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

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


def refuse(where: str, message: str, allowed: str) -> NoReturn:
    """Words that do not go together: what is wrong, and what is allowed."""
    from plimsoll.experiment import ExperimentError, Problem  # dear to load, and seldom needed

    raise ExperimentError([Problem("command line", where, message, allowed)])


def print_json(value: Any) -> None:
    """For other programs, on the standard output."""
    print(json.dumps(value, indent=1, default=str))
