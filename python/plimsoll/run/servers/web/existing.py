"""Trials on a web server that somebody else runs (target.url): nothing of it is configured, restarted or limited.

The set of files is laid out once, in a folder of the run's own below the one that the server serves, and removed at
the end. What can be seen is what the client tells. A server whose folder is not on this machine has to have the set.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from plimsoll.environment import Fault, Journal, StateDir
from plimsoll.environment.folders import placed
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.experiment.environment import Environment
from plimsoll.run import agent
from plimsoll.run.requests import data_request
from plimsoll.run.servers.existing import ExistingAtWork, Found, TrialOnExisting
from plimsoll.run.servers.kind import ServerKind, ServerOfTrial
from plimsoll.run.sizes import memory_bytes
from plimsoll.run.trial.log import TrialLog
from plimsoll.target.dataset import Dataset
from plimsoll.target.server import LoadedServer
from plimsoll.target.web_server import MARK, WebTarget

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

_ANSWER_SECONDS: Final = 10.0
_FILE: Final = "file_set/dir00000/class0_0"


class ReachedWeb(LoadedServer):
    """A web server by its address."""

    def __init__(self, target: WebTarget) -> None:
        self.load_connection: WebTarget = target

    def describe(self) -> dict[str, Any]:
        """What it calls itself; its settings are its own."""
        named = _asked(f"{self.load_connection.url}/").getheader("Server")
        return {"version": named or "not told", "settings": {}, "durability": {}}


def _asked(url: str) -> http.client.HTTPResponse:
    """The answer to GET, read to its end. Raises OSError or HTTPException."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


class ExistingWeb(ServerKind):
    """A web server of somebody else's, used as it is."""

    is_private: ClassVar[bool] = False
    why_not_resumed: ClassVar[str] = (
        "a run on an existing web server cannot be resumed: its files were removed when it stopped"
    )

    def version(self, settings: Experiment) -> str | None:
        del settings
        return None

    def obstacles(self, plan: Plan, treatments: list[Treatment], state: StateDir) -> Iterator[str]:
        del state
        experiment, default = plan.experiment, Environment()
        given = [path for factor in experiment.factors for path in factor.paths]
        given += [f"environment.{name}" for name, value in experiment.environment if value != getattr(default, name)]
        for path in dict.fromkeys(given):
            if path.startswith(("environment.", "target.")) and path != "environment.load_cpus":
                yield (
                    f"{path} cannot be set or varied on an existing server (target.url): nothing of it is "
                    "configured or restarted; vary workload.* or leave target.url out"
                )
        sets = {str(one.settings.workload.rows_from(memory_bytes(one.settings))) for one in treatments}
        if len(sets) > 1:
            yield (
                "target.url: the set of files is laid out once for a run, and these treatments want several; give "
                "workload.load or workload.directories"
            )
        folder = experiment.target.files.data
        if folder is not None and not Path(folder).is_dir():
            yield f"target.files.data = {folder}: no such folder; name the one that the server serves at target.url"
        url = (experiment.target.url or "").rstrip("/")
        try:
            answer = _asked(f"{url}/{_FILE if folder is None else ''}")
        except (OSError, ValueError, http.client.HTTPException) as error:
            yield f"target.url = {url}: the server cannot be reached: {error}"
            return
        if folder is None and answer.status != http.HTTPStatus.OK:
            yield (
                f"target.url = {url}: {_FILE} is answered with {answer.status}, so the set of files is not there; name "
                "the folder that it serves by target.files.data, and the set is laid out in it and removed at the end"
            )

    def remarks(self, plan: Plan, treatments: list[Treatment]) -> Iterator[str]:
        del treatments
        text = "memory, swap, CPUs, caches and settings of the server stay as they are and cannot be varied"
        if plan.experiment.target.files.data is None:
            yield f"target.url: the files there are read and not changed; {text}"
        else:
            yield f"target.url: a folder is made in target.files.data and removed at the end; {text}"

    @contextmanager
    def of_run(self, context: RunContext, settings: Experiment, built: dict[str, Dataset]) -> Iterator[ServerOfTrial]:
        """Lays out the files, and removes them at the end."""
        del built
        journal = Journal.create(context.state, context.out.name)
        try:
            target, is_ours = _laid_out(context, settings, journal)
            pages = _Pages(target, is_ours=is_ours)
            yield lambda _log: _TrialOnExisting(context, pages)
        finally:
            with context.interrupts.must_finish():
                journal.put_back_all()


@dataclass
class _Pages(Found):
    """What the load finds on the server."""

    target: WebTarget


def _laid_out(context: RunContext, settings: Experiment, journal: Journal) -> tuple[WebTarget, bool]:
    """Where the set of files is, and whether it was made for this run. Raises Fault where it is not served."""
    url, folder = (settings.target.url or "").rstrip("/"), settings.target.files.data
    if folder is None:
        return WebTarget(url, Path("/")), False
    made = placed.folder_of(Path(folder), context.out.name)
    placed.make(made, mode=0o755, journal=journal)
    request = {"target": {"kind": "web", "folder": str(made)}, "workload": data_request(settings)}

    def see(_running: agent.Agent, line: dict[str, Any]) -> None:
        context.observer.event("dataset", line=line)

    remedy = "see the server's own log; nothing was kept"
    try:
        agent.call("populate", request, on_line=see)
    except agent.AgentFailed as error:
        raise Fault(f"target.files.data: {error}", remedy=remedy) from None
    for path in made.rglob("*"):  # whatever our umask is, the server's user reads them
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        answer = _asked(f"{url}/{made.name}/{MARK}")
        found = f"it answers with {answer.status}"
    except (OSError, http.client.HTTPException) as error:
        answer, found = None, str(error)
    if answer is None or answer.status != http.HTTPStatus.OK:
        raise Fault(f"target.url = {url}: it does not serve what lies in {folder}: {found}", remedy=remedy)
    return WebTarget(f"{url}/{made.name}", made), True


@dataclass
class _AtWork(ExistingAtWork):
    """The server in one trial."""

    errors: ClassVar[tuple[type[Exception], ...]] = (OSError, http.client.HTTPException)

    def check(self, log: TrialLog) -> None:
        log.facts["checks"] = self.load.check()


@dataclass
class _TrialOnExisting(TrialOnExisting):
    at_work: ClassVar[type[ExistingAtWork]] = _AtWork

    pages: _Pages

    @property
    def found(self) -> Found:
        return self.pages

    def reached(self) -> LoadedServer:
        return ReachedWeb(self.pages.target)

    def unchecked(self) -> str:
        return "the files were there before: compared as they are answered, and not checked at the end"
