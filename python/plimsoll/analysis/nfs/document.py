"""What verdict.json says of calls of NFS, as types (schema/verdict.md).

Counts are sums over the trials of a treatment, what has an interval is a mean over blocks. Of one transaction: divided
by the transactions done in the measured segment.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

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


class NfsClientOperation(TypedDict):
    """The calls of an operation as the kernel's client counts them."""

    protocol: str
    name: str  # the client's own
    calls: int
    per_transaction: Mean | None
    unanswered: int
    retransmissions: int
    errors: int  # ended with one for the client
    # By "queue_ns_p50" and the like, of calls with a reply: before it was sent, from then to its reply, in all.
    times: dict[str, Mean | None]


class NfsBoth(TypedDict):
    """Calls of an operation on the wire by RPC's number: in the client's table and in the capture's."""

    operation: str
    both: int
    client_only: int  # of those that have to be in both
    capture_only: int
    compared: int  # sent once and answered: whose reply times are set beside each other
    client_reply_ns: dict[str, Mean | None]  # p50, p95
    capture_reply_ns: dict[str, Mean | None]  # to the reply's first byte, where the client looks at its clock
    longer_ns_p50: Mean | None  # call by call: the client's own part of it
    shorter: int  # calls of which the client's time is the shorter one, which cannot be


class NfsAgreement(TypedDict):
    """Both tables, call by call."""

    operations: list[NfsBoth]
    at_edges: int  # calls that may be in one alone: at an end of the segment, or with a number that is not theirs alone


class NfsClient(TypedDict):
    """What the kernel's client says of its calls by a tracepoint."""

    source: str  # the tracepoint
    trials: list[int]
    calls: int
    operations: list[NfsClientOperation]
    agreement: NfsAgreement | None
    lost: dict[str, int]


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
    client: NotRequired[NfsClient | None]  # None: no tracepoint; absent from verdicts of earlier versions
    client_absent: NotRequired[str | None]  # why
    scatter: list[Cell]
    scatter_trial: int | None


class NfsEffect(TypedDict):
    """What another level of a factor changes, all else equal within the block."""

    factor: str
    level: str
    against: str
    at: NotRequired[str]  # the other factors; "": they stand still, or all of theirs together
    what: str  # a group, or "calls"
    first: Mean
    second: Mean
    difference: Mean
    ratio: Mean | None  # None where there were none at one of the levels


class NfsCalls(TypedDict):
    """The `nfs_calls` of verdict.json."""

    treatments: dict[str, NfsOfTreatment]
    effects: list[NfsEffect]
