"""A server at work in a trial: what segments are performed on, whatever server it is.

The fact that constrains it: not every server can perform every segment. What a segment needs beyond this it asks for by
a capability (a protocol of this folder), and a plan that pairs it with a server without it is refused beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.experiment import Experiment
from plimsoll.record import writer
from plimsoll.run.observer import Observer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place
from plimsoll.target.server import Server

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


@dataclass
class AtWork:
    """A started server with its data, in one trial."""

    server: Server
    place: Place
    settings: Experiment
    folder: Path  # of the trial in the record
    context: RunContext

    @property
    def observer(self) -> Observer:
        """Who is told how it goes."""
        return self.context.observer

    def is_stopping(self) -> bool:
        """Whether the run is to end."""
        return self.context.interrupts.is_stopping()

    @contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        """Around the segment that the trial's own figures are of: what is read before and after it."""
        del log
        yield

    @contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        """Around what is done with it: what goes wrong is told as what it means, TrialFailed or a Fault that ends the
        run, and what the server says at its end is kept."""
        del log
        yield

    def check(self, log: TrialLog) -> None:
        """Whether the data are as the load has left them: `checks` and `ledger` of trial.json."""
        del log

    def end(self, log: TrialLog) -> None:
        """Nothing is asked of it any more."""
        del log


class TrialServer(ABC):
    """The server of one trial before it is started."""

    @abstractmethod
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> AbstractContextManager[AtWork]:
        """The server started, with its data and without load; at the end everything is put back, its log kept.

        `goes_on`: with the data that an earlier start of it in the same trial has left, of which the log knows. What
        goes wrong inside is told as what it means: TrialFailed, or a Fault that ends the run.
        """

    @property
    def data_outlive_kills(self) -> bool:
        """Whether its data lie where no undo removes them, and are gone on with after a kill of any part."""
        return False

    @property
    def data(self) -> Path:
        """Where those lie."""
        raise NotImplementedError  # asked only where they outlive kills

    def remove_data(self) -> None:
        """Removes them."""
        raise NotImplementedError  # as above


def trial_folder(context: RunContext, log: TrialLog) -> Path:
    """The trial's folder in the record, made where it is not there."""
    folder = writer.trial_folder(context.out, log.trial.number)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
