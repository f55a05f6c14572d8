"""Which PostgreSQL an experiment means, of those that are installed."""

from __future__ import annotations

import functools

from plimsoll.environment.discover import PostgresInstall, servers


@functools.cache
def installed() -> tuple[PostgresInstall, ...]:
    """The servers found on this machine; looked for once, since each is asked its version."""
    return tuple(servers())


def newest(version: str) -> PostgresInstall | None:
    """The newest server of a major version, or of "any"; None where there is none."""
    fitting = [server for server in installed() if version in ("any", server.version)]
    return max(fitting, key=lambda server: int(server.version), default=None)
