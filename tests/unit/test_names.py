"""No name of a workload, metric, server or kind of run, and no class of one, is tested outside the room it belongs to.

What differs between them is said by objects in registries. Read off the source of the whole front: comparisons with
such a name or with a constant that holds one, cases of a match, beginnings of a string, tests of a class, and imports
of one. The few that remain stand here, each with its reason.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from plimsoll.analysis import metrics, parts
from plimsoll.cli.kinds.registry import KINDS
from plimsoll.experiment.servers.registry import SERVERS
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Workload
from plimsoll.run.servers import registry as of_servers

PACKAGE = Path(parts.__file__).parents[1]
WORKLOADS = get_args(get_args(Workload)[0])
NAMES = {get_args(kind.model_fields["name"].annotation)[0] for kind in WORKLOADS}
NAMES |= set(SERVERS) | {kind.key for kind in KINDS if kind.key} | set(metrics.METRICS)
CLASSES = {base.__name__ for kind in WORKLOADS for base in kind.__mro__} & {
    *(kind.__name__ for kind in WORKLOADS), "Load", "OnFiles", "PassesOverFiles",
} | {
    "PostgresServer", "ReachedPostgres", "PostgresAtWork", "PrivatePostgres", "ExistingPostgres",
    "DuckServer", "DuckAtWork", "PrivateDuck", "Folder", "FilesAtWork", "PrivateFiles",
    "WebServer", "NginxServer", "ApacheServer", "WebAtWork", "PrivateWeb", "PrivateNginx", "PrivateApache",
    "ExistingWeb", "ReachedWeb",
}  # fmt: skip
# Functions that would ask for a kind by another name.
JUDGES = {"is_latency", "is_time", "is_capacity", "is_breakdown"}

# What belongs to one of them is its room: a folder, or the files that begin so.
ROOMS = (
    # workloads
    "experiment/workloads/", "words/workloads/", "run/decision_support/", "run/phases/",
    "analysis/files/", "report/files/", "analysis/web/", "report/web/",
    *(f"{stage}/{room}" for stage in ("analysis", "report") for room in ("decision_support", "order_entry")),
    # servers
    "experiment/servers/database", "experiment/servers/embedded", "experiment/servers/folder", "experiment/servers/web",
    "target/postgres", "target/reached_postgres", "target/duckdb",
    "environment/web_", "target/web_server", "target/nginx", "target/apache",
    "run/servers/postgresql/", "run/servers/duckdb/", "run/servers/files/", "run/servers/web/",
    # kinds of run
    "analysis/capacity/", "analysis/watch/", "run/watch/", "cli/capacity", "cli/breakdown", "cli/kinds/",
    "analysis/soak/", "run/soak/", "words/soak/", "report/soak/", "cli/soak", "cli/verbs/soak",
)  # fmt: skip
# A registry names what it lists.
REGISTRIES = (
    "experiment/workload.py", "experiment/servers/registry.py", "run/servers/registry.py", "run/segments.py",
    "analysis/workloads.py", "analysis/metrics.py", "analysis/parts.py", "words/parts.py", "report/sections.py",
)  # fmt: skip
REASONS = {
    "analysis/studies/clients.py: WORKLOAD": "study S2 asks about the branch rows of pgbench's own tables",
    "analysis/studies/memory_scaling.py: METRIC": "the spread of equals is known of the metric that is judged alone",
    "run/trial/capabilities.py: import of DecisionSupport": "the type of what a capability is given, for its rooms",
    "target/__init__.py: import of PostgresServer": "the door of the package, which loads it when it is asked for",
}


@cache
def _files() -> dict[str, ast.Module]:
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def _holds_name(value: ast.expr | None) -> bool:
    """Whether a value is such a name, or several values of which one is."""
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return any(map(_holds_name, value.elts))
    return isinstance(value, ast.Constant) and value.value in NAMES


def _constants(files: dict[str, ast.Module]) -> set[str]:
    """What constants that hold such a name are called, in whatever file."""
    constants: set[str] = set()
    for tree in files.values():
        for node in tree.body:
            pairs: list[tuple[ast.expr, ast.expr | None]] = []
            if isinstance(node, ast.AnnAssign):
                pairs = [(node.target, node.value)]
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    whole = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    pairs += zip(target.elts, node.value.elts, strict=True) if whole else [(target, node.value)]
            constants |= {target.id for target, value in pairs if isinstance(target, ast.Name) and _holds_name(value)}
    return constants


def _compared(node: ast.AST) -> Iterator[ast.expr]:
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


def _identifier(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _named(node: ast.AST, constants: set[str]) -> Iterator[str]:
    """The names and classes that a piece of code tests, as they stand there."""
    for side in _compared(node):
        if isinstance(side, ast.Constant) and isinstance(side.value, str):
            begins = side.value.endswith("_") and any(name.startswith(side.value) for name in NAMES)
            if side.value in NAMES or begins:
                yield repr(side.value)
        elif _identifier(side) in constants:
            yield _identifier(side)
    if isinstance(node, ast.Call) and _identifier(node.func) in JUDGES:
        yield _identifier(node.func)
    if isinstance(node, ast.Call) and _identifier(node.func) in ("isinstance", "issubclass"):
        yield from sorted(CLASSES & set(map(_identifier, ast.walk(node.args[1]))))
    if isinstance(node, ast.ImportFrom):
        yield from (f"import of {name}" for name in sorted(CLASSES & {alias.name for alias in node.names}))


def names_tested(files: dict[str, ast.Module]) -> set[str]:
    """Every such test: the file, and the name as it stands there."""
    constants = _constants(files)
    return {
        f"{path}: {name}"
        for path, tree in files.items()
        if not path.startswith(ROOMS) and path not in REGISTRIES
        for node in ast.walk(tree)
        for name in _named(node, constants)
    }


def test_no_name_is_tested_outside_its_room() -> None:
    for test, why in REASONS.items():
        print(f"{test}: {why}")
    assert names_tested(_files()) == REASONS.keys()


def test_every_room_and_registry_is_there() -> None:
    files = _files()
    assert len(files) > 400
    assert [room for room in ROOMS if not any(path.startswith(room) for path in files)] == []
    assert [path for path in REGISTRIES if path not in files] == []


def test_a_name_that_is_tested_is_seen() -> None:
    code = {
        "words/a.py": 'def f(x):\n    return x == "wpi_orders"',
        "words/b.py": 'def f(x):\n    return x.startswith("latency_ns_")',
        "words/c.py": 'SPEED, BOTH = "throughput_per_second", ("bank", "script")',
        "words/d.py": "def f(x):\n    return x in (SPEED, c.SPEED) or x in BOTH",
        "words/e.py": 'def f(x):\n    match x:\n        case "duckdb":\n            return 1',
        "words/workloads/order_entry.py": 'def f(x):\n    return x == "order_entry"',
        "run/a.py": "def f(x):\n    assert not isinstance(x, (y.DecisionSupport, int))",
        "run/b.py": 'def f(x):\n    return str(x.target.server) == "postgresql"',
        "run/c.py": "from plimsoll.target import PostgresServer, ServerFailed",
        "run/d.py": 'kind = KINDS["duckdb"]\nif kind.is_private and name == "x": pass',
        "report/a.py": 'def f(run):\n    return run.data.get("kind") != "capacity"',
        "report/b.py": "def f(verdict):\n    return is_latency(verdict['metric'])",
        "cli/a.py": "def f(x):\n    return x == 'all' or isinstance(x, int) or x == 'stopped'",
    }
    assert names_tested({path: ast.parse(text) for path, text in code.items()}) == {
        "words/a.py: 'wpi_orders'",
        "words/b.py: 'latency_ns_'",
        "words/d.py: SPEED",
        "words/d.py: BOTH",
        "words/e.py: 'duckdb'",
        "run/a.py: DecisionSupport",
        "run/b.py: 'postgresql'",
        "run/c.py: import of PostgresServer",
        "report/a.py: 'capacity'",
        "report/b.py: is_latency",
    }


def test_every_server_has_its_facts_and_its_room() -> None:
    assert set(SERVERS) == set(of_servers.KINDS) == set(get_args(Target.model_fields["server"].annotation))
