"""Are the answers to the decision-support queries right? Column by column, as TPC-H 2.17.1 has it in clause 2.1.3.5.

The fact that constrains it: rows with equal sort keys may come in any order, and where a query asks for the first so
many rows, which of the last equals are among them is open too. So rows are compared as sets inside equal sort keys.

The known answers have two decimals, and the clause says how far a right answer may be from them (KNOWN). Two servers
with the same data have to agree better (AGREED). Counts and sums of whole numbers must be exact under both; the tools'
column classes let sums of quantities differ by a hundred, which would hide a wrong count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import groupby
from typing import Any, Final, Literal

Row = Sequence[Any]
Rule = Literal["known", "agreed"]
KNOWN: Final = "known"
AGREED: Final = "agreed"
SHOWN = 5
CENT = Decimal("0.01")
SUM_MAX = Decimal(100)
SHARE_MAX = Decimal("0.01")
# Doubles, in which a server may keep averages and ratios, have fifteen digits; sums of many of them fewer.
AGREED_SHARE_MAX = Decimal("1e-9")


@dataclass(frozen=True)
class Columns:
    """A query's columns by class: str (text, dates), int (whole numbers, counts), num (money as stored), sum, avg, rat;
    cut: whole numbers whose known answers have lost their last two digits.

    `keys`: the columns that the rows are sorted by, in that order; `rows_max`: the rows that are asked for at most.
    """

    classes: tuple[str, ...]
    keys: tuple[int, ...] = ()
    rows_max: int | None = None


def _columns(classes: str, keys: tuple[int, ...] = (), rows_max: int | None = None) -> Columns:
    return Columns(tuple(classes.split()), keys, rows_max)


COLUMNS: Final = {
    1: _columns("str str int sum sum sum avg avg avg int", (0, 1)),
    2: _columns("num str str int str str str str", (0, 2, 1, 3), 100),
    3: _columns("int sum str int", (1, 2), 10),
    4: _columns("str int", (0,)),
    5: _columns("str sum", (1,)),
    6: _columns("sum"),
    7: _columns("str str int sum", (0, 1, 2)),
    8: _columns("int rat", (0,)),
    9: _columns("str int sum", (0, 1)),
    10: _columns("int str sum num str str str str", (2,), 20),
    11: _columns("cut sum", (1,)),  # so they stand in the generator's crate (tpchgen 4.0.0); other servers have all
    12: _columns("str int int", (0,)),
    13: _columns("int int", (1, 0)),
    14: _columns("rat"),
    15: _columns("int str str str sum", (0,)),
    16: _columns("str str int int", (3, 0, 1, 2)),
    17: _columns("avg"),
    18: _columns("str int int str num int", (4, 3), 100),
    19: _columns("sum"),
    20: _columns("str str", (0,)),
    21: _columns("str int", (1, 0), 100),
    22: _columns("int int sum", (0,)),
}


def differences(query: int, expected: Sequence[Row], found: Sequence[Row], rule: Rule = KNOWN) -> list[str]:
    """What is wrong with `found`, a sentence each, the first few; empty if it is right.

    Values may be texts or what a server's client makes of them: numbers, decimals, dates. `rule`: KNOWN for answers
    with two decimals, AGREED for those of another server.
    """
    columns = COLUMNS[query]
    width = len(columns.classes)
    wrong = [
        f"{name} row {at + 1} has {len(row)} columns and not {width}"
        for name, rows in (("expected", expected), ("found", found))
        for at, row in enumerate(rows)
        if len(row) != width
    ]
    if wrong:
        return wrong[:SHOWN]
    if len(expected) != len(found):
        return [f"{len(found)} rows and not {len(expected)}"]
    texts: list[str] = []
    at = 0
    for key, equals in groupby(expected, lambda row: _key(columns, row)):
        group = list(equals)
        is_cut = bool(key) and at + len(group) == columns.rows_max
        texts += _of_equals(columns, group, found[at : at + len(group)], at, rule, keys_only=is_cut)
        at += len(group)
    more = len(texts) - SHOWN
    return texts[:SHOWN] + ([f"and {more} more"] if more > 0 else [])


def _key(columns: Columns, row: Row) -> tuple[Any, ...]:
    return tuple(_value(columns.classes[at], row[at]) for at in columns.keys)


def _of_equals(
    columns: Columns, expected: list[Row], found: Sequence[Row], first: int, rule: Rule, *, keys_only: bool
) -> list[str]:
    """What is wrong in a group of rows with equal sort keys; `keys_only`: others with those keys may stand for them."""
    left = list(expected)
    texts = []
    for offset, row in enumerate(found):
        match = next((expected_row for expected_row in left if not _unlike(columns, expected_row, row, rule)), None)
        if match is not None:
            left.remove(match)
            continue
        # Said of the row that stands there, or of the first that no other matched.
        beside = expected[offset] if expected[offset] in left else left[0]
        unlike = _unlike(columns, beside, row, rule)
        if keys_only and not set(unlike) & set(columns.keys):
            left.remove(beside)
            continue
        texts += [f"row {first + offset + 1}, column {at + 1}: {row[at]} and not {beside[at]}" for at in unlike]
    return texts


def _unlike(columns: Columns, expected: Row, found: Row, rule: Rule) -> list[int]:
    """The columns that differ."""
    pairs = zip(columns.classes, expected, found, strict=True)
    return [at for at, (kind, value, other) in enumerate(pairs) if not _alike(kind, value, other, rule)]


def _alike(kind: str, expected: Any, found: Any, rule: Rule) -> bool:
    try:
        known, given = _value(kind, expected), _value(kind, found)
        if known is not None and given is not None and kind == "cut" and rule == KNOWN:
            given //= 100
        if known is None or given is None or kind in ("str", "int", "num", "cut"):
            return bool(known == given)
        if rule == AGREED:
            return bool(abs(given - known) <= AGREED_SHARE_MAX * abs(known))
        if kind == "sum":
            return bool(abs(given - known) <= SUM_MAX)
        return bool(abs(_cents(given) - known) <= SHARE_MAX * abs(known))
    except InvalidOperation:
        return False  # no number, or not a finite one


def _value(kind: str, value: Any) -> Any:
    """A value to compare: a text without the blanks that fill its column, or a number; None stays None."""
    if value is None:
        return None
    if kind == "str":
        return str(value).rstrip(" ")
    number = Decimal(str(value).strip() or ("0" if kind == "cut" else "no number"))
    return _cents(number) if kind == "num" else number


def _cents(number: Decimal) -> Decimal:
    return number.quantize(CENT, ROUND_HALF_UP)


def wrong_answers(answers: Mapping[str, Any] | None) -> str | None:
    """The queries with wrong answers, of the first what was wrong; None where all are right or none was compared."""
    wrong = [check for check in (answers or {}).get("checks") or [] if not check.get("ok")]
    if not wrong:
        return None
    names = ", ".join(str(check.get("name")) for check in wrong)
    return f"wrong answers to {names} ({wrong[0].get('name')}: {wrong[0].get('found')})"
