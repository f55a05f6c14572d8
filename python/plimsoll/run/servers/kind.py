"""A kind of server, as the flow of a run sees it: one object for each line of servers/registry.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, TypeVar

from plimsoll.environment import StateDir
from plimsoll.experiment import Experiment, Plan, Treatment
from plimsoll.run.observer import Observer
from plimsoll.run.signals import Interrupts
from plimsoll.run.trial.at_work import TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.target.dataset import Dataset
from plimsoll.target.server import Server

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

AnyServer = TypeVar("AnyServer", bound=Server)
ServerOfTrial = Callable[[TrialLog], TrialServer]


class ServerKind(ABC):
    """What a run asks of a kind of server."""

    # Whether each trial has one of its own, which is arranged, limited and thrown away: memory and disk are ours.
    is_private: ClassVar[bool] = True
    # Why a run that was stopped cannot go on; empty where it can.
    why_not_resumed: ClassVar[str] = ""
    # Why servers of it cannot take turns, frozen meanwhile; empty where they can.
    why_no_windows: ClassVar[str] = ""

    @abstractmethod
    def version(self, settings: Experiment) -> str | None:
        """Of the server that is run; None where none of the wanted version is installed, or it is not ours to know."""

    @abstractmethod
    def obstacles(self, plan: Plan, treatments: list[Treatment], state: StateDir) -> Iterator[str]:
        """Why these treatments cannot be run on it here, each with its remedy."""

    def unfit(self, settings: Experiment) -> Iterator[str]:
        """Why this kind of server cannot be had as the settings ask for it, whatever the kernel."""
        del settings
        return iter(())

    def remarks(self, plan: Plan, treatments: list[Treatment]) -> Iterator[str]:
        """What the reader of the plan should know of it beside what the workloads say."""
        del plan, treatments
        return iter(())

    def dataset_key(self, settings: Experiment) -> str | None:
        """The key of the kept data set that a trial begins with; None where it begins with none."""
        del settings
        return None

    def build(
        self, settings: Experiment, key: str, state: StateDir, observer: Observer, interrupts: Interrupts
    ) -> Dataset:
        """Builds the data set of this key, and keeps it."""
        raise NotImplementedError(f"{settings.target.server} keeps no data sets")  # asked only where there is a key

    @abstractmethod
    def of_run(
        self, context: RunContext, settings: Experiment, built: dict[str, Dataset]
    ) -> AbstractContextManager[ServerOfTrial]:
        """For as long as a run lasts: what gives the server of each of its trials.

        `settings`: of its first treatment; `built`: the data sets of the plan, by their keys.
        """
