"""The shared flow asks what something can do, and tests neither which server nor which workload it is."""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator
from pathlib import Path

from plimsoll import run
from plimsoll.experiment import workload as of_workloads
from plimsoll.experiment.servers import SERVERS
from plimsoll.run.servers.registry import KINDS

RUN = Path(run.__file__).parent
# What belongs to one server or one kind of work is its room; a registry names the rooms.
ROOMS = ("servers/postgresql/", "servers/duckdb/", "servers/files/", "decision_support/", "phases/", "watch/")
REGISTRIES = ("servers/registry.py", "segments.py")
# file and line as written: why it stays
KNOWN = {
    ("capacity/source.py", 'what == "script"'): "a word of the command line that no shipped file goes by",
    ("trial/capabilities.py", "import of DecisionSupport"): "the type of what a capability is given, for its rooms",
}
WORKLOADS = typing.get_args(typing.get_args(of_workloads.Workload)[0])
NAMES = {name for kind in WORKLOADS for name in typing.get_args(kind.model_fields["name"].annotation)} | set(SERVERS)
CLASSES = {kind.__name__ for kind in WORKLOADS} | {
    "PostgresServer", "ReachedPostgres", "DuckServer", "PostgresAtWork", "DuckAtWork", "PrivatePostgres",
    "ExistingPostgres", "PrivateDuck", "Folder", "FilesAtWork", "PrivateFiles",
}  # fmt: skip


def asked_by_name(text: str) -> Iterator[str]:
    """Comparisons with a server's or workload's name, tests of its class, imports of it, and cases of a match."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            values = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if NAMES & {value for value in values if isinstance(value, str)}:
                yield ast.unparse(node).replace("'", '"')
        elif isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Constant) and node.value.value in NAMES:
            yield ast.unparse(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            if CLASSES & {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.args[1])}:
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (named := CLASSES & {alias.name for alias in node.names}):
            yield f"import of {', '.join(sorted(named))}"


def test_the_shared_flow_tests_no_names() -> None:
    files = [path for path in RUN.rglob("*.py") if not str(path.relative_to(RUN)).startswith(ROOMS)]
    assert len(files) > 30
    found = {
        (str(path.relative_to(RUN)), text)
        for path in files
        if str(path.relative_to(RUN)) not in REGISTRIES
        for text in asked_by_name(path.read_text())
    }
    for (file, text), why in KNOWN.items():
        print(f"{file}: {text}: {why}")
    assert found == set(KNOWN)


def test_what_it_finds() -> None:
    """In the forms that stood in the flow before there were registries."""
    flow = """
from plimsoll.experiment.decision_support import DecisionSupport
if str(settings.target.server) == "postgresql" or workload.name in ("bank", "x"): pass
assert not isinstance(workload, DecisionSupport)
match server:
    case "duckdb": pass
"""
    assert len(list(asked_by_name(flow))) == 5
    assert list(asked_by_name('kind = KINDS["duckdb"]\nif kind.is_private and name == "x": pass')) == []


def test_every_server_has_its_facts_and_its_room() -> None:
    assert set(SERVERS) == set(KINDS) == set(typing.get_args(_server_annotation()))


def _server_annotation() -> object:
    from plimsoll.experiment.target import Target

    return Target.model_fields["server"].annotation
