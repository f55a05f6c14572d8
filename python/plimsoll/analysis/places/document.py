"""What a verdict says of places."""

from typing import TypedDict

from plimsoll.record.verdict import Mean


class Box(TypedDict):
    """One layer of a layout: from `left` to `right` in columns, from `top` to `bottom` in lines of text."""

    kind: str  # part, file system, mapper, raid, device, below
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


class Member(TypedDict):
    """What came to one member of an array."""

    member: int  # from 1
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int


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
