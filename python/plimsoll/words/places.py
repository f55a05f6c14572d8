"""What each layout of database and log carried, and what one program was promised by it, in sentences."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.analysis.places.document import Cell, Cells, CellTable, Promise, PromiseRow
from plimsoll.record.verdict import Mean
from plimsoll.words.part import Sentences

Json = dict[str, Any]
SECTION: Final = "promise"
ROWS_MAX: Final = 6  # of a table in a terminal
ON_ONE_DEVICE: Final = "lie on one device"  # of the trial's own caveat (environment/places)
SAID: Final = {
    "arrived": "it arrived at the database",
    "less than promised": "less of it arrived at the database",
    "did not arrive": "it did not arrive at the database",
    "cannot tell": "whether it arrived cannot be told",
    "nothing promised": "that is no difference that could arrive",
    "too few blocks": "whether it arrived takes three blocks of each run",
}


def promise_lines(verdict: Json) -> list[str]:
    """A line a storage, the first being what the others are set against."""
    found: Promise | None = verdict.get("promise")
    if not found:
        return []
    first = found["rows"][0]["storage"]
    return [_line(row, first, found["judged"]) for row in found["rows"][1:]]


def _line(row: PromiseRow, first: str, judged: str) -> str:
    given = row["phases"].get(judged)
    times = _times(given["ratio"]) if given and given["ratio"] else "not known"
    got = _times(row["ratio"]) if row["ratio"] else "not known"
    said = SAID[row["verdict"] or "too few blocks"]
    return f"{row['storage']}, against {first}: Bonnie's {judged} {times}, the database's transactions {got}: {said}"


def _times(mean: Mean) -> str:
    value = f"{mean['value']:.2f} x"
    return value if mean["low"] is None else f"{value} [{mean['low']:.2f}, {mean['high']:.2f}]"


def _warns(verdict: Json) -> list[str]:
    found: Promise | None = verdict.get("promise")
    if not found or not found["differences"]:
        return []
    shown = ", ".join(found["differences"][:3])
    return [f"what Bonnie promised was measured on another machine, or on this one in another state ({shown})"]


def _promise_leads(verdict: Json) -> list[str]:
    """How many storages there are of each word."""
    found: Promise | None = verdict.get("promise")
    if not found:
        return []
    said = [row["verdict"] or "too few blocks" for row in found["rows"][1:]]
    each = "; ".join(f"{SAID[one]} ({said.count(one)} of {len(said)})" for one in SAID if one in said)
    first = found["rows"][0]["storage"]
    return [f"Did what Bonnie promised reach the database? By its {found['judged']}, against {first}: {each}"]


def cell_lines(verdict: Json) -> list[str]:
    """A sentence a scale: which layouts are told apart from the first, by how much."""
    found: Cells | None = verdict.get("storage")
    scales = dict.fromkeys(cell["scale"] for cell in found["cells"]) if found else {}
    return [_of_scale([cell for cell in found["cells"] if cell["scale"] == scale], len(scales) > 1)
            for scale in scales if found]  # fmt: skip


def _of_scale(cells: list[Cell], is_one_of_several: bool) -> str:
    first, others = cells[0], [cell for cell in cells[1:] if cell["ratio"] is not None]
    where = f"scale {first['scale']:g}: " if is_one_of_several else ""
    base = f"{first['cell']} ({rate_words(first['rate'])} transactions/s)"
    told = [cell for cell in others if cell.get("verdict") in ("better", "worse")]
    if told:
        told.sort(key=lambda cell: -cell["ratio"]["value"] if cell["ratio"] else 0.0)
        each = "; ".join(f"{cell['cell']} carries {_times(cell['ratio'])}" for cell in told if cell["ratio"])
        left = len(others) - len(told)
        rest = f"; {left} more {'is' if left == 1 else 'are'} not told apart from it" if left else ""
        return f"{where}against {base}: {each}{rest}"
    values = sorted(cell["ratio"]["value"] for cell in others if cell["ratio"])
    if not values:
        return f"{where}{base}; there is no other layout"
    span = f"{values[0]:.2f} x" if len(values) == 1 else f"{values[0]:.2f} to {values[-1]:.2f} x"
    if all(cell.get("verdict") == "no relevant difference" for cell in others):
        return f"{where}no layout differs relevantly from {base}: they carry {span} of it"
    has_intervals = any(cell["ratio"]["low"] is not None for cell in others if cell["ratio"])
    why = "by intervals that include 1" if has_intervals else "and of so few blocks there is no interval"
    return f"{where}no layout is told apart from {base}: they carry {span} of it, {why}"


def rate_words(mean: Mean) -> str:
    """153 [100, 234], without an interval the mean alone."""
    form = ",.0f" if mean["value"] >= 10 else ",.1f"
    value = format(mean["value"], form)
    return value if mean["low"] is None else f"{value} [{mean['low']:{form}}, {mean['high']:{form}}]"


def table_lines(verdict: Json) -> list[str]:
    """The tables of cells, a line a row, for a terminal: those of the first scale."""
    found: Cells | None = verdict.get("storage")
    tables = (found.get("tables") or []) if found else []
    return [
        line
        for table in tables
        if found and table["scale"] == tables[0]["scale"]
        for line in _lines_of_table(table, found["cells"])
    ][:ROWS_MAX]


def _lines_of_table(table: CellTable, cells: list[Cell]) -> list[str]:
    at = f", {table['at']}" if table["at"] else ""
    lines = []
    for row in table["rows"]:
        heads = [f"{table['columns_label']} {one} " for one in table["columns"]] or [""]
        each = [f"{head}{rate_words(cells[place]['rate'])}"
                for head, place in zip(heads, row["cells"], strict=True) if place is not None]  # fmt: skip
        lines.append(f"{table['rows_label']} {row['level']}{at}, transactions/s: {' · '.join(each)}")
    return lines


def _on_one_device(verdict: Json) -> list[str]:
    """Of a table of layouts the caveat that its disks are none is not to stand behind others."""
    if not verdict.get("storage"):
        return []
    return [caveat for caveat in verdict["caveats"] if ON_ONE_DEVICE in caveat][:1]


# What of each storage was promised and arrived stands in the table that leads, so that there is room for why.
PROMISE = Sentences(
    "promise", leads=_promise_leads, figures=promise_lines, warns=_warns, is_whole=True, section=SECTION
)
CELLS = Sentences(
    "storage", leads=cell_lines, figures=table_lines, warns=_on_one_device, is_whole=True, section="storage"
)
