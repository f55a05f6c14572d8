"""The server under test: how it is found, configured, loaded, started, read and stopped."""

from plimsoll.target.connection import Connection
from plimsoll.target.postgres import PostgresServer, ServerFailed

__all__ = ["Connection", "PostgresServer", "ServerFailed"]
