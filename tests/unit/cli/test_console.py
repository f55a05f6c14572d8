"""Sentences go on between words on a terminal, stay whole in a log, and nothing in them is read as markup."""

import io

import pytest

from plimsoll.cli.console import Lines, wrapped


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("short", ["short"]),
        ("  note: one two three four", ["  note: one two", "    three four"]),
        ("a " + "/" + "x" * 30, ["a", "  /" + "x" * 30]),
        ("well-known and more words", ["well-known and more", "  words"]),
    ],
)
def test_a_line_goes_on_between_words_a_little_further_in(line: str, rows: list[str]) -> None:
    assert wrapped(line, 20).split("\n") == rows


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_has_lines_broken(terminal: bool) -> None:
    out = io.StringIO()
    console = Lines(
        file=out, force_terminal=terminal, width=20, markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    console.print("level [red]: one two :bug: three four\nnext")
    rows = out.getvalue().splitlines()
    assert rows[-1] == "next"
    assert " ".join(row.strip() for row in rows[:-1]) == "level [red]: one two :bug: three four"
    assert (len(rows) > 2) == terminal
