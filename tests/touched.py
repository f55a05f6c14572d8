"""Which tests a change touches: ./test --since REV.

The constraint: it may run too much, never too little. A path that no rule knows runs everything.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

EVERYTHING = ("tests",)
FAULTS = "tests/unit/test_faults.py"  # whether each planted fault still fits its file
# What a stage of the data flow is seen by; a path by the first rule that fits.
RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("docs/", ("tests/unit/test_documents.py",)),
    ("README.md", ("tests/unit/test_documents.py", "tests/flow/test_readme.py")),
    (
        "benches/simulate/",
        (
            "tests/unit/analysis/test_fair.py",
            "tests/unit/analysis/test_moderated.py",
            "tests/unit/analysis/test_windows.py",
            "tests/unit/analysis/test_windows_groups.py",
        ),
    ),
    ("benches/planting/", ("tests/unit/analysis/test_soak_planting.py",)),
    ("benches/", ("tests/unit/benches", "tests/unit/test_documents.py")),
    ("schema/", ("tests/unit",)),
    ("experiments/", ("tests/unit", "tests/flow/test_readme.py")),
    ("python/plimsoll/analysis/", ("tests/unit", "tests/golden", "tests/flow/test_pipeline.py")),
    ("python/plimsoll/report/", ("tests/unit", "tests/golden", "tests/flow/test_pipeline.py")),
    ("python/plimsoll/export/", ("tests/unit/export", "tests/unit/test_documents.py", FAULTS)),
    ("python/plimsoll/experiment/", ("tests/unit", "tests/golden", "tests/flow")),
    ("python/plimsoll/record/", ("tests/unit", "tests/golden", "tests/flow")),
    ("python/plimsoll/cli/", ("tests/unit", "tests/flow")),
    ("python/plimsoll/target/", ("tests/unit", "tests/flow")),
    ("python/plimsoll/run/", ("tests/unit", "tests/flow", "tests/guest")),
    ("python/plimsoll/environment/", EVERYTHING),
    ("crates/keys/", ("tests/unit", "tests/flow")),
    ("crates/private-server/", ()),
    ("crates/probe/", ("tests/known", "tests/guest", "tests/flow", FAULTS)),
    ("crates/", ("tests/known", "tests/flow", FAULTS)),
    ("tests/golden/", ("tests/golden",)),
    ("tests/faults/", ("tests/faults", FAULTS)),
)
DOCUMENT = "tests/unit/test_documents.py"
FULL_MATRIX = ("crates/probe/", "python/plimsoll/environment/", "tests/matrix.py")


@dataclass(frozen=True)
class Plan:
    """Paths of tests for pytest, packages for cargo, and what to tell whoever waits."""

    paths: tuple[str, ...] = EVERYTHING
    packages: tuple[str, ...] = ()
    full_matrix: bool = False
    told: str = "Every test."

    def below(self, folders: Sequence[str]) -> list[str]:
        """What of the paths lies in these folders; a folder as a whole where the paths hold it."""
        found = set()
        for folder in folders:
            for path in self.paths:
                if _holds(path, folder):
                    found.add(folder)
                elif _holds(folder, path):
                    found.add(path)
        return sorted(found)


def _holds(folder: str, path: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


def packages() -> dict[str, set[str]]:
    """The crates of the workspace by name, each with those of ours that its manifest names."""
    found = {}
    for manifest in Path("crates").glob("*/Cargo.toml"):
        read = tomllib.loads(manifest.read_text())
        tables = (read.get(name, {}) for name in ("dependencies", "dev-dependencies", "build-dependencies"))
        found[read["package"]["name"]] = {name for table in tables for name in table if name.startswith("plimsoll-")}
    return found


def dependents(changed: Iterable[str], known: dict[str, set[str]]) -> tuple[str, ...]:
    """These crates and all that are built on them."""
    reached = set(changed)
    while more := {name for name, uses in known.items() if uses & reached} - reached:
        reached |= more
    return tuple(sorted(reached))


def everything() -> Plan:
    """All tests of both languages."""
    return Plan(packages=tuple(sorted(packages())))


def of(changed: Sequence[str], known: dict[str, set[str]]) -> Plan:
    """The plan for these paths of files, relative to the project's folder."""
    paths: set[str] = set()
    crates = set()
    for path in changed:
        name = PurePosixPath(path)
        if path.startswith("tests/") and name.name.startswith("test_") and name.suffix == ".py":
            paths.add(path)
            continue
        tests = next((tests for start, tests in RULES if path.startswith(start)), None)
        if tests is None and path.startswith("tests/") and len(name.parts) > 2:
            tests = ("/".join(name.parts[:2]),)  # what the tests of a folder share
        if tests is None and name.suffix == ".md":
            tests = (DOCUMENT,)
        if tests is None:
            return Plan(packages=tuple(sorted(known)), full_matrix=True, told=f"Every test: {path} touches all.")
        paths.update(tests)
        if name.parts[0] == "crates":
            crates.add(f"plimsoll-{name.parts[1]}")
    there = tuple(sorted(path for path in paths if Path(path).exists()))
    reached = dependents(crates & known.keys(), known)
    told = f"{len(changed)} changed files touch: {', '.join((*there, *reached)) or 'no test'}"
    full = any(path.startswith(FULL_MATRIX) for path in changed)
    return Plan(there, reached, full, told)


def since(revision: str) -> Plan:
    """The plan for what differs from the revision, uncommitted and untracked files included."""
    commands = (["git", "diff", "--name-only", revision], ["git", "ls-files", "--others", "--exclude-standard"])
    listed: set[str] = set()
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"test: --since {revision}: {done.stderr.strip() or 'git does not know it'}", file=sys.stderr)
            sys.exit(2)
        listed.update(done.stdout.splitlines())
    return of(sorted(listed), packages())
