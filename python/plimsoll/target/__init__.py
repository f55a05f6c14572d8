"""The server under test: how it is started, configured, loaded and stopped; and where one that runs already is.

Its import is quick: whoever only watches a server loads nothing of how one is made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.target.connection import Connection
    from plimsoll.target.postgres import PostgresServer
    from plimsoll.target.server import ServerFailed

_WHERE = {"Connection": "connection", "PostgresServer": "postgres", "ServerFailed": "server"}

__all__ = ["Connection", "PostgresServer", "ServerFailed"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
