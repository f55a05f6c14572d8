"""A server under test, as the flow of a trial sees it.

The fact that constrains it: not everything has all of it. A server that somebody else runs is never started or stopped,
an embedded one cannot be connected to, and where files themselves are under test there is no server at all. What a
server lacks it answers by absence, as the methods with a body here do; the flow asks for nothing by a server's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import subprocess

    from plimsoll.target.connection import Connection

Json = dict[str, Any]
Launch = Callable[..., "subprocess.Popen[bytes]"]
Settings = dict[str, bool | int | float | str]
LOG = "server.log"
LOG_TAIL_BYTES = 64 * 1024


class ServerFailed(Exception):
    """The server did not start, refused, or ended; the message carries its words or the end of its log."""


class CrashLine(NamedTuple):
    """A line of a server's log that tells of a crash. `epoch_ns`: when, by the log; None where it does not say."""

    text: str
    epoch_ns: int | None


class LoadTarget(Protocol):
    """What a load is performed on, as the agent is told of it."""

    def as_request(self) -> Json:
        """The agent's `target`."""


class Server:
    """One server. `load_connection`: how the load reaches it; None where it is not reached by one."""

    load_connection: LoadTarget | None = None

    def configure(self, settings: Settings, memory: int | None) -> None:
        """Takes the settings for the next start; sizes relative to `memory` (bytes) are resolved."""

    def start(self, seconds: float = 60) -> None:
        """Starts it, and waits that long at most until it answers. Raises ServerFailed."""

    def stop(self) -> None:
        """Ends it cleanly, its data on disk. Raises ServerFailed."""

    def abandon(self) -> None:
        """Ends it at once, if it runs: its data are thrown away."""

    def leave_only_data(self) -> None:
        """Removes everything of a stopped server but its data."""

    def describe(self) -> Json:
        """The `server` of trial.json: `version`, `settings`, `durability`."""
        return {}

    def is_settled(self) -> bool:
        """Whether all that was done is in its counters by now; waits a little for it."""
        return True

    def is_running(self) -> bool:
        """Whether it is up; what is no process of ours is taken to be."""
        return True

    def crashes(self) -> list[CrashLine]:
        """The lines in which it says, at the end of its log, that it or a process of it has died."""
        return []

    def sizes(self) -> dict[str, int]:
        """What grows with use: `database_bytes`, `dead_tuples`; those that it lacks are absent."""
        return {}

    def counters(self) -> dict[str, int]:
        """Its cumulative counters; those that it lacks are absent."""
        return {}

    def log_tail(self, size_max: int = LOG_TAIL_BYTES) -> str:
        """The end of its log; empty where there is none."""
        del size_max
        return ""


class LoadedServer(Server):
    """One that the agent's load is performed on."""

    load_connection: LoadTarget


class ReachedServer(LoadedServer):
    """One that the load reaches by a connection."""

    load_connection: Connection
