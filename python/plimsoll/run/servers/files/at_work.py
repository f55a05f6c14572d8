"""A folder at work in a trial: the agent's load on it, and the check of what that has left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from plimsoll.run import agent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.servers.private import PrivateAtWork
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog

# What the file system said (full, read-only, not ours to use) ends the trial, and the record is somewhere else.
OF_THE_FILES = (agent.EXIT_BAD_REQUEST, agent.EXIT_UNREACHABLE)


@dataclass
class FilesAtWork(PrivateAtWork):
    """The files of one trial."""

    load: LoadSession

    @contextmanager
    def explaining(self, log: TrialLog) -> Iterator[None]:
        with super().explaining(log):
            try:
                yield
            except agent.AgentFailed as error:
                if error.code in OF_THE_FILES:
                    raise TrialFailed(str(error)) from error
                raise

    def check(self, log: TrialLog) -> None:
        log.facts["checks"] = self.load.check()
