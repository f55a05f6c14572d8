"""A web server at work in a trial: the agent's load on it, and the check of its files and of its log of POSTs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from plimsoll.run.servers.private import PrivateAtWork
from plimsoll.run.servers.web.place import WebPlace
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import ServerFailed
from plimsoll.target.web_server import WebServer

# What either server writes into its log of a process of its own that was ended by somebody else.
_KILLED: Final = ("exited on signal", "exit signal")
# What the program behind it says, once, before it answers POSTs with 500 (crates/responder/src/program/mod.rs).
_UNLOGGED: Final = "POSTs cannot be logged and are refused"
_LOG_BYTES: Final = 16 << 20  # read of the server's log for that: the server may have much to say after it


@dataclass
class WebAtWork(PrivateAtWork):
    """The web server of one trial."""

    server: WebServer
    place: WebPlace
    load: LoadSession

    @contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        """What of its files is in the page cache, by class, beside all that."""
        before = self.place.residency_by_class()
        with super().watched(log):
            yield
        self.server.check_alive()
        self._check_logging()
        log.facts["residency"]["by_class"] = {"before": before, "after": self.place.residency_by_class()}

    def _check_logging(self) -> None:
        """Raises ServerFailed where POSTs could not be logged: what was measured is no serving of this mix."""
        said = next((line for line in self.server.log_tail(_LOG_BYTES).splitlines() if _UNLOGGED in line), None)
        if said is not None:
            raise ServerFailed(said[said.index(_UNLOGGED) :].strip())

    def check(self, log: TrialLog) -> None:
        killed = [line for line in self.server.log_tail().splitlines() if any(word in line for word in _KILLED)]
        if killed:
            log.caveat(f"{len(killed)} of the server's processes were killed during the trial: {killed[0].strip()}")
        log.facts["checks"] = self.load.check()
