"""capture.json: what a packet capture of NFS held (schema/capture.md)."""

from __future__ import annotations

from typing import TypedDict

from plimsoll.analysis.captures.density import Cell
from plimsoll.analysis.captures.mountstats import Compared


class Ended(TypedDict):
    """How the file ended."""

    how: str  # "whole", "cut", "damaged"
    at_byte: int | None
    reason: str | None


class OperationRow(TypedDict):
    """The calls of an operation."""

    protocol: str
    name: str
    calls: int
    unanswered: int
    retransmissions: int
    errors: int  # answered with a status that is not 0
    asked_bytes: int
    answered_bytes: int
    reply_ns_p50: float | None
    reply_ns_p95: float | None


class ClassRow(TypedDict):
    """The same of what files are to a database."""

    file_class: str
    name: str
    calls: int
    answered_bytes: int
    reply_ns_p50: float | None
    reply_ns_p95: float | None


class Connection(TypedDict):
    """Two ends, and their calls."""

    client: str
    server: str
    transport: str
    calls: int


class CaptureDocument(TypedDict):
    """The whole."""

    format: int
    run: str
    status: str | None
    file: str | None
    ended: Ended
    seconds: float
    totals: dict[str, int]
    operations: list[OperationRow]
    classes: list[ClassRow]
    scatter: list[Cell]
    connections: list[Connection]
    connections_left_out: int
    both_accounts: list[Compared] | None  # None where the client's texts were not given
    caveats: list[str]
