"""The planted faults as faults.toml has them, and whether each still fits the tree.

A fault is an exact text of one file and what stands there instead. A test is named by its file and its function in both
languages: tests/unit/record/test_record.py::test_x, crates/keys/src/words.rs::bounds_are_kept. Of Python a whole file
may be named, too.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

TABLE = Path(__file__).with_name("faults.toml")
# In the order of the data flow (ARCHITECTURE.md); a stage in both languages is one.
STAGES = (
    "experiment", "environment", "target", "run", "workload", "keys", "schedule", "load", "probe", "agent", "record",
    "analysis", "words", "export", "report", "cli",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault, and the tests of the default run that have to see it."""

    name: str
    stage: str
    file: str
    text: str
    instead: str
    seen_by: tuple[str, ...]

    @property
    def crate(self) -> str | None:
        """The folder of the crate that it is in; None of Python."""
        return _crate_of(self.file)

    @property
    def python_tests(self) -> list[str]:
        return [test for test in self.seen_by if _crate_of(test) is None]

    @property
    def rust_tests(self) -> list[RustTest]:
        return [RustTest.of(test) for test in self.seen_by if _crate_of(test) is not None]

    def planted(self, source: str) -> str:
        """The file's text with the fault in it. Raises ValueError unless the text to replace occurs exactly once."""
        times = source.count(self.text)
        if times != 1:
            raise ValueError(f"{self.file}: the text of the fault {self.name!r} occurs {times} times; mend faults.toml")
        return source.replace(self.text, self.instead)


@dataclass(frozen=True)
class RustTest:
    """A test as cargo is asked for it."""

    package: str
    program: tuple[str, ...]  # the options that choose the program of tests it is in
    function: str

    @classmethod
    def of(cls, name: str) -> RustTest:
        path, _, function = name.partition("::")
        _, crate, kind, *rest = PurePosixPath(path).parts
        if kind == "tests":
            program: tuple[str, ...] = ("--test", PurePosixPath(rest[0]).stem)
        else:
            program = ("--bins",) if crate == "agent" else ("--lib",)
        return cls(f"plimsoll-{crate}", program, function)


def _crate_of(path: str) -> str | None:
    parts = PurePosixPath(path).parts
    return parts[1] if parts[0] == "crates" else None


def read(table: Path = TABLE) -> list[Fault]:
    """The faults in the order of the table."""
    return [
        Fault(**{**entry, "seen_by": tuple(entry["seen_by"])}) for entry in tomllib.loads(table.read_text())["fault"]
    ]


def misfits(faults: Sequence[Fault], root: Path) -> list[str]:
    """What of the table does not fit the tree at `root`, each with what to mend."""
    wrong = [f"the name {fault.name!r} is given twice" for fault in faults if _is_twice(fault.name, faults)]
    for fault in faults:
        if fault.stage not in STAGES:
            wrong.append(f"{fault.name}: stage {fault.stage!r} is none of {', '.join(STAGES)}")
        if not fault.seen_by:
            wrong.append(f"{fault.name}: names no test that should see it")
        try:
            planted = fault.planted((root / fault.file).read_text())
            if fault.file.endswith(".py"):
                ast.parse(planted)
        except (OSError, ValueError, SyntaxError) as error:
            wrong.append(f"{fault.name}: {error}")
        wrong += [f"{fault.name}: {trouble}" for test in fault.seen_by if (trouble := _missing(test, root))]
    return wrong


def _is_twice(name: str, faults: Sequence[Fault]) -> bool:
    return sum(fault.name == name for fault in faults) > 1


def _missing(test: str, root: Path) -> str | None:
    """Why a named test is none of the default run; None if it is one."""
    path, _, function = test.partition("::")
    if not (root / path).is_file():
        return f"there is no file {path}"
    source, function = (root / path).read_text(), function.partition("[")[0]
    if _crate_of(path) is not None:
        found = re.search(rf"#\[test\]\n((?:\s*#\[.*\n)*)\s*fn {re.escape(function)}\(", source)
        found = found or re.search(rf"(?s)proptest! \{{.*\n\s*()fn {re.escape(function)}\(", source)
        if found is None:
            return f"{path} has no test {function}"
        return f"{test} is ignored by default" if "ignore" in found[1] else None
    if not function:
        return None
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            return f"{test} runs with --long only" if "pytest.mark.long" in marks else None
    return f"{path} has no test {function}"
