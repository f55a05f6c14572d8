"""Queries without the values in them, so that equal queries count together and no value of a user enters a record.

The constraint: the server cuts texts off, so that a quotation may be open at the end; what follows an open quote is a
value. Numbers, quoted strings and strings between dollar signs become `?`, lists of them one; names stay as they are.
"""

from __future__ import annotations

import re

HIDDEN = "?"
_PIECES = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|$))
    | (?P<name>"(?:[^"]|"")*(?:"|$))
    | (?P<dollar>\$(?P<tag>[A-Za-z_]\w*|)\$.*?(?:\$(?P=tag)\$|$))
    | (?P<string>(?:\b[EeBbXxNn]|\b[Uu]&)?'(?:\\.|''|[^'])*(?:'|$))
    | (?P<parameter>\$\d+)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<blank>\s+)
    """,
    re.VERBOSE | re.DOTALL,
)
_SIGN = re.compile(r"([-+*/<>=(,%]\s*)-\s*\?")
_LIST = re.compile(r"\?(?:\s*,\s*\?)+")
_ROWS = re.compile(r"(\(\?\))(?:\s*,\s*\(\?\))+")


def without_values(text: str) -> str:
    """The query with every value replaced, on one line and without the semicolon at its end."""

    def shown(piece: re.Match[str]) -> str:
        if piece["comment"] is not None or piece["blank"] is not None:
            return " "
        if piece["name"] is not None or piece["word"] is not None:
            return piece[0]
        return HIDDEN

    text = re.sub(r"\s+", " ", _PIECES.sub(shown, text)).strip().rstrip("; ")
    text = _SIGN.sub(r"\1?", text)
    return _ROWS.sub(r"\1", _LIST.sub(HIDDEN, text))
