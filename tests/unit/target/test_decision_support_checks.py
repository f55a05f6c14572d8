"""The checks in SQL on tables by hand: what holds is found to hold, and each thing that is broken by its name."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from plimsoll.target.decision_support_checks import checks, left_of_set, sparse_key, statements

# As if 3,000 orders had been loaded, so that a set is of three; those that no test looks at are left out.
LOADED = {"region": 1, "orders": 3_000, "lineitem": 5_000, "refresh_sets": 2}
TABLES = """
create table region (r_regionkey integer);
create table refresh_sets (function char(3), taken integer);
create table orders (o_orderkey bigint, o_totalprice decimal(15,2));
create table lineitem (l_orderkey bigint, l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2));
insert into region values (0);
insert into refresh_sets values ('RF1', 1), ('RF2', 1);
"""
TAKEN = {"RF1": 1, "RF2": 1}


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    """One set inserted, one deleted. A line of 10.01 with 0.05 off and 0.08 on: 9.5095 is cut to 9.50, and 10.26."""
    made = duckdb.connect(":memory:")
    made.execute(TABLES)
    loaded = [sparse_key(index, 0) for index in range(4, 3_001)]
    inserted = [sparse_key(index, 1) for index in range(1, 4)]
    made.execute("insert into orders select unnest($1), 20.52", [loaded + inserted])
    made.execute("insert into lineitem select o_orderkey, 10.01, 0.05, 0.08 from orders, range(2)")
    return made


def found(database: duckdb.DuckDBPyConnection, **lines: int) -> dict[str, Any]:
    answers = [[list(row) for row in database.execute(sql).fetchall()] for sql in statements(LOADED, TAKEN)]
    told = checks(LOADED, TAKEN, {"RF1": 1_003, "RF2": 3} | lines, answers)
    return {one["name"]: one for one in told}


def broken(told: dict[str, Any]) -> list[str]:
    return [name for name, one in told.items() if not one["ok"]]


def test_keys_leave_gaps_for_the_refresh_sets() -> None:
    assert [sparse_key(index, 0) for index in (1, 7, 8, 9, 15)] == [1, 7, 32, 33, 39]
    assert [sparse_key(index, 1) for index in (1, 7, 8, 9, 15)] == [9, 15, 40, 41, 47]


def test_what_was_left_as_it_should_be_holds(database: duckdb.DuckDBPyConnection) -> None:
    told = found(database)
    assert broken(told) == []
    assert told["orders: rows"]["expected"] == "3000"
    assert told["lineitem: rows"]["found"] == "6000"
    assert told["orders: of the sets that RF1 took"]["found"] == "3"
    assert told["region: rows"]["found"] == "1"


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("update orders set o_totalprice = 20.53 where o_orderkey = 7", ["orders whose o_totalprice"]),
        # Rounded it would be 9.51 and 10.27.
        ("update orders set o_totalprice = 20.54 where o_orderkey = 7", ["orders whose o_totalprice"]),
        ("delete from lineitem where l_orderkey = 7", ["orders whose o_totalprice", "lineitem: rows"]),
        ("delete from orders where o_orderkey = 7", ["whose o_totalprice", "orders: rows", "in no set that RF2"]),
        ("delete from orders where o_orderkey = 9", ["whose o_totalprice", "orders: rows", "sets that RF1 took"]),
        ("update orders set o_orderkey = 1 where o_orderkey = 7", ["orders whose o_totalprice", "in no set that RF2"]),
        ("delete from region", ["region: rows"]),
    ],
)
def test_what_is_broken_is_named(database: duckdb.DuckDBPyConnection, change: str, names: list[str]) -> None:
    database.execute(change)
    told = broken(found(database))
    assert len(told) == len(names)
    for name in names:
        assert any(name in one for one in told), (name, told)


def test_lines_of_the_sets_count(database: duckdb.DuckDBPyConnection) -> None:
    assert broken(found(database, RF2=4)) == ["lineitem: rows"]


def test_what_a_set_left_is_asked_of_its_keys_alone(database: duckdb.DuckDBPyConnection) -> None:
    def left(function: str, number: int) -> tuple[int, ...]:
        (row,) = database.execute(left_of_set(function, number, 3)).fetchall()
        return tuple(int(value) for value in row)

    assert left("RF1", 1) == (3, 6, 0)
    assert left("RF2", 1) == (0, 0, 0)
    assert left("RF1", 2) == (0, 0, 0)
    assert left("RF2", 2) == (3, 6, 0)  # not deleted yet
    database.execute("update orders set o_totalprice = 1 where o_orderkey = 10")
    database.execute("delete from orders where o_orderkey = 11")
    database.execute("update orders set o_totalprice = 1 where o_orderkey = 4")
    assert left("RF1", 1) == (2, 6, 2)
