"""What verdict.json says of the two caches, as types (schema/verdict.md, "The caches"). Amounts are bytes.

The fact that constrains it: every key is there, and null is what is not known.
"""

from typing import Literal, TypedDict

BroughtPart = Literal["demand_bytes", "ahead_used_bytes", "ahead_unused_bytes", "other_bytes"]
PartOfReads = Literal[BroughtPart, "swap_in_bytes", "unexplained_bytes"]
HeldPart = Literal["server_only_bytes", "both_bytes", "page_cache_only_bytes", "neither_bytes"]
When = Literal["after", "before_measure"]


class Brought(TypedDict):
    """What the probe saw brought into the page cache, by why."""

    demand_bytes: float
    ahead_used_bytes: float
    ahead_unused_bytes: float
    other_bytes: float


class DeviceReads(Brought):
    """One trial's device reads by part: its `reconciliation`."""

    device_bytes: float
    swap_in_bytes: float | None
    unexplained_bytes: float  # of either sign
    unexplained_share: float | None  # of device_bytes; null where the device read nothing
    classes: dict[str, Brought]  # by file class


class MeanDeviceReads(DeviceReads):
    """The same as means over the blocks of a treatment, the share that of the means."""

    exceeds: bool  # whether the share is too large to pass over
    blocks: int


class Reconciliation(TypedDict):
    """How device reads are explained: the `reconciliation` of a run."""

    rule: str
    parts: dict[PartOfReads, str]  # the names in words
    swap_note: str | None


class Swap(TypedDict):
    """Whether pages swapped in were read from the data's device."""

    counted: bool
    note: str | None


class HeldSums(TypedDict):
    """How large a relation is, and what each cache holds of it and both do: means over blocks."""

    bytes: float
    server_bytes: float
    page_cache_bytes: float
    both_bytes: float


class HeldParts(TypedDict):
    """The four parts that a relation consists of."""

    server_only_bytes: float
    both_bytes: float
    page_cache_only_bytes: float
    neither_bytes: float


class Held(HeldSums, HeldParts):
    """Both; what both caches hold belongs to either."""


class Relation(Held):
    """One relation, or all that have no row of their own."""

    relation: str
    kind: str | None


class Shares(TypedDict):
    """The part that is held twice, of what each cache holds of the database; null where it holds nothing."""

    share_of_server: float | None
    share_of_page_cache: float | None


class Total(Held, Shares):
    """The whole database."""


class Reading(TypedDict):
    """What both caches held at one moment, as the mean over a treatment's trials."""

    trials: int
    source: str
    relations: list[Relation]
    total: Total
    elsewhere_bytes: float  # in the server's cache, of other databases


class Readings(TypedDict):
    """A treatment's `double_caching`."""

    after: Reading | None  # the measured segment
    before_measure: Reading | None


class NotRead(TypedDict):
    """Why trials have no reading: an entry of `double_caching_absent`."""

    reason: str
    trials: list[int]
