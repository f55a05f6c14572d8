"""What belongs to a database server alone, and is refused by name where something else is under test."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.experiment.target import Target


def of_databases(target: Target) -> dict[str, bool]:
    """The keys of `target` that only a database has, and whether each was given."""
    return {
        "target.dsn": target.dsn is not None,
        "target.transport": target.transport != "socket",
        "target.version": target.version != "any",
        "target.files.wal": target.files.wal is not None,
        "target.files.temp": target.files.temp is not None,
        **{f"target.files.tablespaces.{name}": True for name in target.files.tablespaces},
    }


def refuse(target: Target, refused: Mapping[str, bool], what: str, hint: str = "") -> None:
    """Raises ValueError with what was given of `refused`; `what` the target is instead, and what else is allowed."""
    found = [name for name, is_asked in refused.items() if is_asked]
    if found:
        raise ValueError(
            f'target.server is "{target.server}", which is {what} {", ".join(found)}; allowed: none of these{hint}'
        )
