"""A PostgreSQL that is asked and nothing else: whoever runs it, it is reached by a connection."""

from __future__ import annotations

from typing import Any

from plimsoll.target.connection import Connection
from plimsoll.target.server import ReachedServer


class ReachedPostgres(ReachedServer):
    """The server at the other end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.load_connection = connection

    def describe(self) -> dict[str, Any]:
        return self.load_connection.describe()

    def is_settled(self) -> bool:
        """A backend flushes its statistics as it ends, so no client may be left."""
        return self.load_connection.wait_without_clients()

    def counters(self) -> dict[str, int]:
        return self.load_connection.counters()
