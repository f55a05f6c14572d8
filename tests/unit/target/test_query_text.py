"""Queries keep their shape and lose their values, also where the server cut them off."""

from __future__ import annotations

import pytest

from plimsoll.target.query_text import without_values


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("select * from a where x = 5 and y = 'it''s'", "select * from a where x = ? and y = ?"),
        ("select 1 -- a secret\n from a", "select ? from a"),
        ("select /* 'a' */ x1, t2.c3 from \"T 4\"", 'select x1, t2.c3 from "T 4"'),
        ("insert into t values (1, 'a'), (2, 'b'),(3,'c')", "insert into t values (?)"),
        ("select * from a where x in (1,2,3)", "select * from a where x in (?)"),
        ("update a set b = b + -123 where c = $1", "update a set b = b + ? where c = ?"),
        ("select a-1, a - 1 from t", "select a-?, a - ? from t"),
        ("select $$secret$$, $q$ it's $$ one $q$", "select ?"),
        ("select E'a\\'b', B'01', U&'d\\0061t', 1.5e3, .5", "select ?"),
        ("select 'a'::text, x::int4", "select ?::text, x::int4"),
        ("alter role x password 'secr", "alter role x password ?"),
        ("do $body$ begin perform secret(); ", "do ?"),
        ("  BEGIN ;\n", "BEGIN"),
        ("", ""),
    ],
)
def test_values_are_left_out(text: str, shown: str) -> None:
    assert without_values(text) == shown


def test_texts_that_differ_in_values_are_one() -> None:
    texts = {without_values(f"SELECT abalance FROM pgbench_accounts WHERE aid = {aid};") for aid in (1, 77, 123456)}
    assert len(texts) == 1


@pytest.mark.parametrize("cut", range(1, 60))
def test_no_value_shows_wherever_the_text_is_cut(cut: int) -> None:
    text = "select * from t where a = 'geheim' and b = E'x\\'geheim' and c = $t$geheim$t$"
    assert "geheim" not in without_values(text[:cut])
