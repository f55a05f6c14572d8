"""Runs again, once and by themselves, the tests that failed and that watch a machine at work; says which they were.

The fact that constrains it: a neighbour's second on a shared machine fails a test of a real server now and then, and
most runs of hundreds of such tests have one. A unit test has no such excuse, nor have many failures at once.

Without an argument those of the last run of pytest; with the file of what `cargo test --no-fail-fast` said and what its
tests were given, those of its programs below tests/. Exit codes: 0 each of them passed this time; 1 otherwise, or a
failure that is not run again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

AT_MOST = 5
WATCHING = ("tests/known/", "tests/flow/", "tests/guest/")
LEFT_BY_PYTEST = Path(".pytest_cache/v/cache/lastfailed")
CARGO = ("cargo", "test", "--profile", "checked", "--locked", "--target-dir", "target")


def runs_again(failed: list[str]) -> bool:
    """Whether these failures, by pytest's names of tests, may be a neighbour's."""
    return 0 < len(failed) <= AT_MOST and all(name.startswith(WATCHING) and "::" in name for name in failed)


def programs_again(said: str) -> list[list[str]]:
    """The options that name the programs with failed tests; none where one is not to be run again."""
    listed = re.findall(r"^error: \d+ targets? failed:\n((?:    `.*`\n)+)", said, re.MULTILINE)
    failed = [line.strip(" `").split() for block in listed for line in block.splitlines()]
    return failed if len(failed) <= AT_MOST and all("--test" in options for options in failed) else []


def again(what: list[str], commands: list[list[str]]) -> int:
    """Runs them; 0 where all pass."""
    if not commands:
        return 1
    print(f"\n== Once more, by themselves: {len(what)} that watch a machine", flush=True)
    if any(subprocess.run(command, check=False).returncode for command in commands):
        return 1
    print("\nFailed in the whole run and passed by themselves; what is here often has a fault:")
    print("\n".join(f"  {name}" for name in what), flush=True)
    return 0


def main() -> int:
    if len(sys.argv) > 1:
        log, *given = sys.argv[1:]
        programs = programs_again(Path(log).read_text())
        return again([" ".join(one) for one in programs], [[*CARGO, *one, "--", *given] for one in programs])
    failed = sorted(json.loads(LEFT_BY_PYTEST.read_text())) if LEFT_BY_PYTEST.exists() else []
    return again(failed, [[sys.executable, "-m", "pytest", *failed]] if runs_again(failed) else [])


if __name__ == "__main__":
    sys.exit(main())
