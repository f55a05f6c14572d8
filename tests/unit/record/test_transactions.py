"""Rows that others write are rows as the agent's are."""

import re
from pathlib import Path

from plimsoll.record import read_table, transactions

AGENT_S = Path(__file__).parents[3] / "crates/record/src/transaction.rs"
TYPES = {"U64": "<u8", "I64": "<i8", "U32": "<u4", "U16": "<u2", "U8": "u1"}


def test_the_columns_are_the_agent_s() -> None:
    found = re.findall(r'\("(\w+)", FieldType::(\w+)\)', AGENT_S.read_text())
    assert len(found) == 13
    assert tuple((name, TYPES[kind]) for name, kind in found) == transactions.COLUMNS


def test_the_outcomes_are_the_agent_s() -> None:
    body = re.search(r"enum Outcome \{(.*?)\n\}", AGENT_S.read_text(), re.DOTALL)
    assert body is not None
    found = {int(number): name.lower() for name, number in re.findall(r"(\w+) = (\d+),", body[1])}
    assert tuple(found[number] for number in sorted(found)) == transactions.OUTCOMES


def test_what_was_written_is_read(tmp_path: Path) -> None:
    row = tuple(range(1, 14))
    transactions.write(tmp_path, [row, tuple(reversed(row))])
    table = read_table(tmp_path / transactions.NAME)
    assert table is not None and [tuple(one) for one in table.tolist()] == [row, tuple(reversed(row))]
    transactions.write(tmp_path, [])
    table = read_table(tmp_path / transactions.NAME)
    assert (
        table is not None and len(table) == 0 and table.dtype.names == tuple(name for name, _ in transactions.COLUMNS)
    )
