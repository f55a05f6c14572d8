"""The verb `breakdown`: where the time of a server goes that runs its own load, started by anyone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from plimsoll.cli import folders
from plimsoll.cli.codes import FAILED, STOPPED
from plimsoll.cli.folders import shown
from plimsoll.cli.options import refuse

if TYPE_CHECKING:
    from plimsoll.analysis.watch.document import WatchDocument
    from plimsoll.run.watch.watch import Asked
    from plimsoll.target import Connection
    from plimsoll.target.running import RunningServer

SECONDS_MAX = 3600.0
TOP_MAX = 1000
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Request:
    """The options of the command line."""

    pid: int | None
    dsn: str | None
    seconds: str
    top: int
    metrics: int | None = None


def run(request: Request, out: Path | None, as_json: bool) -> int:
    """Watches, and ends with the picture, the record and the report."""
    from plimsoll.cli.breakdown_view import Prepared, View, print_final
    from plimsoll.cli.metrics import told_on
    from plimsoll.run.observer import Observer, Several, Silent
    from plimsoll.run.signals import Interrupts
    from plimsoll.run.watch.watch import CannotWatch, Watch

    asked = _asked(request)
    folder = _folder(out).absolute()
    interrupts = Interrupts(Silent())
    view = Prepared() if as_json else View(asked, shown(folder))
    observers: list[Observer] = [view]
    try:
        with contextlib.ExitStack() as open_while_watching:
            if request.metrics is not None:
                from plimsoll.run.watch.metrics import LiveMetrics

                metrics = LiveMetrics(folder.name, asked.server.pid, str(asked.server.data))
                told_on(metrics, request.metrics, open_while_watching)
                observers.append(metrics)
            watch = Watch(asked, folder, Several(*observers), interrupts.is_stopping, sys.argv)
            with interrupts.handled(), view:
                status = watch.run()
    except CannotWatch as error:
        _remove(folder)
        _impossible([error.reason])
    document, page = judge(folder, request.top)
    if as_json:
        print(json.dumps({"status": status, "run": str(folder), "report": str(page), "breakdown": document}))
    else:
        print_final(document, shown(page))
    return {"stopped": STOPPED, "failed": FAILED}.get(status, 0)


def judge(folder: Path, top: int | None = None) -> tuple[WatchDocument, Path]:
    """The picture from the record, and its page."""
    from plimsoll.analysis.watch.verdict import analyse_live
    from plimsoll.record import open_run, writer
    from plimsoll.report.watch.page import write_live_report

    document = analyse_live(open_run(folder), top)
    writer.write_json(folder / "breakdown.json", document)
    return document, write_live_report(folder)


def _asked(request: Request) -> Asked:
    """Reads what was given and finds the server. Ends with the exit code that says what is wrong."""
    from plimsoll.run.watch.watch import Asked
    from plimsoll.target.activity_sampler import Way
    from plimsoll.target.running import by_pid, nothing_named, sockets_of

    seconds = _seconds(request.seconds)
    if not 1 <= request.top <= TOP_MAX:
        refuse("--top", f"{request.top} rows cannot be shown", f"1 to {TOP_MAX}")
    connection = _connection(request.dsn) if request.dsn is not None else None
    if os.geteuid() != 0:
        _impossible(
            ["breakdown watches another user's processes in the kernel and needs root: sudo ./plimsoll breakdown"]
        )
    if request.pid is not None:
        server = by_pid(request.pid)
    elif connection is not None:
        server = _answering(connection)
    else:
        raise nothing_named()
    # Asked as the server's own user nothing has to be named; a connection that was named is asked as who we are.
    way = Way([connection]) if connection is not None else Way(sockets_of(server), server.uid)
    return Asked(server, way, seconds, request.top)


def _connection(dsn: str) -> Connection:
    from plimsoll.target import Connection

    try:
        return Connection.from_dsn(dsn)
    except ValueError as error:
        text = str(error).replace("target.dsn", "--dsn").partition("; allowed: ")
        refuse("--dsn", text[0].removeprefix("--dsn: "), text[2] or "a connection string of libpq")


def _answering(connection: Connection) -> RunningServer:
    import psycopg

    from plimsoll.target.running import by_connection, why_no_session

    try:
        return by_connection(connection)
    except psycopg.Error as error:
        _impossible([f"--dsn: no session on the server: {why_no_session(error)}; check it with psql, or name --pid"])


def _seconds(text: str) -> float:
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip())
    if amount is None or amount[2] not in _UNITS:
        refuse("--for", f"{text} is not a duration", "such as 30s, 5m, 1h")
    seconds = float(amount[1]) * _UNITS[amount[2]]
    if not 1 <= seconds <= SECONDS_MAX:
        refuse("--for", f"{text} is too {'short' if seconds < 1 else 'long'}", "1s to 1h")
    return seconds


def _folder(out: Path | None) -> Path:
    if out is None:
        return Path("runs") / f"breakdown-{time.strftime('%Y%m%d-%H%M%S')}"
    return folders.checked(out)


def _remove(folder: Path) -> None:
    """The record of nothing, made by us a moment ago."""
    import shutil

    if (folder / "run.json").is_file():
        shutil.rmtree(folder)


def _impossible(reasons: list[str]) -> NoReturn:
    from plimsoll.run.runner import Impossible

    raise Impossible(reasons)
