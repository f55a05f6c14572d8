"""The `order_entry` of verdict.json as types: what the workload did, against its rules (schema/verdict.md)."""

from typing import Any, NotRequired, TypedDict

from plimsoll.record.verdict import Mean


class Bound(TypedDict):
    """A bound, null where it is open, and what was found; `unit`: "share", "lines", "per minute" or "s"."""

    name: str
    label: str
    unit: str
    least: float | None
    most: float | None
    value: float | None
    low: float | None
    high: float | None
    count: int | None
    of: int | None
    verdict: str


class Limit(Bound):
    """A limit of response times: `most` in seconds, `value` the share that took longer."""

    p90_ns: float | None
    mean_ns: float | None
    p90_not_below_mean: str


class PerWarehouse(TypedDict):
    """New-Orders a minute and warehouse."""

    value: float
    low: float
    high: float


class RateBound(TypedDict):
    """A bound of New-Orders a minute and warehouse, and whether it is kept."""

    bound: float
    verdict: str


class Rate(TypedDict):
    """New-Orders a minute; bounds are null unless users key and think as long as the rules say."""

    name: str
    per_minute: Mean | None
    new_orders: int
    per_warehouse: PerWarehouse
    ceiling: RateBound | None
    minimum: RateBound | None
    allowed_per_minute: float | None  # what users' times allow
    of_allowed: float | None


class OfTreatment(TypedDict):
    """What the load did in the trials of a treatment; `facts` as summary.json has them."""

    benchmark: str
    is_tpmc_like: bool
    warehouses: int
    terminals: int
    minutes: float
    trials: list[int]
    facts: dict[str, Any]
    departures: list[str]
    mix: list[Bound]
    ranges: list[Bound]
    limits: list[Limit]
    rate: Rate


class Fates(TypedDict):
    """What became of acknowledged transactions of a type."""

    acknowledged: int
    lost: int
    twice: int


class Lost(TypedDict):
    """A transaction that was acknowledged and is not in the database."""

    kind: str
    index: int
    warehouse: int
    district: int
    order: int
    customer_warehouse: int
    customer_district: int
    customer: int
    amount_cents: int
    made_us: int


class Ledger(TypedDict):
    """The durability ledger of a trial, compared with the tables."""

    trial: int
    new_orders: Fates
    payments: Fates
    lost: NotRequired[list[Lost]]
    unsafe: list[str]  # settings in force under which what was acknowledged may be lost


class OrderEntry(TypedDict):
    """What the workload did, by treatment; `like` is the label that always stands beside its figures."""

    like: str
    rule: str
    treatments: dict[str, OfTreatment]
    ledger: list[Ledger]
