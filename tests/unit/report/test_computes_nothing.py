"""The report computes nothing: a number of the record or of the verdict is only given a unit and a place.

Read off the source. A value may be multiplied or divided by a constant (a unit), and a length on the page by anything;
it may never be divided by, multiplied by, taken from or added to another value, nor summed. What is allowed beside that
stands in LAYOUT and ALLOWED, each with its reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPORT = Path(__file__).parents[3] / "python/plimsoll/report"
FILES = sorted(REPORT.rglob("*.py"))
# Names that are lengths on the page, in pixels or columns, and counts of what stands side by side.
LAYOUT = {"width", "columns", "room", "panels", "levels", "count", "len", "longest", "place", "every"}
# A unit or a factor of display that a function is given.
UNITS = {"scale", "factor", "unit", "size"}
# By file: functions that draw a shape from values, and the reason.
ALLOWED = {
    "drawing/flame.py": {"flame": "a box is as wide as its share of the whole"},
    "drawing/series.py": {"ramp": "colours of ordered levels"},
    "drawing/marks.py": {"decade_ticks": "1, 2 and 5 of each decade"},
    "watch/drawings.py": {"bar": "SVG by hand", "timeline": "SVG by hand"},
    "probes/syscalls.py": {"size_of": "a power of two in words"},
    "watch/page.py": {"_slowest_rows": "seconds since the watch began"},
}
OPERATIONS = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
TABLES = {"series", "column", "transactions", "syncs", "stacks"}  # of a record's segment (record/run.py)


def _is_constant(node: ast.expr) -> bool:
    """A number, a constant of the module, or arithmetic on those."""
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left) and _is_constant(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
    return isinstance(node, ast.Constant) or (name is not None and (name.isupper() or name in UNITS))


def _is_layout(node: ast.expr) -> bool:
    """Whether an expression is made of lengths on the page and constants alone."""
    if isinstance(node, ast.BinOp):
        return _is_layout(node.left) and _is_layout(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_layout(node.operand)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "len":
            return True  # how many rows there are
        named = isinstance(node.func, ast.Name) and node.func.id in {"max", "min", "panel_width"}
        return named and all(_is_layout(one) or isinstance(one, ast.Name | ast.Attribute) for one in node.args)
    return _is_constant(node) or (isinstance(node, ast.Name) and node.id in LAYOUT)


def _is_path_or_set(node: ast.BinOp) -> bool:
    """A path and its file (`run.path / "x"`), or a set less another."""
    texts = (ast.JoinedStr, ast.Set, ast.SetComp)
    return any(isinstance(one, texts) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
               for one in (node.left, node.right)) or ast.unparse(node.left) == "folder"  # fmt: skip


def computed(tree: ast.AST, allowed: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Line and text of everything that computes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name in allowed:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATIONS):
            is_unit = _is_constant(node.left) or _is_constant(node.right)
            is_scaled = is_unit and not isinstance(node.op, ast.Sub | ast.Pow)
            if not (is_scaled or _is_layout(node) or _is_path_or_set(node)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            ends = (node.left, node.right)
            if all(isinstance(end, ast.Subscript) and not isinstance(end.slice, ast.Slice) for end in ends):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"sum", "divmod"}:
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Attribute) and node.attr in TABLES:
            yield node.lineno, f"a table of the record: {ast.unparse(node)}"
        yield from computed(node, allowed)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(REPORT)) for path in FILES])
def test_a_page_is_drawn_and_nothing_is_computed(path: Path) -> None:
    allowed = ALLOWED.get(str(path.relative_to(REPORT)), {})
    found = [f"{path.name}:{line}: {text}" for line, text in computed(ast.parse(path.read_text()), allowed)]
    assert found == [], "compute it in plimsoll.analysis, in the room of the same name"


def test_what_is_allowed_is_there_and_would_be_found() -> None:
    for name, functions in ALLOWED.items():
        tree = ast.parse((REPORT / name).read_text())
        for function in functions:
            node = next(
                (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == function), None
            )
            assert node is not None, f"{name} has no {function}"
            assert list(computed(node, {})), f"{name}: {function} needs no exception any more"


@pytest.mark.parametrize(
    "code",
    [
        "share = row['own_ns'] / row['ns']",
        "mean = found['ns'] / found['count'] * US",
        "whole = found['cpu_ns'] + found['wait_ns']",
        "left = one['to_s'] - one['from_s']",
        "total = sum(row['count'] for row in rows)",
        "rows = trial.measure.series('host')",
    ],
)
def test_what_computes_is_found(code: str) -> None:
    assert list(computed(ast.parse(code), {}))


@pytest.mark.parametrize(
    "code",
    ["ms = found['ns'] * _MS", "kib = value / 1024", "w = (WIDTH - 90 * columns) // columns", "p = run.path / 'a'"],
)
def test_what_gives_a_unit_or_a_place_is_not(code: str) -> None:
    assert not list(computed(ast.parse(code), {}))
