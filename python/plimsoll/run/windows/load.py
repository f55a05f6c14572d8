"""The agent's load against one of several servers: it does nothing until a window is opened, and drains at its end.

The fact that constrains it: a server that hangs must not hold up the others. Every wait for the agent has an end.
"""

from __future__ import annotations

import time
from typing import Any

from plimsoll.run import agent
from plimsoll.run.refusals import StoodStill, TrialFailed
from plimsoll.run.trial.load_session import LoadSession

Json = dict[str, Any]
SEGMENT = "measure"
READY_SECONDS_MAX = 120.0  # to load its probes, and to connect
DRAIN_SECONDS_MAX = 30.0
END_SECONDS_MAX = 120.0  # to write down what it has


class TooLong(TrialFailed):
    """The agent said nothing within its time."""


class WindowedLoad:
    """One segment of a session's load, in windows. Raises agent.AgentFailed and TrialFailed."""

    def __init__(self, session: LoadSession) -> None:
        """Starts the agent; returns when it has connected and waits for its first window."""
        self._session = session
        self._has_told = False  # a line since its window was opened
        request = session.request(SEGMENT, {}) | {"windows": True}
        place = session.place
        self._agent = agent.Agent("load", request, place.load_cpus, place.host)
        try:
            self._until("ready", READY_SECONDS_MAX, "its connections were not open")
        except BaseException:
            self.kill()
            raise

    def window(self, seconds: float, round_: int, position: int) -> Json:
        """One window; returns what the agent tells of it when all that was begun in it has ended."""
        self._agent.window(seconds * 1000, round_, position)
        what = f"round {round_}: transactions of its window had not ended"
        self._has_told = False
        try:
            return self._until("window", seconds + DRAIN_SECONDS_MAX, what)
        except TooLong as error:
            if not self._has_told:
                raise  # the agent hangs, and of the server nothing is known
            raise StoodStill(str(error), seconds + DRAIN_SECONDS_MAX) from error

    def end(self) -> Json:
        """Ends the segment and gives the agent's summary. Raises Refused and Stopped as any segment does."""
        self._agent.stop()
        summary: Json = {}
        until = time.monotonic() + END_SECONDS_MAX
        while (line := self._line(until, "the agent had not ended its segment")) is not None:
            summary = line
        self._finish()
        return self._session.ended(SEGMENT, summary)

    def kill(self) -> None:
        """Ends the agent at once."""
        self._agent.kill()

    def _until(self, event: str, seconds: float, what: str) -> Json:
        until = time.monotonic() + seconds
        while (line := self._line(until, f"{what} after {seconds:g} s")) is not None:
            if line.get("event") == event:
                return line
        self._finish()
        raise TrialFailed(f"the agent ended by itself before it reported {event}")

    def _line(self, until: float, what: str) -> Json | None:
        try:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            line = self._agent.told(left)
        except TimeoutError:
            self.kill()
            raise TooLong(what) from None
        self._has_told |= line is not None
        return line

    def _finish(self) -> None:
        try:
            self._agent.finish()
        except agent.AgentFailed as error:
            if (refused := self._session.refused(error)) is not None:
                raise refused from error
            raise
