"""Trials on a server that somebody else runs, whatever server it is: nothing of it is configured, restarted or limited.

The fact that constrains it: the data are one set for all trials, and grow from one to the next.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from plimsoll.environment import cpus as cpu_lists
from plimsoll.run import agent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.requests import workload_request
from plimsoll.run.servers import double_caching
from plimsoll.run.trial import repeat
from plimsoll.run.trial.at_work import AtWork, TrialServer, trial_folder
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place
from plimsoll.target.server import LoadedServer

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


@dataclass(kw_only=True)
class Found:
    """What the load finds on the server; it grows from trial to trial."""

    is_ours: bool
    next_index: int = 0
    summaries: list[Path] = field(default_factory=list)


@dataclass
class ExistingAtWork(AtWork):
    """The server in one trial."""

    errors: ClassVar[tuple[type[Exception], ...]] = ()  # of asking it, beside those of the load

    server: LoadedServer
    load: LoadSession

    @contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        del log
        failures: tuple[type[Exception], ...] = (agent.AgentFailed, *self.errors)
        try:
            yield
        except failures as error:
            raise TrialFailed(str(error)) from error


@dataclass
class TrialOnExisting(TrialServer):
    """The server of one trial."""

    at_work: ClassVar[type[ExistingAtWork]] = ExistingAtWork

    context: RunContext

    @property
    @abstractmethod
    def found(self) -> Found:
        """What the load finds on it."""

    @abstractmethod
    def reached(self) -> LoadedServer:
        """The server."""

    @abstractmethod
    def unchecked(self) -> str:
        """What is to be said of data that are not ours."""

    @contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[AtWork]:
        del goes_on  # nothing of it is ours to outlive anything
        at = self._at_work(log)
        log.facts |= {
            "residency": None,
            "double_caching": double_caching.none(double_caching.EXISTING),
            "group": None,
            "cpus": {"target": None, "load": cpu_lists.show(at.place.load_cpus or at.place.host.cpus())},
        }
        log.caveat("existing server: its memory, swap, caches, CPUs and settings were left as they are")
        if not self.found.is_ours:
            log.caveat(self.unchecked())
        for text in at.settings.workload.caveats():
            log.caveat(text)
        try:
            with at.explaining(log):
                log.facts["server"] = at.server.describe()
                yield at
        finally:
            self.found.next_index = at.load.next_index

    def _at_work(self, log: TrialLog) -> ExistingAtWork:
        context, found, settings = self.context, self.found, log.trial.treatment.settings
        wanted = settings.environment.load_cpus
        load_cpus = None if wanted == "all" else set(cpu_lists.check(wanted))
        place = Place(devices=[], group=None, load_cpus=load_cpus, host=context.host)
        server, folder = self.reached(), trial_folder(context, log)
        repeat.follow(found.summaries, folder)
        load = LoadSession(
            server,
            workload_request(settings),
            settings,
            place,
            folder,
            context.observer,
            context.interrupts.is_stopping,
            next_index=found.next_index,
            summaries=found.summaries,
            block=log.trial.block,
            is_checked=found.is_ours,
        )
        return self.at_work(server, place, settings, folder, context, load)
