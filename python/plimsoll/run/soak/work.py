"""What a round of a soak measures, by what the workload's trials are made of: a new kind of work is a line here.

The fact that constrains it: a round is the same work every time, on what the one before it has left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plimsoll.experiment.workloads.base import TESTS, TRANSACTIONS
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.capabilities import PerformsStreams
from plimsoll.run.trial.transactions import load_of
from plimsoll.target import ServerFailed

Json = dict[str, Any]
TEST: Final = "throughput"


def _transactions(at: AtWork, name: str, number: int, entry: Json) -> None:
    """The load for so many seconds; it ends at once where the server does."""
    del number, entry
    load = load_of(at)
    load.segment(name, {"seconds": at.settings.measure.seconds}, lambda _line: not at.server.is_running())
    if not at.server.is_running():
        raise ServerFailed(f"the server ended in {name}: {at.server.log_tail(500)}")


def _test(at: AtWork, name: str, number: int, entry: Json) -> None:
    """A throughput test, whole."""
    assert isinstance(at, PerformsStreams)  # the plan has paired the workload with a server that does
    workload: Any = at.settings.workload
    entry["tests"] = [{"test": TEST, "segment": name}]
    at.streams(workload, TEST, name, workload.seed_of(number))()


WORK: Final[dict[str, Callable[[AtWork, str, int, Json], None]]] = {TRANSACTIONS: _transactions, TESTS: _test}


def work_of(at: AtWork) -> Callable[[AtWork, str, int, Json], None]:
    """What a round does of this workload."""
    try:
        return WORK[at.settings.workload.made_of]
    except KeyError:  # the plan refuses it before
        raise TrialFailed(f"no soak is made of {at.settings.workload.made_of}") from None
