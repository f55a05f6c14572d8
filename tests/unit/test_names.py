"""Judging and its words test no name of a workload, metric, server or kind of run outside the room that it belongs to.

What differs between them is said by objects in registries (metrics.py, parts.py, workloads.py). The few tests of a name
that remain stand here, each with its reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from plimsoll.analysis import metrics, parts
from plimsoll.analysis.capacity.kind import KIND as CAPACITY
from plimsoll.analysis.watch.kind import KIND as WATCH
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload

PACKAGE = Path(parts.__file__).parents[1]
WORKLOADS = {get_args(one.model_fields["name"].annotation)[0] for one in get_args(get_args(Workload)[0])}
SERVERS = set(get_args(Target.model_fields["server"].annotation))
NAMES = WORKLOADS | SERVERS | {CAPACITY, WATCH} | set(metrics.METRICS)
OWN_ROOMS = ("decision_support", "order_entry", "analysis/files", "analysis/capacity", "analysis/watch")
REASONS = {
    "analysis/studies/clients.py: WORKLOAD": "study S2 asks about the branch rows of pgbench's own tables",
    "analysis/studies/memory_scaling.py: METRIC": "the spread of equals is known of the metric that is judged alone",
}


def _files() -> dict[str, ast.Module]:
    found = [path for room in ("analysis", "words") for path in sorted((PACKAGE / room).rglob("*.py"))]
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in found}


def _constants(files: dict[str, ast.Module]) -> set[str]:
    """What constants that hold such a name are called, in whatever file."""
    found: set[str] = set()
    for tree in files.values():
        for node in tree.body:
            pairs: list[tuple[ast.expr, ast.expr | None]] = []
            if isinstance(node, ast.AnnAssign):
                pairs = [(node.target, node.value)]
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    whole = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    pairs += zip(target.elts, node.value.elts, strict=True) if whole else [(target, node.value)]
            for target, value in pairs:
                if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and value.value in NAMES:
                    found.add(target.id)
    return found


def _tested(node: ast.AST) -> Iterator[ast.AST]:
    """What a piece of code compares something with, itself or as one of several."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.MatchValue):
        sides = [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
        sides = node.args
    for side in sides:
        yield from side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]


def names_tested(files: dict[str, ast.Module]) -> set[str]:
    """Every such test: the file, and the name as it stands there."""
    constants, found = _constants(files), set()
    for path, tree in files.items():
        if any(room in path for room in OWN_ROOMS):
            continue
        for one in (one for node in ast.walk(tree) for one in _tested(node)):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                begins = one.value.endswith("_") and any(name.startswith(one.value) for name in NAMES)
                if one.value in NAMES or begins:
                    found.add(f"{path}: {one.value!r}")
            elif isinstance(one, ast.Name | ast.Attribute):
                name = one.id if isinstance(one, ast.Name) else one.attr
                if name in constants:
                    found.add(f"{path}: {name}")
    return found


def test_no_name_is_tested_outside_its_room() -> None:
    assert names_tested(_files()) == REASONS.keys()


def test_a_name_that_is_tested_is_seen() -> None:
    files = _files()
    code = {
        "words/a.py": 'def f(x):\n    return x == "wpi_orders"',
        "words/b.py": 'def f(x):\n    return x.startswith("latency_ns_")',
        "words/c.py": 'SPEED = "throughput_per_second"',
        "words/d.py": "def f(x):\n    return x in (SPEED, c.SPEED)",
        "words/e.py": 'def f(x):\n    match x:\n        case "duckdb":\n            return 1',
        "words/order_entry.py": 'def f(x):\n    return x == "order_entry"',
    }
    found = names_tested({path: ast.parse(text) for path, text in code.items()})
    assert found == {
        "words/a.py: 'wpi_orders'",
        "words/b.py: 'latency_ns_'",
        "words/d.py: SPEED",
        "words/e.py: 'duckdb'",
    }
    assert len(files) > 50
