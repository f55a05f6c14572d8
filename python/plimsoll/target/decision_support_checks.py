"""What must hold of the decision-support tables, asked in SQL: the agent's checks for servers that it does not know.

The fact that constrains it: prices are cut off, not rounded, after the discount and again after the tax, line by line;
here in whole cents, so that no server's own division has a say.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
SETS_OF_ALL = 1_000
_CHARGED = (
    "(((cast(l_extendedprice * 100 as bigint) * (100 - cast(l_discount * 100 as bigint))) // 100) "
    "* (100 + cast(l_tax * 100 as bigint))) // 100"
)
_COUNTED = (
    "count(o_orderkey), coalesce(sum(line_count), 0)::bigint, "
    "count(*) filter (where cast(o_totalprice * 100 as bigint) is distinct from charged)"
)


def _joined(condition: str) -> str:
    """Orders beside the sums of their lines, also where one of both is missing; `condition`: on `{key}`."""
    return (
        f"from (select * from orders where {condition.format(key='o_orderkey')}) one full join "
        f"(select l_orderkey, count(*) as line_count, sum({_CHARGED}) as charged "
        f"from lineitem where {condition.format(key='l_orderkey')} group by l_orderkey) many on l_orderkey = o_orderkey"
    )


def left_of_set(function: str, number: int, order_count: int) -> str:
    """What asks how many orders and lines there are with the keys of a set, and how many have a wrong price.

    `order_count`: orders of a set. RF1 leaves all of them, RF2 none.
    """
    first, last, sequence = (number - 1) * order_count + 1, number * order_count, 1 if function == "RF1" else 0
    low, high = sparse_key(first, sequence), sparse_key(last, sequence)
    condition = f"{{key}} between {low} and {high} and {{key}} & 24 = {8 * sequence}"
    return f"select {_COUNTED} {_joined(condition)}"


def sparse_key(index: int, sequence: int) -> int:
    """The key of order `index` (from 1): runs of eight, then gaps that loading leaves for `sequence` 1 to 3."""
    return ((((index >> 3) << 2) + sequence) << 3) + (index & 7)


def statements(rows: dict[str, int], taken: dict[str, int]) -> list[str]:
    """What is asked: one statement of orders and lines, then the rows of each other table.

    `rows`: of each table when loaded; `taken`: how many sets RF1 and RF2 have taken.
    """
    a_set = rows["orders"] // SETS_OF_ALL
    last_deleted, last_inserted = sparse_key(taken["RF2"] * a_set, 0), sparse_key(taken["RF1"] * a_set, 1)
    first = (
        f"select {_COUNTED}, "
        f"count(*) filter (where o_orderkey & 24 = 0 and o_orderkey > {last_deleted}), "
        f"count(*) filter (where o_orderkey & 24 = 8 and o_orderkey > 8 and o_orderkey <= {last_inserted}) "
        f"{_joined('true')}"
    )
    return [first, *(f"select count(*) from {table}" for table in others(rows))]


def others(rows: dict[str, int]) -> list[str]:
    """The tables that no refresh function changes in their number of rows."""
    return [table for table in rows if table not in ("orders", "lineitem")]


def checks(
    rows: dict[str, int], taken: dict[str, int], lines: dict[str, int], answers: list[list[list[Any]]]
) -> list[Json]:
    """The checks, as the agent's `check` tells them. `lines`: of the sets that each function has taken, together;
    `answers`: to `statements`."""
    a_set = rows["orders"] // SETS_OF_ALL
    left, inserted = rows["orders"] - taken["RF2"] * a_set, taken["RF1"] * a_set
    orders, line_count, broken, loaded, of_sets = (int(value) for value in answers[0][0])
    told = [
        ("orders whose o_totalprice is not that of their lines", 0, broken),
        ("orders: rows", left + inserted, orders),
        ("lineitem: rows", rows["lineitem"] + lines["RF1"] - lines["RF2"], line_count),
        ("orders: loaded and in no set that RF2 took", left, loaded),
        ("orders: of the sets that RF1 took", inserted, of_sets),
    ]
    told += [
        (f"{table}: rows", rows[table], int(answer[0][0]))
        for table, answer in zip(others(rows), answers[1:], strict=True)
    ]
    return [
        {"name": name, "expected": str(expected), "found": str(value), "ok": expected == value}
        for name, expected, value in told
    ]
