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
    """A layout at a scale: its throughput and its ratio to the first, all loads taken together within the block.

    `verdict` on it against the first: "better", "worse", "no relevant difference" or "cannot tell", all layouts of the
    scale together wrong in 5 of 100 runs; null of the first.
    """

    cell: str
    scale: float
    treatments: list[str]  # in the plan's order, one a load
    rate: Mean
    ratio: Mean | None  # null of the first
    verdict: str | None


class CellTableRow(TypedDict):
    """`cells`: places in the list of cells, one a column; null where there is none."""

    level: str
    cells: list[int | None]


class CellTable(TypedDict):
    """The cells of a scale, those of one level of what else varies (`at`, such as a chunk) and those without it."""

    scale: float
    at: str | None
    rows_label: str
    columns_label: str | None  # null, and no columns: of one factor
    columns: list[str]
    rows: list[CellTableRow]


class Cells(TypedDict):
    """`storage` of verdict.json."""

    rows: list[CellRow]
    cells: list[Cell]
    tables: list[CellTable]


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
