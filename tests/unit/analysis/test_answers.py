"""What passes as a right answer and what does not: column classes, ties, rows that a limit cut."""

from datetime import date
from decimal import Decimal

import pytest

from plimsoll.analysis.trial.answers import AGREED, COLUMNS, KNOWN, Rule, differences


def test_every_query_has_its_columns() -> None:
    assert sorted(COLUMNS) == list(range(1, 23))
    widths = [10, 8, 4, 2, 2, 1, 4, 2, 3, 8, 2, 3, 2, 1, 5, 4, 1, 6, 1, 2, 2, 3]
    assert [len(COLUMNS[query].classes) for query in sorted(COLUMNS)] == widths
    for columns in COLUMNS.values():
        assert set(columns.classes) <= {"str", "int", "num", "sum", "avg", "rat", "cut"}
        assert all(key < len(columns.classes) for key in columns.keys)


@pytest.mark.parametrize(
    ("query", "expected", "found", "rule", "is_right"),
    [
        # A sum of money may be a hundred off the known answer, and only a rounding off another server's.
        (6, "123141078.23", Decimal("123141178.23"), KNOWN, True),
        (6, "123141078.23", Decimal("123141178.24"), KNOWN, False),
        (6, Decimal("123141078.23"), 123141078.23000001, AGREED, True),
        (6, Decimal("123141078.23"), Decimal("123141079.23"), AGREED, False),
        # A ratio within one in a hundred, once it is rounded.
        (14, "16.38", Decimal("16.3808"), KNOWN, True),
        (14, "16.38", 16.54, KNOWN, True),
        (14, "16.38", 16.55, KNOWN, False),
        (17, "348406.02", Decimal("348406.0542857143"), KNOWN, True),
        (17, None, None, KNOWN, True),
        (17, None, 0, KNOWN, False),
        (17, "348406.02", None, KNOWN, False),
        (19, "3083843.06", "none", KNOWN, False),
        (19, "3083843.06", float("nan"), KNOWN, False),
        (14, "16.38", float("inf"), KNOWN, False),
    ],
)
def test_a_single_number(query: int, expected: object, found: object, rule: Rule, is_right: bool) -> None:
    assert (not differences(query, [[expected]], [[found]], rule)) is is_right


def test_counts_are_exact_and_texts_but_for_the_blanks_that_fill_them() -> None:
    assert not differences(4, [["1-URGENT       ", "  10594"]], [["1-URGENT", 10594]])
    assert differences(4, [["1-URGENT", "10594"]], [["1-urgent", 10594]])
    assert differences(4, [["1-URGENT", "10594"]], [[" 1-URGENT", 10594]])
    assert differences(4, [["1-URGENT", "10594"]], [["1-URGENT", 10595]]) == ["row 1, column 2: 10595 and not 10594"]
    # Sums of ones and of quantities are counts: 100 is not let off.
    assert differences(12, [["MAIL", "6202", "9324"]], [["MAIL", 6203, 9324]])
    assert not differences(12, [["MAIL", "6202", "9324"]], [["MAIL", Decimal("6202.00"), 9324]])


def test_dates_and_money_as_stored() -> None:
    row = ["Customer#000128120       ", "128120", "4722021", "1994-04-07", "544089.09", "323.00"]
    assert not differences(18, [row], [["Customer#000128120", 128120, 4722021, date(1994, 4, 7), 544089.09, 323]])
    assert differences(18, [row], [["Customer#000128120", 128120, 4722021, date(1994, 7, 4), 544089.09, 323]])
    assert differences(18, [row], [["Customer#000128120", 128120, 4722021, date(1994, 4, 7), 544089.10, 323]])


def test_rows_with_equal_keys_come_in_any_order_others_do_not() -> None:
    # Query 11 is sorted by the value alone.
    expected = [[1, 9.00], [2, 5.00], [3, 5.00], [4, 1.00]]
    assert not differences(11, expected, [[1, 9], [3, 5], [2, 5], [4, 1]], AGREED)
    assert differences(11, expected, [[2, 5], [1, 9], [3, 5], [4, 1]], AGREED)
    assert differences(11, expected, [[1, 9], [3, 5], [3, 5], [4, 1]], AGREED) == ["row 3, column 1: 3 and not 2"]


def test_the_known_keys_of_query_11_are_cut_and_a_servers_are_not() -> None:
    known = [["1297         ", "17538456.86"], ["  94", "15451755.62"], ["    ", "15064802.86"]]
    found = [[129760, "17538456.86"], [9452, "15451755.62"], [88, "15064802.86"]]
    assert not differences(11, known, found)
    assert differences(11, known, [[129860, "17538456.86"], *found[1:]])
    assert differences(11, known, [*found[:2], [100, "15064802.86"]])
    assert not differences(11, found, found, AGREED)
    assert differences(11, found, [[129761, "17538456.86"], *found[1:]], AGREED)


def test_the_last_of_a_cut_list_may_be_others_with_their_keys() -> None:
    rows = [[str(order), f"{1000 - order}.00", "1995-03-05", "0"] for order in range(9)]
    expected = [*rows, ["100", "7.00", "1995-03-01", "0"]]
    other = [*rows, ["200", "7.00", "1995-03-01", "0"]]
    assert not differences(3, expected, other)
    assert differences(3, expected, [*rows, ["200", "7.00", "1995-03-02", "0"]]), "another key"
    assert differences(3, expected[:9], [*other[:8], ["200", "992.00", "1995-03-05", "0"]]), "the list was not cut"


def test_what_is_wrong_is_said_and_not_at_length() -> None:
    assert differences(4, [["1-URGENT", 1]], []) == ["0 rows and not 1"]
    assert differences(4, [["1-URGENT", 1]], [["1-URGENT"]]) == ["found row 1 has 1 columns and not 2"]
    expected = [[number, number] for number in range(20, 0, -1)]
    told = differences(11, expected, [[number + 1, number] for number in range(20, 0, -1)], AGREED)
    assert told[0] == "row 1, column 1: 21 and not 20"
    assert len(told) == 6 and told[-1] == "and 15 more"
