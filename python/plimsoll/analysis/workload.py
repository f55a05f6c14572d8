"""What judging a trial has to know of its workload, beside the numbers that any load has.

The defaults are those of a stream of transactions whose statements are ours. A workload that differs says so in a room
of its own, and is a line of workloads.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.analysis.metric import TRANSACTION
from plimsoll.record import Trial
from plimsoll.record.summary import Summary


def _none_rolled_back(_summary: Summary) -> int:
    return 0


def _no_caveats(_trial: Trial) -> list[str]:
    return []


@dataclass(frozen=True)
class Workload:
    """How the trials of one workload are judged."""

    name: str
    # What a unit of its work is called.
    unit: str = TRANSACTION
    # Whether a trial is made of whole tests: then it is no stream that could be steady, and has no rate to compare.
    is_of_tests: bool = False
    # Whether the load is itself what is under test: then no server waits for it, and all of its CPU time is the result.
    is_its_own_target: bool = False
    # Whether the server's commits follow from the transactions done.
    is_committed_as_done: bool = True
    # Of summary.json: transactions that are done and that the workload itself rolls back; and what is said of them.
    rolled_back: Callable[[Summary], int] = _none_rolled_back
    rolled_back_rule: str = ""
    trial_caveats: Callable[[Trial], list[str]] = _no_caveats
