"""What a verdict says of places."""

from typing import TypedDict

from plimsoll.record.verdict import Mean


class Box(TypedDict):
    """One layer of a layout: from `left` to `right` in columns, from `top` to `bottom` in lines of text."""

    kind: str  # part, file system, mapper, volume, raid, device, below
    title: str
    lines: list[str]
    top: float
    bottom: float
    left: float
    right: float
    width: float  # from left to right


class Link(TypedDict):
    """A line from the lower end of a layer to the one that it stands on."""

    at: float
    to: float
    top: float
    bottom: float


class Layout(TypedDict):
    """Of the treatments that share it."""

    treatments: list[str]
    title: str
    columns: int
    height: float  # in lines of text
    boxes: list[Box]
    links: list[Link]


class CellRow(Mean):
    """The throughput of one layout under one load."""

    cell: str
    scale: float
    clients: float
    transactions_per_client: float | None


class Cell(TypedDict):
    """A layout at a scale: its throughput and its ratio to the first, all loads taken together within the block."""

    cell: str
    scale: float
    rate: Mean
    ratio: Mean | None  # null of the first


class Cells(TypedDict):
    """`storage` of verdict.json."""

    rows: list[CellRow]
    cells: list[Cell]


class Given(TypedDict):
    """What a storage gave in one phase of raw_storage: bytes or seeks a second, and its ratio to the first storage."""

    rate: Mean
    ratio: Mean | None  # null of the first


class PromisedStorage(TypedDict):
    """One storage of promised.json."""

    storage: str
    phases: dict[str, Given]


class Promised(TypedDict):
    """promised.json: what another run found of the storages that this run's database lies on."""

    run: str
    at: str  # the levels of its other factors
    differences: list[str]  # keys of the fingerprint in which the machines differ
    storages: list[PromisedStorage]


class PromiseRow(TypedDict):
    """One storage in both runs."""

    storage: str
    phases: dict[str, Given]
    rate: Mean
    ratio: Mean | None
    verdict: str | None


class Promise(TypedDict):
    """`promise` of verdict.json."""

    run: str
    at: str
    judged: str
    phases: list[str]
    rows: list[PromiseRow]
    missing: list[str]  # storages of the other run that this one does not have
    differences: list[str]
