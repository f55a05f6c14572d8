"""A block of windows: its servers opened one after the other, round after round of turns, and all of them ended.

The fact that constrains it: a kill may come at any time, with servers frozen. So every server is in the journal of its
own trial, whose putting back thaws it, and a block has no result before all of it has ended: it is done anew whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from plimsoll.environment import Fault, Group
from plimsoll.environment.groups.freezer import NotFrozen
from plimsoll.experiment import PlannedTrial
from plimsoll.experiment.design import turns
from plimsoll.record import writer
from plimsoll.run.carrier import Carrier
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.signals import Stopped
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.windows.served import Served
from plimsoll.run.windows.turning import Turning, turned


@dataclass
class Block:
    """The trials of one block, all of which are done."""

    carrier: Carrier
    trials: Sequence[PlannedTrial]
    _logs: list[TrialLog] = field(default_factory=list)
    _failures: dict[int, TrialFailed] = field(default_factory=dict)  # by the trial's number

    def run(self, server_of: ServerOfTrial) -> None:
        """Leaves a result of each trial. Raises Stopped when the run is to end, Fault where no trial could go on."""
        for trial in self.trials:
            # What is left of an earlier try must not stand beside what is measured now.
            (writer.trial_folder(self.carrier.out, trial.number) / "trial.json").unlink(missing_ok=True)
        try:
            with turned(self.carrier, self.trials, self._logs) as turning, ExitStack() as surroundings:
                self._measure(turning, surroundings, server_of)
        except Stopped:
            for log in self._logs:
                log.write(self.carrier.out, "stopped", "the run was stopped")
            raise
        self._write_down()

    def _write_down(self) -> None:
        """All of the block's results, before one of them may end the run."""
        hopeless: Fault | None = None
        for log in self._logs:
            try:
                self.carrier.end(log, self._failures.get(log.trial.number))
            except Fault as fault:
                hopeless = fault
        if hopeless is not None and self.carrier.left:
            raise hopeless

    def _measure(self, turning: Turning, surroundings: ExitStack, server_of: ServerOfTrial) -> None:
        servers: list[Served] = []

        def kill_all() -> None:
            for server in servers:
                server.kill()

        for trial in self.trials:
            log = self.carrier.begin(trial)
            self._logs.append(log)
            for text in turning.caveats():
                log.caveat(text)
            try:
                turning.turn(trial)  # a Fault ends the run, as one of what trials arrange does
                at = surroundings.enter_context(server_of(log).opened(log))
            except TrialFailed as failure:
                self._failures[trial.number] = failure
                continue
            servers.append(Served(at, log, _group_of(at), self.carrier.plan.experiment.design, turning))
            # Before the first of them is put back all have ended: they may have pages in each other's swap files.
            surroundings.callback(kill_all)
            self._try(servers[-1], servers[-1].warm)
        self._rounds(servers)
        for server in servers:
            if server.failure is None:
                self.carrier.observer.event("turn", trial=server.log.trial)
                self._try(server, server.end)

    def _rounds(self, servers: list[Served]) -> None:
        design, plan, number = self.carrier.plan.experiment.design, self.carrier.plan, self.trials[0].block
        for round_ in range(1, design.rounds + 1):
            for position, place in enumerate(turns(plan.seed, number, round_, len(servers)), start=1):
                if self.carrier.interrupts.is_stopping():
                    raise Stopped
                server = servers[place]
                if server.failure is None:
                    self._try(server, partial(self._window, server, round_, position, design.rounds))
            if all(server.failure is not None for server in servers):
                return

    def _window(self, server: Served, round_: int, position: int, rounds: int) -> None:
        line = server.window(round_, position)
        self.carrier.observer.event("window", trial=server.log.trial, line=line, round=round_, rounds=rounds)

    def _try(self, server: Served, work: Callable[[], None]) -> None:
        """What goes wrong with one server ends its trial, and no other."""
        try:
            try:
                work()
            except NotFrozen as error:
                raise TrialFailed(str(error)) from error
            except Exception:  # what explains it reads logs, which no turn that goes well has the time for
                with server.at.explaining(server.log):
                    raise
        except TrialFailed as failure:
            self._failures[server.log.trial.number] = failure
            server.fail(failure)


def _group_of(at: AtWork) -> Group:
    inside = at.place.inside if isinstance(at.place, PrivatePlace) else None
    if inside is None:
        raise Fault("this server is in no group, and cannot be frozen", remedy='set design.kind = "full factorial"')
    return inside
