"""The shared flow of report, export and cli tests no name: none of a run's kind, a workload, a metric or a server.

Read off the source: comparisons with such a name, with a constant that holds one, and tests of a type of workload.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from plimsoll.analysis.metrics import METRICS
from plimsoll.cli.kinds.registry import KINDS
from plimsoll.experiment.workload import Workload

PLIMSOLL = Path(__file__).parents[3] / "python/plimsoll"
TYPES = {one.__name__: one for one in get_args(get_args(Workload)[0])}
WORKLOADS = {get_args(one.model_fields["name"].annotation)[0] for one in TYPES.values()}
NAMES = {kind.key for kind in KINDS if kind.key} | WORKLOADS | set(METRICS)
NAMES |= {"postgresql", "duckdb"}
CONSTANTS = {"WORKLOAD", "KIND", "LOAD", "POWER", "THROUGHPUT", "COMPOSITE", "NAMES", "METRICS"}
JUDGES = {"is_latency", "is_time", "is_capacity", "is_breakdown", "isinstance"}
# A workload's room knows its own tests' names.
ROOMS = ("report/decision_support/", "report/order_entry/", "cli/kinds/")
FILES = sorted(path for stage in ("report", "export", "cli") for path in (PLIMSOLL / stage).rglob("*.py"))


def _names(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_names(one) for one in node.elts)
    if isinstance(node, ast.Constant):
        return node.value in NAMES
    return isinstance(node, ast.Name) and node.id in CONSTANTS


def _is_judge(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Name) or node.func.id not in JUDGES:
        return False
    types = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & TYPES.keys()
    return node.func.id != "isinstance" or bool(types)


def names_tested(tree: ast.AST, function: str = "") -> Iterator[tuple[str, int, str]]:
    """The function, line and text of every test of a name."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef) else function
        is_compared = isinstance(node, ast.Compare) and any(map(_names, (node.left, *node.comparators)))
        if is_compared or (isinstance(node, ast.Call) and _is_judge(node)):
            yield inside, node.lineno, ast.unparse(node)
        yield from names_tested(node, inside)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PLIMSOLL)) for path in FILES])
def test_no_name_is_tested(path: Path) -> None:
    name = str(path.relative_to(PLIMSOLL))
    if name.startswith(ROOMS):
        return
    found = list(names_tested(ast.parse(path.read_text())))
    assert found == [], "let the workload, the metric, the server or the kind of run say it in its own room"


@pytest.mark.parametrize(
    "code",
    [
        "run.data.get('kind') == 'capacity'",
        "workload.name in ('bank', 'script')",
        "metric == LOAD",
        "metric in NAMES",
        "is_latency(verdict['metric'])",
        "isinstance(settings.workload, DecisionSupport)",
        "server != 'duckdb'",
    ],
)
def test_a_test_of_a_name_is_found(code: str) -> None:
    assert list(names_tested(ast.parse(code)))


def test_other_comparisons_are_not() -> None:
    assert not list(names_tested(ast.parse("kind == 'all' or isinstance(value, int) or status == 'stopped'")))
