"""What verdict.json says of calls of NFS, as types (schema/verdict.md).

Counts are sums over the trials of a treatment, what has an interval is a mean over blocks. Of one transaction: divided
by the transactions done in the measured segment.
"""

from __future__ import annotations

from typing import TypedDict

from plimsoll.analysis.captures.density import Cell
from plimsoll.analysis.captures.mountstats import Compared
from plimsoll.record.verdict import Mean


class NfsOperation(TypedDict):
    """The calls of an operation."""

    protocol: str
    name: str
    calls: int
    unanswered: int
    retransmissions: int
    errors: int  # answered with a status that is not 0
    per_transaction: Mean | None
    answered_bytes: int  # read or written
    bytes_per_call: Mean | None
    reply_ns_p50: Mean | None
    reply_ns_p95: Mean | None
    reply_ns_p99: Mean | None


class NfsClass(TypedDict):
    """The same by what files are to a database."""

    file_class: str  # "unknown": of no file, or of one that nobody told of
    name: str
    calls: int
    per_transaction: Mean | None
    answered_bytes: int
    reply_ns_p50: Mean | None


class NfsKind(TypedDict):
    """Calls that were sent while a transaction of one kind was under way, and no other."""

    kind: str
    transactions: int
    operations: dict[str, Mean]  # calls a transaction
    read_bytes: Mean | None  # of a transaction
    written_bytes: Mean | None


class NfsMoved(TypedDict):
    """Bytes by the client's own account, of a transaction where there are transactions, else of a trial."""

    asked_read: Mean | None  # programs asked for them
    served_read: Mean | None  # the server was asked for them
    asked_write: Mean | None
    served_write: Mean | None
    kept_share: Mean | None  # of what was asked for the server was not asked; below 0 where more was read ahead


class NfsAccount(Compared):
    """Both counts of an operation; what lies at the edges of the segment may be in either."""

    fewer_max: int  # calls that the client may have counted after it was read
    more_max: int  # calls that the client may have counted and the capture not
    is_of_mount: bool  # the client counts it by mount
    is_explained: bool


class NfsMounted(TypedDict):
    """A mount, as it was in effect."""

    source: str
    options: list[str]  # those that bear on calls
    is_targets: bool


class NfsOfTreatment(TypedDict):
    """The whole of one treatment."""

    trials: list[int]
    mounts: list[NfsMounted]
    calls: int
    transactions: int | None
    calls_per_transaction: Mean | None
    groups: dict[str, Mean]  # study S2's, calls a transaction
    operations: list[NfsOperation]
    classes: list[NfsClass]
    kinds: list[NfsKind]
    moved: NfsMoved | None
    accounts: list[NfsAccount] | None  # None where the client's account cannot be read
    lost: dict[str, int]
    scatter: list[Cell]
    scatter_trial: int | None


class NfsEffect(TypedDict):
    """What another level of a factor changes, all else equal within the block."""

    factor: str
    level: str
    against: str
    what: str  # a group, or "calls"
    first: Mean
    second: Mean
    difference: Mean
    ratio: Mean | None  # None where there were none at one of the levels


class NfsCalls(TypedDict):
    """The `nfs_calls` of verdict.json."""

    treatments: dict[str, NfsOfTreatment]
    effects: list[NfsEffect]
