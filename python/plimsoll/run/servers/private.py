"""A private server's trial: its data laid out, the server started on them, and everything put back at the end.

Everything that may charge memory (the server, its warm-up, a warm page cache) happens inside the trial's group: Linux
charges a page to whoever touched it first, and a page charged outside is a second, unlimited cache.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import psycopg

from plimsoll.environment import StateDir
from plimsoll.environment.fault import Fault
from plimsoll.environment.memory import page_cache
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.record import writer
from plimsoll.run import agent
from plimsoll.run.host import HERE, SERVER_USER
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.servers.kind import AnyServer, ServerKind, ServerOfTrial
from plimsoll.run.servers.residency import in_bytes, residency_watched
from plimsoll.run.surroundings import knobs
from plimsoll.run.surroundings.arranged import PrivatePlace, arranged
from plimsoll.run.surroundings.file_locations import FileLocations, is_series, locations_of
from plimsoll.run.trial.at_work import AtWork, TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import ServerFailed
from plimsoll.target.dataset import Dataset

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


@dataclass
class PrivateAtWork(AtWork):
    """A private server at work: how its page cache is watched and how it ends."""

    place: PrivatePlace

    @property
    def data(self) -> Path:
        """What the server keeps."""
        return self.place.data

    def beside(self) -> tuple[Path, tuple[int, int]]:
        """Where a second server may live for a while, and as whose user and group."""
        return self.place.folder, self.place.owner

    @contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        with residency_watched(log, self.place):
            yield

    @contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        try:
            yield
        except (ServerFailed, agent.AgentFailed, psycopg.Error) as error:
            raise explained(error, self.place, self.server.log_tail(2000)) from error
        finally:
            log.log_tail = self.server.log_tail()
            log.facts["group"] = self.place.describe_group()

    def end(self, log: TrialLog) -> None:
        with log.phase("stop", self.observer):
            self.server.abandon()


class PrivateKind(ServerKind, Generic[AnyServer]):
    """A kind of server of which each trial has its own, on a clone of a kept data set or on empty data."""

    # One that keeps data sets is a DatasetBuilder, too (servers/datasets.py).

    caveats: ClassVar[tuple[str, ...]] = ()  # what the reader of each of its trials has to know

    def obstacles(self, plan: Plan, treatments: list[Treatment], state: StateDir) -> Iterator[str]:
        del plan
        for treatment in treatments:
            settings = treatment.settings
            if HERE.server_user() == SERVER_USER and not HERE.has_user(SERVER_USER):
                yield (
                    f"the user {SERVER_USER} does not exist, and the server never runs as root; ./plimsoll setup "
                    "creates it"
                )
            yield from self.unfit(settings)
            site = knobs.site_of(settings, state, "plan")
            for knob in knobs.KNOBS:
                yield from knob.obstacles(site)

    @contextmanager
    def of_run(self, context: RunContext, settings: Experiment, built: dict[str, Dataset]) -> Iterator[ServerOfTrial]:
        del settings
        yield lambda log: PrivateTrial(self, context, log, built)

    @abstractmethod
    def server(self, place: PrivatePlace, settings: Experiment) -> AnyServer:
        """The server of a trial, not started."""

    @abstractmethod
    def lay_out(self, server: AnyServer, place: PrivatePlace, settings: Experiment, dataset: Dataset | None) -> None:
        """Clones the data; empty ones where there is no data set."""

    def has_warmed(self, at: PrivateAtWork, log: TrialLog) -> None:
        """The files were read into the page cache, because the experiment wants it warm."""

    def before_start(self, at: PrivateAtWork, log: TrialLog, before: page_cache.Residency) -> None:
        """What else is to be said of the trial; `before`: what of its data was in the page cache."""

    @abstractmethod
    def at_work(
        self, server: AnyServer, place: PrivatePlace, settings: Experiment, context: RunContext, log: TrialLog
    ) -> PrivateAtWork:
        """The server as segments see it."""

    @abstractmethod
    def start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        """Starts the server on its data, configured, its caches in the state that was asked for; says what it is."""


@dataclass
class PrivateTrial(TrialServer):
    """The private server of one trial."""

    kind: PrivateKind[Any]
    context: RunContext
    log: TrialLog
    built: dict[str, Dataset]

    @property
    def settings(self) -> Experiment:
        """Of the treatment."""
        return self.log.trial.treatment.settings

    @property
    def locations(self) -> FileLocations:
        """Where its files lie."""
        return locations_of(self.settings, self.context.state, self.context.trial_name(self.log.trial))

    @property
    def data_outlive_kills(self) -> bool:
        return is_series(self.settings)

    @property
    def data(self) -> Path:
        return self.locations.data / "data"

    def remove_data(self) -> None:
        self.locations.remove()

    @contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[AtWork]:
        kind, context, settings = self.kind, self.context, self.settings
        # A fault of the surroundings is not this trial's: it ends the run, since the next trial would meet it too.
        with arranged(context, settings, context.trial_name(log.trial), log) as place:
            server = kind.server(place, settings)
            at = kind.at_work(server, place, settings, context, log)
            try:
                with at.explaining(log):
                    self._lay_out_and_start(at, log, goes_on=goes_on)
                    yield at
            finally:
                writer.write_text(at.folder / "server.log", (log.log_tail or "") + "\n")
                server.abandon()

    def _lay_out_and_start(self, at: PrivateAtWork, log: TrialLog, *, goes_on: bool) -> None:
        place, settings = at.place, self.settings
        if goes_on:  # what was read before was charged to a group that is gone
            page_cache.evict(*place.locations.apart)
        else:
            key = self.kind.dataset_key(settings)
            with log.phase("clone", at.observer):
                self.kind.lay_out(at.server, place, settings, None if key is None else self.built[key])
        # What is known of the trial's begin stays known.
        begun = TrialLog(log.trial) if goes_on else log
        self._start(at, begun, is_new=not goes_on)
        if goes_on:
            log.facts.setdefault("phases", []).extend(begun.facts.get("phases", []))

    def _start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        if at.place.served:
            self._prepare_server_cache(at, log)
        before = page_cache.residency(*at.place.trees)
        log.facts["residency"] = {"before_trial": in_bytes(before)}
        for text in (*self.settings.workload.caveats(), *self.kind.caveats):
            log.caveat(text)
        if self.settings.environment.page_cache == "warm":
            with log.phase("warm", at.observer):
                at.place.read_inside(*at.place.trees)
            self.kind.has_warmed(at, log)
        self.kind.before_start(at, log, before)
        self.kind.start(at, log, is_new=is_new)

    def _prepare_server_cache(self, at: PrivateAtWork, log: TrialLog) -> None:
        """Of this kernel's NFS server: what is in its memory of the files, whatever the client has in its own."""
        wanted = self.settings.environment.nfsd.page_cache
        with log.phase(f"server's cache {wanted}", at.observer):
            if wanted == "cold":
                page_cache.evict(*at.place.served)
            else:
                page_cache.warm(*at.place.served)


def explained(error: Exception, place: PrivatePlace, log_tail: str) -> Exception:
    """What a failure means: the end of this trial, of the run, or a fault of Plimsoll."""
    if isinstance(error, agent.AgentFailed) and error.code == agent.EXIT_IDENTITY:
        return error
    full = "No space left on device"
    of_record = isinstance(error, agent.AgentFailed) and error.code == agent.EXIT_RECORD
    if not of_record and (full in log_tail or full in str(error)) and (device := place.full_device()) is not None:
        return TrialFailed(f"{device} is full: {error}; make its image larger, name a larger device, or use less data")
    if full in log_tail or full in str(error) or of_record:
        return Fault(
            f"the trial could not be recorded: {error}",
            remedy="free disk space, then resume: ./plimsoll run --resume RUN",
        )
    kills = place.oom_kills()
    cause = f"the kernel's out-of-memory killer ended {kills} process(es) of the server's group; " if kills else ""
    return TrialFailed(f"{cause}{error}")
