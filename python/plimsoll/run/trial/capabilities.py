"""What a server at work may be able to do beside taking transactions: each a protocol that segments ask for.

The fact that constrains it: a capability names what is done and never a server, so that whichever server has it can
perform the segments that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from plimsoll.analysis.trial.answers import Row

if TYPE_CHECKING:
    from plimsoll.experiment.workloads.decision_support import DecisionSupport

Json = dict[str, Any]
Ask = Callable[[str], Sequence[Row]]


class QueryRefused(Exception):
    """A query that the server did not answer, in its words."""


@runtime_checkable
class LoadsItself(Protocol):
    """It fills its empty database as a part of the trial."""

    def populate(self) -> Json:
        """Makes and fills the tables; the agent's answer to `populate` (schema/agent.md)."""

    def check_as_loaded(self) -> list[Json]:
        """What must hold of them just then: checks as the agent tells them."""

    def has_loaded(self) -> None:
        """What follows a load and is no part of it: there are tables now."""


@runtime_checkable
class AnswersQueries(Protocol):
    """It answers single queries beside its load."""

    def asking(self, timeout_seconds: float | None) -> AbstractContextManager[Ask]:
        """A session that is asked, each query with so much time. What is refused raises QueryRefused."""

    def beside(self) -> tuple[Path, tuple[int, int]]:
        """A folder in which a second server may live for a while, and as whose user and group."""


@runtime_checkable
class Tidies(Protocol):
    """It can be tidied up between two rounds of a soak."""

    def vacuum(self) -> None:
        """Removes what changes have left in all tables."""

    def checkpoint(self) -> None:
        """Writes everything dirty."""


@runtime_checkable
class PerformsStreams(Protocol):
    """It performs the streams of a test of decision support, each a session with its queries one after the other."""

    def vacuum(self) -> None:
        """Tidies all tables up after a test that has changed them."""

    def streams(self, workload: DecisionSupport, test: str, name: str, seed: int) -> Callable[[], None]:
        """Prepares what a test needs, and gives what performs it into the trial's folder `name`.

        `test`: "power", "throughput", or "plans", a pass under EXPLAIN; `seed`: of its parameters. Performing raises
        Stopped when the run is to end.
        """
