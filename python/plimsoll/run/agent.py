"""Driving the agent: one request in, JSON lines out (schema/agent.md).

The agent ends when its standard input closes, so a killed front never leaves load running.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plimsoll.run.host import HERE, Host

PROGRAM = Path(os.environ.get("PLIMSOLL_AGENT", Path(__file__).resolve().parents[3] / "target/release/plimsoll-agent"))
KILL_SECONDS_MAX = 10.0
EXIT_RECORD, EXIT_BAD_REQUEST, EXIT_UNREACHABLE, EXIT_STOPPED, EXIT_IDENTITY = 1, 2, 3, 4, 70


class AgentFailed(Exception):
    """The agent did not do what was asked; the message is its own."""

    def __init__(self, verb: str, code: int, message: str, sqlstate: str | None = None) -> None:
        """`sqlstate`: the five characters by which the server refused; None where it did not."""
        self.code, self.message, self.sqlstate = code, message.removeprefix("plimsoll-agent: "), sqlstate
        super().__init__(f"the agent's {verb} ended with exit code {code}: {self.message or 'no message'}")


class Agent:
    """One running call of the agent."""

    def __init__(
        self,
        verb: str,
        request: dict[str, Any],
        cpus: set[int] | None = None,
        host: Host = HERE,
        program: Path | None = None,
    ) -> None:
        self.verb = verb
        self._sqlstate: str | None = None
        self._process = host.start_led([str(program or PROGRAM), verb], cpus)
        self._heard = b""  # of the line that `told` waits for
        assert self._process.stdin is not None
        self._tell(json.dumps(request))

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it ended by itself; its exit code says why

    def stop(self) -> None:
        """Ends the segment: what is under way finishes, nothing new starts."""
        self._tell("stop")

    def kill(self) -> None:
        """Ends the agent at once."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it waits in the kernel
            self._process.wait(KILL_SECONDS_MAX)

    @property
    def pid(self) -> int:
        """The agent's process id."""
        return self._process.pid

    def lines(self) -> Iterator[dict[str, Any]]:
        """The agent's lines as they come."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                return  # torn: the agent was killed while it wrote, which its exit code tells
            told = json.loads(line)
            if told.get("event") == "refused":
                self._sqlstate = str(told["sqlstate"])
            yield told

    def window(self, milliseconds: float, round_: int, position: int) -> None:
        """Opens a window for so long; of a load that was asked for windows."""
        self._tell(f'window {{"ms": {milliseconds:g}, "round": {round_}, "position": {position}}}')

    def told(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None where the agent has ended. Raises TimeoutError. Not to be mixed with `lines`."""
        assert self._process.stdout is not None
        pipe, until = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._heard:
            if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError(f"the agent sent nothing for {seconds:g} s")
            read = os.read(pipe, 65536)
            if not read:
                return None
            self._heard += read
        line, _, self._heard = self._heard.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        if told.get("event") == "refused":
            self._sqlstate = str(told["sqlstate"])
        return told

    def finish(self) -> None:
        """Waits for the end. Raises AgentFailed unless it ended well or as it was told to."""
        assert self._process.stderr is not None and self._process.stdin is not None
        message = self._process.stderr.read().strip()
        code = self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # of a line that it ended before
            self._process.stdin.close()
        if code not in (0, EXIT_STOPPED):
            raise AgentFailed(self.verb, code, message, self._sqlstate)


def call(
    verb: str,
    request: dict[str, Any],
    *,
    on_line: Callable[[Agent, dict[str, Any]], None] | None = None,
    cpus: set[int] | None = None,
    host: Host = HERE,
) -> dict[str, Any]:
    """Runs the agent to its end; the last line is the result. `on_line` sees how it goes on, and may stop it."""
    agent = Agent(verb, request, cpus, host)
    result: dict[str, Any] = {}
    try:
        for line in agent.lines():
            result = line
            if on_line and line.get("event") in ("progress", "phase"):
                on_line(agent, line)
    except BaseException:
        agent.kill()
        raise
    agent.finish()
    return result
