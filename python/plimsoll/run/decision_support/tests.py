"""The segments of a decision-support trial: load, power, throughput, plans, one after the other on one server.

The fact that constrains it: refresh functions change the tables for good, so a test that was begun cannot be begun
again in its trial, and what runs after it runs on what it left, as the specification has it. (What each refresh
function left of its set is asked at once; all tables are checked after the load and at the end.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.run.decision_support import answers
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.capabilities import AnswersQueries, LoadsItself, PerformsStreams
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import read_counters
from plimsoll.run.trial.segment import Segment

Json = dict[str, Any]
PLANS = "plans"


def segments(workload: DecisionSupport) -> list[Segment]:
    """Every test of a trial. The first after the load test stands for the trial."""
    load: list[Segment] = [LoadTest(workload)] if workload.loads_itself() else []
    tests = [StreamsTest(workload, kind, name, seed) for kind, name, seed in _passes(workload)]
    if tests:
        tests[0].stands_for_trial = True
    return [*load, *tests]


def _passes(workload: DecisionSupport) -> Iterator[tuple[str, str, int]]:
    """What runs after the load test: what it is, its folder in the trial, and the seed of its parameters."""
    if "power" in workload.tests:
        yield "power", "power", workload.seed
    if "throughput" in workload.tests:
        for number in range(1, workload.repeats + 1):
            yield "throughput", f"throughput-{number}", workload.seed_of(number)
    if workload.explain:
        yield PLANS, PLANS, workload.seed


class LoadTest(Segment):
    """Fills the empty database, timed by phase and table; then looks at what is there."""

    name = kind = "load"

    def __init__(self, workload: DecisionSupport) -> None:
        self._workload = workload

    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        del about
        assert isinstance(at, LoadsItself)  # the plan lets no other server have it
        with log.phase("load", at.observer):
            told = at.populate()
        log.facts["load_test"] = {key: value for key, value in told.items() if key != "event"}
        with log.phase("check", at.observer):
            log.facts["load_checks"] = at.check_as_loaded()
        if (against := self._workload.answers_against) is not None:
            assert isinstance(at, AnswersQueries)
            with at.asking(self._workload.query_timeout_seconds) as ask:
                answers.check(at, against, ask, log, *at.beside())

    def conclude(self, at: AtWork) -> None:
        assert isinstance(at, LoadsItself)
        at.has_loaded()


class StreamsTest(Segment):
    """A power or throughput test, or the pass for plans.

    trial.json gets an entry of `tests` with its readings; of the test that stands for the trial these are the trial's
    own, and `measured_segment` is its folder.
    """

    def __init__(self, workload: DecisionSupport, kind: str, name: str, seed: int) -> None:
        self._workload, self.kind, self.name, self._seed = workload, kind, name, seed

    def prepare(self, at: AtWork, log: TrialLog, before: Segment | None, *, was_interrupted: bool) -> None:
        """Between throughput tests, VACUUM. A test that was interrupted has used the tables as one that was done."""
        follows = before is not None and before.kind == "throughput"
        if self.kind == "throughput" and (follows or was_interrupted):
            with log.phase("vacuum", at.observer):
                _streaming(at).vacuum()

    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        entry: Json = {"test": self.kind, "segment": self.name, **about}
        log.facts.setdefault("tests", []).append(entry)
        if self.stands_for_trial:
            log.facts["measured_segment"] = self.name
        perform = _streaming(at).streams(self._workload, self.kind, self.name, self._seed)
        read_counters(at.server, at.place, log, "before", entry)
        with log.phase(self.kind, at.observer):
            perform()
        read_counters(at.server, at.place, log, "after", entry)
        if self.stands_for_trial:
            log.facts |= {key: value for key, value in entry.items() if key.endswith("counters")}


def _streaming(at: AtWork) -> PerformsStreams:
    assert isinstance(at, PerformsStreams)  # the plan lets no other server have these tests
    return at
