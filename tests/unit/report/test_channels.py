"""What a figure encodes has the type of its channel.

Of a bare field or value Altair finds that type by hashing every schema that it has, anew for each: a third of the time
that a page took.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import plimsoll.report

REPORT = Path(plimsoll.report.__file__).parent
FIELD = re.compile(r"[a-z]\w*:[QNOT]")
TAKES_THE_NAME = {"by_colour"}  # and makes a channel of it


def bare(source: str) -> Iterator[str]:
    """The fields and values in a file that no channel was made of."""
    tree = ast.parse(source)
    named: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            named |= {*node.defaults, *(one for one in node.kw_defaults if one)}
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called[:1].isupper() or called in TAKES_THE_NAME:
                named |= set(node.args)
            named |= {keyword.value for keyword in node.keywords if keyword.arg == "high"}
            if called in ("value", "condition") and ast.unparse(node.func).startswith("alt."):
                yield f"line {node.lineno}: {ast.unparse(node)}"
    for node in ast.walk(tree):
        is_field = isinstance(node, ast.Constant) and isinstance(node.value, str) and FIELD.fullmatch(node.value)
        if is_field and node not in named:
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", sorted(REPORT.rglob("*.py")), ids=lambda path: str(path.relative_to(REPORT)))
def test_every_field_and_value_is_one_of_a_channel(path: Path) -> None:
    assert not list(bare(path.read_text())), "write alt.Tooltip(...), alt.XValue(...)"


def test_a_bare_one_is_found() -> None:
    source = 'chart.encode(alt.X("a:Q"), y=alt.value(4), tooltip=["b:N", alt.Tooltip("c:Q")], text="d:N")'
    assert set(bare(source)) == {"line 1: alt.value(4)", "line 1: 'b:N'", "line 1: 'd:N'"}
