"""Queries without the values in them, so that equal queries count together and no value of a user enters a record.

The constraint: the server cuts texts off, so that a quotation may be open at the end; what follows an open quote is a
value. Numbers, quoted strings and strings between dollar signs become `?`, lists of them one; names stay as they are.
Where a text can be read in two ways, everything from there on is left out: whether a backslash escapes in a plain
string is each session's own setting (standard_conforming_strings), which a text does not tell.
"""

from __future__ import annotations

import re

HIDDEN = "?"
# As in PostgreSQL's scan.l: every character beyond ASCII may stand in a name, and in the tag between two dollar signs.
_START, _GOES_ON = r"[A-Za-z_\x80-\U0010ffff]", r"[A-Za-z_0-9\x80-\U0010ffff]"
_PIECES = re.compile(
    rf"""
      (?P<blank>[ \t\n\r\f\v]+|--[^\n\r]*)
    | (?P<comment>/\*)
    | (?P<name>"(?:[^"]|"")*(?:"|\Z))
    | (?P<dollar>\$(?P<tag>{_START}{_GOES_ON}*|)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<escaped>[Ee]'(?:\\.|''|[^'\\])*(?:'|\\?\Z))
    | (?P<string>(?:[BbXxNn]|[Uu]&)?'(?:''|[^'])*(?:'|\Z))
    | (?P<parameter>\$\d+)
    | (?P<word>{_START}(?:{_GOES_ON}|\$)*)
    | (?P<number>0[XxOoBb]{_GOES_ON}*|(?:\d|\.\d)(?:[Ee][+-]\d|{_GOES_ON}|\.)*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WITH_ESCAPES = re.compile(r"[^']*'(?:\\.|''|[^'\\])*(?:'|\\?\Z)", re.DOTALL)
_EDGE_OF_COMMENT = re.compile(r"/\*|\*/")
_SIGN = re.compile(r"([-+*/<>=(,%]\s*)-\s*\?")
_LIST = re.compile(r"\?(?:\s*,\s*\?)+")
_ROWS = re.compile(r"(\(\?\))(?:\s*,\s*\(\?\))+")


def without_values(text: str) -> str:
    """The query with every value replaced, on one line and without the semicolon at its end."""

    shown, place = [], 0
    while (piece := _PIECES.match(text, place)) is not None:
        place = piece.end()
        match piece.lastgroup:
            case "blank":
                shown.append(" ")
            case "comment":
                shown.append(" ")
                place = _end_of_comment(text, place)
            case "name" | "word" | "other":
                shown.append(piece[0])
            case _:
                shown.append(HIDDEN)
        if piece.lastgroup == "string" and not _ends_alike(text, piece):
            break
    text = re.sub(r"\s+", " ", "".join(shown)).strip().rstrip("; ")
    text = _SIGN.sub(r"\1?", text)
    return _ROWS.sub(r"\1", _LIST.sub(HIDDEN, text))


def _ends_alike(text: str, string: re.Match[str]) -> bool:
    """Whether a plain string ends at the same place in sessions where a backslash escapes."""
    escaped = _WITH_ESCAPES.match(text, string.start())
    return escaped is not None and escaped.end() == string.end()


def _end_of_comment(text: str, place: int) -> int:
    """Behind a comment whose text begins at `place`; comments nest."""
    depth = 1
    for edge in _EDGE_OF_COMMENT.finditer(text, place):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)
