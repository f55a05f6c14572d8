"""The agent's verb `watch` with one probe, from its word that it is watching to what it says at the end."""

from __future__ import annotations

import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from plimsoll.run.agent import Agent, AgentFailed

SECONDS = 30.0  # within which the agent has answered, or it hangs


class Watching(ABC):
    """`with` starts and ends it. `watching` and `result` are what the agent says of `probe` at either end."""

    probe = ""

    def __init__(self) -> None:
        self.watching: dict[str, Any] = {}
        self.result: dict[str, Any] = {}
        # Called when it is watching, and before it is told to stop.
        self.begun: Callable[[], None] = lambda: None
        self.ending: Callable[[], None] = lambda: None
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()

    @abstractmethod
    def request(self) -> dict[str, Any]:
        """What the agent is asked for."""

    @abstractmethod
    def _judge(self) -> None:
        """What must hold of the result whatever was done."""

    def __enter__(self) -> Self:
        self._agent = Agent("watch", self.request())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.watching = self._next("watching")["probes"][self.probe]
            assert self.watching["status"] == "on", self.watching
            self.begun()
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._abandon()
            return
        self.ending()
        self._agent.stop()
        try:
            self.result = self._next("watched")["probes"][self.probe]
            self._reader.join(SECONDS)
            self._agent.finish()
        except BaseException:
            self._abandon()
            raise
        self._judge()

    def _abandon(self) -> None:
        self._agent.kill()
        self._reader.join(SECONDS)
        with contextlib.suppress(AgentFailed):
            self._agent.finish()

    def _read(self) -> None:
        for line in self._agent.lines():
            self._lines.put(line)
        self._lines.put({"event": "closed"})

    def _next(self, event: str) -> dict[str, Any]:
        """The next line of that kind; progress in between is let go."""
        while True:
            line = self._lines.get(timeout=SECONDS)
            if line["event"] == event:
                return line
            if line["event"] == "closed":
                self._agent.finish()
                raise AssertionError(f"the agent ended without saying {event}")
